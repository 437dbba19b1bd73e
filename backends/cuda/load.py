"""The CUDA backend enters the registry when somebody first asks for a CUDA device, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...eager import inplace, layouts
from ...eager.sparse_places import makers
from ...eager.tensor import Tensor, wrap
from ...eager.transfer import COMPILED, arrivals, overwrite, to_device
from ...eager.transfer import LIBRARY as TRANSFERS
from ...errors import ArgumentError
from ...operators.declare import LIBRARY, Declaration
from ...operators.devices import NO_BACKEND, await_cuda
from ...registry.keys import DispatchKey
from ...registry.library import Handle, Library
from ...registry.operator import Operator, lock, operators
from ...registry.values import describe
from ..cpu.kernels import declared_more
from . import copies, devices, indexing, interop, making, products, sparse
from . import toolkit as tools
from .arrays import contiguous_layout
from .casting import contiguous, convert_into, copied
from .elementwise import elementwise_kernel
from .folds import reduction_kernel
from .library_ops import library_kernel
from .scans import scan_kernel
from .tensor import CudaTensor, cuda_tensor
from .views import VIEWS, view_kernel
from .writes import inplace_kernel

Maker = Callable[[Operator], Callable[..., Any]]

# Operators with kernels of their own; the others are served by what their declarations say.
OWN: dict[str, Maker] = {
    "td::full": making.full_kernel,
    "td::arange": making.arange_kernel,
    "td::linspace": making.linspace_kernel,
    "td::eye": making.eye_kernel,
    "td::cast": making.cast_kernel,
    "td::clone": making.clone_kernel,
    "td::contiguous": making.contiguous_kernel,
    "td::concat": making.concat_kernel,
    "td::matmul": products.matmul_kernel,
    "td::random_bits": making.bits_kernel,
    "td::random_split": making.split_kernel,
    "td::random_fold_in": making.fold_kernel,
    "td::random_key": making.key_kernel,
    "td::random_order": making.order_kernel,
    "td::random_pick": making.pick_kernel,
    "td::basic_put": indexing.basic_put_kernel,
    "td::index": indexing.index_kernel,
    "td::index_put": indexing.index_put_kernel,
    "td::nonzero": indexing.nonzero_kernel,
    "sparse::spmm": sparse.spmm_kernel,
    "sparse::sddmm": sparse.sddmm_kernel,
}
SERVED = {"td": LIBRARY, "sparse": Library("sparse", "IMPL"), "quantized": Library("quantized", "IMPL")}
"""The namespaces of tandem's own operators, and what registers for them."""
_handles: list[Handle] = []
_made: dict[Operator, Callable[..., Any] | None] = {}


def way_of(op: Operator) -> str:
    """How an operator is served on CUDA.

    Returns:
        ``"emitted"`` (kernels in CUDA C), ``"view"``, ``"library"`` (cupy), ``"in place"``, ``"composite"``, or
        ``"none"``.
    """
    decl = op.decl
    if op in inplace.functional:
        return "in place"
    if op.name in VIEWS:
        return "view"
    if op.name in OWN or op.name == "device::to":
        return "emitted"
    if not isinstance(decl, Declaration):
        return "none"
    if decl.is_elementwise or decl.reduce is not None:
        return "emitted"
    if decl.kernel is not None:
        return "library"
    return "composite" if decl.kind == "composite" else "none"


def kernel_of(op: Operator) -> Callable[..., Any] | None:
    """The CUDA kernel of an operator; None for composites, which run as what they are made of."""
    way, decl = way_of(op), op.decl
    if way == "in place":
        return inplace_kernel(op, inplace.functional[op])
    if way == "view":
        return view_kernel(op, lambda x: cuda_tensor(copied(x._data)))
    if op.name in OWN:
        return OWN[op.name](op)
    if way == "emitted" and decl.is_elementwise:
        return elementwise_kernel(op)
    if way == "emitted" and decl.reduce is not None:
        return scan_kernel(op) if decl.kind == "scan" else reduction_kernel(op)
    return library_kernel(op) if way == "library" else None


def load() -> None:
    """Register the kernels of the CUDA key, once."""
    with lock:
        if _handles:
            return
        _serve()
        _handles.append(TRANSFERS.impl("to", _from_cuda, DispatchKey.CUDA))
        arrivals["cuda"] = _to_cuda
        makers["cuda"] = sparse.places
        _handles.extend(layouts.register(DispatchKey.SparseCUDA, DispatchKey.QuantizedCUDA))
        COMPILED.add(CudaTensor)
        overwrite[CudaTensor] = _overwrite
        NO_BACKEND.pop("cuda").remove()
        declared_more.append(_serve)


def _serve() -> None:
    """Register a kernel for every operator of tandem's that has none yet."""
    with lock:
        for op in list(operators.values()):
            namespace, _, rest = op.name.partition("::")
            if namespace not in SERVED or op.registered(DispatchKey.CUDA):
                continue
            if op not in _made:
                _made[op] = kernel_of(op)
            kernel = _made[op]
            if kernel is not None:
                kernel.__qualname__ = f"cuda_{op.schema.name}"
                _handles.append(SERVED[namespace].impl(rest, kernel, DispatchKey.CUDA))


def unload() -> None:
    """Take everything back; what a device is asked for next loads it again."""
    with lock:
        if _handles:
            NO_BACKEND["cuda"] = await_cuda()
            arrivals.pop("cuda", None)
            makers.pop("cuda", None)
            declared_more.remove(_serve)
            COMPILED.discard(CudaTensor)
            overwrite.pop(CudaTensor, None)
            while _handles:
                _handles.pop().remove()


def device_named(device: str | None, what: str) -> str:
    """The full name of a CUDA device (``"cuda"`` is the thread's current one); the backend is loaded.

    Args:
        device: ``"cuda"`` or ``"cuda:1"``.
        what: who asks, for the message.

    Raises:
        BackendUnavailableError: CUDA cannot be used here; says what is missing.
        DeviceError: there is no such device.
    """
    if tools.missing():
        raise devices.refuse(what, device or "cuda")
    load()
    return devices.device_of(device).name


def _overwrite(target: CudaTensor, value: CudaTensor) -> None:
    """Copy a tensor's elements into the memory of another one of its shape."""
    convert_into(target._data, value._data)


# -- transfers ---------------------------------------------------------------------------------------------------------
def _to_cuda(self: Tensor, device: str, non_blocking: bool) -> CudaTensor:
    """A CPU tensor's elements on a device."""
    return cuda_tensor(copies.to_device(self._array, devices.device_of(device).index, non_blocking))


def _from_cuda(self: CudaTensor, device: str, *, non_blocking: bool) -> Any:
    """A tensor's elements on the host, on another CUDA device, or by way of the host on a device from outside."""
    kind = device.partition(":")[0]
    if kind != "cuda":
        found = wrap(copies.to_host(self._data, non_blocking))
        return found if kind == "cpu" else to_device(found, device)
    at = devices.device_of(device)
    data = contiguous(self._data)
    if at.index == data.layout.index:
        return cuda_tensor(copied(data))
    return cuda_tensor(copies.between(data, contiguous_layout(data.shape, data.dtype, at.index)))


def adopted(obj: Any) -> CudaTensor:
    """A tensor that shares the device memory of another library's array; on a copy of what must not be written."""
    device_named("cuda", "asarray")
    taken = interop.take(obj)
    if taken is None:
        raise ArgumentError(f"{describe(obj)} does not lie in the memory of a CUDA device")
    array, read_only = taken
    return cuda_tensor(copied(array) if read_only else array)


def pinned(self: Any) -> Tensor:
    """See :func:`tandem.eager.methods.pin_memory`."""
    device_named("cuda", "pin_memory")
    if type(self) is not Tensor:
        raise ArgumentError(f"pin_memory takes a tensor in the host's memory, not {describe(self)}")
    made = copies.pinned_array(self.shape, self._array.dtype)
    made[...] = self._array
    return wrap(made)

"""Register the CUDA backend's kernels, at the first use of a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...eager.sparse.indices import makers
from ...eager.tensor import inplace, layouts
from ...eager.tensor.tensor import Tensor, wrap
from ...eager.tensor.transfer import COMPILED, from_cpu_transfers, overwrite, to_device
from ...eager.tensor.transfer import LIBRARY as TRANSFERS
from ...errors import ArgumentError
from ...operators.creation.devices import NO_BACKEND, register_cuda_loader
from ...operators.declare.declaration import LIBRARY, Declaration
from ...registry.dispatch.keys import DispatchKey
from ...registry.library import Handle, Library
from ...registry.operator import Operator, lock, operators
from ...registry.values import describe
from ..cpu.kernels.register import registration_listeners
from .blas import products
from .kernels import creation, indexing, sparse
from .kernels.casting import contiguous, convert_into, copy_array
from .kernels.elementwise import elementwise_kernel
from .kernels.folds import reduction_kernel
from .kernels.inplace import inplace_kernel
from .kernels.library_ops import library_kernel
from .kernels.scans import scan_kernel
from .kernels.tensor import CudaTensor, cuda_tensor
from .kernels.views import view_kernel
from .runtime import copies, devices, interop
from .runtime import toolkit as tools
from .runtime.arrays import contiguous_layout

Kernel = Callable[..., Any]
Maker = Callable[[Operator], Kernel]


def _copy(x: CudaTensor) -> CudaTensor:
    return cuda_tensor(copy_array(x._data))


# Operators with hand-written kernels; the kernels of the others follow from their declarations.
MAKERS: dict[str, Maker] = {
    "td::full": creation.full_kernel,
    "td::arange": creation.arange_kernel,
    "td::linspace": creation.linspace_kernel,
    "td::eye": creation.eye_kernel,
    "td::cast": creation.cast_kernel,
    "td::clone": creation.clone_kernel,
    "td::contiguous": creation.contiguous_kernel,
    "td::concat": creation.concat_kernel,
    "td::matmul": products.matmul_kernel,
    "td::random_bits": creation.bits_kernel,
    "td::random_split": creation.split_kernel,
    "td::random_fold_in": creation.fold_kernel,
    "td::random_key": creation.key_kernel,
    "td::random_order": creation.order_kernel,
    "td::random_pick": creation.pick_kernel,
    "td::basic_put": indexing.basic_put_kernel,
    "td::index": indexing.index_kernel,
    "td::index_put": indexing.index_put_kernel,
    "td::index_reduce": indexing.index_reduce_kernel,
    "td::nonzero": indexing.nonzero_kernel,
    "sparse::spmm": sparse.spmm_kernel,
    "sparse::sddmm": sparse.sddmm_kernel,
}
LIBRARIES = {"td": LIBRARY, "sparse": Library("sparse", "IMPL"), "quantized": Library("quantized", "IMPL")}
"""The namespaces of tandem's own operators, and the libraries that register their kernels."""
_handles: list[Handle] = []
_kernels: dict[Operator, Kernel | None] = {}


def strategy_of(op: Operator) -> str:
    """The kind of an operator's CUDA kernel.

    Returns:
        ``"emitted"`` (kernels in CUDA C), ``"view"``, ``"library"`` (cupy), ``"in place"``, ``"composite"``, or
        ``"none"``.
    """
    decl = op.decl
    if op in inplace.functional:
        return "in place"
    if op.name in MAKERS or op.name == "device::to":
        return "emitted"
    if not isinstance(decl, Declaration):
        return "none"
    if decl.view is not None:
        return "view"
    if decl.is_elementwise or decl.fold is not None:
        return "emitted"
    if decl.kernel is not None:
        return "library"
    return "composite" if decl.kind == "composite" else "none"


def make_kernel(op: Operator) -> Kernel | None:
    """Make the CUDA kernel of an operator; None for composites, which run as other operators."""
    strategy, decl = strategy_of(op), op.decl
    if strategy == "in place":
        return inplace_kernel(op, inplace.functional[op])
    if strategy == "view":
        return view_kernel(op, _copy)
    if op.name in MAKERS:
        return MAKERS[op.name](op)
    if strategy == "emitted" and decl.is_elementwise:
        return elementwise_kernel(op)
    if strategy == "emitted" and decl.fold is not None:
        return scan_kernel(op) if decl.kind == "scan" else reduction_kernel(op)
    return library_kernel(op) if strategy == "library" else None


def load() -> None:
    """Register the kernels of the CUDA key, once."""
    with lock:
        if _handles:
            return
        _register_kernels()
        _handles.append(TRANSFERS.impl("to", _from_cuda, DispatchKey.CUDA))
        from_cpu_transfers["cuda"] = _to_cuda
        makers["cuda"] = sparse.indices_on
        _handles.extend(layouts.register(DispatchKey.SparseCUDA, DispatchKey.QuantizedCUDA))
        COMPILED.add(CudaTensor)
        overwrite[CudaTensor] = _overwrite
        NO_BACKEND.pop("cuda").remove()
        registration_listeners.append(_register_kernels)


def _register_kernels() -> None:
    """Register a kernel for each of tandem's operators that has none yet."""
    with lock:
        for op in list(operators.values()):
            namespace, _, rest = op.name.partition("::")
            if namespace not in LIBRARIES or op.registered(DispatchKey.CUDA):
                continue
            if op not in _kernels:
                _kernels[op] = make_kernel(op)
            kernel = _kernels[op]
            if kernel is not None:
                kernel.__qualname__ = f"cuda_{op.schema.name}"
                _handles.append(LIBRARIES[namespace].impl(rest, kernel, DispatchKey.CUDA))


def unload() -> None:
    """Unregister everything; the next use of a CUDA device loads the backend again."""
    with lock:
        if _handles:
            NO_BACKEND["cuda"] = register_cuda_loader()
            from_cpu_transfers.pop("cuda", None)
            makers.pop("cuda", None)
            registration_listeners.remove(_register_kernels)
            COMPILED.discard(CudaTensor)
            overwrite.pop(CudaTensor, None)
            while _handles:
                _handles.pop().remove()


def resolve_device(device: str | None, what: str) -> str:
    """Load the backend, and return the full name of a CUDA device (``"cuda"`` is the thread's current one).

    Args:
        device: ``"cuda"`` or ``"cuda:1"``.
        what: the caller, for the message.

    Raises:
        BackendUnavailableError: CUDA cannot be used here; the message names what is missing.
        DeviceError: there is no such device.
    """
    if tools.missing_requirements():
        raise devices.make_unavailable_error(what, device or "cuda")
    load()
    return devices.device_of(device).name


def _overwrite(target: CudaTensor, value: CudaTensor) -> None:
    """Copy a tensor's elements into another tensor of the same shape."""
    convert_into(target._data, value._data)


# -- transfers ---------------------------------------------------------------------------------------------------------
def _to_cuda(self: Tensor, device: str, non_blocking: bool) -> CudaTensor:
    """Copy a CPU tensor to a device."""
    return cuda_tensor(copies.to_device(self._array, devices.device_of(device).index, non_blocking))


def _from_cuda(self: CudaTensor, device: str, *, non_blocking: bool) -> Any:
    """Copy a tensor to the host, to another CUDA device, or through the host to a device of another backend."""
    kind = device.partition(":")[0]
    if kind != "cuda":
        result = wrap(copies.to_host(self._data, non_blocking))
        return result if kind == "cpu" else to_device(result, device)
    at = devices.device_of(device)
    data = contiguous(self._data)
    if at.index == data.layout.index:
        return cuda_tensor(copy_array(data))
    return cuda_tensor(copies.copy_between_devices(data, contiguous_layout(data.shape, data.dtype, at.index)))


def from_device_array(obj: Any) -> CudaTensor:
    """A tensor that shares the device memory of another library's array; read-only memory is copied."""
    resolve_device("cuda", "asarray")
    imported = interop.import_array(obj)
    if imported is None:
        raise ArgumentError(f"asarray: {describe(obj)} is not in the memory of a CUDA device")
    array, read_only = imported
    return cuda_tensor(copy_array(array) if read_only else array)


def pin_tensor(self: Any) -> Tensor:
    """See :func:`tandem.eager.tensor.methods.pin_memory`."""
    resolve_device("cuda", "pin_memory")
    if type(self) is not Tensor:
        raise ArgumentError(f"pin_memory takes a CPU tensor, not {describe(self)}")
    result = copies.make_pinned_array(self.shape, self._array.dtype)
    result[...] = self._array
    return wrap(result)

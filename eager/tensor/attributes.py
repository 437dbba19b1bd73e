"""Attributes of tensors as PyTorch names them: ``x.numel()``, ``x.stride(0)``, ``x.is_cuda``, ``x.grad_fn``, ...

The functions of one tensor are also functions of the namespace ``td``: ``td.numel(x)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...errors import (
    ArgumentError,
    DTypeError,
    ShapeAttributeError,
    TandemError,
    UnsupportedAttributeError,
    UnsupportedError,
)
from ...operators.declare.shape_rules import normalize_axis
from ...registry.dispatch.keys import CPU_KEYS, without_autograd_keys
from ...registry.function import function_of
from ...registry.layouts import sparse_coo
from ...registry.native_type import accept_entry
from ...registry.values import describe
from ..autograd.grad_modes import is_grad_enabled
from ..autograd.graph_functions import GraphFunction
from ..autograd.hooks import retains_gradient
from .construct import asarray
from .dunders import by_name
from .flags import MemoryFlags
from .storage import Number, Storage, address_of
from .tensor import Tensor, has_array, storage_of
from .transfer import synchronize

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, TensorLike


# -- sizes and memory --------------------------------------------------------------------------------------------------
@accept_entry("read_rank")
def dim(self: Tensor) -> int:
    """The number of axes."""
    return self.ndim


ndimension = dim


@accept_entry("read_count")
def numel(self: Tensor) -> int:
    """The number of elements.

    >>> import tandem as td
    >>> td.numel(td.zeros((2, 3)))
    6
    """
    return int(self.size)


nelement = numel


@accept_entry("read_item_size")
def element_size(self: Tensor) -> int:
    """The bytes of one element."""
    return self.itemsize


def stride(self: Tensor, axis: int | None = None) -> int | tuple[int, ...]:
    """The elements to step over from one index to the next: of one axis, or of all as a tuple."""
    return self._strides if axis is None else self._strides[normalize_axis("stride", axis, self.ndim)]


@property  # type: ignore[misc]
@accept_entry("read_flags")
def flags(self: Tensor) -> MemoryFlags:
    """Layout and writability of the memory, as in NumPy: ``x.flags.c_contiguous``, ``x.flags["WRITEABLE"]``.

    >>> import tandem as td
    >>> x = td.zeros((2, 3))
    >>> x.flags.c_contiguous, x.T.flags.c_contiguous, x.T.flags["F_CONTIGUOUS"]
    (True, False, True)
    """
    if has_array(type(self)):
        return self._array.flags  # type: ignore[no-any-return]  # NumPy's object has these attributes
    return MemoryFlags(self.shape, self._strides, self._storage is None)


def _describe_memory(self: Tensor) -> dict[str, object]:
    """The memory as NumPy's array interface describes it, which Pillow reads.

    Raises:
        UnsupportedAttributeError: no array may be read, as of a tensor that requires gradients, or it has bfloat16.
    """
    if self.dtype.np.kind == "V":
        raise UnsupportedAttributeError(f"the array interface cannot describe {self.dtype}")
    try:
        return self.numpy().__array_interface__
    except TandemError as error:
        raise UnsupportedAttributeError(str(error)) from error


__array_interface__ = property(_describe_memory, doc=_describe_memory.__doc__)


def data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    if type(self) is Tensor:
        return address_of(self._array)
    return int(self.storage().data_ptr) + self.storage_offset * self.itemsize


def get_device(self: Tensor) -> int:
    """The number of the CUDA device; -1 on the host."""
    return int(self.device.partition(":")[2] or 0) if self.device.startswith("cuda") else -1


def _get_version(self: Tensor) -> int:
    """The number of in-place writes into the memory."""
    return self.storage().version


_version = property(_get_version, doc=_get_version.__doc__)


def block_until_ready(self: Tensor) -> Tensor:
    """Wait until the work on all devices is done, and return the tensor, as in JAX."""
    synchronize()
    return self


# -- predicates --------------------------------------------------------------------------------------------------------
def is_floating_point(self: Tensor) -> bool:
    """Whether the elements are real floating-point numbers.

    >>> import tandem as td
    >>> td.is_floating_point(td.zeros(2)), td.is_floating_point(td.arange(2))
    (True, False)
    """
    return self.dtype.is_inexact and self.dtype.kind != "c"


def is_complex(self: Tensor) -> bool:
    """Whether the elements are complex numbers.

    >>> import tandem as td
    >>> td.is_complex(td.zeros(2))
    False
    """
    return self.dtype.kind == "c"


def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return self.dtype.kind not in "bu"


def is_nonzero(self: Tensor) -> bool:
    """Whether the only element differs from zero.

    Raises:
        ArgumentError: there are several elements, or none.
    """
    return bool(self.item() != 0)


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return self.shape == other.shape


def _is_on(device: str) -> Callable[[Tensor], bool]:
    def is_on(self: Tensor) -> bool:
        return self.device.partition(":")[0] == device

    is_on.__doc__ = f"Whether the tensor is on the device {device!r}."
    return is_on


is_cpu = property(_is_on("cpu"))
is_cuda = property(_is_on("cuda"))
is_meta = property(_is_on("meta"))


def _is_coo(self: Tensor) -> bool:
    """Whether the tensor is sparse, with coordinates and values (COO)."""
    return self.layout == sparse_coo


is_sparse = property(_is_coo, doc=_is_coo.__doc__)


# -- other shapes and layouts ------------------------------------------------------------------------------------------
def _conjugate_transpose(self: Tensor) -> Tensor:
    """The conjugate transposes of a stack of matrices; a view of real ones."""
    return self.mT.conj() if self.dtype.kind == "c" else self.mT


def _conjugate_transpose_matrix(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix; a view of a real one."""
    if self.ndim not in (0, 2):
        raise ShapeAttributeError(
            f"x.H is the conjugate transpose of a matrix, and the shape is {self.shape}; use x.mH"
        )
    return _conjugate_transpose(self) if self.ndim else self


mH = property(_conjugate_transpose, doc=_conjugate_transpose.__doc__)  # noqa: N816
H = property(_conjugate_transpose_matrix, doc=_conjugate_transpose_matrix.__doc__)


def adjoint(self: Tensor) -> Tensor:
    """The conjugate transposes of a stack of matrices; a view of real ones."""
    return _conjugate_transpose(self)


@accept_entry("reshape_or_bitcast", "reshape", "bitcast")
def view(self: Tensor, *shape: int | Sequence[int] | DTypeLike, dtype: DTypeLike | None = None) -> Tensor:
    """A view of the same elements in another shape, or of the same memory as elements of another dtype.

    Args:
        self: the tensor.
        *shape: the sizes, one of which may be -1: it follows from the others; or a dtype.
        dtype: the dtype, see :func:`tandem.bitcast`.

    Raises:
        ValueArgumentError: the shape, or the dtype, needs a copy; use ``reshape``, or ``contiguous``.

    >>> import tandem as td
    >>> x = td.zeros((2, 3))
    >>> x.view(3, 2).shape, x.view(td.int16).shape
    ((3, 2), (2, 6))
    """
    sizes = not shape or isinstance(shape[0], (tuple, list)) or hasattr(type(shape[0]), "__index__")
    if dtype is None and len(shape) == 1 and not sizes:
        dtype, shape = shape[0], ()  # type: ignore[assignment]  # neither sizes nor a size
    if dtype is None:
        return by_name("reshape")(self, *shape, copy=False)
    if shape:
        raise ArgumentError("view takes a shape or a dtype, not both")
    return by_name("bitcast")(self, dtype, copy=False)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of another tensor."""
    return view(self, other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor: a view where possible."""
    return self.reshape(other.shape)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """A view broadcast to the shape of another tensor."""
    return self.expand(other.shape)


# -- new tensors with the dtype and the device of another --------------------------------------------------------------
def _fill_new(
    self: Tensor, shape: Sequence[int], value: object, dtype: DTypeLike | None, device: str | None, grad: bool
) -> Tensor:
    options = {} if (device or self.device) == "cpu" else {"device": device or self.device}
    result: Tensor = function_of("td::full")(shape, value, dtype=dtype or self.dtype, **options)
    return result.requires_grad_() if grad else result


def _shape_of(shape: tuple[int | Sequence[int], ...]) -> Sequence[int]:
    only = shape[0] if len(shape) == 1 else shape
    return (only,) if isinstance(only, int) else only  # type: ignore[return-value]  # sizes one by one


def new_zeros(
    self: Tensor,
    *shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros with the dtype and on the device of this one."""
    return _fill_new(self, _shape_of(shape), 0, dtype, device, requires_grad)


def new_ones(
    self: Tensor,
    *shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones with the dtype and on the device of this one."""
    return _fill_new(self, _shape_of(shape), 1, dtype, device, requires_grad)


def new_empty(
    self: Tensor,
    *shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor for values to be written, with the dtype and on the device of this one; its elements are zeros."""
    return _fill_new(self, _shape_of(shape), 0, dtype, device, requires_grad)


def new_full(
    self: Tensor,
    shape: Sequence[int],
    fill_value: object,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one value with the dtype and on the device of this one."""
    return _fill_new(self, shape, fill_value, dtype, device, requires_grad)


def new_tensor(
    self: Tensor,
    data: TensorLike | Sequence[object],
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of a copy of ``data`` with the dtype and on the device of this one."""
    given = data.detach() if isinstance(data, Tensor) else data
    result = asarray(given, dtype=dtype or self.dtype, device=device or self.device, copy=True)
    return result.requires_grad_() if requires_grad else result


# -- elements and the graph --------------------------------------------------------------------------------------------
def apply_(self: Tensor, function: Callable[[object], object]) -> Tensor:
    """Replace each element by ``function(element)``, called with Python numbers; return the tensor."""
    values = [function(value) for value in self.detach().flatten().tolist()]
    return self.copy_(asarray(values, dtype=self.dtype, device=self.device).reshape(self.shape))


def map_(self: Tensor, other: Tensor, function: Callable[[object, object], object]) -> Tensor:
    """Replace each element by ``function(element, element of other)``, and return the tensor."""
    others = other.expand(self.shape).flatten().tolist()
    pairs = zip(self.detach().flatten().tolist(), others, strict=True)
    values = [function(one, two) for one, two in pairs]
    return self.copy_(asarray(values, dtype=self.dtype, device=self.device).reshape(self.shape))


def _get_data(self: Tensor) -> Tensor:
    """The elements without the graph: a tensor on the same memory with a version of its own.

    Writes into it are neither recorded nor counted in ``x._version``, as in PyTorch: a derivative that needs the old
    elements is then wrong, where a write into ``x.detach()`` is an error.
    """
    result = self.detach()
    if type(self) is Tensor and type(result) is Tensor and type(result._storage) is not Number:
        result._storage = Storage(storage_of(self).owner)
    return result


def _set_data(self: Tensor, value: Tensor) -> None:
    if type(self) is not Tensor or type(value) is not Tensor or type(self._storage) is Number:
        raise UnsupportedError(
            f"x.data can be set to an eager tensor on the host, not to {describe(value)}; use x.copy_"
        )
    if value.dtype is not self.dtype:
        raise DTypeError(
            f"x.data of {describe(self)} takes a tensor of the same dtype, not {describe(value)}"
        )
    _check_no_view("x.data", self)
    storage = storage_of(value.clone() if type(value._storage) is Number else value)
    self._array, self._storage = value._array, storage


data = property(_get_data, _set_data, doc=_get_data.__doc__)


def _check_no_view(what: str, x: Tensor) -> None:
    if x._meta is not None and (x._meta.view is not None or x._meta.alias_set is not None):
        raise UnsupportedError(f"{what}: {describe(x)} is a recorded view, or has some; use x.detach()")


def become_view(name: str, self: Tensor, view: Callable[[Tensor], Tensor], write: str) -> Tensor:
    """Make the tensor object a view of the tensor that it was; gradients flow back through the view.

    Args:
        name: what the user called, for messages.
        self: the tensor.
        view: a function that returns a view of a tensor.
        write: what to write where the tensor cannot change.

    Raises:
        UnsupportedError: the tensor is traced, sparse or batched, a recorded view, or has some.
        ArgumentError: the tensor is a leaf that requires gradients.
    """
    if type(self) is not Tensor or type(self._storage) is Number:
        raise UnsupportedError(f"{name} changes eager tensors on the CPU, not {describe(self)}; use {write}")
    if self._meta is not None and (self._meta.view is not None or self._meta.alias_set is not None):
        raise UnsupportedError(f"{name}: {describe(self)} is a recorded view, or has some; use {write}")
    if self.requires_grad and self.is_leaf and is_grad_enabled():
        raise ArgumentError(f"{name}: the tensor is a leaf that requires gradients; use {write}")
    before = self._copy_object()
    result = view(before)
    self._array, self._storage = result._array, storage_of(result)
    self._meta, self._keys = result._meta, result._keys
    return self


def _become_shape(self: Tensor, shape: int | Sequence[int]) -> None:
    """Set ``x.shape``: the same elements in another shape, without a copy; one size may be -1.

    Raises:
        ValueArgumentError: the shape needs a copy, or has another number of elements.
    """
    become_view("x.shape = ...", self, lambda x: view(x, shape), "x.reshape")


def detach_(self: Tensor) -> Tensor:
    """Detach the tensor from the graph: it becomes a leaf that requires no gradient. Returns the tensor.

    Raises:
        UnsupportedError: the tensor is a recorded view, or has some.
    """
    _check_no_view("detach_", self)
    self._meta = None
    self._keys = CPU_KEYS if type(self) is Tensor else without_autograd_keys(self._keys)
    return self


def _get_graph_function(self: Tensor) -> GraphFunction | None:
    """The recorded operation that computed the tensor, with ``name()`` and ``next_functions``; None for a leaf."""
    meta = self._meta
    return None if meta is None or meta.node is None else GraphFunction(meta.node)


grad_fn = property(_get_graph_function, doc=_get_graph_function.__doc__)


def _get_retains_grad(self: Tensor) -> bool:
    """Whether ``retain_grad`` was called, so that ``backward`` fills ``grad`` although the tensor is not a leaf."""
    return retains_gradient(self)


retains_grad = property(_get_retains_grad, doc=_get_retains_grad.__doc__)


def is_inference(self: Tensor) -> bool:
    """False: tensors made in ``inference_mode`` are ordinary ones."""
    return False

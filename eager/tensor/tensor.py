"""Tensor: an n-dimensional array that dispatches.

The class defines the members that need no operator. Methods that are operators, and the special methods of arithmetic,
are attached by :mod:`.methods` from the declarations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ... import lazy
from ...errors import ArgumentError, DTypeError, OutOfBoundsError, ValueArgumentError
from ...operators.declare.ownership import PLAIN
from ...registry.dispatch.keys import AUTOGRAD, CPU_KEYS, GRAD_CPU_KEYS, with_autograd_keys
from ...registry.dispatch.state import state
from ...registry.dtypes import DType, as_dtype
from ...registry.layouts import Layout, strided
from ...registry.native_type import accept_entry
from ...registry.values import (
    Device,
    TensorBase,
    TensorSpec,
    as_device,
    converters,
    make_device_getter,
    note_number,
)
from ..layers.level_allocations import note_allocation, open_level_count
from .element_count import ElementCount
from .storage import Number, Storage, is_sole_owner, owner_of

if TYPE_CHECKING:
    from ...eager.autograd.autograd_meta import AutogradMeta
    from ...registry.types import Array, DTypeLike
    from .signatures import TensorMethods as Base
else:
    Base = TensorBase

_construct = lazy.Module(".eager.tensor.construct")
_dlpack = lazy.Module(".eager.tensor.interop.dlpack")
_CPU = as_device("cpu")
_DTYPE_OF: dict[np.dtype[Any], DType] = {}
# Called in threads that trace, before data are read; they may raise.
read_hooks: list[Callable[[Tensor, str], None]] = []


def dtype_of(array: Array) -> DType:
    """The DType of an array."""
    result = _DTYPE_OF.get(array.dtype)
    if result is None:
        result = _DTYPE_OF[array.dtype] = as_dtype(array.dtype)
    return result


def has_array(cls: Any) -> bool:
    """Whether tensors of a class have an ndarray: False for classes that define ``_array`` again."""
    return cls._array is vars(Tensor)["_array"]


class Tensor(Base):
    """An n-dimensional array.

    Created by :func:`tandem.asarray` and the creation functions. The constructor is PyTorch's old one: ``Tensor(data)``
    copies data to the default float dtype, and ``Tensor(2, 3)`` is a tensor of these sizes. Slots: ``_array`` the
    ndarray, ``_keys`` the key set, ``_meta`` the AutogradMeta or None, ``_storage`` the storage that it shares with its
    views, or None if it was never viewed or written.

    >>> import tandem as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, x.dtype, x.strides
    ((2, 2), tandem.float32, (8, 4))
    """

    __slots__ = ("__weakref__", "_array", "_keys", "_meta", "_storage")
    _array: Any  # an ndarray; a property that raises in classes without one
    _keys: int
    _meta: AutogradMeta | None
    _storage: Storage | None
    _make_wrapper: ClassVar[Callable[..., Any]]  # set by :mod:`..layers.subclass`

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Let ``device`` return a Device in classes of other packages, which return its name."""
        super().__init_subclass__(**kwargs)
        device = vars(cls).get("device")
        if isinstance(device, property) and device.fget is not None:
            cls.device = property(make_device_getter(device.fget), doc=device.__doc__)  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: object) -> None:
        if not hasattr(self, "_keys"):  # False if a subclass has initialized it in __new__
            if type(self) is not Tensor or kwargs:
                raise ArgumentError(
                    "tensors are made by td.asarray(data), td.zeros(shape) and others; Tensor(...) takes data or sizes"
                )
            array = _construct.make_float_array(args)
            self._array, self._keys, self._meta, self._storage = array, CPU_KEYS, None, None

    # -- attributes ------------------------------------------------------------------------------------------------
    @property
    @accept_entry("read_shape")
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes; assigning to it makes the tensor a view of itself in another shape, as in NumPy."""
        return self._array.shape  # type: ignore[no-any-return]

    @property
    @accept_entry("read_dtype")
    def dtype(self) -> DType:
        """Data type of the elements."""
        return dtype_of(self._array)

    @property
    def device(self) -> Device:
        """The device of the data: a str such as ``"cuda:0"``, with the attributes ``type`` and ``index``."""
        return _CPU

    @property
    def layout(self) -> Layout:
        """The storage layout of the elements: ``td.strided``, ``td.sparse_coo`` or ``td.sparse_csr``."""
        return strided

    @property
    @accept_entry("read_rank")
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    @accept_entry("read_size")
    def size(self) -> ElementCount:
        """Number of elements; ``x.size()`` is the shape and ``x.size(dim)`` the length of an axis, as in PyTorch."""
        return ElementCount.of(self.shape)

    @property
    @accept_entry("read_item_size")
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.dtype.itemsize)

    @property
    @accept_entry("read_byte_size")
    def nbytes(self) -> int:
        """Size of the elements in bytes (a broadcast view counts repeated elements)."""
        return math.prod(self.shape) * self.itemsize

    @property
    def spec(self) -> TensorSpec:
        """Shape, dtype and device."""
        return TensorSpec(self.shape, self.dtype, self.device)

    # -- memory ----------------------------------------------------------------------------------------------------
    def storage(self) -> Storage:
        """The memory that it shares with its views: address, size in bytes, number of in-place writes."""
        return storage_of(self)

    @property
    @accept_entry("read_strides")
    def strides(self) -> tuple[int, ...]:
        """Bytes to step over from one index to the next, per axis, as in NumPy; ``x.stride()`` counts elements."""
        if has_array(type(self)):  # its strides need not be multiples of the item size
            return self._array.strides  # type: ignore[no-any-return]
        return tuple(step * self.itemsize for step in self._strides)

    @property
    def _strides(self) -> tuple[int, ...]:
        """Elements to step over from one index to the next, per axis."""
        return tuple(step // self._array.itemsize for step in self._array.strides)

    @property
    def storage_offset(self) -> int:
        """Elements from the start of the storage to the first element."""
        if 0 in self.shape:
            return 0
        start = self._array.__array_interface__["data"][0]
        return int(start - storage_of(self).data_ptr) // self.itemsize

    def is_contiguous(self) -> bool:
        """Whether the elements are in row-major order without gaps."""
        return bool(self._array.flags.c_contiguous)

    # -- autograd --------------------------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded for :meth:`backward`."""
        return self._meta is not None and self._meta.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation computed it, so that :meth:`backward` fills its ``grad``."""
        return self._meta is None or self._meta.node is None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that :meth:`backward` has accumulated, or None."""
        return None if self._meta is None else self._meta.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and (not isinstance(value, Tensor) or value.spec != self.spec):
            raise ArgumentError(
                f"the gradient of a tensor {self.spec} is a tensor {self.spec} or None, not {value!r}"
            )
        if self._meta is None:
            if value is None:
                return
            raise ArgumentError(
                "only a tensor with requires_grad=True has a gradient; call requires_grad_() first"
            )
        self._meta.grad = value

    def _alias(self) -> Tensor:
        """Another tensor object on the same memory, without a graph node."""
        return wrap_view(self._array, self)

    def _new_storage(self) -> Storage:
        """Create the storage of a tensor that has none."""
        return Storage(owner_of(self._array))

    @property
    def _memory(self) -> object:
        """The object that all tensors known to share this memory have in common; None if no others are known."""
        return self._storage

    def _has_untracked_aliases(self, known: list[Tensor]) -> bool | None:
        """Whether tensors outside ``known`` share the memory; None if the storage's reference count decides."""
        return None

    def _is_sole_owner(self) -> bool:
        """Whether it is dense and writable, and nothing else refers to its memory; False if unknown."""
        return type(self) is Tensor and is_sole_owner(self)

    def _copy_object(self) -> Tensor:
        """A shallow copy of the object: same array, key set, AutogradMeta and storage."""
        twin = Tensor.__new__(Tensor)
        twin._array, twin._keys, twin._meta, twin._storage = (
            self._array,
            self._keys,
            self._meta,
            self._storage,
        )
        return twin

    # -- conversion to Python and NumPy ----------------------------------------------------------------------------
    def _host(self, what: str) -> Array:
        """The ndarray; classes without one raise an error that names ``what``, as do tensors written in a trace."""
        if state.include:
            for refuse in read_hooks:
                refuse(self, what)
        return self._array if type(self._storage) is not Number else self._storage.array_for(what)

    @accept_entry("to_array")
    def numpy(self) -> Array:
        """The ndarray, which shares memory with the tensor.

        Raises:
            ArgumentError: the tensor requires gradients, and NumPy does not record them.
        """
        array = self._host("numpy()")
        if self.requires_grad and AUTOGRAD & ~state.exclude:
            lazy.module(".eager.layers.level_stack").refuse_numpy(self)
        return array

    to_numpy = numpy  # the name by which Matplotlib asks

    @accept_entry("read_item")
    def item(self, *index: int) -> Any:
        """The only element, or the one at ``index``, as a Python number.

        Raises:
            ArgumentError: there are several elements and no index, or the index is not one of ints.
            OutOfBoundsError: the index is out of bounds.
        """
        array = self._host("item()")
        if not index and array.size != 1:
            raise ArgumentError(f"item() takes a tensor of one element; this one has shape {self.shape}")
        try:
            return array.item(*index)
        except IndexError as fault:
            raise OutOfBoundsError(f"item{index}: {fault} (shape {self.shape})") from None
        except (TypeError, ValueError):
            raise ArgumentError(
                f"item takes an int for each axis of shape {self.shape}, not {index}"
            ) from None

    @accept_entry("to_list")
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers (0-d: a number)."""
        return self._host("tolist()").tolist()

    @accept_entry("read_length")
    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len() of a 0-d tensor")
        return self.shape[0]

    @accept_entry("to_bool")
    def __bool__(self) -> bool:
        array = self._host("bool()")
        if array.size != 1:
            raise ValueArgumentError(
                f"the truth value of a tensor of shape {self.shape} is ambiguous; use td.any(x) or td.all(x)"
            )
        return bool(array)

    @accept_entry("to_float")
    def __float__(self) -> float:
        return float(self._single("float()"))

    @accept_entry("to_int")
    def __int__(self) -> int:
        return int(self._single("int()"))

    @accept_entry("to_complex")
    def __complex__(self) -> complex:
        return complex(self._single("complex()"))

    @accept_entry("to_index")
    def __index__(self) -> int:
        value = self._single("an index")
        if not isinstance(value, int) or isinstance(value, bool):
            raise DTypeError(f"only a tensor of one integer can be an index, not one of {self.dtype}")
        return value

    def _single(self, what: str) -> Any:
        array = self._host(what)
        if array.size != 1:
            raise ArgumentError(f"{what} takes a tensor of one element; this one has shape {self.shape}")
        return array.item()

    def __hash__(self) -> int:
        return id(self)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        if dtype is None or np.dtype(dtype) == array.dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ValueArgumentError(
                f"an array of {dtype} cannot be made from a {self.dtype} tensor without a copy; pass copy=None"
            )
        return array.astype(dtype)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule of the DLPack protocol, from which another library makes an array on the same memory.

        Args:
            stream: None; the elements are on the host.
            max_version: the newest DLPack version that the consumer reads; from (1, 0) on it gets a versioned capsule.
            dl_device: the device that the consumer asks for.
            copy: True copies, False never does, None copies if a stride is negative, which PyTorch cannot read.

        Raises:
            ArgumentError: the tensor requires gradients.
            BufferError: ``copy`` is False and a stride is negative, or ``dl_device`` is another device.
        """
        return _dlpack.export_array(
            self.numpy(), copy, stream=stream, max_version=max_version, dl_device=dl_device
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.shape else str(self)


# The classes whose tensors store an AutogradMeta in ``_meta``; classes of traced values and of levels are not included.
EAGER: set[type] = {Tensor}
PLAIN.add(Tensor)


def wrap(array: Array) -> Tensor:
    """Wrap an ndarray as a plain tensor, without a copy.

    Native twin: backends/cpu/fastpath/runtime/rt_base.py:make_tensor
    """
    tensor = Tensor.__new__(Tensor)
    tensor._array = array
    tensor._keys = CPU_KEYS
    tensor._meta = None
    tensor._storage = None
    if open_level_count[0]:
        note_allocation(tensor)
    return tensor


def wrap_view(array: Array, of: Tensor) -> Tensor:
    """Wrap a view of another tensor's memory as a plain tensor; both share one storage from now on.

    Native twin: backends/cpu/fastpath/entries/rt_views.py:make_view_at
    """
    tensor = Tensor.__new__(Tensor)
    tensor._array = array
    tensor._keys = CPU_KEYS
    tensor._meta = None
    tensor._storage = storage_of(of)
    return tensor


def storage_of(tensor: Tensor) -> Storage:
    """The storage of a tensor, created if it has none.

    Native twin: backends/cpu/fastpath/runtime/rt_base.py:shared_storage
    """
    if tensor._storage is None:
        tensor._storage = tensor._new_storage()
    return tensor._storage


def require_grad(tensor: Tensor, meta: AutogradMeta) -> Tensor:
    """Attach an AutogradMeta to a tensor and set its autograd key."""
    tensor._meta = meta
    tensor._keys = GRAD_CPU_KEYS if type(tensor) is Tensor else with_autograd_keys(tensor._keys)
    return tensor


def _from_numpy(value: object) -> Tensor:
    array = np.asarray(value)
    as_dtype(array.dtype)  # raises for object arrays, strings, ...
    return wrap(array.astype(array.dtype.newbyteorder("="), copy=False))


def from_numpy_scalar(value: np.generic) -> Tensor:
    """A tensor without axes of a NumPy scalar, whose byte order is the machine's."""
    as_dtype(value.dtype)  # raises for strings, ...
    result = wrap(np.asarray(value))
    note_number(result)
    return result


converters[np.ndarray] = _from_numpy
converters[np.generic] = from_numpy_scalar

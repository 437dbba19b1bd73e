"""Create tensors from Python numbers, lists, NumPy arrays, other tensors, and objects that support DLPack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    ScalarOverflowError,
    ShapeError,
    UnsupportedError,
    ValueArgumentError,
)
from ...operators.creation.devices import assumed_device
from ...registry.dtypes import DType, as_dtype, default_complex, default_float, tensor_makers, uint64
from ...registry.external_devices import is_external
from ...registry.function import function_of, functions
from ...registry.native_type import accept_entry
from ...registry.values import SCALARS, describe, note_number, to_device_name, traced_number_types
from ..autograd.autograd_meta import make_leaf
from ..meta.tensor import meta_like
from .tensor import EAGER, Tensor, wrap
from .transfer import to_device
from .weak_scalars import is_weak

if TYPE_CHECKING:
    from ...registry.types import Array, DTypeLike

cuda = lazy.Module(".backends.cuda.load")
_dlpack = lazy.Module(".eager.tensor.interop.dlpack")


@accept_entry("asarray")
def asarray(
    obj: object,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Convert an array-like object to a tensor.

    Args:
        obj: a number, nested lists of numbers or tensors, an ndarray, a tensor, or an object with ``__dlpack__`` or
            ``__array__``. Python floats make float32, Python ints int64; arrays and NumPy scalars keep their dtype.
        dtype: the dtype of the result; None: that of ``obj``.
        device: ``"cpu"``, ``"meta"`` (shape and dtype of ``obj``, without its elements), or None: that of ``obj``.
        copy: True copies, False never does (and raises if a copy is needed), None copies if needed. An ndarray of a
            known dtype is not copied: tensor and ndarray then share memory, and writes to one change the other.
        requires_grad: whether operations on the tensor are recorded for ``backward``.

    Returns:
        A tensor; ``obj`` itself if it is a tensor and nothing changes.

    Raises:
        DTypeError: objects, strings and other elements without a dtype of tandem; gradients of integers.
        ShapeError: lists of unequal lengths.
        ScalarOverflowError: an integer does not fit the dtype.
        DeviceError: the device is unknown or unavailable.
        UnsupportedError: ``obj`` is on ``"meta"`` and ``device`` is not.
        ValueArgumentError: ``copy=False``, and a copy is needed.

    Native twin: backends/cpu/fastpath/entries/rt_asarray.py:asarray

    >>> import tandem as td
    >>> td.asarray([1, 2.5])
    tensor([1. , 2.5])
    """
    device = check_device(device)
    wanted = None if dtype is None else as_dtype(dtype)
    tensor = _from_tensor(obj, wanted, copy) if isinstance(obj, Tensor) else _from_other(obj, wanted, copy)
    tensor = move_to_device(tensor, device)
    return make_leaf(tensor.detach() if tensor is obj else tensor) if requires_grad else tensor


tensor = asarray


def from_dlpack(x: object, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array, by DLPack.

    Args:
        x: an array with ``__dlpack__`` and ``__dlpack_device__``, in the host's memory or a CUDA device's.
        device: the device of the result; None: that of ``x``.
        copy: True copies, False never does (and raises if a copy is needed), None copies if needed.

    Returns:
        A tensor.

    Raises:
        ArgumentError: the object does not support DLPack.
        ValueArgumentError: ``copy=False``, and a copy is needed.

    >>> import numpy as np, tandem as td
    >>> td.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise ArgumentError(
            f"from_dlpack takes an array with __dlpack__ and __dlpack_device__, not {describe(x)}"
        )
    device = check_device(device)
    shared = x if isinstance(x, Tensor) else _on_cuda(x)
    if shared is None:
        shared = wrap(_dlpack.import_array(x))
    if copy is False and device not in (None, shared.device):
        raise ValueArgumentError(
            f"from_dlpack: from {shared.device} to {device} needs a copy, and copy=False forbids it"
        )
    moved = move_to_device(shared, device)
    return moved.clone() if copy and moved is shared else moved


def check_device(device: str | None) -> str | None:
    """Check a device and normalize its name: with index for CUDA, without for others."""
    if device is None or device == "cpu":
        return device
    name = to_device_name(device)
    instead = assumed_device(name)
    if instead is not None:
        return instead
    kind, _, index = name.partition(":")
    if kind == "cuda":
        return str(cuda.resolve_device(name, "asarray"))
    if is_external(kind):
        return name
    if index not in ("", "0"):
        raise DeviceError(f"device {name!r}: there is only one {kind} device; use {kind!r}")
    return kind


def move_to_device(x: Tensor, device: str | None, non_blocking: bool = False) -> Tensor:
    """Move a tensor to a device; return the tensor itself if it is there.

    Args:
        x: the tensor.
        device: the full name of the device; None: that of the tensor.
        non_blocking: whether the copy may continue after the call (:func:`tandem.Tensor.to`).

    Raises:
        UnsupportedError: the tensor has no elements, or is a value of a transform.
    """
    if device is None or device == x.device:
        return x
    if is_external(device) or is_external(x.device) or "meta" not in (device, x.device):
        result: Tensor = to_device(x, device, non_blocking=non_blocking)
        return result
    if type(x) not in EAGER:
        raise UnsupportedError(
            f"a {type(x).__name__} {describe(x)} cannot be moved to {device!r}: only plain dense tensors can; "
            "move the tensor outside the transform"
        )
    if device != "meta":
        raise UnsupportedError(
            f"a tensor on the device 'meta' has no elements to copy to {device!r}; create one there: "
            f"td.empty({x.shape}, dtype=td.{x.dtype.name}), or td.empty_like(x, device={device!r})"
        )
    bare = meta_like(x)
    return make_leaf(bare) if x.requires_grad else bare


def _from_tensor(x: Tensor, wanted: DType | None, copy: bool | None) -> Tensor:
    if wanted is not None and (wanted is not x.dtype or is_weak(x)):
        if copy is False:
            raise ValueArgumentError(
                f"asarray: {x.dtype} to {wanted} needs a copy, and copy=False forbids it"
            )
        return x.astype(wanted)
    return x.clone() if copy else x


def _from_other(obj: object, wanted: DType | None, copy: bool | None) -> Tensor:
    if type(obj) in traced_number_types:
        scalar: Tensor = functions["td::full"]((), obj, dtype=wanted)
        return scalar
    if isinstance(obj, (list, tuple)) and (
        has_tensors_only(obj) or any(_is_traceable(item) for item in _leaves(obj))
    ):
        stacked: Tensor = function_of("td::stack")([_to_stackable(item) for item in obj], 0)
        return stacked if wanted is None else stacked.astype(wanted)
    from_cuda = _on_cuda(obj)
    if from_cuda is not None:
        return _from_tensor(from_cuda, wanted, copy)
    array = _array_of(obj, wanted)
    native = (wanted or as_dtype(array.dtype)).np
    needed = array.dtype != native or isinstance(obj, (list, tuple)) or type(obj) in SCALARS
    if needed and copy is False:
        raise ValueArgumentError(
            f"asarray: {describe(obj)} to {native} needs a copy, and copy=False forbids it"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        result = wrap(array.astype(native, copy=bool(copy) and array is obj))
    if not array.ndim and not isinstance(obj, np.ndarray):
        note_number(result)
    return result


def has_tensors_only(obj: object) -> bool:
    """Whether an object is a list or a tuple of eager tensors."""
    return isinstance(obj, (list, tuple)) and {*map(type, obj)} == {Tensor}


def _to_stackable(item: object) -> object:
    """Convert an item of a list of tensors; numbers stay numbers and take the dtype of the tensors."""
    if type(item) is Tensor or type(item) in SCALARS or type(item) in traced_number_types:
        return item
    return asarray(item)


def _on_cuda(obj: object) -> Tensor | None:
    """A tensor that shares the CUDA memory of another library's array; None for other objects."""
    if isinstance(obj, (np.ndarray, np.generic, list, tuple, type, *SCALARS)):
        return None
    if hasattr(obj, "__dlpack_device__"):
        is_there = int(obj.__dlpack_device__()[0]) in _DLPACK_CUDA
    else:
        is_there = hasattr(obj, "__cuda_array_interface__")
    return cuda.from_device_array(obj) if is_there else None


def _is_traceable(value: object) -> bool:
    """Whether a value may be traced, so that only operators can convert it."""
    return isinstance(value, Tensor) or type(value) in traced_number_types


def _array_of(obj: object, wanted: DType | None) -> Array:
    """Convert an object to an ndarray with a supported dtype, in any byte order."""
    if isinstance(obj, type):  # its instances may have __array__, the class itself has no data
        raise ArgumentError(f"asarray: cannot convert {describe(obj)} to a tensor; pass a value")
    if isinstance(obj, np.ndarray | np.generic):
        if type(obj).__module__.startswith("numpy.ma"):
            raise UnsupportedError(
                "asarray: masked arrays are not supported; use x.filled(value), or td.where"
            )
        array = np.asarray(obj)
    elif isinstance(obj, (*SCALARS, list, tuple)):
        array = _from_python(obj, wanted)
    elif hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        array = np.asarray(obj)
    elif hasattr(obj, "__dlpack__"):
        array = _dlpack.import_array(obj)
    else:
        array = _from_buffer(obj, wanted)
    _check_elements(array, obj)
    return array


def _from_buffer(obj: Any, wanted: DType | None) -> Array:
    """Convert an object with the buffer protocol, or a sequence such as a range."""
    if isinstance(obj, (str, bytes)):
        raise DTypeError(f"asarray: {describe(obj)} is text; a tensor holds numbers or booleans")
    try:
        return np.asarray(memoryview(obj))
    except TypeError:
        if isinstance(obj, Sequence):
            return _from_python(list(obj), wanted)
        raise ArgumentError(
            f"asarray takes numbers, nested lists of them, NumPy arrays, tensors and objects with __dlpack__ or "
            f"__array__, not {describe(obj)}"
        ) from None


def _from_python(obj: Any, wanted: DType | None) -> Array:
    exact = wanted.np if wanted is not None and wanted.is_integer and _all_integers(obj) else None
    try:
        array = np.array(obj, dtype=exact)
        if array.dtype.kind == "O" and wanted is not None and wanted.is_inexact and _all_real(obj):
            array = array.astype(np.float64)  # an integer is larger than those of 64 bits
    except OverflowError:
        raise ScalarOverflowError(
            f"asarray: an integer in {describe(obj)} does not fit {wanted or 'int64'}"
        ) from None
    except (TypeError, ValueError) as fault:
        if "inhomogeneous" in str(fault):
            raise ShapeError(
                f"asarray: cannot convert a ragged nested list: {_describe_ragged(obj)}"
            ) from None
        raise ArgumentError(f"asarray: cannot convert {describe(obj)} to a tensor: {fault}") from None
    if exact is not None or array.dtype.kind not in "fcu" or _has_numpy(obj):
        return array
    if array.dtype == uint64.np:
        raise ScalarOverflowError(
            f"asarray: an integer in {describe(obj)} does not fit int64; pass dtype=td.uint64"
        )
    default = default_float() if array.dtype.kind == "f" else default_complex()
    with np.errstate(over="ignore"):
        return array if wanted is not None else array.astype(default.np)


_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_MOST_AXES = 64  # NumPy's limit


def _leaves(obj: object, depth: int = 0) -> Iterator[object]:
    if depth > _MOST_AXES:  # a list may contain itself
        raise ShapeError(
            f"asarray: lists are nested deeper than the {_MOST_AXES} axes that an array can have"
        )
    if isinstance(obj, (list, tuple)):
        for item in obj:
            yield from _leaves(item, depth + 1)
    else:
        yield obj


def _describe_ragged(obj: Sequence[Any]) -> str:
    """Describe the first two items of a nested list that differ in length or depth."""
    sizes = [len(item) if isinstance(item, (list, tuple)) else None for item in obj]
    for row, size in enumerate(sizes):
        if size != sizes[0]:
            return f"row 0 {_describe_length(sizes[0])}, row {row} {_describe_length(size)}"
    if not sizes or None in sizes:
        return f"the items of {describe(obj)} differ in shape"
    return _describe_ragged([item for row in obj for item in row])


def _describe_length(size: int | None) -> str:
    return "is not a list" if size is None else f"has length {size}"


def _all_real(obj: object) -> bool:
    return all(isinstance(item, (int, float)) for item in _leaves(obj))


def _all_integers(obj: object) -> bool:
    return all(isinstance(item, int) for item in _leaves(obj))


def _has_numpy(obj: object) -> bool:
    return any(isinstance(item, np.ndarray | np.generic) for item in _leaves(obj))


def _check_elements(array: Array, obj: object) -> None:
    if array.dtype.kind == "O":
        if isinstance(obj, np.ndarray):
            raise DTypeError(
                "asarray: a NumPy array of dtype object has no dtype in tandem; convert it: x.astype(float)"
            )
        objects = [item for item in array.flat if not isinstance(item, SCALARS)]
        if not objects:
            raise ScalarOverflowError(f"asarray: an integer in {describe(obj)} does not fit any dtype")
        raise DTypeError(
            f"asarray: elements such as {describe(objects[0])} are objects; a tensor holds numbers or booleans, so "
            "give the array a numeric dtype first"
        )
    as_dtype(array.dtype)


def make_float_array(data: tuple[Any, ...]) -> Array:
    """The array of ``Tensor(*data)``: a copy of data in the default float dtype, or zeros of the sizes given.

    Raises:
        ArgumentError: the data are a tensor of a transform or a trace.
    """
    dtype = default_float()
    if len(data) != 1 or isinstance(data[0], (int, np.integer)):
        return np.zeros(data or (0,), dtype.np)
    made = asarray(data[0]) if not isinstance(data[0], Tensor) else data[0]
    if type(made) is not Tensor:
        raise ArgumentError(f"Tensor(...) takes data, not {describe(made)}; use x.clone()")
    array: Array = np.array(made.detach().numpy(), dtype.np)
    return array


tensor_makers.append(asarray)

"""Making tensors from Python numbers, lists, NumPy arrays, other tensors, and whatever speaks DLPack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import lazy
from ..errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    ScalarOverflowError,
    ShapeError,
    UnsupportedError,
    ValueArgumentError,
)
from ..operators.devices import assumed
from ..registry.binding import device_name
from ..registry.devices import is_outside
from ..registry.dtypes import DEFAULT_COMPLEX, DEFAULT_FLOAT, DType, as_dtype, uint64
from ..registry.function import function_of, functions
from ..registry.values import SCALARS, describe, number_stand_ins
from .meta import leaf
from .meta_tensor import without_data
from .tensor import EAGER, Tensor, wrap
from .transfer import to_device


def asarray(
    obj: Any,
    dtype: Any = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of anything array-like.

    Args:
        obj: a number, nested lists of numbers or tensors, an ndarray, a tensor, or an object with ``__dlpack__`` or
            ``__array__``. Python floats make float32, Python ints int64; arrays and NumPy scalars keep their dtype.
        dtype: the dtype wanted; None takes that of ``obj``.
        device: ``"cpu"``, ``"meta"`` (shape and dtype of ``obj``, without its elements), or None: that of ``obj``.
        copy: True copies, False never does (and raises if it had to), None copies where needed. An ndarray of a known
            dtype is not copied: tensor and ndarray then share memory, and each sees what is written through the other.
        requires_grad: whether operations on the tensor are recorded for ``backward``.

    Returns:
        A tensor; ``obj`` itself if it is a tensor and nothing has to change.

    Raises:
        DTypeError: objects, strings and other elements without a dtype of tandem; gradients of integers.
        ShapeError: lists of unequal lengths.
        ScalarOverflowError: an integer does not fit the dtype.
        DeviceError: the device is unknown or not there.
        UnsupportedError: ``obj`` is on ``"meta"`` and ``device`` is not.
        ValueArgumentError: ``copy=False``, and a copy is needed.

    >>> import tandem as td
    >>> td.asarray([1, 2.5])
    tensor([1. , 2.5])
    """
    device = check_device(device)
    wanted = None if dtype is None else as_dtype(dtype)
    tensor = _of_tensor(obj, wanted, copy) if isinstance(obj, Tensor) else _of_other(obj, wanted, copy)
    tensor = moved(tensor, device)
    return leaf(tensor.detach() if tensor is obj else tensor) if requires_grad else tensor


tensor = asarray


def from_dlpack(x: Any, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array, by DLPack.

    Args:
        x: an array with ``__dlpack__`` and ``__dlpack_device__``, in the host's memory or a CUDA device's.
        device: where the result lies; None: where ``x`` does.
        copy: True copies, False never does (and raises if it had to), None copies where needed.

    Returns:
        A tensor.

    Raises:
        ArgumentError: the object does not speak DLPack.
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
    found = x if isinstance(x, Tensor) else _on_cuda(x)
    if found is None:
        found = wrap(np.from_dlpack(x))
    if copy is False and device not in (None, found.device):
        raise ValueArgumentError(
            f"from_dlpack: from {found.device} to {device} needs a copy, and copy=False forbids it"
        )
    made = moved(found, device)
    return made.clone() if copy and made is found else made


def check_device(device: str | None) -> str | None:
    """The device without its index, and a CUDA device with it; refuses those that are unknown, or not there."""
    if device is None or device == "cpu":
        return device
    name = device_name(device)
    instead = assumed(name)
    if instead is not None:
        return instead
    kind, _, index = name.partition(":")
    if kind == "cuda":
        return str(lazy.cuda_backend().device_named(name, "asarray"))
    if is_outside(kind):
        return name
    if index not in ("", "0"):
        raise DeviceError(f"device {name!r}: there is one {kind} device")
    return kind


def moved(x: Tensor, device: str | None, non_blocking: bool = False) -> Tensor:
    """The tensor on a device; itself if it lies there.

    Args:
        x: the tensor.
        device: the device's full name; None leaves it where it is.
        non_blocking: whether the copy may go on after the call (:func:`tandem.Tensor.to`).

    Raises:
        UnsupportedError: it has no elements to bring along, or is a value of a transform.
    """
    if device is None or device == x.device:
        return x
    if is_outside(device) or is_outside(x.device) or "meta" not in (device, x.device):
        found: Tensor = to_device(x, device, non_blocking=non_blocking)
        return found
    if type(x) not in EAGER:
        raise UnsupportedError(
            f"a {type(x).__name__} {describe(x)} cannot go to {device!r}: plain dense tensors do, and values of a "
            "transform stay on their device"
        )
    if device != "meta":
        raise UnsupportedError(
            f"a tensor on the device 'meta' has no elements to bring to {device!r}; make one there: "
            f"td.empty({x.shape}, dtype=td.{x.dtype.name}), or td.empty_like(x, device={device!r})"
        )
    bare = without_data(x)
    return leaf(bare) if x.requires_grad else bare


def _of_tensor(x: Tensor, wanted: DType | None, copy: bool | None) -> Tensor:
    if wanted is not None and wanted is not x.dtype:
        if copy is False:
            raise ValueArgumentError(
                f"asarray: {x.dtype} to {wanted} needs a copy, and copy=False forbids it"
            )
        return x.astype(wanted)
    return x.clone() if copy else x


def _of_other(obj: Any, wanted: DType | None, copy: bool | None) -> Tensor:
    if type(obj) in number_stand_ins:
        made: Tensor = functions["td::full"]((), obj, dtype=wanted)
        return made
    if isinstance(obj, (list, tuple)) and any(_is_traceable(item) for item in _leaves(obj)):
        found: Tensor = function_of("td::stack")([asarray(item) for item in obj], 0)
        return found if wanted is None else found.astype(wanted)
    there = _on_cuda(obj)
    if there is not None:
        return _of_tensor(there, wanted, copy)
    array = _array_of(obj, wanted)
    native = (wanted or as_dtype(array.dtype)).np
    needed = array.dtype != native or isinstance(obj, (list, tuple)) or type(obj) in SCALARS
    if needed and copy is False:
        raise ValueArgumentError(
            f"asarray: {describe(obj)} to {native} needs a copy, and copy=False forbids it"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return wrap(array.astype(native, copy=bool(copy) and array is obj))


def _on_cuda(obj: Any) -> Tensor | None:
    """The tensor of another library's array in the memory of a CUDA device, which it shares; None for all else."""
    if isinstance(obj, (np.ndarray, np.generic, list, tuple, type, *SCALARS)):
        return None
    if hasattr(obj, "__dlpack_device__"):
        is_there = int(obj.__dlpack_device__()[0]) in _DLPACK_CUDA
    else:
        is_there = hasattr(obj, "__cuda_array_interface__")
    return lazy.cuda_backend().adopted(obj) if is_there else None


def _is_traceable(value: Any) -> bool:
    """Whether a value may be traced, so that only operators can make something of it."""
    return isinstance(value, Tensor) or type(value) in number_stand_ins


def _array_of(obj: Any, wanted: DType | None) -> np.ndarray[Any, Any]:
    """An ndarray of an object; a checked dtype of tandem, perhaps of the other byte order."""
    if isinstance(obj, type):  # its instances may have __array__; it has nothing to convert
        raise ArgumentError(f"asarray: {describe(obj)} makes no tensor; pass a value")
    if isinstance(obj, np.ndarray | np.generic):
        if type(obj).__module__.startswith("numpy.ma"):
            raise UnsupportedError(
                "asarray: masked arrays have no counterpart; use x.filled(value), or td.where"
            )
        array = np.asarray(obj)
    elif isinstance(obj, (*SCALARS, list, tuple)):
        array = _of_python(obj, wanted)
    elif hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        array = np.asarray(obj)
    elif hasattr(obj, "__dlpack__"):
        array = np.from_dlpack(obj)
    else:
        array = _of_buffer(obj)
    _check_elements(array, obj)
    return array


def _of_buffer(obj: Any) -> np.ndarray[Any, Any]:
    if isinstance(obj, (str, bytes)):
        raise DTypeError(f"asarray: {describe(obj)} is text; a tensor holds numbers or booleans")
    try:
        return np.asarray(memoryview(obj))
    except TypeError:
        raise ArgumentError(
            f"asarray takes numbers, nested lists of them, NumPy arrays, tensors and objects with __dlpack__ or "
            f"__array__, not {describe(obj)}"
        ) from None


def _of_python(obj: Any, wanted: DType | None) -> np.ndarray[Any, Any]:
    exact = wanted.np if wanted is not None and wanted.is_integer and _all_integers(obj) else None
    try:
        array = np.array(obj, dtype=exact)
    except OverflowError:
        raise ScalarOverflowError(
            f"asarray: an integer in {describe(obj)} does not fit {wanted or 'int64'}"
        ) from None
    except (TypeError, ValueError) as fault:
        if "inhomogeneous" in str(fault):
            raise ShapeError(
                f"asarray: lists of unequal lengths or depths in {describe(obj)} make no tensor"
            ) from None
        raise ArgumentError(f"asarray: {describe(obj)} makes no tensor: {fault}") from None
    if exact is not None or array.dtype.kind not in "fcu" or _has_numpy(obj):
        return array
    if array.dtype == uint64.np:
        raise ScalarOverflowError(
            f"asarray: an integer in {describe(obj)} does not fit int64; say dtype=td.uint64"
        )
    default = DEFAULT_FLOAT if array.dtype.kind == "f" else DEFAULT_COMPLEX
    with np.errstate(over="ignore"):
        return array if wanted is not None else array.astype(default.np)


_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_MOST_AXES = 64  # NumPy's limit


def _leaves(obj: Any, depth: int = 0) -> Iterator[Any]:
    if depth > _MOST_AXES:  # a list may hold itself
        raise ShapeError(
            f"asarray: lists are nested deeper than the {_MOST_AXES} axes that an array can have"
        )
    if isinstance(obj, (list, tuple)):
        for item in obj:
            yield from _leaves(item, depth + 1)
    else:
        yield obj


def _all_integers(obj: Any) -> bool:
    return all(isinstance(item, int) for item in _leaves(obj))


def _has_numpy(obj: Any) -> bool:
    return any(isinstance(item, np.ndarray | np.generic) for item in _leaves(obj))


def _check_elements(array: np.ndarray[Any, Any], obj: Any) -> None:
    if array.dtype.kind == "O":
        if isinstance(obj, np.ndarray):
            raise DTypeError(
                "asarray: a NumPy array of dtype object has no dtype of tandem; say it: x.astype(float)"
            )
        strange = [item for item in array.flat if not isinstance(item, SCALARS)]
        if not strange:
            raise ScalarOverflowError(f"asarray: an integer in {describe(obj)} does not fit any dtype")
        raise DTypeError(
            f"asarray: elements such as {describe(strange[0])} are objects; a tensor holds numbers or booleans, so "
            "give the array a numeric dtype first"
        )
    as_dtype(array.dtype)

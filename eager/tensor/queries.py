"""NumPy's functions that ask about tensors or print them, and ``array``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ...operators.declare.shape_rules import is_tensor, normalize_axis, spec_of
from ...operators.shape.views import reshape
from ...registry.native_type import accept_entry
from .construct import asarray
from .printing import elements
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, TensorLike


_COPIED = frozenset((bool, int, float, complex, list, tuple))  # types whose elements `asarray` copies


def array(
    object: object,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    ndmin: int = 0,
    device: str | None = None,
) -> Tensor:
    """Convert an array-like object to a new tensor.

    Args:
        object: what :func:`asarray` accepts.
        dtype: the dtype of the result; None: that of ``object``.
        copy: True copies, False never does, None copies if needed.
        ndmin: the least number of axes; axes of length 1 are put in front.
        device: the device; None: that of ``object``.

    Returns:
        A tensor.

    Raises:
        DTypeError: objects, strings and other elements without a dtype of tandem.
        ShapeError: lists of unequal lengths.

    >>> import tandem as td
    >>> td.array([1, 2], ndmin=2).tolist()
    [[1, 2]]
    """
    if copy is True and dtype is device is None and type(object) in _COPIED:
        result = asarray(object)  # which has a native entry
    else:
        result = asarray(object, dtype, device=device, copy=copy)
    missing = ndmin - len(result.shape)
    return reshape(result, (1,) * missing + result.shape) if missing > 0 else result


# -- questions ---------------------------------------------------------------------------------------------------------
def _shape_of(a: object) -> tuple[int, ...]:
    return spec_of(a).shape if is_tensor(a) else np.shape(a)  # type: ignore[call-overload]


@accept_entry("read_shape")
def shape(a: TensorLike) -> tuple[int, ...]:
    """The shape of a tensor, or of what could become one.

    >>> import tandem as td
    >>> td.shape([[1, 2]])
    (1, 2)
    """
    return _shape_of(a)


@accept_entry("read_rank")
def ndim(a: TensorLike) -> int:
    """The number of axes of a tensor, or of what could become one.

    >>> import tandem as td
    >>> td.ndim([[1, 2]])
    2
    """
    return len(_shape_of(a))


@accept_entry("read_count")
def size(a: TensorLike, axis: int | None = None) -> int:
    """The number of elements, or the length of an axis.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> import tandem as td
    >>> td.size([[1, 2]]), td.size([[1, 2]], 0)
    (2, 1)
    """
    sizes = _shape_of(a)
    if axis is not None:
        return sizes[normalize_axis("size", axis, len(sizes))]
    return int(np.prod(sizes, dtype=np.int64))


def isscalar(element: object) -> bool:
    """Whether a value is a number, a string or bytes, and not a tensor of some axes.

    >>> import tandem as td
    >>> td.isscalar(3.0), td.isscalar(td.zeros(2))
    (True, False)
    """
    return not spec_of(element).shape if is_tensor(element) else bool(np.isscalar(element))


@accept_entry("has_axes")
def iterable(y: object) -> bool:
    """Whether one can iterate over a value; a tensor without axes has no elements to iterate over.

    >>> import tandem as td
    >>> td.iterable([1]), td.iterable(td.asarray(1))
    (True, False)
    """
    return bool(spec_of(y).shape) if is_tensor(y) else isinstance(y, Iterable)


@accept_entry("has_complex")
def iscomplexobj(x: object) -> bool:
    """Whether the dtype of a value is complex.

    >>> import tandem as td
    >>> td.iscomplexobj(td.asarray(1j)), td.iscomplexobj(1.0)
    (True, False)
    """
    return spec_of(x).dtype.kind == "c" if is_tensor(x) else bool(np.iscomplexobj(x))  # type: ignore[arg-type]


@accept_entry("has_real")
def isrealobj(x: object) -> bool:
    """Whether the dtype of a value is not complex.

    >>> import tandem as td
    >>> td.isrealobj(td.asarray(1j)), td.isrealobj(1.0)
    (False, True)
    """
    return not iscomplexobj(x)


# -- printing ----------------------------------------------------------------------------------------------------------
def array_repr(a: Tensor) -> str:
    """The text of ``repr(a)``.

    >>> import tandem as td
    >>> td.array_repr(td.asarray([1, 2]))
    'tensor([1, 2])'
    """
    return repr(a)


def array_str(a: Tensor) -> str:
    """The text of ``str(a)``.

    >>> import tandem as td
    >>> td.array_str(td.asarray([1, 2]))
    '[1 2]'
    """
    return str(a)


def array2string(a: Tensor, **options: object) -> str:
    """The elements as text, with the options of ``numpy.array2string``.

    >>> import tandem as td
    >>> td.array2string(td.asarray([1.0, 2.0]), separator=";", precision=2)
    '[1.;2.]'
    """
    return elements(a, "", **{"separator": " ", "suffix": "", **options})


def set_printoptions(**options: object) -> None:
    """Set NumPy's options for printing (precision, threshold, ...), which tensors follow too."""
    np.set_printoptions(**options)  # type: ignore[arg-type]


def get_printoptions() -> dict[str, object]:
    """Return NumPy's options for printing.

    >>> import tandem as td
    >>> td.get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


@contextmanager
def printoptions(**options: object) -> Iterator[dict[str, object]]:
    """Set NumPy's options for printing inside a ``with`` block.

    >>> import tandem as td
    >>> with td.printoptions(precision=2):
    ...     print(td.asarray([0.123456]))
    [0.12]
    """
    with np.printoptions(**options) as current:  # type: ignore[arg-type]
        yield dict(current)

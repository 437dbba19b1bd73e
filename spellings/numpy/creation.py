"""Creation functions whose default dtypes are NumPy's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor import construct
from ..eager.tensor.index_tricks import Grid, Joiner
from ..eager.tensor.tensor import Tensor
from ..errors import ShapeError, ValueArgumentError
from ..operators.creation import creation as plain
from ..operators.creation import full as fills
from ..operators.creation import grids, windows
from ..operators.elementwise.casting import contiguous
from ..operators.elementwise.selection import where
from ..operators.shape.rearrange import moveaxis, transpose
from ..operators.shape.views import broadcast_to, reshape
from ..registry.dtypes import DType, complex128, float64
from ..registry.function import add_wrapper
from ..registry.native_type import accept_entries, accept_entry
from ..registry.values import MAX_RANK, traced_number_types
from ..transforms import numpy_maps
from .wrappers import OperatorWrapper

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import DTypeLike, Kwargs

    Choice = Callable[[Iterable[object]], DType | None]


def _choose_float(values: Iterable[object]) -> DType | None:
    """complex128 for complex numbers among the arguments, else float64."""
    return complex128 if any(isinstance(value, complex) for value in values) else float64


def _choose_by_value(values: Iterable[object]) -> DType | None:
    """The dtype of Python floats and complex numbers among the arguments; None for integers and tensors."""
    inexact = [value for value in values if isinstance(value, (float, complex))]
    return _choose_float(inexact) if inexact else None


def replace_type(value: Any) -> Any:  # noqa: ANN401
    """float64 and complex128 for Python's types; other values as they are."""
    return float64 if value is float else complex128 if value is complex else value


def replace_types(args: tuple[Any, ...], kwargs: Kwargs) -> tuple[Any, ...]:
    """The arguments of a call with :func:`replace_type`; the keyword ``dtype`` is replaced in ``kwargs``."""
    if "dtype" in kwargs:
        kwargs["dtype"] = replace_type(kwargs["dtype"])
    return tuple(map(replace_type, args))


def _with_default(
    function: OperatorFunction[Tensor], choose: Choice, has_order: bool = False
) -> Callable[..., Tensor]:
    """A creation function with NumPy's default dtype, and its argument ``order``."""
    dtypes, default = (DType, np.dtype, str, type), choose((0,))

    @wraps(function, updated=())
    def create(*args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        if not kwargs and _SIZES.issuperset(map(type, args)):
            dtype = default or (float64 if float in map(type, args) else None)
            return function(*args) if dtype is None else function(*args, dtype=dtype)
        args = replace_types(args, kwargs)
        order = kwargs.pop("order", None) if has_order else None
        if kwargs.get("dtype") is None and not any(isinstance(value, dtypes) for value in args):
            kwargs["dtype"] = choose((*args, *kwargs.values()))
        result = function(*args, **kwargs)
        return result if order is None else arrange(result, order, 0)

    return create


@accept_entries
class Filler(OperatorWrapper):
    """A creation function with NumPy's default dtype; shares the native entry of the function of ``tandem``."""

    passing_rules: Mapping[str, int] = {"values_start": 0, "takes_none": 0}
    single_tensors: Sequence[bool] = ()

    def __init__(
        self, function: OperatorFunction[Tensor], choose: Choice = _choose_float, has_order: bool = True
    ) -> None:
        update_wrapper(self, function, updated=())
        self.__module__ = __package__
        self.create = _with_default(function, choose, has_order)
        add_wrapper(self, function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        """Call the function."""
        return self.create(*args, **kwargs)


_SIZES = frozenset((int, float, tuple))
_PYTHON_NUMBERS = frozenset((int, float, bool))
_PYTHON = frozenset((int, float, complex, bool, list, tuple))  # what has no memory that a tensor could share
zeros = Filler(fills.zeros)
ones = Filler(fills.ones)
empty = Filler(fills.empty)
_full = _with_default(plain.full, _choose_by_value)
arange = Filler(plain.arange, _choose_by_value, False)
eye = Filler(plain.eye)
identity = _with_default(grids.identity, _choose_float)
tri = _with_default(grids.tri, _choose_float)
logspace = _with_default(grids.logspace, _choose_float)
geomspace = _with_default(grids.geomspace, _choose_float)
hanning = _with_default(windows.hanning, _choose_float)
hamming = _with_default(windows.hamming, _choose_float)
blackman = _with_default(windows.blackman, _choose_float)
bartlett = _with_default(windows.bartlett, _choose_float)
kaiser = _with_default(windows.kaiser, _choose_float)

_linspace = Filler(plain.linspace, has_order=False)


def full(
    shape: int | Sequence[int],
    fill_value: Any,  # noqa: ANN401
    dtype: DTypeLike | None = None,
    order: str | None = "C",
    **options: Any,  # noqa: ANN401
) -> Tensor:
    """An array of one value, or of values that are broadcast; see ``td.full``. Source: ``numpy.full``.

    Args:
        shape: the sizes.
        fill_value: a number, a tensor, or nested lists of numbers.
        dtype: the dtype; None: that of the value, float64 for a Python float.
        order: ``"F"`` for the order of Fortran in memory.
        options: ``device``.

    >>> import tandem.numpy as np
    >>> np.full(2, 0.5), np.full((2, 2), [1, 2])
    (tensor([0.5, 0.5], dtype=float64), tensor([[1, 2],
            [1, 2]]))
    """
    if order != "C":
        return arrange(full(shape, fill_value, dtype, **options), order, 0)
    kind = type(fill_value)
    if dtype is None and not options and kind in _PYTHON_NUMBERS:
        return (
            plain.full(shape, fill_value, dtype=float64) if kind is float else plain.full(shape, fill_value)
        )
    if isinstance(fill_value, np.generic):
        fill_value, dtype = fill_value.item(), dtype or fill_value.dtype
    if isinstance(fill_value, (list, tuple, np.ndarray, Tensor)):
        fill_value = asarray(fill_value, dtype, **options)
        if fill_value.ndim:
            return broadcast_to(fill_value, (shape,) if isinstance(shape, int) else shape).clone()
    return _full(shape, fill_value, dtype=dtype, **options)


def linspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    **options: Any,  # noqa: ANN401
) -> Tensor | tuple[Tensor, float]:
    """Evenly spaced numbers; see ``td.linspace``.

    Args:
        start: the first number, or a tensor or list of them.
        stop: the last number, or a tensor or list of them.
        num: how many numbers there are.
        endpoint: whether ``stop`` is one of them.
        retstep: whether to return the distance of the numbers too.
        dtype: the dtype; None: float64, or complex128.
        axis: the axis of the numbers in the result, if there are several starts or stops.
        options: ``device``.

    Source: ``numpy.linspace``.

    >>> import tandem.numpy as np
    >>> np.linspace(0, 1, 4, endpoint=False, retstep=True)
    (tensor([0.  , 0.25, 0.5 , 0.75], dtype=float64), 0.25)
    >>> np.linspace([0, 10], 20, 3).tolist()
    [[0.0, 10.0], [10.0, 15.0], [20.0, 20.0]]
    """
    step: Any = (stop - start) / max(num - endpoint, 1) if _is_number(start) and _is_number(stop) else None
    if step is None:
        first, last = _to_inexact(start), _to_inexact(stop)
        parts = max(num - endpoint, 1)
        step = (last - first) / parts
        counts = plain.arange(num, dtype=float64, **options).astype(step.dtype)
        counts = counts.reshape((num, *[1] * len(step.shape)))
        scaled = where((step == 0).any(), counts / parts * (last - first), counts * step)  # as NumPy rounds
        result = scaled + first
        if endpoint:
            result = where(counts == max(num - 1, 1), last, result)
        result = moveaxis(result, 0, axis)
        result = result if dtype is None else result.astype(replace_type(dtype))
    else:
        if endpoint and dtype is None and not options:
            result = _linspace(start, stop, num)
        else:
            result = _linspace(start, stop, num, endpoint=endpoint, dtype=dtype, **options)
    return (result, step) if retstep else result


def _to_inexact(value: object) -> Tensor:
    x: Tensor = asarray(value)
    return x if x.dtype.is_inexact else x.astype(float64)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, complex, np.number)) or type(value) in traced_number_types


def fromfunction(
    function: Callable[..., Any],
    shape: Sequence[int],
    *,
    dtype: DTypeLike = float,
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """A function of the indices of a grid, in float64; see ``td.fromfunction``. Source: ``numpy.fromfunction``."""
    return numpy_maps.fromfunction(function, shape, dtype=replace_type(dtype), **kwargs)


@accept_entry("asarray_double")
def asarray(
    a: object,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor of an array-like object; of Python numbers in float64, complex128 or int64.

    ``order="F"`` is the order of Fortran in memory.

    Native twin: backends/cpu/fastpath/entries/rt_asarray.py:asarray

    >>> import tandem.numpy as np
    >>> np.asarray([1.0, 2.0]).dtype
    tandem.float64
    """
    if order is not None:
        return arrange(asarray(a, dtype, device=device, copy=copy), order, 0, copy)
    if dtype is None and construct.has_tensors_only(a):
        return construct.asarray(a, device=device, copy=copy)
    wanted = _choose_for_list(_numbers(a)) if dtype is None else replace_type(dtype)
    return construct.asarray(a, wanted, device=device, copy=copy)


def array(
    object: object,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: str | None = None,
) -> Tensor:
    """Return a tensor of an array-like object with elements of its own.

    Args:
        object: a number, a tensor, an array, or nested lists of them.
        dtype: the dtype; None: that of the elements.
        copy: False: share the memory of the object, or raise; None: share it if possible.
        order: ``"F"`` for the order of Fortran in memory.
        ndmin: the least number of axes; axes of size 1 are added in front.
        device: the device of the result.

    Source: ``numpy.array``.

    >>> import tandem.numpy as np
    >>> np.array([1, 2], float, ndmin=2)
    tensor([[1., 2.]], dtype=float64)
    """
    if copy is True and order == "K" and not ndmin and device is None:
        if type(object) in _PYTHON:
            return asarray(object, dtype)
        if dtype is None:
            return asarray(object).clone()
    return arrange(asarray(object, dtype, device=device, copy=copy), order, ndmin, copy)


def arrange(x: Tensor, order: str | None, ndmin: int, copy: bool | None = None) -> Tensor:
    """Return a tensor with at least ``ndmin`` axes, its elements in an order in memory.

    Raises:
        ValueArgumentError: there is no such order, or ``copy`` is False and the elements have another one.
    """
    axes = operator.index(ndmin)
    if order not in (None, "K", "A", "C", "F"):
        raise ValueArgumentError(f"order must be 'K', 'A', 'C' or 'F', not {order!r}")
    if order in ("C", "F"):
        rows = transpose(x) if order == "F" else x
        if copy is False and not rows.is_contiguous():
            raise ValueArgumentError(f"array: the order {order!r} needs a copy, and copy=False forbids it")
        x = transpose(contiguous(rows)) if order == "F" else contiguous(rows)
    return x if x.ndim >= axes else reshape(x, ((1,) * (axes - x.ndim) + x.shape))


def _choose_for_list(numbers: list[object] | None) -> DType | None:
    """The dtype of a list's numbers; float64 if there are none, and None if other values tell it."""
    return float64 if numbers == [] else _choose_by_value(numbers or ())


def _numbers(value: object) -> list[object] | None:
    """The Python numbers of nested lists; None if there are tensors or arrays, which tell their dtypes."""
    items = [(value, 0)]
    result: list[object] = []
    while items:
        item, depth = items.pop()
        if isinstance(item, (list, tuple)):
            if depth == MAX_RANK:  # a list may hold itself
                raise ShapeError(f"asarray: lists are nested more than {MAX_RANK} deep")
            items += [(one, depth + 1) for one in item]
        elif isinstance(item, (int, float, complex)) and not isinstance(item, np.generic):
            result.append(item)
        else:
            return None
    return result


mgrid, ogrid = Grid(False, asarray), Grid(True, asarray)
r_, c_ = Joiner(False, asarray), Joiner(True, asarray)

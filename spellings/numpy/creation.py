"""Creation functions whose default dtypes are NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor import construct
from ..operators.creation import creation as plain
from ..operators.creation import full as fills
from ..operators.creation import grids, windows
from ..registry.dtypes import DType, complex128, float64

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import DTypeLike, Tensor

    Choice = Callable[[Iterable[object]], DType | None]


def _choose_float(values: Iterable[object]) -> DType | None:
    """complex128 for complex numbers among the arguments, else float64."""
    return complex128 if any(isinstance(value, complex) for value in values) else float64


def _choose_by_value(values: Iterable[object]) -> DType | None:
    """The dtype of Python floats and complex numbers among the arguments; None for integers and tensors."""
    inexact = [value for value in values if isinstance(value, (float, complex))]
    return _choose_float(inexact) if inexact else None


def _replace_type(value: Any) -> Any:  # noqa: ANN401
    """float64 and complex128 for Python's types; other values as they are."""
    return float64 if value is float else complex128 if value is complex else value


def _with_default(function: OperatorFunction[Tensor], choose: Choice) -> Callable[..., Tensor]:
    """A creation function with NumPy's default dtype."""
    dtypes = (DType, np.dtype, str, type)

    @wraps(function, updated=())
    def create(*args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        args = tuple(map(_replace_type, args))
        if "dtype" in kwargs:
            kwargs["dtype"] = _replace_type(kwargs["dtype"])
        if kwargs.get("dtype") is None and not any(isinstance(value, dtypes) for value in args):
            kwargs["dtype"] = choose((*args, *kwargs.values()))
        return function(*args, **kwargs)

    return create


zeros = _with_default(fills.zeros, _choose_float)
ones = _with_default(fills.ones, _choose_float)
empty = _with_default(fills.empty, _choose_float)
full = _with_default(plain.full, _choose_by_value)
arange = _with_default(plain.arange, _choose_by_value)
linspace = _with_default(plain.linspace, _choose_float)
eye = _with_default(plain.eye, _choose_float)
identity = _with_default(grids.identity, _choose_float)
tri = _with_default(grids.tri, _choose_float)
logspace = _with_default(grids.logspace, _choose_float)
geomspace = _with_default(grids.geomspace, _choose_float)
hanning = _with_default(windows.hanning, _choose_float)
hamming = _with_default(windows.hamming, _choose_float)
blackman = _with_default(windows.blackman, _choose_float)
bartlett = _with_default(windows.bartlett, _choose_float)
kaiser = _with_default(windows.kaiser, _choose_float)


def asarray(
    a: object, dtype: DTypeLike | None = None, *, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor of an array-like object; of Python numbers in float64, complex128 or int64.

    >>> import tandem.numpy as np
    >>> np.asarray([1.0, 2.0]).dtype
    tandem.float64
    """
    wanted = _choose_by_value(_numbers(a)) if dtype is None else _replace_type(dtype)
    return construct.asarray(a, wanted, device=device, copy=copy)


def array(
    object: object, dtype: DTypeLike | None = None, *, copy: bool | None = True, device: str | None = None
) -> Tensor:
    """As ``asarray``, with a copy of the elements."""
    return asarray(object, dtype, device=device, copy=copy)


def _numbers(value: object) -> list[object]:
    """The Python numbers of nested lists; none if there are tensors or arrays, which tell their dtypes."""
    items = [value]
    result: list[object] = []
    while items:
        item = items.pop()
        if isinstance(item, (list, tuple)):
            items += item
        elif isinstance(item, (int, float, complex)) and not isinstance(item, np.generic):
            result.append(item)
        else:
            return []
    return result

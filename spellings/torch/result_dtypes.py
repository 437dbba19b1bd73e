"""Functions with PyTorch's dtypes of results: sums of unsigned integers are int64, and softmax takes ``dtype``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..operators.elementwise.casting import astype
from ..operators.nn import normalization
from ..operators.reductions import folds, nan_reductions, scans
from ..operators.shape import diagonals
from ..registry.dtypes import int64, uint64
from ..registry.function import accept_options

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


def _summing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A reduction or scan whose result is int64 where it would be uint64, if neither dtype nor ``out`` is given."""

    @functools.wraps(function)
    def reduce(*args: object, **kwargs: object) -> Tensor:
        result = function(*args, **kwargs)
        if result.dtype is not uint64 or kwargs.get("dtype") is not None or kwargs.get("out") is not None:
            return result
        return astype(result, int64)

    reduce.__module__ = __name__
    return reduce


cumprod, cumsum, trace = _summing(scans.cumprod), _summing(scans.cumsum), _summing(diagonals.trace)
nansum, prod, sum = _summing(nan_reductions.nansum), _summing(folds.prod), _summing(folds.sum)


def _converting(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of a tensor and an axis that converts the tensor to ``dtype`` first."""

    @functools.wraps(function)
    def compute(*args: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:  # noqa: ANN401
        if len(args) == 3:
            dtype = args[2]
            args = args[:2]
        if dtype is None:
            return function(*args, **kwargs)
        if not args:
            return function(astype(kwargs.pop("input"), dtype), **kwargs)
        return function(astype(args[0], dtype), *args[1:], **kwargs)

    compute.__module__ = __name__
    return accept_options("dtype")(compute)


log_softmax, softmax = _converting(normalization.log_softmax), _converting(normalization.softmax)

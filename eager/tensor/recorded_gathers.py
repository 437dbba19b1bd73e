"""``x[key]`` of tensors that require gradients, for keys of positions or one mask."""

from __future__ import annotations

from typing import Any

from ...operators.indexing import take as gathers
from ...operators.shape.views import reshape
from ...registry.dispatch.state import DEFAULT, current
from ...registry.dtypes import bool_
from ...registry.function import functions
from ..autograd.derivative_rules import derivative_of
from ..autograd.kernel import policies, record_call
from .construct import asarray
from .tensor import Tensor, wrap


def select(x: Tensor, key: Any) -> Tensor | None:
    """``x[key]`` for a tensor or a list of positions along the first axis, or a mask of that axis or of all.

    None for other keys, and where calls are observed: the general way of a subscript takes several times as long.

    Args:
        x: a tensor that requires gradients.
        key: any key.
    """
    if type(x) is not Tensor or not x.shape or current() is not DEFAULT:
        return None
    if type(key) is list and {*map(type, key)} == {int}:
        key = asarray(key)
    if type(key) is not Tensor or not key.shape:
        return None
    if key.dtype.is_integer:
        # recorded calls of `take` are compiled when hot, for each number of positions
        return gathers.take(x, key, 0)
    if key.dtype is not bool_ or key.shape not in (x.shape[:1], x.shape) or policies[0]:
        return None
    if len(key.shape) > 1:
        x, key = reshape(x, (-1,)), reshape(key, (-1,))
    return _record_gather(x, gathers.nonzero(key)[0])


def _record_gather(x: Tensor, positions: Tensor) -> Tensor:
    """The elements at positions along the first axis, recorded as a call of ``index``; their number may vary."""
    elements = wrap(x._array)[positions]
    derivative = derivative_of(functions["td::index"].operator)
    result: Any = record_call(derivative, (x, (positions,), 0), {}, elements)
    return result  # type: ignore[no-any-return]

"""Functional updates of plain tensors in memory: ``x.at[key].set(v)`` writes into a copy of ``x``.

The subscripts of such tensors have native entries, and operators with new results need none of their analysis. Other
updates (of traced, batched and recorded tensors, or at positions that may occur twice) call an operator.
"""

from __future__ import annotations

from types import EllipsisType
from typing import TYPE_CHECKING, Any

from ...errors import TandemError
from ...operators.elementwise.casting import contiguous
from ...operators.indexing.gather import index_put
from ...operators.indexing.slicing import KIND_RANKS, basic_put
from ...operators.indexing.subscript import find_combination
from ...operators.shape.views import broadcast_to
from ...registry.dispatch.keys import CPU_KEYS, DispatchKey
from ...registry.dispatch.state import ELSEWHERE, current
from ...registry.dtypes import bool_
from ...registry.function import function_of
from ...registry.operator import Operator
from ...registry.values import SCALARS
from .construct import asarray
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.types import TensorLike

MOST_MASKED = 1 << 13
"""Elements of a tensor above which a selection by the mask is faster than a list of its true elements."""
_kernels: dict[str, object] = {}
_BASIC = (int, slice, EllipsisType, type(None))


def write_into_copy(x: Tensor, key: object, value: TensorLike, combine: str) -> Tensor | None:
    """A copy of ``x`` with ``value`` at ``key``, as ``put`` of operators/indexing/subscript.py returns it.

    Returns:
        None if an operator must run the update.
    """
    if current().flags == ELSEWHERE or not _is_plain(x) or not x._array.flags.c_contiguous:
        return None
    if type(value) not in SCALARS and not _is_plain(value):
        return None
    items = key if type(key) is tuple else (key,)
    is_basic = all(type(item) in _BASIC for item in items)
    if not is_basic and not all(type(item) in _BASIC or _is_plain(item) for item in items):
        return None
    if not _is_own((basic_put if is_basic else index_put).operator):
        return None
    try:
        return _write(x, items, is_basic, key, value, combine)
    except TandemError:
        return None  # the operator raises it, with its name


def _write(
    x: Tensor, items: tuple[Any, ...], is_basic: bool, key: object, value: TensorLike, combine: str
) -> Tensor | None:
    """The copy; None for positions that may occur twice, and values that are not of the dtype."""
    if (
        not is_basic
        and x.size > MOST_MASKED
        and any(type(one) is Tensor and one.dtype is bool_ for one in items)
    ):
        return None
    if combine:
        if not is_basic and not (len(items) == 1 and items[0].dtype is bool_):
            return _add_rows(x, items, value) if combine == "add" else None
        old = x[key]
        if not _combines_in_place(old, value):
            return None
        combined: Tensor = find_combination(combine)(old, value)
        if combined.dtype.kind != old.dtype.kind:
            return None
        value = combined
    result = x.clone()
    result[key] = value
    return result


def _is_own(operator: Operator) -> bool:
    """Whether nothing intercepts an operator, and its kernel for the CPU is that of the first update."""
    kernel = operator.table[DispatchKey.CPU].fn
    return not operator.extra_keys and _kernels.setdefault(operator.name, kernel) is kernel


def _is_plain(x: object) -> bool:
    return type(x) is Tensor and x._keys is CPU_KEYS


def _combines_in_place(old: Tensor, value: TensorLike) -> bool:
    """Whether the elements and a value combine in the dtype and to the rank of the elements."""
    if type(value) is Tensor:
        return value.dtype is old.dtype and value.ndim <= old.ndim
    return SCALARS.index(type(value)) <= KIND_RANKS[old.dtype.kind]


def _add_rows(x: Tensor, items: tuple[Any, ...], value: TensorLike) -> Tensor | None:
    """A copy with values added at positions of the first axis, which may occur twice; None for other positions."""
    if len(items) != 1 or items[0].ndim != 1 or not _combines_in_place(x, value):
        return None
    shape = items[0].shape + x.shape[1:]
    values = value if type(value) is Tensor else asarray(value, x.dtype)
    if values.shape != shape:
        if values.ndim > x.ndim:
            return None
        values = contiguous(broadcast_to(values, shape))
    return function_of("td::index_add")(x, 0, items[0], values)

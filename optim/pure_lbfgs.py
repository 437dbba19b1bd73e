"""The pure form of L-BFGS: a fixed number of pairs of changes, without a line search."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..errors import ValueArgumentError
from ..named_tuple import NamedTuple
from ..operators.creation.full import zeros
from ..operators.elementwise.arithmetic import abs
from ..operators.elementwise.selection import minimum, where
from ..operators.reductions.folds import sum
from ..operators.shape.joining import concat
from ..registry.dtypes import int32
from .lbfgs import SMALLEST_CURVATURE
from .pure import GradientTransformation, Rate

if TYPE_CHECKING:
    from ..registry.types import Pytree, Tensor


class LbfgsState(NamedTuple):
    """The state of L-BFGS.

    Attributes:
        step: the number of steps so far.
        params, grads: those of the last step, as vectors.
        moved, changes: the last changes of parameters and gradients, the newest in the last row.
        inverses: the inverses of the products of the two; 0 of rows that are not used yet.
        scale: the first approximation of the inverse of the Hessian.
    """

    step: Tensor
    params: Tensor
    grads: Tensor
    moved: Tensor
    changes: Tensor
    inverses: Tensor
    scale: Tensor


def _to_vector(tree: Pytree) -> Any:
    return concat([leaf.reshape(-1) for leaf in pytree.leaves(tree)])


def _to_tree(vector: Any, like: Pytree) -> Any:
    leaves, treedef = pytree.flatten(like)
    parts, start = [], 0
    for leaf in leaves:
        size = math.prod(leaf.shape)
        parts.append(vector[start : start + size].reshape(leaf.shape))
        start += size
    return treedef.unflatten(parts)


def lbfgs(learning_rate: Rate = 1.0, history_size: int = 10) -> GradientTransformation:
    """L-BFGS without a line search; the steps are those of :class:`tandem.optim.LBFGS` with ``max_iter=1``.

    Args:
        learning_rate: a number, or a function of the number of steps so far.
        history_size: the number of pairs of changes that approximate the curvature.

    Raises:
        ValueArgumentError: the number of pairs is not positive.

    >>> import tandem as td
    >>> optimizer, x = td.optim.lbfgs(), td.asarray([3.0, -2.0])
    >>> state = optimizer.init(x)
    >>> for _ in range(8):
    ...     updates, state = optimizer.update(td.grad(lambda x: (x * x).sum())(x), state, x)
    ...     x = td.optim.apply_updates(x, updates)
    >>> bool((abs(x) < 1e-3).all())
    True
    """
    if history_size < 1:
        raise ValueArgumentError(f"lbfgs: history_size must be positive, not {history_size}")

    def init(params: Pytree) -> LbfgsState:
        x = _to_vector(params) * 0
        pairs = zeros((history_size, x.shape[0]), dtype=x.dtype, device=x.device)
        count = zeros((), dtype=int32)
        return LbfgsState(count, x, x, pairs, pairs, pairs[:, :1].sum(1), sum(x) + 1)

    def update(grads: Pytree, state: LbfgsState, params: Pytree) -> tuple[Any, LbfgsState]:
        x, g = _to_vector(params), _to_vector(grads)
        state = _remember(state, x, g)
        direction = _find_direction(state, g, history_size)
        lr = learning_rate(state.step) if callable(learning_rate) else learning_rate
        first = minimum(1.0, 1.0 / sum(abs(g)))
        t = where(state.step == 0, first, 1.0) * lr
        return _to_tree(direction * t, params), state._replace(step=state.step + 1)

    return GradientTransformation(init, update)


def _remember(state: LbfgsState, x: Any, g: Any) -> LbfgsState:
    """The state with the changes since the last step, if their product is positive."""
    moved, change = x - state.params, g - state.grads
    product = sum(moved * change)
    is_kept = (state.step > 0) & (product > SMALLEST_CURVATURE)

    def push(rows: Any, row: Any) -> Any:
        return where(is_kept, concat([rows[1:], row[None]]), rows)

    return LbfgsState(
        state.step,
        x,
        g,
        push(state.moved, moved),
        push(state.changes, change),
        push(state.inverses, 1.0 / where(is_kept, product, 1.0)),
        where(is_kept, product / where(is_kept, sum(change * change), 1.0), state.scale),
    )


def _find_direction(state: LbfgsState, g: Any, count: int) -> Any:
    """The negative gradient times the approximate inverse of the Hessian, by the two loops."""
    q, factors = -g, {}
    for row in reversed(range(count)):
        factors[row] = sum(state.moved[row] * q) * state.inverses[row]
        q = q - state.changes[row] * factors[row]
    q = q * state.scale
    for row in range(count):
        q = q + state.moved[row] * (factors[row] - sum(state.changes[row] * q) * state.inverses[row])
    return q

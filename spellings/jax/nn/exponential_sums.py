"""``softmax``, ``log_softmax`` and ``logsumexp`` with JAX's keywords: masks, weights and signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...eager.tensor.construct import asarray
from ...operators.declare.shape_rules import spec_of
from ...operators.elementwise import comparison, selection
from ...operators.elementwise.arithmetic import abs, sign
from ...operators.elementwise.casting import astype, stop_gradient
from ...operators.elementwise.exponential import exp, log
from ...operators.nn import normalization
from ...operators.reductions.folds import max, sum
from ...registry.dtypes import default_float
from ..keywords import extend_operator

if TYPE_CHECKING:
    from ...registry.types import Tensor, TensorLike

    Axis = int | Sequence[int] | None


def _to_float(x: TensorLike) -> Tensor:
    """A tensor of floats; integers and bools have the default dtype."""
    tensor = asarray(x)
    return tensor if spec_of(tensor).dtype.is_inexact else astype(tensor, default_float())


def _largest(x: Tensor, axis: Axis) -> Tensor:
    """The largest elements over axes, with length 1 along these, or 0 where they are not finite; without gradient."""
    top = max(x, axis, keepdims=True)
    return stop_gradient(selection.where(comparison.isfinite(top), top, 0.0))


def _is_plain(axis: object, where: object) -> bool:
    return where is None and isinstance(axis, int)


@extend_operator(normalization.softmax)
def softmax(
    x: TensorLike,
    axis: Axis = -1,
    where: TensorLike | None = None,
    initial: TensorLike | None = None,
) -> Tensor:
    """Exponentials normalized to sum to one.

    Args:
        x: a tensor.
        axis: the axis, or several; None: all.
        where: a bool tensor that broadcasts with ``x``: which elements count; the result of others is 0.
        initial: accepted for compatibility with JAX.

    Source: ``jax.nn.softmax``.

    >>> import tandem.jax as jax
    >>> jax.nn.softmax(jax.numpy.zeros(3), where=jax.numpy.array([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """
    if _is_plain(axis, where):
        return normalization.softmax(_to_float(x), axis)
    powers = exp(log_softmax(x, axis, where))
    return selection.where(comparison.isnan(powers), 0.0, powers) if where is not None else powers


@extend_operator(normalization.log_softmax)
def log_softmax(
    x: TensorLike,
    axis: Axis = -1,
    where: TensorLike | None = None,
    initial: TensorLike | None = None,
) -> Tensor:
    """The logarithm of softmax; -inf for elements that do not count. See :func:`softmax`.

    Source: ``jax.nn.log_softmax``.
    """
    values = _to_float(x)
    if _is_plain(axis, where):
        return normalization.log_softmax(values, axis)
    if where is None:
        plain: Tensor = values - logsumexp(values, axis, keepdims=True)
        return plain
    counted = selection.where(where, values, 0.0)
    result = counted - logsumexp(values, axis, keepdims=True, where=where)
    return selection.where(where, result, float("-inf"))


@extend_operator(normalization.logsumexp)
def logsumexp(
    a: TensorLike,
    axis: Axis = None,
    b: TensorLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: TensorLike | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The logarithm of a sum of exponentials, without intermediate overflow.

    Args:
        a: a tensor.
        axis: the axis, or several; None: all.
        b: factors of the exponentials, which broadcast with ``a``.
        keepdims: whether reduced axes remain, with length 1.
        return_sign: whether to return the sign of the sum too, and the logarithm of its magnitude.
        where: a bool tensor that broadcasts with ``a``: which elements count.

    Returns:
        A tensor, NaN where the sum is negative; with ``return_sign``, the tensor and the signs -1, 0 and 1.

    Source: ``jax.nn.logsumexp``.

    >>> import tandem.jax as jax
    >>> jax.nn.logsumexp(jax.numpy.zeros(2), b=jax.numpy.array([1.0, -3.0]), return_sign=True)
    (tensor(0.6931472), tensor(-1.))
    """
    values = _to_float(a)
    if b is None and where is None and not return_sign:
        return normalization.logsumexp(values, axis, keepdims=keepdims)
    if b is not None:
        where = comparison.ne(b, 0) if where is None else comparison.ne(b, 0) & where
    if where is not None:
        values = selection.where(where, values, float("-inf"))
    top = _largest(values, axis)
    powers = exp(values - top)
    total = sum(powers if b is None else powers * b, axis, keepdims=True)
    signs = sign(total)
    result = log(abs(total) if return_sign else total) + top
    if not keepdims:
        shape = spec_of(max(values, axis)).shape
        result, signs = result.reshape(shape), signs.reshape(shape)
    return (result, signs) if return_sign else result

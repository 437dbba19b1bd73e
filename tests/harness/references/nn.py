"""References for operators of neural networks: plain NumPy in float64, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
from tandem import lazy
from tandem.registry.dtypes import as_dtype, float32

from .random_bits import random_uniform as uniform

scipy_special = lazy.Module("scipy.special")

Array = Any


def _result(wide: Array, *like: Array) -> Array:
    """In the floating dtype of the arguments: the default one for integers."""
    dtypes = [as_dtype(one.dtype) for one in like]
    native = (
        np.result_type(*(d.np if d.is_inexact else float32.np for d in dtypes))
        if len(set(dtypes)) > 1
        else None
    )
    return np.asarray(wide).astype(native or (dtypes[0].np if dtypes[0].is_inexact else float32.np))


def _wide(x: Array) -> Array:
    return np.asarray(x).astype(np.float64)


def softmax(x: Array, axis: int = -1) -> Array:
    """SciPy's softmax."""
    return _result(scipy_special.softmax(_wide(x), axis), x)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """SciPy's log_softmax."""
    return _result(scipy_special.log_softmax(_wide(x), axis), x)


def logsumexp(x: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """SciPy's logsumexp."""
    return _result(scipy_special.logsumexp(_wide(x), axis, keepdims=keepdims), x)


def layer_norm(
    x: Array, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Array:
    """Mean and variance over the flattened last axes."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    rows = _wide(x).reshape(*x.shape[: x.ndim - len(sizes)], int(np.prod(sizes)))
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + eps)
    result = rows.reshape(x.shape)
    result = result if weight is None else result * _wide(weight)
    result = result if bias is None else result + _wide(bias)
    return _result(result, *(one for one in (x, weight, bias) if one is not None))


def one_hot(x: Array, num_classes: int, *, axis: int = -1, dtype: Any = None) -> Array:
    """Rows of the identity, zero where the class is none of them."""
    rows = np.eye(num_classes + 1, num_classes)
    places = np.where((x >= 0) & (x < num_classes), x, num_classes).astype(int)
    return np.moveaxis(rows[places], -1, axis).astype(dtype.np if dtype else np.float32)


def _reduced(losses: Array, reduction: str, *like: Array) -> Array:
    value = losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses
    return _result(value, *like)


def cross_entropy(
    logits: Array, target: Array, *, axis: int = -1, reduction: str = "mean", label_smoothing: float = 0.0
) -> Array:
    """The expected negative logarithm of the softmax."""
    count = logits.shape[axis]
    share = _wide(one_hot(target, count, axis=axis) if target.dtype.kind in "iu" else target)
    share = share * (1 - label_smoothing) + label_smoothing / count
    losses = -(share * scipy_special.log_softmax(_wide(logits), axis)).sum(axis)
    return _reduced(losses, reduction, logits)


def mse_loss(x: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Squared differences."""
    return _reduced((_wide(x) - _wide(target)) ** 2, reduction, x, target)


def attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Any = None,
    *,
    is_causal: bool = False,
    scale: Any = None,
) -> Array:
    """Softmax of the scaled scores, times the values."""
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = np.einsum("...lc,...sc->...ls", _wide(query), _wide(key)) * scale
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    if attn_mask is not None:
        scores = (
            np.where(attn_mask, scores, -np.inf) if attn_mask.dtype == bool else scores + _wide(attn_mask)
        )
    return _result(np.einsum("...ls,...sc->...lc", scipy_special.softmax(scores, -1), _wide(value)), query)


def dropout(x: Array, key: Array, p: float = 0.5) -> Array:
    """What uniform numbers of the key keep."""
    keep = uniform(key, x.shape) < 1 - p
    return np.where(keep, _wide(x) / (1 - p) if p < 1 else 0.0, 0.0).astype(x.dtype)

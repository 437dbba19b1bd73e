"""Layers of neural networks that have no parameters."""

from __future__ import annotations

import math
from typing import Any

from .. import lazy
from ..errors import DTypeError, ShapeError, ValueArgumentError
from ..registry.dtypes import FLOATS, bool_
from .comparison import ge
from .contraction import matmul
from .creation import arange
from .declare import Bad, Draw, Sample
from .kinds import LAYOUTS, composite
from .normalization import float_result, narrowed, softmax, widened
from .random_keys import KEY, check_key
from .random_numbers import bernoulli
from .rearrange import matrix_transpose
from .rules import spec_of
from .selection import where
from .views import reshape

references = lazy.Functions("operators.references_nn")


@composite(
    "dropout(Tensor self, Tensor key, float p=0.5) -> Tensor",
    doc="""Zeros in the place of a random share of the elements; the others are scaled, so that the mean stays.

    Args:
        self: a tensor of real floating dtype.
        key: a random key; the same key drops the same elements.
        p: the probability that an element is dropped.

    Returns:
        A new tensor of the same shape and dtype.

    Raises:
        ValueArgumentError: ``p`` is no probability.
        DTypeError: no floats, or no key.

    >>> td.dropout(td.ones(3), td.random.key(0), 0.0).tolist()
    [1.0, 1.0, 1.0]
    """,
    reference=references.dropout,
    samples=lambda dtype: [
        *(Sample((Draw((3, 4), layout=layout), KEY)) for layout in LAYOUTS),
        *(Sample((Draw((7,)), KEY, p)) for p in (0.0, 0.1, 1.0)),
        Sample((Draw(()), KEY)),
        Sample((Draw((0,)), KEY)),
    ],
    errors=lambda: [
        Bad((Draw((2,)), KEY, 1.5), ValueError, "probability"),
        Bad((Draw((2,), dtype=bool_), KEY), TypeError, "floats"),
        Bad((Draw((2,)), 0), TypeError, "td.random.key"),
    ],
    dtypes=FLOATS,
    method=False,
)
def dropout(self: Any, key: Any, p: float) -> Any:
    spec = spec_of(self)
    if not spec.dtype.is_floating:
        raise DTypeError(f"dropout: takes real floats, not {spec}")
    if not 0 <= p <= 1:
        raise ValueArgumentError(f"dropout: {p} is no probability")
    if check_key("dropout", key).shape != (4,):
        raise ShapeError(f"dropout: takes one key, not {spec_of(key)}")
    return where(bernoulli(key, 1 - p, spec.shape), self * (1 / (1 - p) if p < 1 else 0.0), 0.0)


def _check_attention(query: Any, key: Any, value: Any) -> None:
    specs = [spec_of(one) for one in (query, key, value)]
    if any(len(spec.shape) < 2 for spec in specs):
        raise ShapeError(
            f"scaled_dot_product_attention: needs at least two axes: {', '.join(map(str, specs))}"
        )
    if specs[0].shape[-1] != specs[1].shape[-1] or specs[1].shape[-2] != specs[2].shape[-2]:
        raise ShapeError(
            "scaled_dot_product_attention: query (..., L, E), key (..., S, E) and value (..., S, V) do not fit: "
            f"{', '.join(map(str, specs))}"
        )


def _masked(scores: Any, mask: Any) -> Any:
    return where(mask, scores, -math.inf) if spec_of(mask).dtype is bool_ else scores + mask


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, *, "
    "bool is_causal=False, float? scale=None) -> Tensor",
    doc="""Attention: the values, averaged with the softmax of the scaled products of queries and keys as weights.

    Args:
        query: a tensor of shape ``(..., L, E)`` and a real floating dtype.
        key: a tensor of shape ``(..., S, E)``.
        value: a tensor of shape ``(..., S, V)``; the leading axes broadcast.
        attn_mask: broadcasts to ``(..., L, S)``: bool, where attention is allowed; or floats, added to the scores.
        is_causal: whether position ``i`` sees only the positions up to ``i``.
        scale: the factor of the scores; None: ``1 / sqrt(E)``.

    Returns:
        A tensor of shape ``(..., L, V)``. NaN for a query that may see nothing.

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: bool or complex.

    >>> x = td.ones((1, 3, 2))
    >>> td.scaled_dot_product_attention(x, x, x).shape
    (1, 3, 2)
    """,
    reference=references.attention,
    samples=lambda dtype: [
        *(Sample((Draw((3, 4), layout=layout), Draw((5, 4)), Draw((5, 2)))) for layout in LAYOUTS),
        Sample((Draw((2, 3, 4)), Draw((2, 3, 4)), Draw((2, 3, 4))), {"is_causal": True}),
        Sample((Draw((2, 1, 4)), Draw((5, 4)), Draw((5, 2))), {"scale": 0.3}),
        Sample((Draw((2, 4)), Draw((3, 4)), Draw((3, 4)), Draw((2, 3)))),
        Sample(
            (Draw((1, 4)), Draw((3, 4)), Draw((3, 4)), Draw((3,), values=(True, False, True), dtype=bool_))
        ),
    ],
    errors=lambda: [
        Bad((Draw((3, 4)), Draw((5, 3)), Draw((5, 2))), ValueError, "do not fit"),
        Bad((Draw((3, 4)), Draw((5, 4)), Draw((4, 2))), ValueError, "do not fit"),
        Bad((Draw((4,)), Draw((5, 4)), Draw((5, 2))), ValueError, "two axes"),
        Bad((Draw((3, 4)), Draw((5, 4)), Draw((5, 2)), Draw((2, 2))), ValueError, "broadcast"),
    ],
    dtypes=FLOATS,
    tolerance={"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-13},
    method=False,
    autocast="lower",
)
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any, *, is_causal: bool, scale: float | None
) -> Any:
    _check_attention(query, key, value)
    dtype = float_result("scaled_dot_product_attention", query, key, value)
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    scores = matmul(widened(query, dtype) * factor, matrix_transpose(widened(key, dtype)))
    if is_causal:
        rows, columns = (arange(size, device=scores.device) for size in scores.shape[-2:])
        scores = _masked(scores, ge(reshape(rows, (*rows.shape, 1)), columns))
    if attn_mask is not None:
        scores = _masked(scores, attn_mask)
    return narrowed(matmul(softmax(scores, -1), widened(value, dtype)), dtype)

"""dropout and scaled_dot_product_attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import FLOATS, bool_
from ...registry.values import describe
from ..contraction.matmul import matmul
from ..creation.creation import arange
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import is_tensor, spec_of
from ..elementwise.comparison import ge
from ..elementwise.selection import where
from ..random.key_bits import check_key
from ..random.uniform import bernoulli
from ..shape.rearrange import matrix_transpose
from ..shape.views import reshape
from .normalization import float_result_dtype, narrow, softmax, widen

if TYPE_CHECKING:
    from ...registry.types import Tensor


@composite(
    "dropout(Tensor self, Tensor key, float p=0.5) -> Tensor",
    doc="""Set a random share of the elements to zero, and scale the others so that the mean is unchanged.

    Args:
        self: a tensor of real floating dtype.
        key: a random key; the same key drops the same elements.
        p: the probability that an element is dropped.

    Returns:
        A new tensor of the same shape and dtype.

    Raises:
        ValueArgumentError: ``p`` is not in [0, 1].
        DTypeError: the tensor is not floating, or ``key`` is not a key.

    >>> td.dropout(td.ones(3), td.random.key(0), 0.0).tolist()
    [1.0, 1.0, 1.0]
    """,
    reference="references.nn.dropout",
    samples="samples.nn.dropout_samples",
    errors="samples.nn.dropout_errors",
    dtypes=FLOATS,
    method=False,
)
def dropout(self: Tensor, key: Tensor, p: float) -> Tensor:
    spec = spec_of(self)
    if not spec.dtype.is_floating:
        raise DTypeError(f"dropout: takes real floats, not {spec}")
    if not is_tensor(key):
        raise DTypeError(
            "dropout: the argument 'key' decides which elements are dropped, and is made by td.random.key(seed); "
            f"{describe(key)} was given. Pass the probability after it: td.dropout(x, td.random.key(0), p)"
        )
    if not 0 <= p <= 1:
        raise ValueArgumentError(f"dropout: {p} is no probability")
    if check_key("dropout", key).shape != (4,):
        raise ShapeError(f"dropout: takes one key, not {spec_of(key)}")
    return where(bernoulli(key, 1 - p, spec.shape), self * (1 / (1 - p) if p < 1 else 0.0), 0.0)


def _check_attention(query: Tensor, key: Tensor, value: Tensor) -> None:
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


def apply_mask(scores: Tensor, mask: Tensor) -> Tensor:
    """Set scores to minus infinity where a bool mask is False, or add a mask of floats."""
    return where(mask, scores, -math.inf) if spec_of(mask).dtype is bool_ else scores + mask


def mask_future(scores: Tensor) -> Tensor:
    """Set the scores of later positions to minus infinity."""
    rows, columns = (arange(size, device=scores.device) for size in scores.shape[-2:])
    return apply_mask(scores, ge(reshape(rows, (*rows.shape, 1)), columns))


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, *, "
    "bool is_causal=False, float? scale=None) -> Tensor",
    doc="""Scaled dot-product attention: ``softmax(query @ key.mT * scale) @ value``.

    Args:
        query: a tensor of shape ``(..., L, E)`` and a real floating dtype.
        key: a tensor of shape ``(..., S, E)``.
        value: a tensor of shape ``(..., S, V)``; the leading axes broadcast.
        attn_mask: broadcasts to ``(..., L, S)``: bool, where attention is allowed; or floats, added to the scores.
        is_causal: whether position ``i`` attends only to positions up to ``i``.
        scale: the factor of the scores; None: ``1 / sqrt(E)``.

    Returns:
        A tensor of shape ``(..., L, V)``. NaN for a query that attends to no position.

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: bool or complex.

    >>> x = td.ones((1, 3, 2))
    >>> td.scaled_dot_product_attention(x, x, x).shape
    (1, 3, 2)
    """,
    reference="references.nn.attention",
    samples=lambda dtype: [
        *(
            SampleInput((TensorSample((3, 4), layout=layout), TensorSample((5, 4)), TensorSample((5, 2))))
            for layout in LAYOUTS
        ),
        SampleInput(
            (TensorSample((2, 3, 4)), TensorSample((2, 3, 4)), TensorSample((2, 3, 4))), {"is_causal": True}
        ),
        SampleInput((TensorSample((2, 1, 4)), TensorSample((5, 4)), TensorSample((5, 2))), {"scale": 0.3}),
        SampleInput((TensorSample((2, 4)), TensorSample((3, 4)), TensorSample((3, 4)), TensorSample((2, 3)))),
        SampleInput(
            (
                TensorSample((1, 4)),
                TensorSample((3, 4)),
                TensorSample((3, 4)),
                TensorSample((3,), values=(True, False, True), dtype=bool_),
            )
        ),
    ],
    errors=lambda: [
        ErrorInput(
            (TensorSample((3, 4)), TensorSample((5, 3)), TensorSample((5, 2))), ValueError, "do not fit"
        ),
        ErrorInput(
            (TensorSample((3, 4)), TensorSample((5, 4)), TensorSample((4, 2))), ValueError, "do not fit"
        ),
        ErrorInput((TensorSample((4,)), TensorSample((5, 4)), TensorSample((5, 2))), ValueError, "two axes"),
        ErrorInput(
            (TensorSample((3, 4)), TensorSample((5, 4)), TensorSample((5, 2)), TensorSample((2, 2))),
            ValueError,
            "broadcast",
        ),
    ],
    dtypes=FLOATS,
    tolerance={"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-13},
    method=False,
    autocast="lower",
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    *,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    _check_attention(query, key, value)
    dtype = float_result_dtype("scaled_dot_product_attention", query, key, value)
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    scores = matmul(widen(query, dtype) * factor, matrix_transpose(widen(key, dtype)))
    if is_causal:
        scores = mask_future(scores)
    if attn_mask is not None:
        scores = apply_mask(scores, attn_mask)
    return narrow(matmul(softmax(scores, -1), widen(value, dtype)), dtype)

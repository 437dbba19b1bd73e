"""Multi-head attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ArgumentError, ShapeError
from ..operators.contraction.matmul import matmul
from ..operators.creation.full import empty, zeros
from ..operators.elementwise.selection import where
from ..operators.reductions.statistics import mean
from ..operators.shape.joining import concat
from ..operators.shape.views import broadcast_to
from ..registry.dtypes import bool_
from . import functional as F
from . import init
from .layers import Linear
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


class MultiheadAttention(Module):
    """Attention by several heads, each on a share of the features.

    Args:
        embed_dim: the features of query and result, a multiple of ``num_heads``.
        num_heads: the number of heads.
        dropout: the probability with which an attention weight is dropped in training mode.
        bias: whether the projections have a bias.
        add_bias_kv: whether one more key and value are parameters, ``bias_k`` and ``bias_v``.
        add_zero_attn: whether one more key and value are zero.
        kdim, vdim: the features of key and value; None: ``embed_dim``.
        batch_first: whether inputs are ``(batch, sequence, features)``, not ``(sequence, batch, features)``.
        device, dtype: of the parameters.

    Attributes:
        in_proj_weight: ``(3 * embed_dim, embed_dim)``, the projections of query, key and value; None if their features
            differ: ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` then.
        in_proj_bias: ``(3 * embed_dim,)``, or None.
        out_proj: the projection of the result.

    >>> import tandem as td
    >>> attention = td.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = td.ones((1, 5, 8))
    >>> y, weights = attention(x, x, x)
    >>> y.shape, weights.shape
    ((1, 5, 8), (1, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        if embed_dim % num_heads:
            raise ShapeError(
                f"MultiheadAttention: {embed_dim} features are not a multiple of {num_heads} heads"
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.batch_first = dropout, batch_first
        is_joint = self.kdim == self.vdim == embed_dim
        shapes = {
            "in_proj_weight": (3 * embed_dim, embed_dim) if is_joint else None,
            "q_proj_weight": None if is_joint else (embed_dim, embed_dim),
            "k_proj_weight": None if is_joint else (embed_dim, self.kdim),
            "v_proj_weight": None if is_joint else (embed_dim, self.vdim),
        }
        for name, shape in shapes.items():
            weight = None if shape is None else Parameter(empty(shape, dtype=dtype, device=device))
            self.register_parameter(name, weight)
            if weight is not None:
                init.xavier_uniform_(weight)
        self.register_parameter(
            "in_proj_bias", Parameter(zeros((3 * embed_dim,), dtype=dtype, device=device)) if bias else None
        )
        for name in ("bias_k", "bias_v"):
            vector = Parameter(empty((1, 1, embed_dim), dtype=dtype, device=device)) if add_bias_kv else None
            self.register_parameter(name, vector)
            if vector is not None:
                init.xavier_normal_(vector)
        self.add_zero_attn = add_zero_attn
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention of queries to keys.

        Args:
            query, key, value: ``(sequence, batch, features)``, or with ``batch_first`` ``(batch, sequence, features)``,
                or without the axis of the batch.
            key_padding_mask: ``(batch, keys)``: True, or minus infinity, for keys that are ignored.
            need_weights: whether to return the attention weights.
            attn_mask: ``(queries, keys)`` or ``(batch * heads, queries, keys)``: True where attention is not allowed,
                or floats that are added.
            average_attn_weights: whether the weights are the mean over the heads.
            is_causal: says that ``attn_mask`` is the causal mask, which is needed as well.

        Returns:
            The result, of the layout of the query; and the weights, ``(batch, queries, keys)``, or None.
        """
        if is_causal and attn_mask is None:
            raise ArgumentError("MultiheadAttention: is_causal needs attn_mask too, as in PyTorch")
        is_single = query.ndim == 2
        if is_single:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
        elif not self.batch_first:
            query, key, value = (x.swapaxes(0, 1) for x in (query, key, value))
        mask = self._merge_masks(attn_mask, key_padding_mask, query, key)
        q, k, v = (self._split_heads(x) for x in self._add_keys(*self._project(query, key, value)))
        p = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            weights = F.attention_weights(q, k, mask)
            heads = matmul(F.dropout(weights, p), v)
            weights = mean(weights, 1) if average_attn_weights else weights
        else:
            heads = F.scaled_dot_product_attention(q, k, v, mask, p)
        result = self.out_proj(heads.swapaxes(1, 2).reshape(query.shape))
        if is_single:
            return result[0], None if weights is None else weights[0]
        return result if self.batch_first else result.swapaxes(0, 1), weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        size = self.embed_dim
        parts = [slice(at * size, (at + 1) * size) for at in range(3)]
        biases = [None if self.in_proj_bias is None else self.in_proj_bias[part] for part in parts]
        if self.in_proj_weight is None:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        elif query is key and key is value:
            return tuple(F.linear(query, self.in_proj_weight, self.in_proj_bias).split(3, axis=-1))
        else:
            weights = [self.in_proj_weight[part] for part in parts]
        return tuple(F.linear(*three) for three in zip((query, key, value), weights, biases))

    def _add_keys(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Add the keys and values that every query may attend to."""
        size = (k.shape[0], 1, self.embed_dim)
        if self.bias_k is not None:
            k, v = (
                concat([x, broadcast_to(one, size)], 1) for x, one in ((k, self.bias_k), (v, self.bias_v))
            )
        if self.add_zero_attn:
            k, v = (concat([x, zeros(size, dtype=x.dtype, device=x.device)], 1) for x in (k, v))
        return q, k, v

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[:2], self.num_heads, self.head_dim)).swapaxes(1, 2)

    def _merge_masks(
        self, attn_mask: Tensor | None, padding: Tensor | None, query: Tensor, key: Tensor
    ) -> Tensor | None:
        """The sum of the masks that are given, as floats to add to scores ``(batch, heads, queries, keys)``."""
        batch, queries, keys = query.shape[0], query.shape[1], key.shape[1]
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.reshape((batch, self.num_heads, queries, keys))
        if padding is not None:
            padding = padding.reshape((batch, 1, 1, keys))
        masks = [
            where(mask, -float("inf"), zeros((), dtype=query.dtype)) if mask.dtype is bool_ else mask
            for mask in (attn_mask, padding)
            if mask is not None
        ]
        if not masks:
            return None
        mask = masks[0] if len(masks) == 1 else masks[0] + masks[1]
        more = int(self.bias_k is not None) + int(self.add_zero_attn)
        return F.pad(mask, (0, more)) if more else mask

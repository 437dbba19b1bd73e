"""Transformers: layers of attention, their stacks, and the model of encoder and decoder."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ShapeError, ValueArgumentError
from ..operators.creation.creation import full
from ..operators.shape.triangles import triu
from . import functional as F
from . import init
from .attention import MultiheadAttention
from .containers import ModuleList
from .function_layers import Dropout
from .layers import Linear
from .module import Module
from .normalization import LayerNorm

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor

Activation = Callable[["Tensor"], "Tensor"]
_ACTIVATIONS: dict[str, Activation] = {"relu": F.relu, "gelu": F.gelu}


class _Layer(Module):
    """The base class of the layers of encoder and decoder.

    Args:
        d_model: the features of input and result.
        nhead: the number of heads of attention, a divisor of ``d_model``.
        dim_feedforward: the features between the two linear layers.
        dropout: the probability with which elements are dropped in training mode.
        activation: ``"relu"``, ``"gelu"`` or a function, between the two linear layers.
        layer_norm_eps: a number added to variances.
        batch_first: whether inputs are ``(batch, sequence, features)``, not ``(sequence, batch, features)``.
        norm_first: whether each part normalizes its input, not the sum of input and result.
        bias: whether linear layers and normalization have a bias.
        device, dtype: of the parameters.
    """

    attention_names: tuple[str, ...] = ()

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        if isinstance(activation, str) and activation not in _ACTIVATIONS:
            names = " or ".join(_ACTIVATIONS)
            raise ValueArgumentError(f"{type(self).__name__}: activation must be {names}, not {activation!r}")
        for name in self.attention_names:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        numbers = range(1, len(self.attention_names) + 2)
        for number in numbers:
            setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype))
        for number in numbers:
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = _ACTIVATIONS[activation] if isinstance(activation, str) else activation

    def _add(self, number: int, x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """The sum of an input and the result of a part, normalized; ``number`` is that of the part."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.norm_first:
            return x + dropout(compute(norm(x)))  # type: ignore[no-any-return]
        return norm(x + dropout(compute(x)))  # type: ignore[no-any-return]

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))  # type: ignore[no-any-return]


def _attend(
    attention: MultiheadAttention,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    is_causal: bool,
) -> Tensor:
    result, _ = attention(
        x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
    )
    return result  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear layers; see :class:`_Layer` for the arguments.

    >>> import tandem as td
    >>> layer = td.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(td.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    attention_names = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Compute the layer.

        Args:
            src: the sequence.
            src_mask, src_key_padding_mask, is_causal: as ``attn_mask``, ``key_padding_mask`` and ``is_causal`` of
                :meth:`MultiheadAttention.forward`.
        """
        x = self._add(
            1, src, lambda x: _attend(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal)
        )
        return self._add(2, x, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Attention to itself, attention to a memory, then two linear layers; see :class:`_Layer` for the arguments."""

    attention_names = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Compute the layer.

        Args:
            tgt, memory: the sequence, and the result of an encoder.
            tgt_mask, tgt_key_padding_mask, tgt_is_causal: for the attention to itself.
            memory_mask, memory_key_padding_mask, memory_is_causal: for the attention to the memory.
        """
        x = self._add(
            1, tgt, lambda x: _attend(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        )
        cross, masks = self.multihead_attn, (memory_mask, memory_key_padding_mask)
        x = self._add(2, x, lambda x: _attend(cross, x, memory, *masks, memory_is_causal))
        return self._add(3, x, self._feed_forward)


class _Stack(Module):
    """The base class of stacks of copies of one layer."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _finish(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """A stack of encoder layers.

    Args:
        encoder_layer: the layer, of which each is a copy.
        num_layers: the number of copies.
        norm: a module for the result, or None.
        enable_nested_tensor, mask_check: accepted for programs of PyTorch.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Compute the layers, one after the other, each with the same masks."""
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal) and mask is not None,
            )
        return self._finish(src)


class TransformerDecoder(_Stack):
    """A stack of decoder layers.

    Args:
        decoder_layer: the layer, of which each is a copy.
        num_layers: the number of copies.
        norm: a module for the result, or None.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Compute the layers, one after the other, each with the same memory and masks."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal) and tgt_mask is not None,
                memory_is_causal=memory_is_causal,
            )
        return self._finish(tgt)


class Transformer(Module):
    """The model of encoder and decoder, each a stack of layers with a normalization behind it.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device,
            dtype: as for :class:`TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers: the numbers of layers.
        custom_encoder, custom_decoder: other modules in place of the stacks.

    >>> import tandem as td
    >>> model = td.nn.Transformer(8, 2, 1, 1, 16)
    >>> mask = model.generate_square_subsequent_mask(3)
    >>> model(td.ones((5, 1, 8)), td.ones((3, 1, 8)), tgt_mask=mask).shape
    (3, 1, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        options = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
        )
        last = (bias, device, dtype)

        def make_norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, True, *last)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options, *last), num_encoder_layers, make_norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options, *last), num_decoder_layers, make_norm()
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encode ``src``, and decode ``tgt`` with the result as memory.

        Raises:
            ShapeError: the features are not ``d_model``, or the batches differ.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim != tgt.ndim or (src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise ShapeError(f"Transformer: src {src.shape} and tgt {tgt.shape} have different batches")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(f"Transformer: src {src.shape} and tgt {tgt.shape} need {self.d_model} features")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(  # type: ignore[no-any-return]
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: str | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """The causal mask ``(sz, sz)``: minus infinity above the diagonal, 0 elsewhere."""
        return triu(full((sz, sz), -math.inf, dtype=dtype, device=device), 1)

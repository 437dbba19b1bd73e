"""Layers without windows: Linear, Embedding, Flatten, PReLU; function_layers.py has those without parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..operators.creation.creation import full
from ..operators.creation.full import empty
from ..registry.dtypes import default_float
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


class Identity(Module):
    """Return the input; all arguments of the constructor are ignored."""

    def __init__(self, *args: object, **kwargs: object):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class Linear(Module):
    """``x @ weight.mT + bias``.

    Args:
        in_features, out_features: the sizes of the last axis of the input and of the result.
        bias: whether to add a bias.
        device, dtype: of the parameters.

    Attributes:
        weight: ``(out_features, in_features)``, uniform within ``1 / sqrt(in_features)``.
        bias: ``(out_features,)``, as the weight; or None.

    >>> import tandem as td
    >>> td.nn.Linear(3, 4)(td.ones((2, 3))).shape
    (2, 4)
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty((out_features, in_features), dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(empty((out_features,), dtype=dtype, device=device)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The product with the weight, plus the bias."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class _Table(Module):
    """The base class of layers with a table of vectors."""

    weight: Tensor

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Any:  # noqa: ANN401
        """Make a layer of a table ``(num_embeddings, embedding_dim)``.

        Args:
            embeddings: the table.
            freeze: whether it is not trained.
            options: the arguments of the class after the sizes.
        """
        layer = cls(*embeddings.shape, _weight=embeddings, **options)  # type: ignore[call-arg]
        layer.weight.requires_grad_(not freeze)
        return layer


class Embedding(_Table):
    """A table of vectors that integers index.

    Args:
        num_embeddings: the number of vectors.
        embedding_dim: their size.
        padding_idx: an index whose vector is zero at first and gets no gradient.
        device, dtype: of the table.

    Attributes:
        weight: ``(num_embeddings, embedding_dim)``, from the standard normal distribution.

    >>> import tandem as td
    >>> td.nn.Embedding(10, 3)(td.asarray([[1, 2], [3, 9]])).shape
    (2, 2, 3)
    """

    weight: Tensor

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is not None:
            self.weight = Parameter(_weight, requires_grad=not _freeze)
            return
        self.weight = Parameter(empty((num_embeddings, embedding_dim), dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table again."""
        _draw_table(self.weight, self.padding_idx)

    def forward(self, input: Tensor) -> Tensor:
        """The vectors at these indices."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )

    def extra_repr(self) -> str:
        """The sizes."""
        defaults: dict[str, Any] = {
            "padding_idx": None,
            "max_norm": None,
            "norm_type": 2.0,
            "scale_grad_by_freq": False,
            "sparse": False,
        }
        options = {name: getattr(self, name) for name in defaults}
        given = [f"{name}={value}" for name, value in options.items() if value != defaults[name]]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *given])


def _draw_table(weight: Tensor, padding_idx: int | None) -> None:
    """Draw normally distributed vectors; that of ``padding_idx`` is zero."""
    init.normal_(weight)
    if padding_idx is not None:
        init.zeros_(weight.detach()[padding_idx])


class EmbeddingBag(_Table):
    """Sums, means or largest elements of the vectors of bags of integers.

    Args:
        num_embeddings, embedding_dim: the number of vectors and their size.
        max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx: as for
            :func:`tandem.nn.functional.embedding_bag`.
        device, dtype: of the table.
    """

    weight: Tensor

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse, self.include_last_offset, self.padding_idx = sparse, include_last_offset, padding_idx
        shape = (num_embeddings, embedding_dim)
        self.weight = Parameter(empty(shape, dtype=dtype, device=device) if _weight is None else _weight)
        if _weight is None:
            _draw_table(self.weight, padding_idx)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """The result of each bag."""
        names = ("max_norm", "norm_type", "scale_grad_by_freq", "mode", "include_last_offset", "padding_idx")
        options = {name: getattr(self, name) for name in names}
        return F.embedding_bag(input, self.weight, offsets, per_sample_weights=per_sample_weights, **options)

    def extra_repr(self) -> str:
        """The sizes and the mode."""
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


class Flatten(Module):
    """Join axes to one.

    Args:
        start_dim, end_dim: the first and the last of them.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with fewer axes."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split an axis into several.

    Args:
        dim: the axis.
        unflattened_size: their sizes.
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with more axes."""
        at = self.dim % input.ndim
        return input.reshape((*input.shape[:at], *self.unflattened_size, *input.shape[at + 1 :]))

    def extra_repr(self) -> str:
        """The axis and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PReLU(Module):
    """:func:`tandem.nn.functional.prelu` with slopes that are trained.

    Args:
        num_parameters: 1, or the number of channels.
        init: the slopes at first.
        device, dtype: of the slopes.
    """

    weight: Tensor

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype or default_float(), device=device))

    def forward(self, input: Tensor) -> Tensor:
        """The positive elements, and the others times the slope."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


class Bilinear(Module):
    """``x1 @ weight[k] @ x2 + bias[k]``.

    Args:
        in1_features, in2_features, out_features: the sizes of the last axes.
        bias: whether to add a bias.
        device, dtype: of the parameters.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        shape = (out_features, in1_features, in2_features)
        bound = 1 / math.sqrt(in1_features)
        self.weight = Parameter(empty(shape, dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(empty((out_features,), dtype=dtype, device=device)) if bias else None
        )
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The products with the weight, plus the bias."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )

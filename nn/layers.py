"""Layers without windows: Linear, Embedding, Flatten, Dropout and layers of activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ..operators.creation.full import empty
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


class Embedding(Module):
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
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.weight = Parameter(empty((num_embeddings, embedding_dim), dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table again."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, input: Tensor) -> Tensor:
        """The vectors at these indices."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_embeddings}, {self.embedding_dim}"


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


class Dropout(Module):
    """Set a random share of the elements to zero in training mode; see :func:`tandem.nn.functional.dropout`.

    Args:
        p: the probability that an element is dropped.
        inplace: whether to write the result into the input.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input with elements dropped, scaled."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout2d(Dropout):
    """Drop whole channels in training mode."""

    def forward(self, input: Tensor) -> Tensor:
        """The input with channels dropped, scaled."""
        return F.dropout2d(input, self.p, self.training)


class Activation(Module):
    """A function of the input; the base class of :class:`ReLU` and the like.

    Args:
        args, kwargs: arguments of the function after the input, as PyTorch's class of this name takes them.
    """

    function: Callable[..., Tensor]

    def __init__(self, *args: object, **kwargs: object):
        super().__init__()
        self.args, self.kwargs = args, tuple(kwargs.items())

    def forward(self, input: Tensor) -> Tensor:
        """The function of the input."""
        return type(self).function(input, *self.args, **dict(self.kwargs))

    def extra_repr(self) -> str:
        """The arguments."""
        return ", ".join([*map(str, self.args), *(f"{name}={value}" for name, value in self.kwargs)])


def _make_activation(name: str, function: object) -> type[Activation]:
    called = getattr(function, "__name__", name)
    doc = f"The layer of :func:`tandem.nn.functional.{called}`, with the same arguments after the input."
    namespace = {
        "__doc__": doc,
        "__module__": __name__,
        "function": staticmethod(cast("Callable[..., Tensor]", function)),
    }
    return type(name, (Activation,), namespace)


ReLU = _make_activation("ReLU", F.relu)
ReLU6 = _make_activation("ReLU6", F.relu6)
LeakyReLU = _make_activation("LeakyReLU", F.leaky_relu)
ELU = _make_activation("ELU", F.elu)
GELU = _make_activation("GELU", F.gelu)
SiLU = _make_activation("SiLU", F.silu)
Sigmoid = _make_activation("Sigmoid", F.sigmoid)
LogSigmoid = _make_activation("LogSigmoid", F.logsigmoid)
Tanh = _make_activation("Tanh", F.tanh)
Hardtanh = _make_activation("Hardtanh", F.hardtanh)
Softplus = _make_activation("Softplus", F.softplus)
Softmax = _make_activation("Softmax", F.softmax)
LogSoftmax = _make_activation("LogSoftmax", F.log_softmax)
GLU = _make_activation("GLU", F.glu)
AvgPool1d = _make_activation("AvgPool1d", F.avg_pool1d)
AvgPool2d = _make_activation("AvgPool2d", F.avg_pool2d)
MaxPool1d = _make_activation("MaxPool1d", F.max_pool1d)
MaxPool2d = _make_activation("MaxPool2d", F.max_pool2d)
AdaptiveAvgPool1d = _make_activation("AdaptiveAvgPool1d", F.adaptive_avg_pool1d)
AdaptiveAvgPool2d = _make_activation("AdaptiveAvgPool2d", F.adaptive_avg_pool2d)

"""Losses as modules: :class:`CrossEntropyLoss` and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError
from . import functional as F
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Callable


class Loss(Module):
    """The base class of losses.

    Args:
        kwargs: the keyword arguments of the function of this loss; a tensor becomes a buffer.
    """

    function: Callable[..., Tensor]
    first: str = "reduction"

    def __init__(self, *args: object, **kwargs: object):
        super().__init__()
        if len(args) > 1:
            raise ArgumentError(f"{type(self).__name__} takes one positional argument, {self.first}")
        given = {**dict(zip((self.first,), args)), **kwargs}
        self.options = tuple((name, value) for name, value in given.items() if not isinstance(value, Tensor))
        tensors = [(name, value) for name, value in given.items() if isinstance(value, Tensor)]
        self.buffer_names = tuple(name for name, _ in tensors)
        for name, value in tensors:
            self.register_buffer(name, value)

    def forward(self, input: Tensor, *target: Tensor) -> Tensor:
        """The loss of an input and a target."""
        tensors = {name: getattr(self, name) for name in self.buffer_names}
        return type(self).function(input, *target, **dict(self.options), **tensors)


def _make_loss(name: str, function: Callable[..., Tensor], first: str = "reduction") -> type[Loss]:
    doc = f"The loss :func:`tandem.nn.functional.{function.__name__}`, with the same keyword arguments."
    namespace = {"__doc__": doc, "__module__": __name__, "function": staticmethod(function), "first": first}
    return type(name, (Loss,), namespace)


CrossEntropyLoss = _make_loss("CrossEntropyLoss", F.cross_entropy, "weight")
NLLLoss = _make_loss("NLLLoss", F.nll_loss, "weight")
BCELoss = _make_loss("BCELoss", F.binary_cross_entropy, "weight")
BCEWithLogitsLoss = _make_loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, "weight")
MSELoss = _make_loss("MSELoss", F.mse_loss)
L1Loss = _make_loss("L1Loss", F.l1_loss)
SmoothL1Loss = _make_loss("SmoothL1Loss", F.smooth_l1_loss)
HuberLoss = _make_loss("HuberLoss", F.huber_loss)
KLDivLoss = _make_loss("KLDivLoss", F.kl_div)
GaussianNLLLoss = _make_loss("GaussianNLLLoss", F.gaussian_nll_loss, "full")

"""Distributions whose parameter is given as probabilities or as logits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ...eager.autograd.grad_modes import enable_grad
from ...errors import ArgumentError
from ...operators.elementwise.activation import sigmoid
from ...operators.elementwise.exponential import log, log1p
from ...operators.elementwise.selection import clip
from ...operators.nn.normalization import logsumexp, softmax
from ...operators.reductions.folds import sum
from ...registry.dtype_functions import finfo
from . import constraints as c
from .distribution import Distribution

if TYPE_CHECKING:
    from ...registry.types import Tensor


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1, so that logarithms are finite."""
    eps = finfo(probs.dtype).eps
    return clip(probs, eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: of an event, or of the outcomes along the last axis."""
    return sigmoid(logits) if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities: of an event, or of the outcomes along the last axis."""
    clamped = clamp_probs(probs)
    return log(clamped) - log1p(-clamped) if is_binary else log(clamped)


class ProbsOrLogits(Distribution):
    """The base class of distributions with ``probs`` or ``logits``; the other one is computed when it is used.

    Attributes:
        is_binary: whether the parameter is that of an event. Otherwise the last axis has the outcomes, and the
            parameter is normalized.
    """

    is_binary: ClassVar[bool] = True
    before: ClassVar[tuple[str, ...]] = ()  # names of parameters before these
    _cached = ("probs", "logits")

    def __init__(self, *args: Any, validate_args: bool | None = None, **kwargs: Any):
        kind = type(self).__name__
        given = self._bind_optional(args, kwargs)
        chosen = [name for name in ("probs", "logits") if given.get(name) is not None]
        if len(chosen) != 1:
            raise ArgumentError(f"{kind} takes probs or logits, and not both")
        self._is_logits = chosen == ["logits"]
        self._set_parameters(
            {name: value for name, value in given.items() if value is not None}, validate_args
        )
        if not self.is_binary:
            value = self._parameters[chosen[0]]
            normal = value - logsumexp(value, -1, keepdims=True) if self._is_logits else value
            if not self._is_logits:
                normal = value / sum(value, -1, keepdims=True)
            self._parameters[chosen[0]] = normal
        vars(self)[chosen[0]] = self._parameters[chosen[0]]

    def _bind_optional(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        kind, names = type(self).__name__, (*self.before, "probs", "logits")
        if len(args) > len(names):
            raise ArgumentError(f"{kind} takes {len(names)} parameters, not {len(args)}")
        given = {**self.defaults, **dict(zip(names, args)), **kwargs}
        for name in given:
            if name not in names:
                raise ArgumentError(f"{kind} got an unexpected keyword argument {name!r}")
        return given

    @cached_property
    def probs(self) -> Tensor:
        """The probabilities."""
        with enable_grad():  # sample() may be the first to use it
            return logits_to_probs(self.logits, self.is_binary)

    @cached_property
    def logits(self) -> Tensor:
        """The logits: of an event ``log(p / (1 - p))``, of outcomes logarithms."""
        with enable_grad():
            return probs_to_logits(self.probs, self.is_binary)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple((self.logits if self._is_logits else self.probs).shape)


BINARY = {"probs": c.unit_interval, "logits": c.real}
OUTCOMES = {"probs": c.independent(c.nonnegative, 1), "logits": c.real_vector}

"""Distribution: the base class. A distribution declares its parameters, its support, a sampler and a density."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ...eager.autograd.grad_modes import no_grad
from ...eager.tensor.construct import asarray
from ...errors import ArgumentError, ConcretizationError, UnsupportedError, ValueArgumentError
from ...operators.declare.shape_rules import broadcast_shapes, is_tensor
from ...operators.elementwise.casting import astype
from ...operators.elementwise.exponential import exp, sqrt
from ...operators.reductions.folds import all
from ...operators.shape.views import broadcast_to
from ...registry.dtype_functions import result_type
from ...registry.dtypes import default_float
from .constraints import Constraint

if TYPE_CHECKING:
    from ...registry.types import Tensor

Shape = Sequence[int]


class Distribution:
    """The base class of distributions.

    A subclass declares ``arg_constraints``, the parameters in their order, and ``support``; it defines ``draw``,
    ``log_prob`` and what else its distribution has. Parameters are broadcast against each other. Values that are known
    only when a compiled function runs are not checked.

    Args:
        args, kwargs: the parameters, numbers or tensors.
        validate_args: whether parameters and values are checked; None: :meth:`set_default_validate_args`.

    Attributes:
        has_rsample: whether gradients flow through :meth:`rsample` to the parameters.
        defaults: parameters that may be left out.

    Raises:
        ArgumentError: a parameter is missing or unknown.
        ValueArgumentError: a parameter is not valid.
    """

    arg_constraints: ClassVar[Mapping[str, Constraint]] = {}
    defaults: ClassVar[Mapping[str, float]] = {}
    support: Any = None
    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False
    _validates: ClassVar[bool] = True

    def __init__(self, *args: Any, validate_args: bool | None = None, **kwargs: Any):
        names = tuple(self.arg_constraints)
        given = self._bind(names, args, kwargs)
        self._set_parameters(given, validate_args)

    def _bind(self, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        kind = type(self).__name__
        if len(args) > len(names):
            raise ArgumentError(f"{kind} takes {len(names)} parameters, not {len(args)}")
        given = {**self.defaults, **dict(zip(names, args)), **kwargs}
        for name in given:
            if name not in names:
                raise ArgumentError(f"{kind} got an unexpected keyword argument {name!r}")
        for name in names:
            if name not in given:
                raise ArgumentError(f"{kind} is missing the parameter {name!r}")
        return given

    def _set_parameters(self, given: Mapping[str, Any], validate_args: bool | None) -> None:
        """Broadcast the parameters, and set them as attributes."""
        if validate_args is not None:
            self._validates = validate_args  # type: ignore[misc]
        tensors = to_tensors(given)
        dims = {name: self.arg_constraints[name].event_dim for name in given}
        batches = [x.shape[: len(x.shape) - dims[name]] for name, x in tensors.items()]
        self._batch_shape = broadcast_shapes(type(self).__name__, *batches)
        self._parameters: dict[str, Tensor] = {}
        for name, x in tensors.items():
            event = x.shape[len(x.shape) - dims[name] :]
            self._parameters[name] = broadcast_to(x, (*self._batch_shape, *event))
        vars(self).update(self._parameters)
        if self._validates:
            for name, x in self._parameters.items():
                self._check(self.arg_constraints[name], x, f"parameter {name}")

    def _check(self, constraint: Constraint, value: Tensor, words: str) -> None:
        try:
            is_valid = bool(all(constraint.check(value)))
        except (ConcretizationError, UnsupportedError):  # traced or batched: there is no value yet
            return
        if not is_valid:
            raise ValueArgumentError(
                f"{type(self).__name__}: {words} of shape {value.shape} has values that are not {constraint}"
            )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions that are made from now on check parameters and values."""
        Distribution._validates = value

    # -- shapes --------------------------------------------------------------------------------------------------------
    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters: of distributions with different parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return ()

    def extended_shape(self, sample_shape: Shape = ()) -> tuple[int, ...]:
        """The shape of a sample."""
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def expand(self, batch_shape: Shape) -> Any:
        """The distribution with its parameters broadcast to a batch shape."""
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        for name in getattr(self, "_cached", ()):
            vars(new).pop(name, None)
        new._batch_shape = tuple(batch_shape)
        before = len(self._batch_shape)
        new._parameters = {
            name: broadcast_to(x, (*batch_shape, *x.shape[before:])) for name, x in self._parameters.items()
        }
        vars(new).update(new._parameters)
        return new

    # -- samples -------------------------------------------------------------------------------------------------------
    def draw(self, shape: tuple[int, ...]) -> Any:
        """Samples of a shape that ends as the batch and event shapes do."""
        raise NotImplementedError(f"{type(self).__name__} has no sampler")

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples, without gradients.

        Args:
            sample_shape: the axes before those of the batch.
        """
        with no_grad():
            result: Tensor = self.draw(self.extended_shape(sample_shape))
        return result

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples as functions of the parameters, through which gradients flow.

        Args:
            sample_shape: the axes before those of the batch.

        Raises:
            NotImplementedError: they are no differentiable functions of the parameters.
        """
        if not self.has_rsample:
            raise NotImplementedError(
                f"samples of {type(self).__name__} have no derivative; use sample() and log_prob()"
            )
        result: Tensor = self.draw(self.extended_shape(sample_shape))
        return result

    def sample_n(self, n: int) -> Tensor:
        """``n`` samples."""
        return self.sample((n,))

    # -- functions of values -------------------------------------------------------------------------------------------
    def _take(self, value: Any) -> Tensor:
        """A value as a tensor of the support."""
        x: Any = value if is_tensor(value) else asarray(value)
        if self._validates and self.support is not None:
            self._check(self.support, x, "a value")
        dtype = next(iter(self._parameters.values())).dtype
        return x if x.dtype.is_inexact else astype(x, dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density, or of the probability, at a value."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Any) -> Tensor:
        """The probability of at most a value."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Any) -> Tensor:
        """The value whose ``cdf`` is a probability."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first axis; ``expand`` broadcasts them over the batch."""
        raise NotImplementedError(f"{type(self).__name__} has no finite support")

    # -- moments -------------------------------------------------------------------------------------------------------
    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return sqrt(self.variance)

    def __repr__(self) -> str:
        shown = (
            f"{name}: {x.tolist() if math.prod(x.shape) == 1 else f'shape {x.shape}'}"
            for name, x in self._parameters.items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def to_tensors(given: Mapping[str, Any]) -> dict[str, Tensor]:
    """Numbers and tensors as tensors of one float dtype: that of the tensors, or the default."""
    tensors: list[Any] = [x for x in given.values() if is_tensor(x) and x.dtype.is_inexact]
    dtype = result_type(*tensors) if tensors else default_float()
    return {
        name: astype(x, dtype, copy=False) if is_tensor(x) else asarray(x, dtype=dtype)
        for name, x in given.items()
    }

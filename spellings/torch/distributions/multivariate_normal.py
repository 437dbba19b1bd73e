"""MultivariateNormal: normal vectors with a covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...eager.autograd.grad_modes import enable_grad
from ...eager.tensor.generator import default_generator
from ...errors import ArgumentError
from ...linalg import cholesky, inv, solve_triangular
from ...operators.contraction.matmul import matmul
from ...operators.declare.shape_rules import broadcast_shapes
from ...operators.elementwise.exponential import log
from ...operators.reductions.folds import sum
from ...operators.shape.rearrange import matrix_transpose
from ...operators.shape.views import broadcast_to
from . import constraints as c
from .distribution import Distribution, to_tensors

if TYPE_CHECKING:
    from ...registry.types import Tensor

MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")


class MultivariateNormal(Distribution):
    """The multivariate normal distribution.

    Args:
        loc: the means, along the last axis.
        covariance_matrix: the covariance, or
        precision_matrix: its inverse, or
        scale_tril: its lower Cholesky factor.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    Raises:
        ArgumentError: not one of the three matrices is given.

    >>> import tandem.torch as torch
    >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    >>> normal.rsample((3,)).shape, round(normal.entropy().item(), 4)
    ((3, 2), 2.8379)
    """

    arg_constraints = {
        "loc": c.real_vector,
        "covariance_matrix": c.positive_definite,
        "precision_matrix": c.positive_definite,
        "scale_tril": c.lower_cholesky,
    }
    support = c.real_vector
    has_rsample = True
    _cached = MATRICES
    loc: Tensor

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ):
        matrices = dict(zip(MATRICES, (covariance_matrix, precision_matrix, scale_tril)))
        given = {name: value for name, value in matrices.items() if value is not None}
        if len(given) != 1:
            raise ArgumentError(
                "MultivariateNormal takes one of covariance_matrix, precision_matrix, scale_tril"
            )
        tensors = to_tensors({"loc": loc, **given})
        size = broadcast_shapes("MultivariateNormal", *(x.shape[-1:] for x in tensors.values()))
        tensors["loc"] = broadcast_to(tensors["loc"], (*tensors["loc"].shape[:-1], *size))
        self._set_parameters(tensors, validate_args)
        self._root = self._find_root()

    def _find_root(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        if "scale_tril" in self._parameters:
            return self._parameters["scale_tril"]
        if "covariance_matrix" in self._parameters:
            return cholesky(self._parameters["covariance_matrix"])
        return cholesky(inv(self._parameters["precision_matrix"]))

    def expand(self, batch_shape: Sequence[int]) -> Any:
        """The distribution with its parameters broadcast to a batch shape."""
        new = super().expand(batch_shape)
        new._root = new._find_root()
        return new

    @cached_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._root

    @cached_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        with enable_grad():
            return matmul(self._root, matrix_transpose(self._root))

    @cached_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        with enable_grad():
            return inv(self.covariance_matrix)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The number of elements of a vector."""
        return tuple(self.loc.shape[-1:])

    @property
    def _half_log_det(self) -> Tensor:
        return sum(log(self._root.diagonal(0, -2, -1)), -1)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """The root times normal vectors."""
        drawn = default_generator.normal(shape, dtype=self.loc.dtype)
        return self.loc + matmul(self._root, drawn[..., None])[..., 0]

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        difference = self._take(value) - self.loc
        shape = broadcast_shapes("log_prob", difference.shape[:-1], self.batch_shape)
        size = self.event_shape[0]
        whitened = solve_triangular(
            broadcast_to(self._root, (*shape, size, size)),
            broadcast_to(difference, (*shape, size))[..., None],
            upper=False,
        )
        square = sum(whitened**2, (-2, -1))
        return -0.5 * (size * math.log(2 * math.pi) + square) - self._half_log_det

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._half_log_det + 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi))

    @property
    def mean(self) -> Tensor:
        """The means."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The means."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return sum(self._root**2, -1)

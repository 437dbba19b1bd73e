"""``td.nn.utils.parametrizations``: weight_norm and spectral_norm as parametrizations.

Source: ``torch.nn.utils.parametrizations``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .. import functional as F
from ..module import Module
from .norms import divide_by_singular_value, draw_unit_vectors, iterate, norm_except, output_axis, to_matrix
from .parametrize import register_parametrization

if TYPE_CHECKING:
    from ...registry.types import Tensor

M = TypeVar("M", bound=Module)


class _WeightNorm(Module):
    """A weight from its norms and its direction."""

    def __init__(self, dim: int | None):
        super().__init__()
        self.dim = dim

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        """The weight."""
        result: Tensor = v * (g / norm_except(v, self.dim))
        return result

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The norms and the direction."""
        return norm_except(weight, self.dim), weight


class _SpectralNorm(Module):
    """A weight over its largest singular value."""

    def __init__(self, weight: Tensor, n_power_iterations: int, eps: float, dim: int):
        super().__init__()
        self.n_power_iterations, self.eps, self.dim = n_power_iterations, eps, dim
        if weight.ndim > 1:
            matrix = to_matrix(weight.detach(), dim)
            u, v = draw_unit_vectors(matrix, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            iterate(matrix.mT, v, u, 15, eps)  # u before v

    def forward(self, weight: Tensor) -> Tensor:
        """The divided weight; in training mode the singular vectors are improved before."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        if self.training:
            transposed = to_matrix(weight.detach(), self.dim).mT
            iterate(transposed, self._v, self._u, self.n_power_iterations, self.eps)
        return divide_by_singular_value(weight, self._u, self._v, self.dim)

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: its largest singular value may be 1 already."""
        return value


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a weight by its direction and its norms, ``v * g / norm(v)``.

    Args:
        module: the module.
        name: the weight.
        dim: the axis along which each slice has a norm; None: one norm.

    Returns:
        The module.
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value, which each access in training mode estimates better.

    Args:
        module: the module.
        name: the weight.
        n_power_iterations: the number of iterations at each access.
        eps: the least norm to divide by.
        dim: the axis that counts the rows of the matrix; None: that of the results.

    Returns:
        The module.
    """
    axis = output_axis(module) if dim is None else dim
    norm = _SpectralNorm(getattr(module, name), n_power_iterations, eps, axis)
    return register_parametrization(module, name, norm)

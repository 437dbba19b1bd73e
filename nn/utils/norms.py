"""weight_norm and spectral_norm: weights that are computed from others, under PyTorch's older names.

parametrizations.py has the newer functions of these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ...eager.autograd.grad_modes import no_grad
from ...errors import ArgumentError
from ...named_tuple import NamedTuple
from ...operators.contraction.matmul import matmul
from ...operators.elementwise.exponential import sqrt
from ...operators.reductions.folds import sum
from .. import functional as F
from .. import init
from ..computed import compute_attribute, get_computed, store_attribute
from ..hooks import register_forward_pre_hook, set_hooks
from ..parameter import Parameter

if TYPE_CHECKING:
    from ...registry.types import Tensor
    from ..module import Module

M = TypeVar("M", bound="Module")


# -- formulas ----------------------------------------------------------------------------------------------------------
def norm_except(weight: Tensor, dim: int | None) -> Tensor:
    """The norms of the slices of a tensor along an axis, which broadcast with it; None: of the whole tensor."""
    axes = None if dim is None else tuple(axis for axis in range(weight.ndim) if axis != dim % weight.ndim)
    result: Tensor = sqrt(sum(weight * weight, axes, keepdims=dim is not None))
    return result


def to_matrix(weight: Tensor, dim: int) -> Tensor:
    """A tensor as a matrix whose rows are the slices along an axis."""
    result: Tensor = weight.moveaxis(dim, 0) if dim else weight
    return result.reshape((result.shape[0], -1))


def iterate(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float) -> None:
    """Improve estimates of the first singular vectors in place, that of the columns first, by power iteration."""
    with no_grad():
        for _ in range(count):
            v[...] = F.normalize(matmul(u, matrix), dim=0, eps=eps)
            u[...] = F.normalize(matmul(matrix, v), dim=0, eps=eps)


def divide_by_singular_value(weight: Tensor, u: Tensor, v: Tensor, dim: int) -> Tensor:
    """A weight over the largest singular value of its matrix, by estimates of the singular vectors."""
    u, v = u.detach().clone(), v.detach().clone()  # they change in place before the backward pass
    result: Tensor = weight / sum(u * matmul(to_matrix(weight, dim), v))
    return result


def output_axis(module: Module) -> int:
    """The axis of a weight that counts the results: that of a transposed convolution is its second one."""
    return int(getattr(module, "is_transposed", False))


# -- weight_norm -------------------------------------------------------------------------------------------------------
class _WeightNorm(NamedTuple):
    name: str
    dim: int | None

    def compute(self, module: Module) -> Tensor:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        result: Tensor = v * (g / norm_except(v, self.dim))
        return result


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a weight by its direction and its norms: ``v * g / norm(v)``.

    Args:
        module: the module; its parameters are ``weight_g`` and ``weight_v`` then.
        name: the weight.
        dim: the axis along which each slice has a norm; None: one norm.

    Returns:
        The module.

    >>> import tandem as td
    >>> layer = td.nn.utils.weight_norm(td.nn.Linear(2, 3, bias=False))
    >>> {name: p.shape for name, p in layer.named_parameters()}
    {'weight_g': (3, 1), 'weight_v': (3, 2)}
    """
    weight = _take_parameter(module, name)
    setattr(module, f"{name}_g", Parameter(norm_except(weight.detach(), dim)))
    setattr(module, f"{name}_v", Parameter(weight.detach()))
    compute_attribute(module, name, _WeightNorm(name, dim))
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo :func:`weight_norm`; the weight keeps its value."""
    _put_parameter(module, name, _WeightNorm, [f"{name}_g", f"{name}_v"])
    return module


# -- spectral_norm -----------------------------------------------------------------------------------------------------
class _SpectralNorm(NamedTuple):
    name: str
    dim: int
    n_power_iterations: int
    eps: float

    def _sources(self, module: Module) -> tuple[Tensor, Tensor, Tensor]:
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        return weight, u, v

    def compute(self, module: Module) -> Tensor:
        return divide_by_singular_value(*self._sources(module), self.dim)


class _Iterate:
    """The hook of :func:`spectral_norm` that improves the singular vectors in training mode."""

    def __init__(self, norm: _SpectralNorm):
        self.norm = norm

    def __call__(self, module: Module, args: object) -> None:
        if module.training:
            weight, u, v = self.norm._sources(module)
            matrix = to_matrix(weight.detach(), self.norm.dim)
            iterate(matrix, u, v, self.norm.n_power_iterations, self.norm.eps)


def draw_unit_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Random vectors of norm 1 for the rows and for the columns of a matrix."""
    vectors = (init.normal_(matrix.new_zeros((size,))) for size in matrix.shape)
    u, v = (F.normalize(vector, dim=0, eps=eps) for vector in vectors)
    return u, v


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value, which each call in training mode estimates better.

    Args:
        module: the module; its parameter is ``weight_orig`` then, its buffers ``weight_u`` and ``weight_v``.
        name: the weight.
        n_power_iterations: the number of iterations in each call.
        eps: the least norm to divide by.
        dim: the axis that counts the rows of the matrix; None: that of the results.

    Returns:
        The module.
    """
    weight = _take_parameter(module, name)
    axis = output_axis(module) if dim is None else dim
    norm = _SpectralNorm(name, axis, n_power_iterations, eps)
    setattr(module, f"{name}_orig", Parameter(weight.detach(), weight.requires_grad))
    for part, vector in zip("uv", draw_unit_vectors(to_matrix(weight.detach(), axis), eps)):
        module.register_buffer(f"{name}_{part}", vector)
    compute_attribute(module, name, norm)
    register_forward_pre_hook(module, _Iterate(norm))
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo :func:`spectral_norm`; the weight keeps its value."""
    norm = get_computed(module).get(name)
    _put_parameter(module, name, _SpectralNorm, [f"{name}_{part}" for part in ("orig", "u", "v")])
    hooks = module._hooks
    set_hooks(module, tuple(h for h in hooks if not (isinstance(h.fn, _Iterate) and h.fn.norm is norm)))
    return module


# -- parameters --------------------------------------------------------------------------------------------------------
def _take_parameter(module: Module, name: str) -> Tensor:
    weight = vars(module).get(name) if name in module._names.parameters else None
    if weight is None:
        raise ArgumentError(f"the module {type(module).__name__} has no parameter {name!r}")
    delattr(module, name)
    return weight  # type: ignore[no-any-return]


def _put_parameter(module: Module, name: str, kind: type, sources: list[str]) -> None:
    if not isinstance(get_computed(module).get(name), kind):
        raise ArgumentError(f"the attribute {name!r} of {type(module).__name__} is not normalized")
    value = getattr(module, name).detach()
    store_attribute(module, name)
    for source in sources:
        delattr(module, source)
    setattr(module, name, Parameter(value))

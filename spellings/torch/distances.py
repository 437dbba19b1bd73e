"""Norms and distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..eager.compiled import compile_when_hot
from ..errors import ArgumentError
from ..linalg.factorizations import svdvals
from ..linalg.norms import vector_norm
from ..operators.creation.grids import triu_indices
from ..operators.declare.shape_rules import normalize_axis, spec_of
from ..operators.elementwise.arithmetic import sub
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import gt
from ..operators.elementwise.selection import where
from ..operators.reductions.folds import sum
from ..operators.shape.rearrange import expand_dims, moveaxis
from ..operators.shape.views import reshape

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The norms of vectors along axes, or of all elements; ``"nuc"``: the sum of a matrix's singular values.

    Raises:
        ArgumentError: another name of a norm.

    >>> import tandem.torch as torch
    >>> torch.norm(torch.tensor([3.0, 4.0])).item()
    5.0
    """
    x = input if dtype is None else astype(input, dtype)
    if p == "nuc":
        axes = (-2, -1) if dim is None else tuple(dim) if isinstance(dim, Sequence) else (dim,)
        values = sum(svdvals(moveaxis(x, axes, (-2, -1))), -1)
        if not keepdim:
            return values
        kept = [1 if axis in {a % x.ndim for a in axes} else size for axis, size in enumerate(x.shape)]
        return reshape(values, kept)
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(f'norm: p is a number, "fro" or "nuc", not {p!r}')
    return vector_norm(x, axis=dim, keepdims=keepdim, ord=p if isinstance(p, (int, float)) else 2)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of the difference of two tensors that broadcast.

    >>> import tandem.torch as torch
    >>> torch.dist(torch.tensor([3.0, 4.0]), torch.zeros(2)).item()
    5.0
    """
    return vector_norm(sub(input, other), ord=p)


@compile_when_hot
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The distances of the rows of two matrices, or stacks of them: ``result[i, j]`` is that of rows i and j.

    Args:
        x1: a tensor of shape ``(..., P, M)``.
        x2: a tensor of shape ``(..., R, M)``.
        p: the order of the norm.
        compute_mode: accepted; the differences are always computed, never products.

    >>> import tandem.torch as torch
    >>> torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    return vector_norm(expand_dims(x1, -2) - expand_dims(x2, -3), axis=-1, ord=p)


@compile_when_hot
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances of all pairs of rows of a matrix: (0, 1), (0, 2), ..., (1, 2), ...

    >>> import tandem.torch as torch
    >>> torch.pdist(torch.tensor([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """
    first, second = triu_indices(spec_of(input).shape[0], 1)
    return vector_norm(input[first] - input[second], axis=-1, ord=p)


@compile_when_hot
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The tensor with each sub-tensor along an axis scaled down to a norm of at most ``maxnorm``.

    >>> import tandem.torch as torch
    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 2.5)[1].tolist()
    [0.0, 1.0]
    """
    rank = len(spec_of(input).shape)
    kept = normalize_axis("renorm", dim, rank)
    norms = vector_norm(input, axis=[axis for axis in range(rank) if axis != kept], keepdims=True, ord=p)
    return input * where(gt(norms, maxnorm), maxnorm / (norms + 1e-7), 1.0)

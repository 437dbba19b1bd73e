"""Rows of a table at integer indices, and their sums over bags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...eager.autograd.grad_modes import no_grad
from ...eager.compiled import compile_when_hot
from ...errors import ArgumentError, ShapeError, ValueArgumentError
from ...operators.creation.creation import arange
from ...operators.elementwise.selection import where
from ...operators.indexing.take import take
from ...operators.reductions.folds import max, sum
from ...operators.reductions.segments import segment_max, segment_sum

if TYPE_CHECKING:
    from ...registry.types import Tensor


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` at integer indices.

    Args:
        input: the indices.
        weight: the table.
        padding_idx: a row that gets no gradient.
        max_norm: the norm to which the rows that are read are scaled down first, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: whether the gradient of a row is divided by how often it is read.
        sparse: as in PyTorch; gradients are dense.
    """
    if max_norm is not None:
        _limit_norms(input, weight, max_norm, norm_type)
    return _embedding(input, weight, padding_idx, scale_grad_by_freq)


def _limit_norms(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        table = weight.detach()
        norms = sum(abs(table) ** norm_type, -1, keepdims=True) ** (1 / norm_type)
        is_read = sum(input.reshape((-1, 1)) == arange(table.shape[0]), 0).unsqueeze(-1) > 0
        table[...] = where(is_read & (norms > max_norm), table * (max_norm / (norms + 1e-7)), table)


@compile_when_hot
def _embedding(input: Tensor, weight: Tensor, padding_idx: int | None, scale: bool) -> Tensor:
    if scale:
        count = sum(input.reshape((-1, 1)) == arange(weight.shape[0]), 0)
        share = (1.0 / where(count > 0, count, 1)).to(weight.dtype).unsqueeze(-1)
        weight = weight * share + (weight * (1 - share)).detach()
    result: Tensor = take(weight, input, 0)
    if padding_idx is None:
        return result
    row = padding_idx % weight.shape[0]
    return where((input == row).unsqueeze(-1), result.detach(), result)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sums, means or largest elements of the rows of ``weight`` at the indices of each bag.

    Args:
        input: the indices, ``(bags, length)``, or a vector that ``offsets`` cut into bags.
        weight: the table.
        offsets: where the bags of a vector begin.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for :func:`embedding`.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        per_sample_weights: factors of the rows, with ``"sum"``.
        include_last_offset: whether the last offset is the end, not the start of a bag.
        padding_idx: an index that is left out.

    Raises:
        ArgumentError: ``offsets`` are missing, or given for a matrix.
        ValueArgumentError: another mode, or factors without ``"sum"``.
    """
    if mode not in ("sum", "mean", "max") or (per_sample_weights is not None and mode != "sum"):
        raise ValueArgumentError(
            f"embedding_bag: mode is 'sum', 'mean' or 'max', and per_sample_weights need 'sum', not {mode!r}"
        )
    if (input.ndim == 1) == (offsets is None):
        raise ArgumentError("embedding_bag takes offsets with a vector of indices, and none with a matrix")
    rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    kept = None if padding_idx is None else input != padding_idx % weight.shape[0]
    if offsets is None:
        return _reduce_rows(rows, kept, mode)
    return _reduce_segments(rows, kept, _bags(offsets, input.shape[0], include_last_offset), mode)


def _reduce_rows(rows: Tensor, kept: Tensor | None, mode: str) -> Tensor:
    if mode == "max":
        result = rows if kept is None else where(kept.unsqueeze(-1), rows, -float("inf"))
        return max(result, 1)
    total = sum(rows if kept is None else where(kept.unsqueeze(-1), rows, 0.0), 1)
    if mode == "sum":
        return total
    return total / (rows.shape[1] if kept is None else where(sum(kept, 1) > 0, sum(kept, 1), 1).unsqueeze(-1))


def _bags(offsets: Tensor, length: int, include_last: bool) -> tuple[np.ndarray, int]:
    """The bag of each element, and the number of bags; offsets are read, so they are not traced."""
    starts = offsets.numpy()
    ends = starts[1:] if include_last else np.append(starts[1:], length)
    starts = starts[: len(ends)]
    if len(starts) and (starts[0] != 0 or (ends < starts).any() or ends[-1] != length):
        raise ShapeError(f"embedding_bag: offsets must begin at 0, not decrease, and be at most {length}")
    return np.repeat(np.arange(len(ends)), ends - starts), len(ends)


def _reduce_segments(rows: Tensor, kept: Tensor | None, bags: tuple[np.ndarray, int], mode: str) -> Tensor:
    segments, count = bags
    if mode == "max":
        rows = rows if kept is None else where(kept.unsqueeze(-1), rows, -float("inf"))
        result = segment_max(rows, segments, count)
        return where(result == -float("inf"), 0.0, result)
    total = segment_sum(rows if kept is None else where(kept.unsqueeze(-1), rows, 0.0), segments, count)
    if mode == "sum":
        return total
    ones = rows.new_ones((rows.shape[0],)) if kept is None else kept.to(rows.dtype)
    sizes = segment_sum(ones, segments, count)
    return total / where(sizes > 0, sizes, 1.0).unsqueeze(-1)

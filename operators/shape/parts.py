"""Parts and layouts of a tensor with PyTorch's names: chunk, narrow, split_with_sizes, unflatten, unfold, t, ..."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import OutOfBoundsError, ShapeError, ValueArgumentError
from ...registry.dtypes import ALL
from ..creation.creation import arange
from ..creation.full import zeros
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from ..indexing.gather import index as index_at
from ..indexing.slicing import basic_put
from .joining import concat
from .rearrange import moveaxis, swapaxes
from .splitting import slice_axis
from .views import reshape

if TYPE_CHECKING:
    from ...registry.types import Tensor

_AXIS = """Args:
    self: a tensor of at least one axis.
    axis: the axis.{more}

Returns:
    {returns}

Raises:
    OutOfBoundsError: there is no such axis{raises}."""


def _doc(summary: str, example: str, more: str, returns: str = "A view.", raises: str = "") -> str:
    return make_docstring(summary, _AXIS.format(more=more, returns=returns, raises=raises), example)


@composite(
    "chunk(Tensor(a) self, int chunks, int axis=0) -> Tensor(a)[]",
    doc=_doc(
        "The tensor in parts of equal length along an axis; the last may be shorter, and there may be fewer.",
        "td.chunk(td.arange(3), 2)[1] -> [2]",
        "\n    chunks: the number of parts.",
        "A tuple of views.",
        "\n    ValueArgumentError: `chunks` is not positive",
    ),
    reference="references.torch_functions.chunk",
    samples="samples.parts.chunk_samples",
    errors="samples.parts.chunk_errors",
    dtypes=ALL,
)
def chunk(self: Tensor, chunks: int, axis: int) -> tuple[Tensor, ...]:
    if chunks < 1:
        raise ValueArgumentError(f"chunk: the number of parts is at least 1, not {chunks}")
    shape = spec_of(self).shape
    along = normalize_axis("chunk", axis, len(shape))
    size = shape[along]
    step = -(-size // chunks) or 1
    starts = range(0, size, step) if size else [0] * chunks
    return tuple(slice_axis(self, along, start, min(start + step, size)) for start in starts)


@composite(
    "split_with_sizes(Tensor(a) self, int[] split_sizes, int axis=0) -> Tensor(a)[]",
    doc=_doc(
        "The tensor in parts of given lengths along an axis.",
        "td.split_with_sizes(td.arange(3), [1, 2])[1] -> [1, 2]",
        "\n    split_sizes: the lengths, whose sum is that of the axis.",
        "A tuple of views.",
        "\n    ValueArgumentError: the lengths have another sum, or one is negative",
    ),
    reference="references.torch_functions.split_with_sizes",
    samples="samples.parts.split_samples",
    errors="samples.parts.split_errors",
    dtypes=ALL,
)
def split_with_sizes(self: Tensor, split_sizes: Sequence[int], axis: int) -> tuple[Tensor, ...]:
    shape = spec_of(self).shape
    along = normalize_axis("split_with_sizes", axis, len(shape))
    ends = list(itertools.accumulate(split_sizes, initial=0))
    if ends[-1] != shape[along] or any(size < 0 for size in split_sizes):
        raise ValueArgumentError(
            f"split_with_sizes: the sum of the sizes {tuple(split_sizes)} must be {shape[along]}"
        )
    return tuple(slice_axis(self, along, start, stop) for start, stop in itertools.pairwise(ends))


@composite(
    "narrow(Tensor(a) self, int axis, int start, int length) -> Tensor(a)",
    doc=_doc(
        "The slice of a given length along an axis.",
        "td.narrow(td.arange(4), 0, 1, 2) -> [1, 2]",
        "\n    start: the first position; negative ones count from the end.\n    length: the length of the slice.",
        raises=", or the slice exceeds it",
    ),
    reference="references.torch_functions.narrow",
    samples="samples.parts.narrow_samples",
    errors="samples.parts.narrow_errors",
    dtypes=ALL,
)
def narrow(self: Tensor, axis: int, start: int, length: int) -> Tensor:
    shape = spec_of(self).shape
    along = normalize_axis("narrow", axis, len(shape))
    size = shape[along]
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        raise OutOfBoundsError(f"narrow: {length} elements from {start} exceed an axis of length {size}")
    return slice_axis(self, along, first, first + length)


@composite(
    "unflatten(Tensor(a) self, int axis, SymInt[] sizes) -> Tensor(a)",
    doc=_doc(
        "The tensor with one axis replaced by several.",
        "td.unflatten(td.arange(4), 0, (2, 2)) -> [[0, 1], [2, 3]]",
        "\n    sizes: the lengths of the new axes; one may be -1 and follows from the others.",
        "A view, or a copy where the memory needs it.",
        "\n    ShapeError: the product of the sizes is not the length of the axis",
    ),
    reference="references.torch_functions.unflatten",
    samples="samples.parts.unflatten_samples",
    errors="samples.parts.unflatten_errors",
    dtypes=ALL,
    variadic=False,
)
def unflatten(self: Tensor, axis: int, sizes: Sequence[int]) -> Tensor:
    shape = spec_of(self).shape
    along = normalize_axis("unflatten", axis, len(shape))
    product = 1
    for size in sizes:
        product *= size if size != -1 else 1
    is_open = list(sizes).count(-1) == 1 and product > 0 and shape[along] % product == 0
    if not is_open and (product != shape[along] or -1 in sizes):
        raise ShapeError(f"unflatten: an axis of length {shape[along]} does not fit into {tuple(sizes)}")
    known = tuple(shape[along] // product if size == -1 else size for size in sizes)
    return reshape(self, (*shape[:along], *known, *shape[along + 1 :]))


@composite(
    "unfold(Tensor self, int axis, int size, int step) -> Tensor",
    doc=_doc(
        "Windows along an axis, as a new last axis.",
        "td.unfold(td.arange(4), 0, 2, 1) -> [[0, 1], [1, 2], [2, 3]]",
        "\n    size: the length of a window.\n    step: the distance between windows.",
        "A new tensor; the axis has one position for each window.",
        "\n    ValueArgumentError: a window is longer than the axis, or the step is not positive",
    ),
    reference="references.torch_functions.unfold",
    samples="samples.parts.unfold_samples",
    errors="samples.parts.unfold_errors",
    dtypes=ALL,
)
def unfold(self: Tensor, axis: int, size: int, step: int) -> Tensor:
    spec = spec_of(self)
    along = normalize_axis("unfold", axis, spec.ndim)
    length = spec.shape[along]
    if not 0 <= size <= length or step < 1:
        raise ValueArgumentError(
            f"unfold: windows of {size} elements with step {step} do not fit an axis of length {length}"
        )
    starts = arange(0, length - size + 1, step, device=spec.device)
    grid = reshape(starts, (-1, 1)) + reshape(arange(size, device=spec.device), (1, -1))
    return moveaxis(index_at(self, [grid], along), along + 1, -1)


@composite(
    "t(Tensor(a) self) -> Tensor(a)",
    doc=make_docstring(
        "The transpose of a matrix; a vector and a tensor without axes are returned as they are.",
        """Args:
    self: a tensor of at most two axes.

Returns:
    A view.

Raises:
    ShapeError: there are more axes; use `mT`.""",
        "td.t(td.asarray([[1, 2], [3, 4]])) -> [[1, 3], [2, 4]]",
    ),
    reference="numpy.transpose",
    samples="samples.parts.t_samples",
    errors="samples.parts.t_errors",
    dtypes=ALL,
)
def t(self: Tensor) -> Tensor:
    rank = spec_of(self).ndim
    if rank > 2:
        raise ShapeError(f"t: takes at most two axes, not shape {spec_of(self).shape}; use x.mT")
    return swapaxes(self, 0, 1) if rank == 2 else self


@composite(
    "block_diag(Tensor[] tensors) -> Tensor",
    doc=make_docstring(
        "The matrix with matrices along its diagonal, and zeros elsewhere.",
        """Args:
    tensors: a list of tensors of at most two axes; a vector is a matrix of one row.

Returns:
    A new tensor of the promoted dtype.

Raises:
    ShapeError: a tensor has more than two axes.
    ValueArgumentError: the list is empty.""",
        "td.block_diag([td.asarray([[1]]), td.asarray([[2, 3]])]) -> [[1, 0, 0], [0, 2, 3]]",
    ),
    reference="references.torch_functions.block_diag",
    samples="samples.parts.block_samples",
    errors="samples.parts.block_errors",
    dtypes=ALL,
    method=False,
    promotes=True,
)
def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors:
        raise ValueArgumentError("block_diag: needs at least one tensor")
    shapes = [spec_of(x).shape for x in tensors]
    if any(len(shape) > 2 for shape in shapes):
        raise ShapeError(f"block_diag: takes tensors of at most two axes, not of shapes {shapes}")
    blocks = [reshape(x, (1, 1, *shape)[-2:]) for x, shape in zip(tensors, shapes)]
    width = 0
    for block in blocks:
        width += spec_of(block).shape[1]
    rows, start = [], 0
    for block in blocks:
        spec = spec_of(block)
        count, size = spec.shape
        empty = zeros((count, width), dtype=spec.dtype, device=spec.device)
        columns = (start, size, 1) if size else (0, 0, 1)
        rows.append(basic_put(empty, block, ((0, count, 1), columns)))
        start += size
    return concat(rows, 0)

"""The iteration space of a kernel on the GPU: kept dimensions and reduced dimensions.

Rows of the loop IR and columns that its reductions keep are both kept points here: each has its own reductions.
"""

from __future__ import annotations

import math

from ....errors import UnsupportedError
from ....lowering.fusion.loop_ir import Buffer, FusedKernel, Reduce, Stage, Store, collapse, target_of
from ....named_tuple import NamedTuple
from .nodes import explain_unsupported
from .types import CTYPE

INT_MAX = 2**31 - 1


class Strides(NamedTuple):
    """The strides of a buffer along the dimensions of a space: kept, then reduced."""

    kept: tuple[int, ...]
    reduced: tuple[int, ...]


class Space:
    """The dimensions of a kernel, merged where the strides of all buffers allow it.

    Attributes:
        kept, reduced: the sizes of the dimensions.
        strides: the strides of each buffer.
        indices: dimension of the kernel within a row -> ("kept" or "reduced", number of the dimension).
    """

    def __init__(self, kernel: FusedKernel):
        self.kernel = kernel
        first = len(kernel.outer)
        reduced = reduced_dims(kernel)
        sizes = (*kernel.outer, *kernel.inner)
        over = [first + d for d in reduced]
        rest = [d for d in range(len(sizes)) if d not in over]
        self.indices = {d - first: ("kept", rest.index(d)) for d in rest if d >= first}
        self.indices |= {d - first: ("reduced", over.index(d)) for d in over}
        strides = [b.strides for b in kernel.buffers]
        kept = tuple(sizes[d] for d in rest), [tuple(s[d] for d in rest) for s in strides]
        inner = tuple(sizes[d] for d in over), [tuple(s[d] for d in over) for s in strides]
        if not uses_index(kernel):
            kept, inner = collapse(*kept), collapse(*inner)
        self.kept, self.reduced = kept[0], inner[0]
        self.strides = {
            b.name: Strides(k, r) for b, k, r in zip(kernel.buffers, kept[1], inner[1], strict=True)
        }

    @property
    def rows(self) -> int:
        """The number of kept points."""
        return math.prod(self.kept)

    @property
    def length(self) -> int:
        """The number of reduced points for each kept point."""
        return math.prod(self.reduced)


def uses_index(kernel: FusedKernel) -> bool:
    """Whether a kernel uses the index of an element in its row."""
    return any(e.op == "index" for stage in kernel.stages for e in stage.exprs())


def reductions(stage: Stage) -> list[Reduce]:
    """The reductions of a stage."""
    return [s for s in stage.body if isinstance(s, Reduce)]


def stores(stage: Stage) -> list[Store]:
    """The stores of a stage."""
    return [s for s in stage.body if isinstance(s, Store)]


def has_gathers(kernel: FusedKernel) -> bool:
    """Whether a kernel reads at integer positions."""
    return any(e.op == "gather" for stage in kernel.stages for e in stage.exprs())


def buffers_along(stage: Stage) -> set[str]:
    """The names of the buffers that a stage loads or writes at the current point."""
    return {e.payload for e in stage.exprs() if e.op == "load"} | {target_of(s) for s in stage.body}


def reduced_dims(kernel: FusedKernel) -> list[int]:
    """The dimensions within a row that the kernel reduces."""
    first, value = len(kernel.outer), set()
    for stage in kernel.stages:
        for statement in reductions(stage):
            into = kernel.buffer(statement.into)
            value |= {d for d in stage.dims if into is None or into.strides[first + d] == 0}
    return sorted(value)


def written_buffers(kernel: FusedKernel) -> set[str]:
    """The names of the buffers that a kernel writes."""
    names = {target_of(s) for stage in kernel.stages for s in stage.body}
    return {name for name in names if kernel.buffer(name) is not None}


def extent(buffer: Buffer, sizes: tuple[int, ...]) -> int:
    """The maximum distance of a buffer's elements from its data pointer, in elements, at position 0 of indexed axes."""
    return abs(buffer.offset) + sum(
        max(n - 1, 0) * abs(s) for n, s in zip(sizes, buffer.strides, strict=True)
    )


def unsupported(kernel: FusedKernel) -> str | None:
    """The reason why a kernel has no CUDA C; None if it has."""
    for b in kernel.buffers:
        if b.dtype not in CTYPE:
            return f"{b.dtype.name} is not emitted"
    return next(
        (why for stage in kernel.stages for e in stage.exprs() if (why := explain_unsupported(e))), None
    )


def check_supported(kernel: FusedKernel) -> None:
    """Raise UnsupportedError for a kernel that has no CUDA C."""
    why = unsupported(kernel)
    if why is not None:
        raise UnsupportedError(f"kernel {kernel.name} has no CUDA C: {why}")

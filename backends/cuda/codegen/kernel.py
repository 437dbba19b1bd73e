"""CudaKernel: the text of a printed kernel and its launch parameters; and the text of modules."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from ....named_tuple import NamedTuple
from .helpers import helper_sources

WORKSPACE = -1
"""In ``CudaKernel.params``: the pointer to the workspace that the kernels of one list share."""
MAX_RANK = 8
"""Dimensions of a strided eager kernel."""
STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that the variables of a kernel may take."""


class Check(NamedTuple):
    """An access at integer positions, as a report of a position that is out of bounds names it.

    Attributes:
        op: the operator.
        axis: the first of the indexed axes.
        sizes: of the indexed axes.
    """

    op: str
    axis: int
    sizes: tuple[int, ...]


class CudaKernel(NamedTuple):
    """One kernel: its text and its launch parameters.

    Attributes:
        name: of the function.
        source: the ``extern "C" __global__`` function, without the helpers.
        headers: the names of the device helpers that it needs.
        grid: blocks; ``(0, 1, 1)`` where it follows from the sizes at launch (see ``blocks``).
        block: threads of a block.
        shared: bytes of dynamic shared memory; above 48 KiB the function's attribute has to be raised first.
        params: for each pointer parameter, in order, its index in the table of data pointers, or ``WORKSPACE``.
        scalars: (slot, C type) of the scalars passed by value after the pointers: ``double``, ``long long`` or
            ``unsigned char``.
        constants: integers passed by value after the scalars, so that launches share the code of a function.
        checks: the accesses at integer positions, whose numbers the kernel reports if a position is out of bounds; last
            of all the address of the fault words is passed, if there are any, and then the number of each.
        temporaries: bytes of the workspace; the same for all kernels of one list. It needs no clearing.
        span: elements (rows, columns) that a block processes at a time, if the grid follows from sizes at launch.
    """

    name: str
    source: str
    headers: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int = 0
    params: tuple[int, ...] = ()
    scalars: tuple[tuple[int, str], ...] = ()
    temporaries: int = 0
    span: int = 0
    checks: tuple[Check, ...] = ()
    constants: tuple[int, ...] = ()

    def blocks(self, count: int, limit: int = 2**31 - 1) -> int:
        """The number of blocks of a launch over ``count`` elements (rows, columns): at least 1, at most ``limit``."""
        return max(1, min(-(-count // max(self.span, 1)), limit))


def module_source(kernels: Iterable[CudaKernel]) -> str:
    """The text of a module: the helpers, each once, then the kernels, without duplicates."""
    kernels = list(kernels)
    names = [name for kernel in kernels for name in kernel.headers]
    return "\n".join([helper_sources(names), *dict.fromkeys(kernel.source for kernel in kernels)])


def pack_layout(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> bytes:
    """The bytes of the ``Layout`` parameter of a strided eager kernel.

    Args:
        shape: the common shape, at most ``MAX_RANK`` dimensions.
        strides: in elements, for each operand and then the result; 0 where it is broadcast.

    Returns:
        ``struct { long long rank, count, sizes[8], strides[operands][8]; }``
    """
    count, pad = 1, [0] * (MAX_RANK - len(shape))
    for size in shape:
        count *= size
    words = [len(shape), count, *shape, *([1] * len(pad))]
    for steps in strides:
        words += [*steps, *pad]
    return struct.pack(f"<{len(words)}q", *words)

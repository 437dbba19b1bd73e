"""Fused kernels as CUDA C: the printer of the loop IR for the GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....lowering.loops import FusedKernel
from .elementwise import write_elementwise
from .kernel import CudaKernel
from .rows import write_rows
from .space import Space, check, reductions, unsupported
from .tiles import tiled_dims, write_tiled

__all__ = ["unsupported", "write_cuda"]


def write_cuda(
    kernel: FusedKernel,
    comments: Sequence[str] = (),
    unaligned: Iterable[int] = (),
    private: Iterable[int] = (),
) -> list[CudaKernel]:
    """The kernels that do what a kernel of the loop IR does, to be launched in order on one stream.

    Args:
        kernel: of the loop IR.
        comments: lines that say what it computes, which come before it.
        unaligned: the parameters whose data need not be aligned to 16 bytes.
        private: the parameters that nothing reads after the kernel; where they fit they stay in registers, and are not
            parameters of what is returned.

    Returns:
        Usually one; several where few reductions are so long that many blocks share each; none where there is nothing
        to write.

    Raises:
        UnsupportedError: a dtype or a node that has no CUDA C (complex numbers, functions compiled for the CPU).
    """
    check(kernel)
    space = Space(kernel)
    if space.rows == 0:
        return []
    if any(reductions(stage) for stage in kernel.stages):
        return write_rows(kernel, space, comments, frozenset(unaligned), frozenset(private))
    dims = tiled_dims(kernel, space)
    if dims is not None:
        return [write_tiled(kernel, space, dims, comments, unaligned)]
    return [write_elementwise(kernel, space, comments, unaligned)]

"""Fused kernels as CUDA C: the printer of the loop IR for the GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....lowering.fusion.loop_ir import FusedKernel
from .elementwise import write_elementwise
from .kernel import CudaKernel
from .rows import write_rows
from .sorted_updates import write_update
from .space import Space, check_supported, reductions, unsupported
from .tiles import tiled_dims, write_tiled
from .updates import find_accesses

__all__ = ["unsupported", "write_cuda"]


def write_cuda(
    kernel: FusedKernel,
    comments: Sequence[str] = (),
    unaligned: Iterable[int] = (),
    private: Iterable[int] = (),
) -> list[CudaKernel]:
    """Print a kernel of the loop IR as CUDA kernels, to be launched in order on one stream.

    Args:
        kernel: of the loop IR.
        comments: lines that describe it, which precede it.
        unaligned: the parameters whose data need not be aligned to 16 bytes.
        private: the parameters that nothing reads after the kernel; if they fit, they stay in registers and are not
            parameters of the result.

    Returns:
        Usually one kernel; several if few reductions are so long that many blocks share each, or if values at equal
        positions are sorted; none if there is nothing to compute.

    Raises:
        UnsupportedError: a dtype or a node that has no CUDA C (complex numbers, functions compiled for the CPU).
    """
    check_supported(kernel)
    space = Space(kernel)
    if space.rows == 0:
        return []
    accesses = find_accesses(kernel)
    if accesses is not None:
        return write_update(kernel, accesses, comments, unaligned)
    if any(reductions(stage) for stage in kernel.stages):
        return write_rows(kernel, space, comments, frozenset(unaligned), frozenset(private))
    dims = tiled_dims(kernel, space)
    if dims is not None:
        return [write_tiled(kernel, space, dims, comments, unaligned)]
    return [write_elementwise(kernel, space, comments, unaligned)]

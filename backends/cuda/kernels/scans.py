"""Kernels of scans; several blocks share each line if lines are few and long (see :mod:`..codegen.eager_scans`)."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ....named_tuple import NamedTuple
from ....operators.declare.shape_rules import normalize_axis
from ....operators.scalar_ir.fold import Fold
from ....registry.dtypes import DType
from ....registry.operator import Operator
from ..codegen.eager_scans import CHUNK, write_scan
from ..codegen.kernel import CudaKernel
from ..codegen.schedule import COLUMNS, ENOUGH_BLOCKS, FULL_BLOCKS
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, contiguous_layout, empty
from ..runtime.launching import Launch
from ..runtime.memory import allocate
from .casting import contiguous, copy_array
from .folds import BLOCKS, MOST_PLANS, Sizes
from .tensor import CudaTensor, cuda_tensor
from .views import permute

SHORT_LINE = 64
"""The maximum length of a line that one thread scans, independent of the number of lines."""
LONG_LINE = 256
"""The minimum length of a line that several threads share."""
ENOUGH_THREADS = 1 << 16
LEAST_PART = 64
MOST_PARTS = 1024


@functools.lru_cache(1 << 12)
def _write_kernels(fold: Fold, dtype: DType, out: DType, variant: str) -> list[CudaKernel]:
    return write_scan(f"scan_{fold.name}_{dtype.name}_{out.name}_{variant}", fold, dtype, out, variant)


def choose_scan_variant(sizes: Sizes) -> tuple[str, int]:
    """Choose the kernel variant of a scan of (outer, length, inner) elements.

    Returns:
        A variant of ``write_scan``, or ``"transposed"`` (rows of a transposed copy); the length of the parts of a line.
    """
    outer, length, inner = sizes
    lines = outer * inner
    few = lines < ENOUGH_THREADS and length >= LONG_LINE
    if length <= SHORT_LINE or (inner >= COLUMNS and not few):
        return "columns", length
    if inner >= COLUMNS:
        parts = min(2 * ENOUGH_THREADS // lines, length // LEAST_PART, MOST_PARTS)
        return "split_columns", -(-length // parts)
    if inner > 1:
        return ("transposed" if few else "columns"), length
    if outer < ENOUGH_BLOCKS and length >= 4 * CHUNK:
        part = -(-length // max(FULL_BLOCKS // outer, 1))
        return "split_rows", -(-part // CHUNK) * CHUNK
    return "rows", length


class ScanLaunches(NamedTuple):
    """The kernels of a scan of a contiguous array.

    Attributes:
        kernels: each kernel with its grid.
        counts: the parameters after the pointers, for each kernel.
        workspace: bytes of scratch memory, which the kernels share.
    """

    kernels: list[tuple[CudaKernel, tuple[int, int, int]]]
    counts: list[int]
    workspace: int


def scan_launches(fold: Fold, dtype: DType, out: DType, sizes: Sizes) -> ScanLaunches:
    """The launches of a scan without a transposed copy; see :class:`ScanPlan` for the arguments."""
    variant, part = choose_scan_variant(sizes)
    outer, length, inner = sizes
    kernels = _write_kernels(fold, dtype, out, variant)
    rows, parts = variant.endswith("rows"), -(-length // part)
    counts = [outer, length, *([] if rows else [inner]), *([part] if len(kernels) == 2 else [])]
    lines = outer if rows else outer * parts * inner
    is_split = variant == "split_rows"
    grids = [(parts, outer, 1) if is_split else (kernel.blocks(lines, BLOCKS), 1, 1) for kernel in kernels]
    workspace = outer * parts * inner * kernels[0].temporaries
    return ScanLaunches(list(zip(kernels, grids, strict=True)), counts, workspace)


class ScanPlan:
    """The launches of a scan of a contiguous array.

    Args:
        fold: the fold.
        dtype: of the elements.
        out: of the result.
        sizes: (outer, length, inner).
        index: the device's number.
    """

    __slots__ = ("_launches", "_workspace", "variant")

    def __init__(self, fold: Fold, dtype: DType, out: DType, sizes: Sizes, index: int):
        self.variant = choose_scan_variant(sizes)[0]
        self._launches: list[Launch] = []
        self._workspace = 0
        if self.variant == "transposed":
            return
        kernels, counts, self._workspace = scan_launches(fold, dtype, out, sizes)
        for kernel, grid in kernels:
            staying = [ctypes.c_int64(n) for n in counts]
            self._launches.append(Launch(kernel, index, grid, len(kernel.params), staying))

    def run(self, given: DeviceArray, result: DeviceArray) -> None:
        """Write the scan of ``given`` into ``result``."""
        if len(self._launches) == 1:
            self._launches[0].run((given.ptr, result.ptr), (given, result))
            return
        buffer = allocate(self._workspace, result.layout.index)
        folds = DeviceArray(buffer.ptr, result.layout, buffer)
        self._launches[0].run((given.ptr, folds.ptr), (given, folds))
        self._launches[1].run((given.ptr, folds.ptr, result.ptr), (given, folds, result))


_scan_plans: dict[tuple[Any, ...], ScanPlan] = {}
tools.change_listeners.append(_scan_plans.clear)


def _run_scan(fold: Fold, given: DeviceArray, out: DType, sizes: Sizes) -> DeviceArray:
    """The scan of a contiguous array of ``sizes``, as a new array."""
    index = given.layout.index
    key = fold, given.dtype, out, sizes, index
    plan = _scan_plans.get(key)
    if plan is None:
        if len(_scan_plans) >= MOST_PLANS:
            _scan_plans.clear()
        plan = _scan_plans[key] = ScanPlan(*key)
    if plan.variant == "transposed":
        return _scan_transposed(fold, given, out, sizes)
    result = empty(contiguous_layout(sizes, out, index))
    plan.run(given, result)
    return result


def _scan_transposed(fold: Fold, given: DeviceArray, out: DType, sizes: Sizes) -> DeviceArray:
    """Scan columns that are fewer than the threads of a warp as rows of a transposed copy."""
    outer, length, inner = sizes
    whole = contiguous_layout(sizes, given.dtype, given.layout.index)
    rows = copy_array(permute(given.view(sizes, whole.strides), (0, 2, 1)))
    result = _run_scan(fold, rows, out, (outer * inner, length, 1))
    back = contiguous_layout((outer, inner, length), out, given.layout.index)
    return copy_array(permute(result.view(back.shape, back.strides), (0, 2, 1)))


def line_sizes(name: str, shape: Sequence[int], axis: int | None) -> Sizes:
    """The (outer, length, inner) sizes of a scan along an axis, or of all elements."""
    if axis is None or not shape:
        return 1, math.prod(shape), 1
    along = normalize_axis(name, axis, len(shape))
    return math.prod(shape[:along]), shape[along], math.prod(shape[along + 1 :])


def scan_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of a scan."""
    decl, name = op.decl, op.schema.name
    fold: Fold = decl.fold

    def kernel(self: CudaTensor, axis: int | None = None, *, dtype: DType | None = None) -> Any:
        spec = decl.shape_rule(self, axis, dtype=dtype)
        data = self._data
        layout = contiguous_layout(spec.shape, spec.dtype, data.layout.index)
        if not layout.size:
            return cuda_tensor(empty(layout))
        result = _run_scan(fold, contiguous(data), spec.dtype, line_sizes(name, data.shape, axis))
        return cuda_tensor(result.view(layout.shape, layout.strides))

    return kernel

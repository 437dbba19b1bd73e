"""Scans on the device. Where lines are few and long, several blocks share each (see :mod:`.emit.eager_scans`)."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...operators.rules import normalize_axis
from ...registry.dtypes import DType
from ...registry.operator import Operator
from . import toolkit as tools
from .arrays import DeviceArray, contiguous_layout, empty
from .casting import contiguous, copied
from .emit.eager_scans import CHUNK, write_scan
from .emit.kernel import CudaKernel
from .emit.plan import COLUMNS, ENOUGH_BLOCKS, FULL_BLOCKS
from .folds import BLOCKS, MOST_PLANS, Sizes
from .launching import Launch
from .memory import allocate
from .tensor import CudaTensor, cuda_tensor
from .views import permuted

NODES = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}
SHORT_LINE = 64
"""Elements of a line that one thread may run along, whatever the lines are."""
LONG_LINE = 256
"""Elements of a line that are worth being shared by threads."""
ENOUGH_THREADS = 1 << 16
LEAST_PART = 64
MOST_PARTS = 1024


@functools.lru_cache(1 << 12)
def _scanner(node: str, dtype: DType, out: DType, variant: str) -> list[CudaKernel]:
    return write_scan(f"scan_{node}_{dtype.name}_{out.name}_{variant}", node, dtype, out, variant)


def way_of_scan(sizes: Sizes) -> tuple[str, int]:
    """How a scan of (outer, length, inner) elements runs.

    Returns:
        A variant of ``write_scan``, or ``"turned"`` (as rows of a copy), and the length of the parts of a line.
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
        return ("turned" if few else "columns"), length
    if outer < ENOUGH_BLOCKS and length >= 4 * CHUNK:
        part = -(-length // max(FULL_BLOCKS // outer, 1))
        return "split_rows", -(-part // CHUNK) * CHUNK
    return "rows", length


class ScanLaunches(NamedTuple):
    """How a scan of a contiguous array is launched.

    Attributes:
        kernels: each with its grid.
        counts: the parameters behind the pointers, for each.
        workspace: bytes that they share.
    """

    kernels: list[tuple[CudaKernel, tuple[int, int, int]]]
    counts: list[int]
    workspace: int


def scan_launches(node: str, dtype: DType, out: DType, sizes: Sizes) -> ScanLaunches:
    """The launches of a scan whose lines need not be turned first; see :class:`ScanPlan` for the arguments."""
    variant, part = way_of_scan(sizes)
    outer, length, inner = sizes
    kernels = _scanner(node, dtype, out, variant)
    rows, parts = variant.endswith("rows"), -(-length // part)
    counts = [outer, length, *([] if rows else [inner]), *([part] if len(kernels) == 2 else [])]
    lines = outer if rows else outer * parts * inner
    turned = variant == "split_rows"
    grids = [(parts, outer, 1) if turned else (kernel.blocks(lines, BLOCKS), 1, 1) for kernel in kernels]
    workspace = outer * parts * inner * kernels[0].temporaries
    return ScanLaunches(list(zip(kernels, grids, strict=True)), counts, workspace)


class ScanPlan:
    """The launches of a scan of a contiguous array.

    Args:
        node: of the scalar IR.
        dtype: of the elements.
        out: of the result.
        sizes: (outer, length, inner).
        index: the device's number.
    """

    __slots__ = ("_launches", "_workspace", "variant")

    def __init__(self, node: str, dtype: DType, out: DType, sizes: Sizes, index: int):
        self.variant = way_of_scan(sizes)[0]
        self._launches: list[Launch] = []
        self._workspace = 0
        if self.variant == "turned":
            return
        kernels, counts, self._workspace = scan_launches(node, dtype, out, sizes)
        for kernel, grid in kernels:
            staying = [ctypes.c_int64(n) for n in counts]
            self._launches.append(Launch(kernel, index, grid, len(kernel.params), staying))

    def run(self, given: DeviceArray, made: DeviceArray) -> None:
        """Write the scan of ``given`` into ``made``."""
        if len(self._launches) == 1:
            self._launches[0].go((given.ptr, made.ptr), (given, made))
            return
        buffer = allocate(self._workspace, made.layout.index)
        folds = DeviceArray(buffer.ptr, made.layout, buffer)
        self._launches[0].go((given.ptr, folds.ptr), (given, folds))
        self._launches[1].go((given.ptr, folds.ptr, made.ptr), (given, folds, made))


_plans: dict[tuple[Any, ...], ScanPlan] = {}
tools.changed.append(_plans.clear)


def _scan(node: str, given: DeviceArray, out: DType, sizes: Sizes) -> DeviceArray:
    """The scan of a contiguous array, which lies as ``sizes`` say, as a new one."""
    index = given.layout.index
    key = node, given.dtype, out, sizes, index
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = ScanPlan(*key)
    if plan.variant == "turned":
        return _turned(node, given, out, sizes)
    made = empty(contiguous_layout(sizes, out, index))
    plan.run(given, made)
    return made


def _turned(node: str, given: DeviceArray, out: DType, sizes: Sizes) -> DeviceArray:
    """Scan columns that are too few for the threads of a warp as rows of a copy."""
    outer, length, inner = sizes
    whole = contiguous_layout(sizes, given.dtype, given.layout.index)
    rows = copied(permuted(given.view(sizes, whole.strides), (0, 2, 1)))
    found = _scan(node, rows, out, (outer * inner, length, 1))
    back = contiguous_layout((outer, inner, length), out, given.layout.index)
    return copied(permuted(found.view(back.shape, back.strides), (0, 2, 1)))


def line_sizes(name: str, shape: Sequence[int], axis: int | None) -> Sizes:
    """(outer, length, inner) of what a scan along an axis, or of all elements, runs over."""
    if axis is None or not shape:
        return 1, math.prod(shape), 1
    along = normalize_axis(name, axis, len(shape))
    return math.prod(shape[:along]), shape[along], math.prod(shape[along + 1 :])


def scan_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of a scan."""
    decl, name = op.decl, op.schema.name
    node = NODES[decl.reduce]

    def kernel(self: CudaTensor, axis: int | None = None, *, dtype: DType | None = None) -> Any:
        spec = decl.meta(self, axis, dtype=dtype)
        data = self._data
        layout = contiguous_layout(spec.shape, spec.dtype, data.layout.index)
        if not layout.size:
            return cuda_tensor(empty(layout))
        made = _scan(node, contiguous(data), spec.dtype, line_sizes(name, data.shape, axis))
        return cuda_tensor(made.view(layout.shape, layout.strides))

    return kernel

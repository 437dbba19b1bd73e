"""Kernels of eager scans; sizes are parameters.

Few, long lines are scanned by the whole device in two launches: the first reduces the parts of each line, the second
scans each part, starting from the reduction of the parts before it. That reads the elements twice. A single-pass scan
with decoupled look-back (Merrill & Garland 2016) reads them once, but the order in which it combines floats depends on
timing, so results would differ between runs. Here the order depends on the sizes only.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....operators.scalar_ir.expr import arg, cast
from ....operators.scalar_ir.fold import Fold
from ....registry.dtypes import DType
from .elementwise import VECTOR_BYTES
from .kernel import WORKSPACE, CudaKernel
from .reducers import make_reducer
from .text import Text, write_expr
from .types import CTYPE

THREADS = 256
CHUNK = 2048
"""Elements of a line that a block scans at a time."""
_ITEMS = CHUNK // THREADS
_WARPS = THREADS // 32


def write_scan(name: str, fold: Fold, dtype: DType, out_dtype: DType, variant: str) -> list[CudaKernel]:
    """The kernels of an inclusive scan of ``x``, a contiguous (outer, length, inner) array.

    Args:
        name: of the function.
        fold: the fold.
        dtype: of ``x``.
        out_dtype: of the result.
        variant: ``"rows"`` (``inner`` is 1; a block takes a line): ``(x, out, long long outer, long long length)``, the
            grid is ``kernel.blocks(outer, limit)``; ``"columns"`` (a thread takes a line): ``(x, out, long long outer,
            long long length, long long inner)``, the grid is ``kernel.blocks(outer * inner, limit)``. With
            ``"split_"`` before it a line has parts of ``part`` elements (the last may have fewer), which different
            blocks or threads take. Two kernels, ``(x, workspace, sizes..., long long part)`` and ``(x, workspace, out,
            sizes..., long long part)``; the grid of rows is (parts, ``outer``), and ``part`` a multiple of ``CHUNK``;
            that of columns is ``kernel.blocks(outer * parts * inner, limit)``.

    Returns:
        One kernel, or the two of a split scan, whose ``temporaries`` are the bytes of the workspace for each part of
        each line.
    """
    split = variant.startswith("split_")
    writer = (_Rows if variant.endswith("rows") else _Columns)(fold, dtype, out_dtype, split)
    if not split:
        return [writer.scan(name)]
    return [writer.fold(f"{name}_0"), writer.scan(f"{name}_1")]


class _Scan:
    """The state of writing the kernels of one scan."""

    sizes: Sequence[str] = ()
    span = THREADS

    def __init__(self, fold: Fold, dtype: DType, out_dtype: DType, split: bool):
        self.dtype, self.out_dtype, self.split = dtype, out_dtype, split
        self.operand = fold.operand(arg(0, dtype), out_dtype)
        self.computed = self.operand.dtype
        self.combined = fold.combined(self.computed)
        self.written = cast(fold.finished(arg(0, self.computed)), out_dtype)
        self.ctype = CTYPE[self.computed]
        self.reducer = make_reducer(fold, self.computed, 0)
        self.start = self.reducer.start[1:-1]
        self.text = Text()

    def _value(self, name: str, a: str, b: str) -> None:
        """Assign the combination of two values."""
        self.text.line(f"{name} = {write_expr(self.text, self.combined, a, b)};")

    def _read(self, x: str) -> str:
        return write_expr(self.text, self.operand, x)

    def _written(self, value: str) -> str:
        return write_expr(self.text, self.written, value)

    def _limits(self, position: str) -> None:
        """Declare the start and the end of a part of a line."""
        self.text.line(f"const long long start = {position} * part;")
        self.text.line("const long long end = start + part < length ? start + part : length;")

    def _kernel(self, name: str, folds: bool) -> CudaKernel:
        """Make a kernel of the lines so far, and start a new text."""
        pointers = {0: f"const {CTYPE[self.dtype]}* __restrict__ x"}
        if self.split:
            pointers[WORKSPACE] = f"{'' if folds else 'const '}{self.ctype}* __restrict__ folds"
        if not folds:
            pointers[1] = f"{CTYPE[self.out_dtype]}* __restrict__ out"
        sizes = [*self.sizes, *(["part"] if self.split else [])]
        parameters = [*pointers.values(), *(f"long long {size}" for size in sizes)]
        source = self.text.function(name, parameters, THREADS, ())
        helpers, self.text = tuple(self.text.helpers), Text()
        nbytes = self.computed.itemsize if self.split else 0
        return CudaKernel(
            name,
            source,
            helpers,
            (0, 1, 1),
            (THREADS, 1, 1),
            params=tuple(pointers),
            temporaries=nbytes,
            span=self.span,
        )


class _Columns(_Scan):
    """Each thread scans a line, or a part of it; neighbouring threads have neighbouring lines."""

    sizes = ("outer", "length", "inner")

    def fold(self, name: str) -> CudaKernel:
        """The kernel that reduces each part."""
        text = self.text
        with text.block(self._each()):
            self._write_indices()
            text.unroll(4)
            with text.block("for (long long j = start; j < end; ++j)"):
                self._value("total", "total", self._read("x[base + j * inner]"))
            text.line("folds[i] = total;")
        return self._kernel(name, True)

    def scan(self, name: str) -> CudaKernel:
        """The kernel that scans each part, starting from the reduction of the parts before it."""
        text = self.text
        with text.block(self._each()):
            self._write_indices()
            if self.split:
                text.unroll(4)
                with text.block("for (long long k = 0; k < piece; ++k)"):
                    self._value("total", "total", "folds[(line * parts + k) * inner + column]")
            text.unroll(4)
            with text.block("for (long long j = start; j < end; ++j)"):
                text.line("const long long at = base + j * inner;")
                self._value("total", "total", self._read("x[at]"))
                text.line(f"out[at] = {self._written('total')};")
        return self._kernel(name, False)

    def _each(self) -> str:
        """The head of the loop over parts."""
        self.text.line(f"const long long parts = {'(length + part - 1) / part' if self.split else '1'};")
        first = f"(long long)blockIdx.x * {THREADS} + threadIdx.x"
        step = f"i += (long long)gridDim.x * {THREADS}"
        return f"for (long long i = {first}; i < outer * parts * inner; {step})"

    def _write_indices(self) -> None:
        text = self.text
        text.line("const long long column = i % inner, piece = i / inner % parts, line = i / inner / parts;")
        if self.split:
            self._limits("piece")
        else:
            text.line("const long long start = piece, end = length;")
        text.line("const long long base = line * length * inner + column;")
        text.line(f"{self.ctype} total = {self.start};")


class _Rows(_Scan):
    """Each block scans a line, or a part of it, several items for each thread at a time."""

    sizes = ("outer", "length")
    span = 1

    def fold(self, name: str) -> CudaKernel:
        """The kernel that reduces each part."""
        text, reducer = self.text, self.reducer
        self._limits("blockIdx.x")
        self._line("blockIdx.y", "reinterpret_cast<unsigned long long>(from)")
        text.line(f"{reducer.ctype} state = {reducer.start};")
        with text.block(f"for (long long first = start; first < end; first += {CHUNK})"):
            self._items()
            text.unroll()
            text.line(f"for (int v = 0; v < {_ITEMS}; ++v) state.take(item[v]);")
        self._joined()
        text.line("if (threadIdx.x == 0) folds[blockIdx.y * gridDim.x + blockIdx.x] = state.value;")
        return self._kernel(name, True)

    def scan(self, name: str) -> CudaKernel:
        """The kernel that scans each part, starting from the reduction of the parts before it."""
        text = self.text
        both = "reinterpret_cast<unsigned long long>(from) | reinterpret_cast<unsigned long long>(to)"
        text.line(f"__shared__ {self.ctype} totals[{_WARPS}];")
        text.line("const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;")
        if self.split:
            self._limits("blockIdx.x")
            self._before()
        each = "for (long long line = blockIdx.x; line < outer; line += gridDim.x)"
        with text.block("" if self.split else each):
            if not self.split:
                text.line("const long long start = 0, end = length;")
                text.line(f"{self.ctype} carry = {self.start};")
            self._line("blockIdx.y" if self.split else "line", both, out=True)
            with text.block(f"for (long long first = start; first < end; first += {CHUNK})"):
                self._items()
                self._across()
        return self._kernel(name, False)

    def _line(self, line: str, addresses: str, out: bool = False) -> None:
        """Declare the pointers to a line, and whether vector accesses are aligned."""
        text = self.text
        text.line(f"const {CTYPE[self.dtype]}* const from = x + {line} * length;")
        if out:
            text.line(f"{CTYPE[self.out_dtype]}* const to = out + {line} * length;")
        text.line(f"const bool aligned = ({addresses}) % {VECTOR_BYTES} == 0;")

    def _before(self) -> None:
        """Declare ``carry``, the reduction of the parts before this one, combined in a fixed order."""
        text, reducer = self.text, self.reducer
        text.line(f"{reducer.ctype} state = {reducer.start};")
        with text.block(f"for (unsigned k = threadIdx.x; k < blockIdx.x; k += {THREADS})"):
            text.line("state.take(folds[blockIdx.y * gridDim.x + k]);")
        self._joined()
        text.line(f"{self.ctype} carry = state.result();")

    def _joined(self) -> None:
        """Combine ``state`` over all threads of the block."""
        text, reducer = self.text, self.reducer
        text.need(*reducer.helpers)
        text.line(f"__shared__ {reducer.ctype} states[{_WARPS}];")
        text.line("share(state, states);")
        text.line("__syncthreads();")
        text.line(f"state = collect<{_WARPS}>(states);")

    def _lanes(self, dtype: DType) -> int:
        return min(VECTOR_BYTES // dtype.itemsize, _ITEMS)

    def _items(self) -> None:
        """Declare ``item``, the thread's elements from ``begin`` on, padded with the identity."""
        text, lanes = self.text, self._lanes(self.dtype)
        text.line(f"const long long begin = first + threadIdx.x * {_ITEMS};")
        text.line(f"{self.ctype} item[{_ITEMS}];")
        with text.block(f"if (aligned && begin + {_ITEMS} <= end)"):
            text.unroll()
            with text.block(f"for (int v = 0; v < {_ITEMS}; v += {lanes})"):
                text.line(f"const auto found = load<{lanes}>(from + begin + v);")
                text.unroll()
                text.line(f"for (int u = 0; u < {lanes}; ++u) item[v + u] = {self._read('found.at[u]')};")
        with text.block("else"):
            text.unroll()
            with text.block(f"for (int v = 0; v < {_ITEMS}; ++v)"):
                text.line(f"item[v] = {self.start};")
                text.line(f"if (begin + v < end) item[v] = {self._read('from[begin + v]')};")

    def _across(self) -> None:
        """Scan and store the items of the block, and add their total to ``carry``."""
        text, ctype = self.text, self.ctype
        text.unroll()
        with text.block(f"for (int v = 1; v < {_ITEMS}; ++v)"):
            self._value("item[v]", "item[v - 1]", "item[v]")
        text.line(f"{ctype} total = item[{_ITEMS - 1}];")
        text.unroll()
        with text.block("for (int step = 1; step < 32; step *= 2)"):
            text.line(f"const {ctype} other = from_below(total, step);")
            with text.block("if (lane >= step)"):
                self._value("total", "other", "total")
        text.line("if (lane == 31) totals[warp] = total;")
        text.line(f"{ctype} before = from_below(total, 1);")
        text.line(f"if (lane == 0) before = {self.start};")
        text.line("__syncthreads();")
        text.line(f"{ctype} earlier = carry;")
        with text.block(f"for (int w = 0; w < {_WARPS}; ++w)"):
            with text.block("if (w < warp)"):
                self._value("earlier", "earlier", "totals[w]")
            self._value("carry", "carry", "totals[w]")
        self._value("before", "earlier", "before")
        text.unroll()
        with text.block(f"for (int v = 0; v < {_ITEMS}; ++v)"):
            self._value("item[v]", "before", "item[v]")
        self._store()
        text.line("__syncthreads();")
        text.need("complex_below" if self.computed.kind == "c" else "scans")

    def _store(self) -> None:
        text, lanes = self.text, self._lanes(self.out_dtype)
        with text.block(f"if (aligned && begin + {_ITEMS} <= end)"):
            text.unroll()
            with text.block(f"for (int v = 0; v < {_ITEMS}; v += {lanes})"):
                text.line(f"Vec<{CTYPE[self.out_dtype]}, {lanes}> found;")
                text.unroll()
                text.line(f"for (int u = 0; u < {lanes}; ++u) found.at[u] = {self._written('item[v + u]')};")
                text.line("store(to + begin + v, found);")
        with text.block("else"):
            text.unroll()
            with text.block(f"for (int v = 0; v < {_ITEMS}; ++v)"):
                text.line(f"if (begin + v < end) to[begin + v] = {self._written('item[v]')};")

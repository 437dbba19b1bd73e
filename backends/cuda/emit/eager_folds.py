"""Reductions and scans that eager operators launch: sizes are given at launch."""

from __future__ import annotations

from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .elementwise import VECTOR_BYTES
from .kernel import WORKSPACE, CudaKernel
from .nodes import EMIT, write_cast
from .plan import COLUMNS
from .reducers import LONG, Reducer, computes_in, make_reducer
from .text import Text
from .types import CTYPE, bare

PARTIALS = 1024
"""The most blocks of the first kernel of a split reduction."""
THREADS = 256
_COLUMN_THREADS = 8


def write_reduction(name: str, op: str, dtype: DType, out_dtype: DType, variant: str) -> list[CudaKernel]:
    """The kernels of a reduction of ``x``, which lies as (outer, reduced, inner), without gaps.

    Args:
        name: of the function.
        op: one of ``lowering.loops.REDUCTIONS``.
        dtype: of ``x``.
        out_dtype: of the result; sums and products of integers are computed in it.
        variant: ``"rows"`` (``inner`` is 1; a block takes a row) and ``"short_rows"`` (a warp takes a row): ``(x, out,
            long long rows, long long reduced)``, the grid is ``kernel.blocks(rows, limit)``; ``"columns"``: ``(x, out,
            long long outer, long long reduced, long long inner)``, the grid is ``kernel.blocks(inner, limit)`` times
            up to ``outer`` (y); ``"split"`` (a single row): two kernels, ``(x, workspace, long long reduced)`` with up
            to ``PARTIALS`` blocks, then ``(workspace, out, long long blocks)`` with one block.

    Returns:
        One kernel, or the two of a split reduction, whose ``temporaries`` say how large the workspace is.
    """
    writer = _Fold(op, dtype, out_dtype)
    if variant == "split":
        return [writer.partials(f"{name}_0"), writer.total(f"{name}_1")]
    if variant == "columns":
        return [writer.columns(name)]
    return [writer.rows(name, 32 if variant == "short_rows" else THREADS)]


class _Fold:
    """The state of writing one reduction."""

    def __init__(self, op: str, dtype: DType, out_dtype: DType):
        self.dtype, self.out_dtype = dtype, out_dtype
        typed = out_dtype if op in ("sum", "prod") else dtype
        self.reducer: Reducer = make_reducer(op, computes_in(op, typed), LONG + 1)
        self.lanes = VECTOR_BYTES // dtype.itemsize
        self.x = f"const {CTYPE[dtype]}* __restrict__ x"
        self.out = f"{CTYPE[out_dtype]}* __restrict__ out"

    def _text(self) -> Text:
        text = Text()
        text.need(*self.reducer.helpers)
        return text

    def _kernel(
        self,
        name: str,
        text: Text,
        parameters: list[str],
        block: tuple[int, int],
        span: int,
        pointers: tuple[int, int],
    ) -> CudaKernel:
        source = text.function(name, parameters, block[0] * block[1], ())
        nbytes = PARTIALS * self.reducer.nbytes if WORKSPACE in pointers else 0
        helpers = tuple(text.helpers)
        return CudaKernel(
            name, source, helpers, (0, 1, 1), (*block, 1), params=pointers, temporaries=nbytes, span=span
        )

    def _take(self, text: Text, x: str, position: str) -> None:
        code = write_cast(x, self.dtype, self.reducer.dtype)
        text.need(*code.helpers)
        more = f", {position}" if self.reducer.is_position else ""
        text.line(f"state.take({bare(code.text)}{more});")

    def _result(self, text: Text) -> str:
        code = write_cast("state.result()", self.reducer.result, self.out_dtype)
        text.need(*code.helpers)
        return bare(code.text)

    def _loop(self, text: Text, row: str, first: str, step: str) -> None:
        """The elements of a thread of ``reduced`` ones from ``row`` on; 16 bytes at a time where they lie so."""
        lanes = self.lanes
        fits = f"reduced % {lanes} == 0 && reinterpret_cast<unsigned long long>({row}) % {VECTOR_BYTES} == 0"
        with text.block(f"if ({fits})"):
            text.unrolled(4)
            with text.block(f"for (long long j = ({first}) * {lanes}; j < reduced; j += ({step}) * {lanes})"):
                text.line(f"const auto found = load<{lanes}>({row} + j);")
                text.unrolled()
                with text.block(f"for (int v = 0; v < {lanes}; ++v)"):
                    self._take(text, "found.at[v]", "j + v")
        with text.block("else"), text.block(f"for (long long j = {first}; j < reduced; j += {step})"):
            self._take(text, f"{row}[j]", "j")

    def rows(self, name: str, group: int) -> CudaKernel:
        """A block, or a warp, takes one row after another."""
        text, span = self._text(), THREADS // group
        text.line(f"const int lane = threadIdx.x % {group};")
        if group > 32:
            text.line(f"__shared__ {self.reducer.ctype} parts[{group // 32}];")
        first = f"(long long)blockIdx.x * {span} + threadIdx.x / {group}"
        with text.block(f"for (long long row = {first}; row < rows; row += (long long)gridDim.x * {span})"):
            text.line(f"const {CTYPE[self.dtype]}* const from = x + row * reduced;")
            text.line(f"{self.reducer.ctype} state = {self.reducer.start};")
            self._loop(text, "from", "lane", str(group))
            self._join_block(text, group)
            text.line(f"if (lane == 0) out[row] = {self._result(text)};")
            if group > 32:
                text.line("__syncthreads();")
        parameters = [self.x, self.out, "long long rows", "long long reduced"]
        return self._kernel(name, text, parameters, (THREADS, 1), span, (0, 1))

    def _join_block(self, text: Text, group: int) -> None:
        if group <= 32:
            text.line(f"state = join_lanes<{group}>(state);")
            return
        text.line("share(state, parts);")
        text.line("__syncthreads();")
        text.line(f"state = collect<{group // 32}>(parts);")

    def columns(self, name: str) -> CudaKernel:
        """Neighbouring threads take neighbouring columns."""
        text, count = self._text(), _COLUMN_THREADS
        text.line(f"__shared__ {self.reducer.ctype} parts[{count * COLUMNS}];")
        text.line(f"const long long column = (long long)blockIdx.x * {COLUMNS} + threadIdx.x;")
        with text.block("for (long long o = blockIdx.y; o < outer; o += gridDim.y)"):
            text.line(f"{self.reducer.ctype} state = {self.reducer.start};")
            text.line(f"const {CTYPE[self.dtype]}* const from = x + o * reduced * inner + column;")
            with text.block("if (column < inner)"):
                text.unrolled(4)
                with text.block(f"for (long long j = threadIdx.y; j < reduced; j += {count})"):
                    self._take(text, "from[j * inner]", "j")
            text.line(f"parts[threadIdx.y * {COLUMNS} + threadIdx.x] = state;")
            text.line("__syncthreads();")
            text.line(f"state = collect_column<{count}, {COLUMNS}>(parts);")
            condition = "threadIdx.y == 0 && column < inner"
            text.line(f"if ({condition}) out[o * inner + column] = {self._result(text)};")
            text.line("__syncthreads();")
        parameters = [self.x, self.out, "long long outer", "long long reduced", "long long inner"]
        return self._kernel(name, text, parameters, (COLUMNS, count), COLUMNS, (0, 1))

    def partials(self, name: str) -> CudaKernel:
        """Each block leaves the state of its part of a single row in the workspace."""
        text = self._text()
        text.line(f"__shared__ {self.reducer.ctype} parts[{THREADS // 32}];")
        text.line(f"{self.reducer.ctype} state = {self.reducer.start};")
        text.line(f"const long long place = (long long)blockIdx.x * {THREADS} + threadIdx.x;")
        self._loop(text, "x", "place", f"(long long)gridDim.x * {THREADS}")
        self._join_block(text, THREADS)
        states = f"reinterpret_cast<{self.reducer.ctype}*>(workspace)"
        text.line(f"if (threadIdx.x == 0) {states}[blockIdx.x] = state;")
        parameters = [self.x, "char* __restrict__ workspace", "long long reduced"]
        span = THREADS * self.lanes * 4
        return self._kernel(name, text, parameters, (THREADS, 1), span, (0, WORKSPACE))

    def total(self, name: str) -> CudaKernel:
        """One block joins the states of all blocks."""
        text = self._text()
        text.line(f"__shared__ {self.reducer.ctype} parts[{THREADS // 32}];")
        text.line(f"{self.reducer.ctype} state = {self.reducer.start};")
        states = f"reinterpret_cast<const {self.reducer.ctype}*>(workspace)"
        with text.block(f"for (long long i = threadIdx.x; i < blocks; i += {THREADS})"):
            text.line(f"state.join({states}[i]);")
        self._join_block(text, THREADS)
        text.line(f"if (threadIdx.x == 0) out[0] = {self._result(text)};")
        parameters = ["const char* __restrict__ workspace", self.out, "long long blocks"]
        return self._kernel(name, text, parameters, (THREADS, 1), 1, (WORKSPACE, 0))._replace(grid=(1, 1, 1))


# ---- scans -----------------------------------------------------------------------------------------------------------
_FOLDS = {"add": "sum", "mul": "prod", "maximum": "max", "minimum": "min"}
_ITEMS = 4


def write_scan(name: str, op: str, dtype: DType, out_dtype: DType, variant: str) -> CudaKernel:
    """The kernel of an inclusive scan of ``x``, which lies as (outer, length, inner), without gaps.

    Args:
        name: of the function.
        op: a node: ``"add"``, ``"mul"``, ``"maximum"`` or ``"minimum"``.
        dtype: of ``x``.
        out_dtype: of the result, in which the scan is computed (16-bit floats in float).
        variant: ``"rows"`` (``inner`` is 1; a block takes a line): ``(x, out, long long outer, long long length)``, the
            grid is ``kernel.blocks(outer, limit)``; ``"columns"`` (a thread takes a line): ``(x, out, long long outer,
            long long length, long long inner)``, the grid is ``kernel.blocks(outer * inner, limit)``.
    """
    writer = _Scan(op, dtype, out_dtype)
    return writer.columns(name) if variant == "columns" else writer.rows(name)


class _Scan:
    """The state of writing one scan."""

    def __init__(self, op: str, dtype: DType, out_dtype: DType):
        self.op, self.dtype, self.out_dtype = op, dtype, out_dtype
        self.computed = dt.float32 if out_dtype in dt.HALVES else out_dtype
        self.ctype = CTYPE[self.computed]
        start = make_reducer(_FOLDS[op], self.computed, 0).start
        self.start = start.strip("{}")
        self.text = Text()
        self.text.need("shuffle")

    def _joined(self, a: str, b: str) -> str:
        code = EMIT[self.op](self.computed, a, b)
        self.text.need(*code.helpers)
        return bare(code.text)

    def _read(self, x: str) -> str:
        code = write_cast(x, self.dtype, self.computed)
        self.text.need(*code.helpers)
        return bare(code.text)

    def _written(self, value: str) -> str:
        code = write_cast(value, self.computed, self.out_dtype)
        self.text.need(*code.helpers)
        return bare(code.text)

    def _kernel(self, name: str, sizes: list[str], span: int) -> CudaKernel:
        pointers = [
            f"const {CTYPE[self.dtype]}* __restrict__ x",
            f"{CTYPE[self.out_dtype]}* __restrict__ out",
        ]
        source = self.text.function(name, [*pointers, *(f"long long {size}" for size in sizes)], THREADS, ())
        helpers = tuple(self.text.helpers)
        return CudaKernel(name, source, helpers, (0, 1, 1), (THREADS, 1, 1), params=(0, 1), span=span)

    def columns(self, name: str) -> CudaKernel:
        """Each thread runs along a line; neighbouring threads have neighbouring lines."""
        text = self.text
        first = f"(long long)blockIdx.x * {THREADS} + threadIdx.x"
        step = f"line += (long long)gridDim.x * {THREADS}"
        with text.block(f"for (long long line = {first}; line < outer * inner; {step})"):
            text.line("const long long begin = line / inner * length * inner + line % inner;")
            text.line(f"{self.ctype} total = {self.start};")
            with text.block("for (long long j = 0; j < length; ++j)"):
                text.line("const long long at = begin + j * inner;")
                text.line(f"const {self.ctype} found = {self._read('x[at]')};")
                text.line(f"total = {self._joined('total', 'found')};")
                text.line(f"out[at] = {self._written('total')};")
        return self._kernel(name, ["outer", "length", "inner"], THREADS)

    def rows(self, name: str) -> CudaKernel:
        """A block runs along a line, some items for each thread at a time, and carries the total on."""
        text, ctype = self.text, self.ctype
        text.line(f"__shared__ {ctype} totals[{THREADS // 32}];")
        text.line("const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;")
        with text.block("for (long long line = blockIdx.x; line < outer; line += gridDim.x)"):
            text.line(f"{ctype} carry = {self.start};")
            chunk = THREADS * _ITEMS
            with text.block(f"for (long long first = 0; first < length; first += {chunk})"):
                text.line(f"const long long begin = first + threadIdx.x * {_ITEMS};")
                self._items()
                self._across_lanes()
                self._across_warps()
        return self._kernel(name, ["outer", "length"], 1)

    def _items(self) -> None:
        """The scan of a thread's own items."""
        text, ctype = self.text, self.ctype
        text.line(f"{ctype} item[{_ITEMS}], total = {self.start};")
        text.unrolled()
        with text.block(f"for (int v = 0; v < {_ITEMS}; ++v)"):
            text.line(f"{ctype} found = {self.start};")
            text.line(f"if (begin + v < length) found = {self._read('x[line * length + begin + v]')};")
            text.line(f"total = {self._joined('total', 'found')};")
            text.line("item[v] = total;")

    def _across_lanes(self) -> None:
        """``total``: of this thread and those before it in its warp; ``before``: without its own."""
        text, ctype = self.text, self.ctype
        text.unrolled()
        with text.block("for (int step = 1; step < 32; step *= 2)"):
            text.line(f"const {ctype} other = ({ctype})__shfl_up_sync(0xffffffffu, +total, step);")
            text.line(f"if (lane >= step) total = {self._joined('other', 'total')};")
        text.line(f"{ctype} before = ({ctype})__shfl_up_sync(0xffffffffu, +total, 1);")
        text.line(f"if (lane == 0) before = {self.start};")
        text.line("if (lane == 31) totals[warp] = total;")
        text.line("__syncthreads();")

    def _across_warps(self) -> None:
        """Add what came before the warp, write, and carry on."""
        text, ctype = self.text, self.ctype
        text.line(f"{ctype} earlier = carry;")
        with text.block(f"for (int w = 0; w < {THREADS // 32}; ++w)"):
            text.line(f"if (w < warp) earlier = {self._joined('earlier', 'totals[w]')};")
            text.line(f"carry = {self._joined('carry', 'totals[w]')};")
        text.line(f"before = {self._joined('earlier', 'before')};")
        text.unrolled()
        with text.block(f"for (int v = 0; v < {_ITEMS}; ++v)"):
            value = self._joined("before", "item[v]")
            text.line(f"const {ctype} value = {value};")
            text.line(f"if (begin + v < length) out[line * length + begin + v] = {self._written('value')};")
        text.line("__syncthreads();")

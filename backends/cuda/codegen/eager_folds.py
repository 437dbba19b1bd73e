"""Kernels of eager reductions; sizes are parameters."""

from __future__ import annotations

from ....operators.scalar_ir.expr import arg, cast
from ....operators.scalar_ir.fold import Fold
from ....registry.dtypes import DType
from .elementwise import VECTOR_BYTES
from .kernel import WORKSPACE, CudaKernel
from .reducers import LONG, Reducer, make_reducer
from .schedule import BATCH, COLUMNS
from .text import Text, write_expr
from .types import CTYPE

THREADS = 256
_COLUMN_THREADS = 8


def write_reduction(name: str, fold: Fold, dtype: DType, out_dtype: DType, variant: str) -> list[CudaKernel]:
    """The kernels of a reduction of ``x``, a contiguous (outer, reduced, inner) array.

    Args:
        name: of the function.
        fold: the fold.
        dtype: of ``x``.
        out_dtype: of the result.
        variant: ``"rows"`` (``inner`` is 1; a block takes a row) and ``"short_rows"`` (a warp takes a row): ``(x, out,
            long long rows, long long reduced)``, the grid is ``kernel.blocks(rows, limit)``; ``"columns"``: ``(x, out,
            long long outer, long long reduced, long long inner)``, the grid is ``kernel.blocks(inner, limit)`` times
            up to ``outer`` (y). Where these are too few blocks for a device, several share what is reduced, and two
            kernels are launched: ``"split_rows"``: ``(x, workspace, long long reduced)``, the grid is (blocks of a
            row, rows), then ``(workspace, out, long long blocks)`` with a block for each row; ``"split_columns"``:
            as ``"columns"`` with ``workspace`` for ``out`` and the parts of a column as z of the grid, then
            ``"columns"`` again with ``workspace`` for ``x`` and the number of parts for ``reduced``.

    Returns:
        One kernel, or the two of a split reduction, whose ``temporaries`` are the bytes of a state: the workspace has
        one for each block of each row, or part of each column.
    """
    writer = _Fold(fold, dtype, out_dtype)
    if variant == "split_rows":
        return [writer.partials(f"{name}_0"), writer.total(f"{name}_1")]
    if variant == "split_columns":
        return [writer.columns(f"{name}_0", last=False), writer.columns(f"{name}_1", first=False)]
    if variant == "columns":
        return [writer.columns(name)]
    return [writer.rows(name, 32 if variant == "short_rows" else THREADS)]


class _Fold:
    """The state of writing one reduction."""

    def __init__(self, fold: Fold, dtype: DType, out_dtype: DType):
        self.fold, self.dtype, self.out_dtype = fold, dtype, out_dtype
        self.operand = fold.operand(arg(0, dtype), out_dtype)
        self.reducer: Reducer = make_reducer(fold, self.operand.dtype, LONG + 1)
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
        nbytes = self.reducer.nbytes if WORKSPACE in pointers else 0
        helpers = tuple(text.helpers)
        return CudaKernel(
            name, source, helpers, (0, 1, 1), (*block, 1), params=pointers, temporaries=nbytes, span=span
        )

    def _take_some(self, text: Text, count: int, x: str, position: str) -> None:
        """Add several elements, ``x`` indexed by ``v``, to the state; for a long sum, by a plain sum first."""
        plain, is_long = make_reducer(self.fold, self.reducer.dtype, 1), self.reducer.is_long
        if is_long:
            text.need(*plain.helpers)
            text.line(f"{plain.ctype} part = {plain.start};")
        text.unroll()
        with text.block(f"for (int v = 0; v < {count}; ++v)"):
            self._take(text, x, position, "part" if is_long else "state")
        if is_long:
            text.line("state.take(part.result());")

    def _take(self, text: Text, x: str, position: str, state: str = "state") -> None:
        more = f", {position}" if self.fold.returns_index else ""
        text.line(f"{state}.take({write_expr(text, self.operand, x)}{more});")

    def _result(self, text: Text) -> str:
        result = self.fold.finished(arg(0, self.reducer.result))
        return write_expr(text, cast(result, self.out_dtype), "state.result()")

    def _loop(self, text: Text, row: str, first: str, step: str) -> None:
        """The loop over a thread's elements of a row; it loads 16 bytes at a time if the row is aligned."""
        lanes = self.lanes
        fits = f"reduced % {lanes} == 0 && reinterpret_cast<unsigned long long>({row}) % {VECTOR_BYTES} == 0"
        with text.block(f"if ({fits})"):
            text.unroll(4)
            with text.block(f"for (long long j = ({first}) * {lanes}; j < reduced; j += ({step}) * {lanes})"):
                text.line(f"const auto found = load<{lanes}>({row} + j);")
                self._take_some(text, lanes, "found.at[v]", "j + v")
        with text.block("else"), text.block(f"for (long long j = {first}; j < reduced; j += {step})"):
            self._take(text, f"{row}[j]", "j")

    def rows(self, name: str, group: int) -> CudaKernel:
        """Each block, or each warp, reduces one row after another."""
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

    def columns(self, name: str, first: bool = True, last: bool = True) -> CudaKernel:
        """Neighbouring threads reduce neighbouring columns.

        Args:
            name: of the function.
            first: whether elements are reduced, or the states of an earlier launch.
            last: whether results are written, or the states of parts.
        """
        text, state, count = self._text(), self.reducer.ctype, _COLUMN_THREADS
        begin, end = ("threadIdx.y", "reduced") if last else ("start + threadIdx.y", "end")
        source = "x" if first else "states"
        text.line(f"__shared__ {state} parts[{count * COLUMNS}];")
        text.line(f"const long long column = (long long)blockIdx.x * {COLUMNS} + threadIdx.x;")
        if not last:
            text.line(
                "const long long part = (reduced + gridDim.z - 1) / gridDim.z, start = blockIdx.z * part;"
            )
            text.line("const long long end = start + part < reduced ? start + part : reduced;")
        with text.block("for (long long o = blockIdx.y; o < outer; o += gridDim.y)"):
            text.line(f"{state} state = {self.reducer.start};")
            ctype = CTYPE[self.dtype] if first else state
            text.line(f"const {ctype}* const from = {source} + o * reduced * inner + column;")
            with text.block("if (column < inner)"):
                text.line(f"long long j = {begin};")
                if first:
                    with text.block(f"for (; j + {(BATCH - 1) * count} < {end}; j += {BATCH * count})"):
                        at = f"(j + v * {count})"
                        self._take_some(text, BATCH, f"from[{at} * inner]", at)
                text.unroll(1 if first else 4)
                with text.block(f"for (; j < {end}; j += {count})"):
                    if first:
                        self._take(text, "from[j * inner]", "j")
                    else:
                        text.line("state.join(from[j * inner]);")
            text.line(f"parts[threadIdx.y * {COLUMNS} + threadIdx.x] = state;")
            text.line("__syncthreads();")
            text.line(f"state = collect_column<{count}, {COLUMNS}>(parts);")
            element, value = "out[o * inner + column]", self._result(text)
            if not last:
                element, value = "states[(o * gridDim.z + blockIdx.z) * inner + column]", "state"
            text.line(f"if (threadIdx.y == 0 && column < inner) {element} = {value};")
            text.line("__syncthreads();")
        current = self.x if first else f"const {state}* __restrict__ states"
        made = self.out if last else f"{state}* __restrict__ states"
        parameters = [current, made, "long long outer", "long long reduced", "long long inner"]
        pointers = (0 if first else WORKSPACE, 1 if last else WORKSPACE)
        return self._kernel(name, text, parameters, (COLUMNS, count), COLUMNS, pointers)

    def partials(self, name: str) -> CudaKernel:
        """Each block writes the state of its part of a row to the workspace."""
        text, state = self._text(), self.reducer.ctype
        text.line(f"__shared__ {state} parts[{THREADS // 32}];")
        text.line(f"{state} state = {self.reducer.start};")
        text.line(f"const {CTYPE[self.dtype]}* const from = x + blockIdx.y * reduced;")
        text.line(f"const long long position = (long long)blockIdx.x * {THREADS} + threadIdx.x;")
        self._loop(text, "from", "position", f"(long long)gridDim.x * {THREADS}")
        self._join_block(text, THREADS)
        text.line("if (threadIdx.x == 0) states[blockIdx.y * gridDim.x + blockIdx.x] = state;")
        parameters = [self.x, f"{state}* __restrict__ states", "long long reduced"]
        span = THREADS * self.lanes * 4
        return self._kernel(name, text, parameters, (THREADS, 1), span, (0, WORKSPACE))

    def total(self, name: str) -> CudaKernel:
        """Each block combines the states of all blocks of a row."""
        text, state = self._text(), self.reducer.ctype
        text.line(f"__shared__ {state} parts[{THREADS // 32}];")
        text.line(f"{state} state = {self.reducer.start};")
        with text.block(f"for (long long i = threadIdx.x; i < blocks; i += {THREADS})"):
            text.line("state.join(states[blockIdx.x * blocks + i]);")
        self._join_block(text, THREADS)
        text.line(f"if (threadIdx.x == 0) out[blockIdx.x] = {self._result(text)};")
        parameters = [f"const {state}* __restrict__ states", self.out, "long long blocks"]
        return self._kernel(name, text, parameters, (THREADS, 1), 1, (WORKSPACE, 1))

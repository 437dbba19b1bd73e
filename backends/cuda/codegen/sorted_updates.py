"""Updates whose values are combined in the order of their points: positions are sorted, and runs of them folded."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from ....errors import UnsupportedError
from ....lowering.fusion.loop_ir import FusedKernel, Stage
from ....operators.scalar_ir.expr import Expr, cast
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .elementwise import Elementwise, Point
from .helper_sort import ALIGNMENT, SortPlan, plan_sort
from .kernel import WORKSPACE, CudaKernel
from .nodes import write_op
from .parameters import Parameters, decompose, linear, shift_pointer
from .space import Space
from .text import Scope, Text
from .types import CTYPE, literal
from .updates import (
    THREADS,
    Accesses,
    PositionWriter,
    accumulator,
    are_distinct,
    combine_text,
    is_atomic,
    write_points,
)

_SORTS = {
    "tandem_sort_count": "count_digits((const Word*)(workspace + from), (unsigned*)(workspace + to), count, tiles, "
    "(int)shift);",
    "tandem_sort_sum": "sum_digits((unsigned*)(workspace + from), count);",
    "tandem_sort_move": "move_words((const Word*)(workspace + from), (Word*)(workspace + to), "
    "(const unsigned*)(workspace + starts), count, tiles, (int)shift);",
}
_SORT_PARAMETERS = {
    "tandem_sort_count": "from to count tiles shift",
    "tandem_sort_sum": "from count",
    "tandem_sort_move": "from to starts count tiles shift",
}


def write_update(
    kernel: FusedKernel, accesses: Accesses, comments: Sequence[str], unaligned: Iterable[int] = ()
) -> list[CudaKernel]:
    """The kernels of an update, to be launched in order.

    Args:
        kernel: a kernel whose only statement is an update.
        accesses: its writes.
        comments: lines that describe it.
        unaligned: the parameters whose data need not be aligned to 16 bytes.
    """
    combined = accesses.update.combine and accesses.points > 1
    if not combined or is_atomic(accesses) or are_distinct(kernel, accesses):
        return write_points(kernel, accesses, comments, unaligned)
    plan = plan_sort(accesses.points, accesses.limit)
    if not plan.fits:
        raise UnsupportedError(
            f"{accesses.update.map.op}: on CUDA {plan.size} positions among {plan.limit} elements are too many to sort"
        )
    folds = _Runs(kernel, accesses, plan)
    kernels = [*_write_sort(kernel, accesses, plan), *folds.write_all(comments)]
    return [one._replace(temporaries=folds.nbytes) for one in kernels]


# -- the sort ----------------------------------------------------------------------------------------------------------
def _write_sort(kernel: FusedKernel, accesses: Accesses, plan: SortPlan) -> list[CudaKernel]:
    """The kernels that leave the sorted words at the start of the workspace."""
    odd = plan.passes % 2  # so that the last pass writes to the first buffer
    words, other = (plan.buffer_bytes, 0) if odd else (0, plan.buffer_bytes)

    def write_word(accesses: Accesses, inside: str, position: str, number: str) -> str:
        key = f"(unsigned long long)({inside} ? {position} : {plan.limit}LL)"
        return f"((unsigned long long*)(workspace + {words}))[{number}] = {key} << {plan.bits} | {number};"

    positions = PositionWriter(kernel, accesses, write_word)
    if plan.tiles == 1:
        buffers = ", ".join(f"(Word*)(workspace + {offset})" for offset in (words, other))
        sort = f"sort_tile({buffers}, {plan.size}, {plan.bits}, {plan.passes});"
        positions.text.need("sort")
        return [positions.write_serial(f"{kernel.name}_order", plan.threads, ["__syncthreads();", sort])]
    starts, grid = 2 * plan.buffer_bytes, (min(plan.tiles, 1 << 16), 1, 1)
    result = [positions.write_parallel(f"{kernel.name}_words")]
    for number in range(plan.passes):
        shift = plan.bits + 4 * number
        sizes = plan.size, plan.tiles, shift
        result.append(_sort_kernel("tandem_sort_count", grid, plan, words, starts, *sizes))
        result.append(_sort_kernel("tandem_sort_sum", (1, 1, 1), plan, starts, 16 * plan.tiles))
        result.append(_sort_kernel("tandem_sort_move", grid, plan, words, other, starts, *sizes))
        words, other = other, words
    return result


def _sort_kernel(name: str, grid: tuple[int, int, int], plan: SortPlan, *constants: int) -> CudaKernel:
    """A launch of one step of a pass; its code is the same for all updates."""
    text = Text()
    text.need("sort")
    text.line(_SORTS[name])
    parameters = [f"long long {one}" for one in _SORT_PARAMETERS[name].split()]
    source = text.function(name, ["char* workspace", *parameters], 1024, ())
    return CudaKernel(
        name,
        source,
        tuple(text.helpers),
        grid,
        (plan.threads, 1, 1),
        params=(WORKSPACE,),
        constants=constants,
    )


# -- the folds ---------------------------------------------------------------------------------------------------------
def _start_of(combine: str, dtype: DType) -> float:
    """The number that combines with any value to that value."""
    if combine in ("add", "mul"):
        return int(combine == "mul")
    sign = 1 if combine == "minimum" else -1
    if dtype.kind == "f":
        return sign * float("inf")
    if dtype is dt.bool_:
        return int(combine == "minimum")
    low, high = (
        (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if dtype.kind == "i" else (0, 2**dtype.bits - 1)
    )
    return high if combine == "minimum" else low


class _Runs(Elementwise):
    """Writes the kernels that fold the values of sorted positions: a thread takes a chunk of them, at a kept point.

    Attributes:
        nbytes: bytes of the workspace: that of the sort, then the heads and tails of chunks.
    """

    def __init__(self, kernel: FusedKernel, accesses: Accesses, plan: SortPlan):
        self.accesses, self.plan = accesses, plan
        self.wide = accumulator(accesses.target.dtype)
        update = accesses.update._replace(indices=(), value=cast(accesses.update.value, self.wide))
        kernel = kernel._replace(stages=(kernel.stages[0]._replace(body=(update,)),))
        super().__init__(kernel, Space(kernel), frozenset())
        steps = self.steps[accesses.target.name]
        self.kept = [d for d in range(len(self.sizes)) if steps[d]]
        self.columns = 1
        for d in self.kept:
            self.columns *= self.sizes[d]
        states = plan.chunks * self.columns if plan.chunks > 1 else 0
        self.part = -(-states * self.wide.itemsize // ALIGNMENT) * ALIGNMENT
        self.nbytes = plan.nbytes + 2 * self.part
        self.ctype = CTYPE[self.wide]

    def write_all(self, comments: Sequence[str]) -> list[CudaKernel]:
        """The kernel that folds runs, and the one that joins those of several chunks."""
        result = [self._write(f"{self.kernel.name}_fold", comments, joins=False)]
        if self.plan.chunks > 1:
            self.text = Text()
            result.append(self._write(f"{self.kernel.name}_join", (), joins=True))
        return result

    def _vector_lanes(self, unaligned: frozenset[int]) -> tuple[int, set[str]]:
        return 1, set()

    def _write(self, name: str, comments: Sequence[str], joins: bool) -> CudaKernel:
        text, plan, total = self.text, self.plan, self.plan.chunks * self.columns
        text.need("runs")
        index = "int" if max(total, plan.size) < 2**31 - THREADS and self.index == "int" else "long long"
        self.index = index
        cast_ = "(long long)" if index == "long long" else ""
        text.line(f"const {index} t = {cast_}blockIdx.x * {THREADS} + threadIdx.x;")
        text.line(f"if (t >= {total}) return;")
        text.line(f"const {index} chunk = t / {self.columns}, column = t % {self.columns};")
        sizes = [self.sizes[d] for d in self.kept]
        along = dict(zip(self.kept, decompose(text, index, "column", sizes, "i"), strict=True))
        self._write_functions(along, joins)
        text.line(
            f"const Runs runs = {{{plan.size}, {plan.chunk}, {plan.chunks}, {plan.bits}, {plan.limit}ULL}};"
        )
        text.line("const unsigned long long* const words = (const unsigned long long*)workspace;")
        heads, tails = (self._states(plan.nbytes), self._states(plan.nbytes + self.part))
        if joins:
            text.line(f"join_runs(words, runs, chunk, {heads}, {tails}, {self.columns}LL, combine, write);")
        else:
            start = literal(_start_of(self.accesses.update.combine, self.wide), self.wide)
            text.line(f"fold_runs(words, runs, chunk, {heads}, {tails}, {start}, value, combine, write);")
        names = [self.accesses.target.name] if joins else [b.name for b in self.kernel.buffers]
        parameters = Parameters(self.kernel, names, () if joins else self.exprs)
        parameters.add_workspace()
        source = text.function(name, parameters.text(), THREADS, comments)
        return CudaKernel(
            name,
            source,
            tuple(text.helpers),
            (-(-total // THREADS), 1, 1),
            (THREADS, 1, 1),
            params=tuple(parameters.indices),
            scalars=parameters.scalars,
            checks=tuple(text.checks),
        )

    def _states(self, offset: int) -> str:
        """The text of the pointer to the state of a thread."""
        return f"({self.ctype}*)(workspace + {offset}) + t" if self.part else f"({self.ctype}*)nullptr"

    def _write_functions(self, along: dict[int, str], joins: bool) -> None:
        """The functions ``combine``, ``write`` and, unless runs are joined, ``value``."""
        text, update, target = self.text, self.accesses.update, self.accesses.target
        code = write_op(update.combine, self.wide, "a", "b")
        text.need(*code.helpers)
        ctype = self.ctype
        text.line(f"const auto combine = []({ctype} a, {ctype} b) -> {ctype} {{ return {code.text}; }};")
        steps = self.steps[target.name]
        offset = linear([along[d] for d in self.kept], [steps[d] for d in self.kept])
        start = shift_pointer(shift_pointer(f"p{target.param}", target.offset), offset)
        text.line(f"{CTYPE[target.dtype]}* const first = {start};")
        text.line(f"const auto write = [&](unsigned long long key, unsigned long long, {ctype} state) {{")
        text.depth += 1
        text.line(f"{CTYPE[target.dtype]}* const to = first + {self._offset_of_key()};")
        text.line(f"*to = {combine_text(text, update.combine, target.dtype, '*to', 'state')};")
        text.depth -= 1
        text.line("};")
        if joins:
            return
        text.line(f"const auto value = [&](unsigned long long number) -> {ctype} {{")
        text.depth += 1
        text.line(f"const {self.index} b = ({self.index})number;")
        picked = [d for d in range(len(self.sizes)) if d not in self.kept]
        indices = decompose(text, self.index, "b", [self.sizes[d] for d in picked], "j")
        along = {**along, **dict(zip(picked, indices, strict=True))}
        self._stage(self.kernel.stages[0], [along[d] for d in range(len(self.sizes))], {}, 1)
        text.depth -= 1
        text.line("};")

    def _values(self, stage: Stage, point: Point, rows: dict[Expr, str]) -> None:
        scope = Scope(self.text, lambda leaf: self._leaf(leaf, point))
        scope.known.update(rows)
        (update,) = stage.body
        (value,) = scope.write([self.same[update.value]])
        self.text.line(f"return {value};")

    def _offset_of_key(self) -> str:
        """The text of the distance of an element, from its number along the indexed axes."""
        axes = self.accesses.update.map.axes
        if all(a.stride == b.stride * b.size for a, b in itertools.pairwise(axes)):
            return f"(long long)key * {axes[-1].stride}"
        terms, step = list[str](), 1
        for number, axis in reversed(list(enumerate(axes))):
            quotient = f"(long long)key / {step}" if step > 1 else "(long long)key"
            along = f"({quotient} % {axis.size})" if number else f"({quotient})"
            terms.append(f"{along} * {axis.stride}")
            step *= int(axis.size)
        return " + ".join(reversed(terms))

"""The loop over vectors along the last dimension of a stage: loads, expressions, stores.

Loop invariants come before it. A stage that reads or writes at consecutive positions has two loops, of which one runs:
see :mod:`.consecutive`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .... import lazy
from ....lowering.fusion.loop_ir import IndexMap, Store, Update, roots_of
from ....operators.scalar_ir.expr import Expr, order
from ....registry.dtypes import bool_
from .casts import emit_cast
from .index_maps import update_row
from .interleaving import interleave
from .nodes import emit_exprs, emit_node, has_costly, load_scalar
from .text import REGISTER
from .vectors import Access, Body, Pairs, Use, VectorLoop, vector_loop

if TYPE_CHECKING:
    from .consecutive import Consecutive
    from .stage_printer import StagePrinter

_consecutive = lazy.Module(".backends.cpu.codegen.consecutive")

Indexed = Expr | Update
"""A gather or an update."""


def map_of(access: Indexed) -> IndexMap:
    """Return the index map of a gather or an update."""
    result: IndexMap = access.map if isinstance(access, Update) else access.payload
    return result


def indices_of(access: Indexed) -> tuple[Expr, ...]:
    """Return the indices of a gather or an update."""
    return access.indices if isinstance(access, Update) else access.args


def find_consecutive(stage: StagePrinter, access: Indexed) -> Consecutive | None:
    """Return the consecutive positions that an access has along the last dimension; None if it has others."""
    index_map = map_of(access)
    result: Consecutive | None = _consecutive.find_consecutive(
        indices_of(access), stage.varies, stage.dims[-1]
    )
    if result is None or stage.uses[index_map.buffer].strides[-1]:
        return None
    axis = index_map.axes[result.axis]
    return result if axis.stride == 1 and axis.size >= stage.shape[-1] else None


def consecutive_accesses(stage: StagePrinter) -> dict[Indexed, Consecutive]:
    """Return the accesses of a stage at consecutive positions."""
    accesses = [e for e in stage.exprs if e.op == "gather"] + stage.updates if stage.shape[-1] > 1 else []
    positions = {access: find_consecutive(stage, access) for access in accesses}
    return {access: one for access, one in positions.items() if one is not None}


def computed_roots(stage: StagePrinter) -> list[Expr]:
    """Return the expressions that a stage evaluates in vectors: all but positions that are consecutive."""
    consecutive, known = consecutive_accesses(stage), dict[Expr, Expr]()
    for e in stage.exprs:
        args = () if e in consecutive else tuple(known[a] for a in e.args)
        known[e] = Expr(e.op, args, e.dtype, e.payload)
    return [
        known[root] for s in stage.stage.body for root in ((s.value,) if s in consecutive else roots_of(s))
    ]


class VectorStage:
    """The vectors of a stage along its last dimension.

    Args:
        stage: the stage.
        uses: its buffers at the start of the dimension.
        offset: the position of the first element along the dimension.
        count: the number of elements.
        carried: the values that the loop carries.
        reduce: takes a vector and returns the next carried values.
    """

    def __init__(
        self,
        stage: StagePrinter,
        uses: dict[str, Use],
        offset: str,
        count: str,
        carried: Pairs,
        reduce: Callable[[VectorLoop, list[str], dict[Expr, str]], list[str]],
    ):
        self.stage, self.f, self.uses, self.offset, self.count = stage, stage.f, uses, offset, count
        self.carried, self.reduce = carried, reduce
        is_tested = stage.has_index_maps and not stage.checks_each_position
        self.consecutive = consecutive_accesses(stage) if is_tested else {}

    def write(self) -> list[str]:
        """Write the loop; return the carried values after it."""
        fixed, read = self.hoist_invariants()
        if not self.consecutive:
            return self._write_loop(fixed, read, {})
        firsts = self.first_positions(fixed)
        condition = self.in_bounds(firsts)
        if not condition:
            return self.write_consecutive(fixed, read, firsts)
        f = self.f
        vectors, elements, end = (f.fresh(name) for name in ("consecutive", "elements", "end"))
        f.branch(condition, vectors, elements)
        f.label(vectors)
        one, one_block = self.write_consecutive(fixed, read, firsts), f.block
        f.jump(end)
        f.label(elements)
        with f.width(1 if self.stage.updates else f.lanes):
            two, two_block = self._write_loop(*self.hoist_invariants(), {}), f.block
        f.jump(end)
        f.label(end)
        return [
            f.op(f"phi {type_} [ {a}, %{one_block} ], [ {b}, %{two_block} ]")
            for (type_, _), a, b in zip(self.carried, one, two, strict=True)
        ]

    # -- consecutive positions -------------------------------------------------------------------------------------
    def first_positions(self, fixed: dict[Expr, str]) -> dict[Indexed, str]:
        """Return the first of the consecutive positions of each access."""
        return {access: self._first_position(one, fixed) for access, one in self.consecutive.items()}

    def _first_position(self, one: Consecutive, fixed: dict[Expr, str]) -> str:
        """Return the first position along the last dimension, i64."""
        f, total = self.f, "0"
        for e in one.terms:
            term = f.op(f"extractelement {f.vec('i64')} {fixed[e]}, i64 0")
            total = f.op(f"add i64 {total}, {term}")
        return total

    def in_bounds(self, firsts: dict[Indexed, str]) -> str:
        """Return the condition that no position is out of bounds or negative; empty if that is known."""
        f, size, result = self.f, self.stage.shape[-1], ""
        for access, first in firsts.items():
            index_map, one = map_of(access), self.consecutive[access]
            if one.is_in_bounds(index_map, size):
                continue
            last = index_map.axes[one.axis].size - size
            holds = f.op(f"icmp ule i64 {first}, {last}")
            result = f.op(f"and i1 {result}, {holds}") if result else holds
        return result

    def write_consecutive(
        self, fixed: dict[Expr, str], read: dict[Expr, Use], firsts: dict[Indexed, str]
    ) -> list[str]:
        """Write the loop in which consecutive positions are vectors in memory."""
        located = {access: self._locate_consecutive(access, first, fixed) for access, first in firsts.items()}
        more = {access: use for access, use in located.items() if isinstance(access, Expr)}
        return self._write_loop(fixed, read | more, located)

    def _locate_consecutive(self, access: Indexed, first: str, fixed: dict[Expr, str]) -> Use:
        """Return the use of a buffer that begins at the first of the positions."""
        f, number = self.f, self.consecutive[access].axis
        index_map, indices = map_of(access), indices_of(access)
        use = self.uses[index_map.buffer]
        others = [at for at in range(len(indices)) if at != number]
        if others:
            rest = index_map._replace(axes=tuple(index_map.axes[at] for at in others))
            use = self.stage.checks.locate(use, rest, [fixed[indices[at]] for at in others])
        position = f.op(f"add i64 {first}, {self.offset}")
        base = f.address(use.base, f.op(f"mul i64 {position}, {use.buffer.dtype.itemsize}"))
        return use._replace(base=base, strides=(*use.strides[:-1], 1))

    # -- the loop --------------------------------------------------------------------------------------------------
    def _write_loop(
        self, fixed: dict[Expr, str], read: dict[Expr, Use], located: dict[Indexed, Use]
    ) -> list[str]:
        """Write one loop over vectors."""
        f, stage, uses = self.f, self.stage, self.uses
        accesses = {e.payload if e.op == "load" else e: stage.make_access(use) for e, use in read.items()}
        stored = [s for s in stage.stage.body if isinstance(s, Store)]
        stores = [(s, stage.make_access(uses[s.buffer], writes=True)) for s in stored]
        rows = {
            s: self._update_accesses(s, fixed, located)
            for s in stage.updates
            if f.lanes > 1 or stage.shape[-1] == 1
        }
        roots = [root for s in stage.stage.body for root in roots_of(s)]
        tail = int(self.count if self.count.isdecimal() else stage.shape[-1]) % f.lanes
        interleave([(uses[e.payload], accesses[e.payload]) for e in read if e.op == "load"], tail)
        interleave([(uses[s.buffer], access) for s, access in stores], tail)

        def body(loop: VectorLoop, values: list[str]) -> list[str]:
            f.gather = lambda e, indices: stage.checks.gather(e, indices, uses[e.payload.buffer], loop)
            registers = {key: access.load() for key, access in accesses.items()}
            known = fixed | {e: registers[e.payload if e.op == "load" else e] for e in read}
            if stage.indexed:
                known |= self._index_leaves(f.op(f"add i64 {self.offset}, {loop.index}"))
            emit_exprs(f, roots, known)
            after = self.reduce(loop, values, known)
            for s, access in stores:
                access.store(emit_cast(f, known[s.value], s.value.dtype, access.dtype))
            for update in stage.updates:
                if update in rows:
                    update_row(f, update, known[update.value], *rows[update])
                else:
                    stage.checks.update(update, known, uses[update.map.buffer], loop)
            return after

        used = [*accesses.values(), *[a for _, a in stores]]
        for update, (old, new) in rows.items():
            used += [old, new] if update.combine else [new]
        return self.run(tail, used, body)

    def run(self, tail: int, used: Sequence[Access], body: Body) -> list[str]:
        """Write the loop around the body, which uses some accesses."""
        return vector_loop(self.f, self.count, tail, used, self.carried, body, self.stage.is_short)

    def _update_accesses(
        self, s: Update, fixed: dict[Expr, str], located: dict[Indexed, Use]
    ) -> tuple[Access, Access]:
        """Return the accesses that read and write the elements along the last dimension."""
        use = located.get(s)
        if use is None:
            use = self.stage.checks.locate(self.uses[s.map.buffer], s.map, [fixed[one] for one in s.indices])
        return self.stage.make_access(use), self.stage.make_access(use, writes=True)

    # -- leaves ----------------------------------------------------------------------------------------------------
    def _index_leaves(self, last: str) -> dict[Expr, str]:
        """Return registers of the ``index`` leaves; ``last`` is the vector's position along the last dimension."""
        f, stage, result = self.f, self.stage, {}
        for e in stage.exprs:
            if e.op == "index" and e.payload == stage.dims[-1]:
                vec = f.vec("i64")
                result[e] = f.op(f"add {vec} {f.broadcast(last, 'i64')}, {f.lane_numbers()}")
            elif e.op == "index":
                result[e] = f.broadcast(stage.indices[e.payload], "i64")
        return result

    def hoist_invariants(self) -> tuple[dict[Expr, str], dict[Expr, Use]]:
        """Return the registers of values constant along the last dimension, and the uses that are read along it."""
        stage, fixed, single = self.stage, dict[Expr, str](), dict[Expr, str]()
        read: dict[Expr, Use] = {}
        computed = self._hoisted_exprs()
        for e in stage.exprs:
            if e.op == "load" or (e.op == "gather" and all(a in fixed for a in e.args)):
                use = self.uses[e.payload] if e.op == "load" else self.uses[e.payload.buffer]
                if e.op == "gather":
                    use = stage.checks.locate(use, e.payload, [fixed[a] for a in e.args])
                if use.strides[-1]:
                    read[e] = use
                elif e.dtype.kind == "c":
                    fixed[e] = self.f.load_splat(e.dtype, use.base)
                else:
                    with self.f.width(1):
                        single[e] = self.f.load_splat(e.dtype, use.base)
                    fixed[e] = self._spread(e, single[e])
            elif e.op in ("row", "scalar", "const"):
                fixed[e] = load_leaf(stage, e)
                if e.dtype.kind != "c":
                    with self.f.width(1):
                        single[e] = load_leaf(stage, e)
            elif e.op == "index" and e.payload != stage.dims[-1]:
                fixed[e] = self.f.broadcast(stage.indices[e.payload], "i64")
            elif (
                e in computed and e.dtype.kind != "c" and e.op != "call" and all(a in single for a in e.args)
            ):
                with self.f.width(1):  # a division of one number takes half the time of one of a short vector
                    single[e] = emit_node(self.f, e, [single[a] for a in e.args])
                fixed[e] = self._spread(e, single[e])
                if self._waits_for_row(e):
                    self.f.late[fixed[e]] = self.f.op(f"extractelement <1 x i1> {single[e]}, i64 0")
            elif e in computed and all(a in fixed for a in e.args):
                emit_exprs(self.f, [e], fixed)
        self.f.invariants.update(fixed.values())
        return fixed, read

    def _waits_for_row(self, e: Expr) -> bool:
        """Whether an expression is a condition, computed once in a kernel, that needs the result of a reduction."""
        if e.dtype is not bool_ or math.prod(self.stage.kernel.outer) != 1:
            return False
        leaves = [leaf for leaf in order(e) if not leaf.args]
        is_single = all(not any(self.uses[leaf.payload].strides) for leaf in leaves if leaf.op == "load")
        return is_single and any(leaf.op == "row" for leaf in leaves)

    def _spread(self, e: Expr, register: str) -> str:
        """Return the value of an expression, a vector of one lane, in every lane."""
        one, lanes = f"<1 x {REGISTER[e.dtype]}>", self.f.lanes
        if lanes == 1:
            return register
        return self.f.op(f"shufflevector {one} {register}, {one} poison, <{lanes} x i32> zeroinitializer")

    def _hoisted_exprs(self) -> set[Expr]:
        """Return the expressions that may be computed before the loop.

        For a single point these are positions only: costly expressions are computed where they are needed.
        """
        exprs = self.stage.exprs
        if self.f.lanes == 1 and self.stage.shape[-1] == 1 and has_costly(exprs):
            positions = [i for e in exprs if e.op == "gather" for i in e.args]
            exprs = order(*positions, *(i for s in self.stage.updates for i in s.indices))
        return {e for e in exprs if e.op not in ("index", "gather")}


def load_leaf(stage: StagePrinter, e: Expr) -> str:
    """Return a row value, run-time scalar or constant in every lane."""
    f = stage.f
    if e.op == "const":
        return emit_node(f, e, [])
    if e.op == "row":
        value, dtype = stage.row_values[e.payload]
        return f.broadcast(value, REGISTER[dtype])
    return load_scalar(f, e)

"""Branches around costly operands, in code that computes single numbers.

An operand of a select that is not chosen, or the second operand of ``&`` or ``|`` whose first one decides, need not be
computed. In vectors some lane mostly needs it, and a branch costs more than cheap operands; a sine, say, costs more
than a branch that is predicted wrongly. A select by a costly condition becomes a branch, too: the next step of a loop,
which needs the selected number, then begins before the condition is known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ....operators.scalar_ir.expr import Expr, order
from ....registry import dtypes as dt
from .nodes import COSTLY, emit_node, has_costly
from .text import REGISTER, Function

_KEPT = frozenset(("gather", "call"))  # they raise, or have effects

Deferred = dict[int, set[Expr]]
"""What only one operand of a node needs, by the position of the operand."""


def emit_lazily(f: Function, roots: Sequence[Expr], known: dict[Expr, str]) -> None:
    """Emit the nodes that ``roots`` need and ``known`` lacks, costly operands only where they are needed.

    Args:
        f: the function, whose vectors have one lane.
        roots: the expressions.
        known: the registers of expressions; those of ``roots`` are added.
    """
    nodes = order(*roots, known=known)
    costly = _find_costly(nodes)
    plan = _plan(nodes, roots, costly)
    deferred = {e for operands in plan.values() for own in operands.values() for e in own}
    for expr in nodes:
        if expr in deferred:
            continue
        if expr in plan:
            known[expr] = _Branch(f, expr, plan[expr], known).emit()
        elif _is_chosen_late(expr, costly):
            condition, one, other = (known[a] for a in expr.args)
            known[expr] = f.mostly(condition, f.vec(REGISTER[expr.dtype]), one, other)
        else:
            known[expr] = emit_node(f, expr, [known[a] for a in expr.args])


def _find_costly(nodes: Sequence[Expr]) -> set[Expr]:
    """The nodes that are costly, or need one that is."""
    result: set[Expr] = set()
    for e in nodes:
        if e.op in COSTLY or any(a in result for a in e.args):
            result.add(e)
    return result


def _is_chosen_late(expr: Expr, costly: set[Expr]) -> bool:
    """Whether the condition of a select is costly, and its operands are not."""
    if expr.op != "select" or expr.dtype.kind == "c":
        return False
    condition, *operands = (a in costly for a in expr.args)
    return condition and not any(operands)


def _plan(nodes: Sequence[Expr], roots: Sequence[Expr], costly: set[Expr]) -> dict[Expr, Deferred]:
    """The costly operands of nodes that are computed in branches; those within such an operand are left out."""
    users: dict[Expr, list[Expr]] = defaultdict(list)
    for e in nodes:
        for a in e.args:
            users[a].append(e)
    needed, given = {*roots, *(e for e in nodes if e.op in _KEPT)}, set(nodes)
    plan: dict[Expr, Deferred] = {}
    inside: set[Expr] = set()
    for e in reversed(nodes):
        if e in inside:
            continue
        operands = {
            position: only
            for position in _optional_operands(e, costly)
            if has_costly(only := _find_own(e, e.args[position], users, needed, given))
        }
        if operands:
            plan[e] = operands
            inside.update(x for only in operands.values() for x in only)
    return plan


def _optional_operands(e: Expr, costly: set[Expr]) -> Sequence[int]:
    """The positions of the costly operands that a node may not need."""
    if e.op == "select" and e.dtype.kind != "c":
        return [position for position in (1, 2) if e.args[position] in costly]
    if e.op in ("and", "or") and e.dtype is dt.bool_:
        return [position for position in (1, 0) if e.args[position] in costly][:1]
    return ()


def _find_own(
    user: Expr, operand: Expr, users: dict[Expr, list[Expr]], needed: set[Expr], given: set[Expr]
) -> set[Expr]:
    """The nodes that are computed for one operand of a node only."""
    own: set[Expr] = set()
    uses = Counter[Expr]()
    waiting = [operand] if users[operand] == [user] and operand in given and operand not in needed else []
    while waiting:
        e = waiting.pop()
        own.add(e)
        for a in e.args:
            uses[a] += 1
            if uses[a] == len(users[a]) and a in given and a not in needed:
                waiting.append(a)
    return own


class _Branch:
    """A node some of whose operands are computed in branches."""

    def __init__(self, f: Function, expr: Expr, operands: Deferred, known: dict[Expr, str]):
        self.f, self.expr, self.operands, self.known = f, expr, operands, known

    def emit(self) -> str:
        """Write the branches; return the register of the result."""
        f, expr = self.f, self.expr
        if expr.op == "select":
            condition, one, other = expr.args[0], 1, 2
        else:
            (position,) = self.operands
            condition = expr.args[1 - position]
            one, other = (position, 1 - position) if expr.op == "and" else (1 - position, position)
        end, labels = f.fresh("chosen"), [f.fresh("first"), f.fresh("second")]
        f.branch(f.op(f"extractelement {f.vec('i1')} {self.known[condition]}, i64 0"), *labels)
        sources = []
        for label, position in zip(labels, (one, other)):
            f.label(label)
            sources.append(f"[ {self._operand(position)}, %{f.block} ]")
            f.jump(end)
        f.label(end)
        return f.op(f"phi {f.vec(REGISTER[expr.dtype])} {', '.join(sources)}")

    def _operand(self, position: int) -> str:
        operand = self.expr.args[position]
        if position not in self.operands:
            return self.known[operand]
        inside = dict(self.known)
        emit_lazily(self.f, [operand], inside)
        return inside[operand]

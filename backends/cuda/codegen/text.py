"""The text of one kernel: indented lines, names of expressions, and the helpers that it needs."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from ....lowering.fusion.loop_ir import IndexMap
from ....operators.scalar_ir.expr import Expr, order
from ....registry.dtypes import float32
from .kernel import Check
from .nodes import NAMED, Code, write_node
from .types import CTYPE, bare, literal

LONGEST = 72
"""The maximum length of an expression without a name."""


class Text:
    """Lines of C, and the helpers that they need."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.checks: dict[Check, int] = {}  # of positions: the number of their parameter
        self.helpers: dict[str, None] = {}
        self.depth = 1
        self.count = 0

    def line(self, text: str) -> None:
        """Append a line at the current depth."""
        self.lines.append("    " * self.depth + text)

    def gap(self) -> None:
        """Append an empty line, unless the last line is empty or there is none."""
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def need(self, *helpers: str) -> None:
        """Require helpers."""
        self.helpers.update(dict.fromkeys(helpers))

    def fresh(self, stem: str = "t") -> str:
        """A new name."""
        self.count += 1
        return f"{stem}{self.count}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head { ... }``; without a head the lines as they are."""
        if not head:
            yield
            return
        self.line(head + " {")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def unroll(self, count: int = 0) -> None:
        """Ask for the next loop to be unrolled, whole or ``count`` times."""
        self.lines.append(f"#pragma unroll{f' {count}' if count else ''}")

    def function(
        self, name: str, parameters: Iterable[str], threads: int, comments: Iterable[str], blocks: int = 1
    ) -> str:
        """The kernel with these lines; ``blocks``: the minimum number of resident blocks on a multiprocessor."""
        notes = [f"// {comment}\n" for comment in comments]
        separator = ",\n    "
        bounds = f"{threads}, {blocks}" if blocks > 1 else f"{threads}"
        head = f'extern "C" __global__ void __launch_bounds__({bounds}) {name}(\n    '
        lines = _drop_unused_constants(self.lines)
        parameters = [*parameters, *(["long long* fault"] if self.checks else [])]
        parameters += [f"const long long check{number}" for number in self.checks.values()]
        words = set(re.findall(r"\w+", " ".join([*parameters, *lines])))
        self.need(*(helper for word, helper in _NEEDS.items() if word in words))
        return "".join([*notes, head, separator.join(parameters), ") {\n", "\n".join(lines), "\n}\n"])


_NEEDS = {
    **dict.fromkeys(("float16", "bfloat16"), "half"),
    **dict.fromkeys(("complex64", "complex128"), "complex"),
    **dict.fromkeys(("Vec", "load", "store"), "vectors"),
}
"""Word in the text -> the helper that defines it."""
_CONSTANT = re.compile(r"\s*const [\w ]+?[*]* ?(?:const )?(\w+) = .*;$")


def _drop_unused_constants(lines: list[str]) -> list[str]:
    """Dead-code elimination: drop constants that nothing in their block reads."""
    while True:
        words = [set(re.findall(r"\w+", line)) for line in lines]
        named = [_CONSTANT.match(line) for line in lines]
        kept = [
            line
            for index, (line, value) in enumerate(zip(lines, named, strict=True))
            if not value or any(value[1] in words[k] for k in _rest_of_block(lines, index))
        ]
        if len(kept) == len(lines):
            return lines
        lines = kept


def _rest_of_block(lines: list[str], index: int) -> Iterator[int]:
    """The numbers of the lines after one, in its block."""
    depth = len(lines[index]) - len(lines[index].lstrip())
    for k in range(index + 1, len(lines)):
        indented = lines[k].startswith(" ")
        if indented and len(lines[k]) - len(lines[k].lstrip()) < depth:
            return
        yield k


Leaf = Callable[[Expr], str]


class Scope:
    """The expressions that have been written so far in a block of code.

    Attributes:
        known: the text of each expression.
        divisors: the names of prepared divisors (the ``divisor`` helper).
    """

    def __init__(self, text: Text, leaf: Leaf, divisors: dict[Expr, str] | None = None):
        self.text, self.leaf = text, leaf
        self.known: dict[Expr, str] = {}
        self.divisors = divisors or {}

    def write(self, roots: Iterable[Expr], names: bool = False) -> list[str]:
        """The text of each root; repeated and long expressions (with ``names`` every root) are declared first."""
        roots = list(roots)
        uses: dict[Expr, int] = {}
        todo = self._unknown(roots)
        for expr in todo:
            doubled = 2 if expr.op in NAMED else 1
            for a in expr.args:
                uses[a] = uses.get(a, 0) + doubled
        for root in roots:
            uses[root] = uses.get(root, 0) + (2 if names else 1)
        for expr in todo:
            if expr not in self.known:
                self.known[expr] = self._write_expr(expr, uses.get(expr, 1))
        return [bare(self.known[root]) for root in roots]

    def _unknown(self, roots: list[Expr]) -> list[Expr]:
        """The expressions that the roots need and that are not written yet, operands first."""
        wanted = {root for root in roots if root not in self.known}
        items = [e for e in order(*roots) if e not in self.known]
        for expr in reversed(items):
            if expr in wanted:
                wanted.update(a for a in expr.args if a not in self.known)
        return [e for e in items if e in wanted]

    def _write_expr(self, expr: Expr, uses: int) -> str:
        if expr.op in ("load", "row", "scalar", "index", "arg"):
            return self.leaf(expr)
        if expr.op == "gather":
            return self._gather(expr)
        code = (
            self._quotient(expr)
            or self._reciprocal(expr)
            or write_node(expr, [self.known[a] for a in expr.args])
        )
        self.text.need(*code.helpers)
        if expr.op == "const" or (uses < 2 and len(code.text) <= LONGEST):
            return code.text
        name = self.text.fresh()
        self.text.line(f"const {CTYPE[expr.dtype]} {name} = {bare(code.text)};")
        return name

    def locate(
        self, index_map: IndexMap, indices: Sequence[Expr], pointer: str
    ) -> tuple[str, str, list[str]]:
        """Check the positions of an index map; one that is not in bounds is reported to the host.

        Args:
            index_map: the indexed axes.
            indices: the positions, which have been written.
            pointer: the text of the pointer to the element at position 0 of the indexed axes.

        Returns:
            The condition under which they are in bounds, the pointer to the element, and the name of each position.
        """
        axes, names = index_map.axes, list[str]()
        check = Check(index_map.op, axes[0].axis, tuple(int(axis.size) for axis in axes))
        number = self.text.checks.setdefault(check, len(self.text.checks))
        self.text.need("positions")
        for which, (axis, index) in enumerate(zip(axes, indices, strict=True)):
            names.append(self.text.fresh("position"))
            given = f"{bare(self.known[index])}, {axis.size}, {which}, fault, check{number}"
            self.text.line(f"const long long {names[-1]} = checked({given});")
        inside = " && ".join(f"{name} >= 0" for name in names)
        terms = [f"{name} * {axis.stride}" for name, axis in zip(names, axes, strict=True) if axis.stride]
        return inside, " + ".join([pointer, *terms]), names

    def _gather(self, expr: Expr) -> str:
        """The element at integer positions; 0 if one is out of bounds."""
        inside, pointer, _ = self.locate(expr.payload, expr.args, self.leaf(expr))
        name, zero = self.text.fresh("element"), literal(0, expr.dtype)
        self.text.line(f"const {CTYPE[expr.dtype]} {name} = {inside} ? *({pointer}) : {zero};")
        return name

    def _quotient(self, expr: Expr) -> Code | None:
        """A division by a prepared divisor."""
        if expr.op != "truediv" or expr.args[1] not in self.divisors:
            return None
        return Code(f"{self.divisors[expr.args[1]]}.under({bare(self.known[expr.args[0]])})")

    def _reciprocal(self, expr: Expr) -> Code | None:
        """The reciprocal square root, rounded once; unlike a division and a square root it has no slow path."""
        if expr.op != "truediv" or expr.dtype is not float32:
            return None
        one, root = expr.args
        if one.op != "const" or one.payload != 1 or root.op != "sqrt" or root.args[0] not in self.known:
            return None
        return Code(f"__frsqrt_rn({bare(self.known[root.args[0]])})")


def write_expr(text: Text, expr: Expr, *operands: str) -> str:
    """The text of a scalar expression over ``arg(0)``, ``arg(1)``, ...; its intermediate results are declared first."""
    return Scope(text, lambda leaf: operands[leaf.payload]).write([expr])[0]


def unify(roots: Iterable[Expr]) -> dict[Expr, Expr]:
    """Common-subexpression elimination: each expression below ``roots`` -> the representative of its equals."""
    known: dict[tuple[object, ...], Expr] = {}
    result: dict[Expr, Expr] = {}
    for e in order(*roots):
        args = tuple(result[a] for a in e.args)
        payload = repr(e.payload) if e.op == "const" else e.payload
        key = (e.op, e.dtype, payload, *map(id, args))
        if key not in known:
            known[key] = e if all(map(operator.is_, args, e.args)) else Expr(e.op, args, e.dtype, e.payload)
        result[e] = known[key]
    return result

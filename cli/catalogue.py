"""``tandem ops``: list the operators, or describe one of them."""

from __future__ import annotations

import inspect
from typing import Any

from .. import lazy
from ..eager.tensor.inplace import functional
from ..operators.declare.declaration import Declaration, declared_operators
from ..operators.declare.derivatives import NotDifferentiable
from ..registry.dispatch.tables import dispatch_table
from ..registry.function import initialize
from ..registry.library import find_overloads
from ..registry.operator import Operator, operators
from .overhead import coverage

rich_table = lazy.Module("rich.table")


def find_operators(name: str) -> list[Operator]:
    """The operators of a name: ``"add"``, ``"add.Tensor"`` or ``"myns::mul_add"``.

    Raises:
        UnknownOperatorError: there is none; the message names near ones.
    """
    namespace, colons, rest = name.rpartition("::")
    stem, dot, overload = rest.partition(".")
    result = find_overloads(namespace if colons else "td", stem)
    return [op for op in result if not dot or op.schema.overload == overload] or result


def derivative_of(op: Operator) -> str:
    """Describe how an operator is differentiated, in a few words."""
    if op in functional:
        return f"that of {functional[op].schema.name}"
    decl = op.decl if isinstance(op.decl, Declaration) else None
    if decl is None:
        return "none declared"
    if isinstance(decl.derivative, NotDifferentiable):
        return f"none: {decl.derivative.reason}"
    if decl.derivative is not None:
        return type(decl.derivative).__name__.lower()
    return "of its body" if decl.kind == "composite" else "none declared"


def kind_of(op: Operator) -> str:
    """The kind of an operator; empty for one that was defined without a declaration."""
    return "in place" if op in functional else op.decl.kind if isinstance(op.decl, Declaration) else ""


def native_share(op: Operator) -> float | None:
    """The share of an operator's rows that machine code answers; None if it has no rows."""
    initialize()
    rows = list(coverage.rows_of(op)) if op in declared_operators() else []
    return coverage.share(rows) if rows else None


def list_operators(namespace: str, console: Any) -> None:
    """Print one line for each operator of a namespace, or of all where it is empty."""
    initialize()
    shares: dict[str, list[coverage.Row]] = {}
    for row in coverage.rows():
        shares.setdefault(row.operator, []).append(row)
    table = rich_table.Table(title=f"operators{f' of {namespace}' if namespace else ''}")
    for head in ("operator", "kind", "kernels", "derivative", "native"):
        table.add_column(head, overflow="fold", justify="right" if head == "native" else "left")
    for name, op in sorted(operators.items()):
        if namespace in ("", op.schema.namespace):
            share = f"{100 * coverage.share(shares[name]):.0f} %" if name in shares else ""
            table.add_row(name, kind_of(op), ", ".join(_kernel_names(op)), _shorten(derivative_of(op)), share)
    console.print(table)


def show_operator(op: Operator, console: Any) -> None:
    """Print the schema, the documentation, what is declared and the dispatch table of an operator."""
    decl = op.decl if isinstance(op.decl, Declaration) else None
    console.print(f"[bold]{_escape_markup(str(op.schema))}[/bold]")
    if decl is not None:
        console.print(_escape_markup(inspect.cleandoc(decl.doc)))
    console.print()
    facts = {"kind": kind_of(op) or "defined without a declaration"}
    if decl is not None and decl.dtypes:
        facts["dtypes"] = ", ".join(dtype.name for dtype in decl.dtypes)
    facts["derivative"] = derivative_of(op)
    if decl is not None and decl.native is not None:
        facts["native kernel"] = ", ".join(map(str, decl.native.loops))
    share = native_share(op)
    if share is not None:
        facts["native"] = f"{100 * share:.1f} % of dtypes x layouts"
    for name, text in facts.items():
        console.print(f"[bold]{name}[/bold]: {_escape_markup(text)}")
    console.print()
    console.print(_escape_markup(str(dispatch_table(op.name))), soft_wrap=True)


def _kernel_names(op: Operator) -> list[str]:
    return [str(getattr(key, "name", key)) for key in op.kernels]


def _shorten(text: str) -> str:
    return _escape_markup(text if len(text) <= 50 else text[:47] + "...")


def _escape_markup(text: str) -> str:
    return text.replace("[", "\\[")  # a bracket is markup to rich

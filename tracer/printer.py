"""Graphs as text, from which :mod:`.parser` builds the same graph again.

One line per node, values numbered in the order in which they come up::

    graph step(%0: float32[2,3], %1: weak float) {
      derived %2: weak float = mul(%1, 2.0)
      captured %3: float32[3] = @0
      %4: float32[2,3] = td::mul.Tensor(%0, %2)  # model.py:12
      %5: float32[2,3] = td::add.Tensor(%4, %3)  # model.py:12
      return %5
    }

``@n`` refers to an object without a literal: a captured tensor, or an argument or result of an unusual type. ``&body0``
refers to the body of a loop or a branch, which is printed after the graph that contains it.
"""

from __future__ import annotations

import re
import types
from typing import Any

from ..registry.dtypes import DType
from ..registry.values import TensorSpec
from .graph import Graph, Node, Value

INDENT = "  "


def print_graph(graph: Graph, name: str = "traced") -> str:
    """The text of a graph.

    Args:
        graph: the graph.
        name: the function's name, for the first line.

    >>> import tandem as td
    >>> from tandem.tracer.printer import print_graph
    >>> graph = td.jit(lambda x: td.exp(x) * 2.0).trace(td.asarray([1.0])).ir
    >>> print(print_graph(graph))  # doctest: +ELLIPSIS
    graph traced(%0: float32[1]) {
      %1: float32[1] = td::exp(%0)  # ...
      %2: float32[1] = td::mul.Tensor(%1, 2.0)  # ...
      return %2
    }
    """
    return "\n".join(_all_lines(Printer(graph), name))


def objects_of(graph: Graph) -> list[object]:
    """The objects of ``@0``, ``@1``, ... in the graph's text; the captured tensors come first."""
    printer = Printer(graph)
    _all_lines(printer, "")
    return printer.objects


def _all_lines(printer: Printer, name: str) -> list[str]:
    """The lines of a graph, and of the bodies that it holds, and of those that they hold."""
    result = printer.lines(name)
    for number, body in enumerate(printer.bodies):  # which grows meanwhile
        result += Printer(body, printer).lines(f"body{number}")
    return result


class Printer:
    """Prints one graph; keeps the numbers of its Values and the objects that text cannot hold.

    Args:
        graph: the graph.
        around: the printer of the graph around it, which keeps the objects and bodies.
    """

    def __init__(self, graph: Graph, around: Printer | None = None):
        self.graph = graph
        self.objects: list[object] = list(graph.constants) if around is None else around.objects
        self.bodies: list[Graph] = [] if around is None else around.bodies
        self.numbers: dict[Value, int] = {}
        for value in graph.parameters:
            self.number(value)

    def number(self, value: Value) -> str:
        """``%n`` of a Value; one that is not known yet gets the next number."""
        return f"%{self.numbers.setdefault(value, len(self.numbers))}"

    def lines(self, name: str) -> list[str]:
        """The lines of the text."""
        return [
            f"graph {_identifier(name)}({', '.join(map(self.declared, self.graph.inputs))}) {{",
            *self.prologue(),
            *(INDENT + self.node(node) for node in self.graph.nodes),
            f"{INDENT}return {', '.join(map(self.argument, self.graph.outputs))}".rstrip(),
            "}",
        ]

    def prologue(self) -> list[str]:
        """The lines of derived scalars and captured tensors."""
        derived = [
            f"{INDENT}derived {self.declared(value)} = {function}({', '.join(map(self.argument, operands))})"
            for value, function, operands in self.graph.derived
        ]
        captured = [
            f"{INDENT}captured {self.declared(value)} = {self._object(constant)}"
            for value, constant in zip(self.graph.captured, self.graph.constants)
        ]
        return derived + captured

    def declared(self, value: Value) -> str:
        """``%n: type``."""
        return f"{self.number(value)}: {type_text(value)}"

    def node(self, node: Node) -> str:
        """The line of a node."""
        given = [self.argument(a) for a in node.args] + [
            f"{k}={self.argument(v)}" for k, v in node.kwargs.items()
        ]
        results = ", ".join(map(self.declared, node.outputs)) or "()"
        return f"{results} = {node.op.name}({', '.join(given)})" + (
            f"  # {node.source}" if node.source else ""
        )

    def argument(self, value: object) -> str:
        """An argument or a result."""
        if isinstance(value, Value):
            return self.number(value)
        if type(value) is tuple:
            return f"({', '.join(map(self.argument, value))}{',' if len(value) == 1 else ''})"
        if type(value) is slice:
            return f"slice({', '.join(map(self.argument, (value.start, value.stop, value.step)))})"
        if type(value) is Graph:
            return self._body(value)
        return literal(value) or self._object(value)

    def _body(self, graph: Graph) -> str:
        for index, known in enumerate(self.bodies):
            if known is graph:
                return f"&body{index}"
        self.bodies.append(graph)
        return f"&body{len(self.bodies) - 1}"

    def _object(self, value: object) -> str:
        for index, known in enumerate(self.objects):
            if known is value:
                return f"@{index}"
        self.objects.append(value)
        return f"@{len(self.objects) - 1}"


def _identifier(name: str) -> str:
    """A name that the parser reads as one word: ``<lambda>`` is ``lambda``."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "traced"


def literal(value: Any) -> str:
    """The text of a number, string, dtype or None; empty for anything else."""
    kind = type(value)
    if kind is complex:
        return f"complex({value.real!r}, {value.imag!r})"
    if kind in (bool, int, float, str, types.NoneType):
        return repr(value)
    if kind is types.EllipsisType:
        return "..."
    return f"dtype.{value.name}" if kind is DType else ""


def type_text(value: Value) -> str:
    """``float32[2,3]``, with ``@device`` unless that is the CPU, or ``weak float``."""
    return f"weak {value.weak.__name__}" if value.weak is not None else spec_text(value.spec)


def spec_text(spec: TensorSpec) -> str:
    """The text of a spec."""
    return str(spec) + ("" if spec.device == "cpu" else f"@{spec.device}")

"""Print a graph as text, from which :mod:`.parser` builds the same graph again.

Each node is one line, and values are numbered in the order in which they are printed::

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
    """Format a graph as text.

    Args:
        graph: the graph.
        name: the function's name, which the first line shows.

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
    return "\n".join(_format_all(Printer(graph), name))


def objects_of(graph: Graph) -> list[object]:
    """Return the objects that ``@0``, ``@1``, ... refer to in the graph's text; the captured tensors come first."""
    printer = Printer(graph)
    _format_all(printer, "")
    return printer.objects


def _format_all(printer: Printer, name: str) -> list[str]:
    """Format a graph and, recursively, the bodies of its loops and branches."""
    lines = printer.format_graph(name)
    for number, body in enumerate(printer.bodies):  # formatting a body may append bodies
        lines += Printer(body, printer).format_graph(f"body{number}")
    return lines


class Printer:
    """Formats one graph as lines of text.

    Args:
        graph: the graph.
        parent: the printer of the graph whose body this one is; they share ``objects`` and ``bodies``.

    Attributes:
        objects: the objects without a literal, in the order of their numbers.
        bodies: the bodies of loops and branches, in the order of their numbers.
        numbers: the number of each value.
    """

    def __init__(self, graph: Graph, parent: Printer | None = None):
        self.graph = graph
        self.objects: list[object] = list(graph.constants) if parent is None else parent.objects
        self.bodies: list[Graph] = [] if parent is None else parent.bodies
        self.numbers: dict[Value, int] = {}
        for value in graph.parameters:
            self.format_value(value)

    def format_value(self, value: Value) -> str:
        """Return ``%n`` for a value, which gets the next number at its first use."""
        return f"%{self.numbers.setdefault(value, len(self.numbers))}"

    def format_graph(self, name: str) -> list[str]:
        """Format the graph, without its bodies, as lines."""
        return [
            f"graph {_identifier(name)}({', '.join(map(self.format_definition, self.graph.inputs))}) {{",
            *self.format_prologue(),
            *(INDENT + self.format_node(node) for node in self.graph.nodes),
            f"{INDENT}return {', '.join(map(self.format_argument, self.graph.outputs))}".rstrip(),
            "}",
        ]

    def format_prologue(self) -> list[str]:
        """Format the lines of derived scalars and captured tensors."""
        derived = [
            f"{INDENT}derived {self.format_definition(value)} = "
            f"{function}({', '.join(map(self.format_argument, operands))})"
            for value, function, operands in self.graph.derived
        ]
        captured = [
            f"{INDENT}captured {self.format_definition(value)} = {self._refer_to_object(constant)}"
            for value, constant in zip(self.graph.captured, self.graph.constants)
        ]
        return derived + captured

    def format_definition(self, value: Value) -> str:
        """Format the definition of a value: ``%n: type``."""
        return f"{self.format_value(value)}: {format_type(value)}"

    def format_node(self, node: Node) -> str:
        """Format a node as a line."""
        arguments = [self.format_argument(a) for a in node.args] + [
            f"{k}={self.format_argument(v)}" for k, v in node.kwargs.items()
        ]
        results = ", ".join(map(self.format_definition, node.outputs)) or "()"
        return f"{results} = {node.op.name}({', '.join(arguments)})" + (
            f"  # {node.source}" if node.source else ""
        )

    def format_argument(self, value: object) -> str:
        """Format an argument or a result of a node."""
        if isinstance(value, Value):
            return self.format_value(value)
        if type(value) is tuple:
            return f"({', '.join(map(self.format_argument, value))}{',' if len(value) == 1 else ''})"
        if type(value) is slice:
            return f"slice({', '.join(map(self.format_argument, (value.start, value.stop, value.step)))})"
        if type(value) is Graph:
            return self._refer_to_body(value)
        return format_literal(value) or self._refer_to_object(value)

    def _refer_to_body(self, graph: Graph) -> str:
        for index, body in enumerate(self.bodies):
            if body is graph:
                return f"&body{index}"
        self.bodies.append(graph)
        return f"&body{len(self.bodies) - 1}"

    def _refer_to_object(self, value: object) -> str:
        for index, item in enumerate(self.objects):
            if item is value:
                return f"@{index}"
        self.objects.append(value)
        return f"@{len(self.objects) - 1}"


def _identifier(name: str) -> str:
    """Make an identifier of a name: ``<lambda>`` becomes ``lambda``."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "traced"


def format_literal(value: Any) -> str:
    """Format a number, string, dtype, Ellipsis or None as a literal; return "" for other types."""
    kind = type(value)
    if kind is complex:
        return f"complex({value.real!r}, {value.imag!r})"
    if kind in (bool, int, float, str, types.NoneType):
        return repr(value)
    if kind is types.EllipsisType:
        return "..."
    return f"dtype.{value.name}" if kind is DType else ""


def format_type(value: Value) -> str:
    """Format the type of a value: ``float32[2,3]``, ``float32[2,3]@cuda:0`` or ``weak float``."""
    return f"weak {value.weak.__name__}" if value.weak is not None else format_spec(value.spec)


def format_spec(spec: TensorSpec) -> str:
    """Format a spec, with its device unless that is the CPU."""
    return str(spec) + ("" if spec.device == "cpu" else f"@{spec.device}")

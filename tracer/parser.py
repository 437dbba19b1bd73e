"""Parser of the text form of graphs that :mod:`.printer` prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import GraphError
from ..registry.dtypes import as_dtype
from ..registry.lazy_operators import materialize
from ..registry.operator import operators
from ..registry.values import TensorSpec
from .graph import Derived, Graph, Node, Value, scalar_spec

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<value>%\d+)
    | (?P<object>@\d+)
    | (?P<body>&\w+)
    | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<number>-?(?:inf|nan)\b | -?\d+(?:\.\d*)?(?:e[-+]?\d+)?)
    | (?P<dots>\.\.\.)
    | (?P<name>[A-Za-z_][\w.:]*)
    | (?P<mark>[(){},:=@\[\]])
    )""",
    re.VERBOSE,
)
_WEAK: dict[str, type] = {"bool": bool, "int": int, "float": float, "complex": complex}
_CONSTANTS = {"True": True, "False": False, "None": None}


def parse_graph(text: str, objects: Sequence[object] = ()) -> Graph:
    """Parse the text of a graph.

    Args:
        text: the result of :func:`.printer.print_graph`.
        objects: the objects of ``@0``, ``@1``, ...; see :func:`.printer.objects_of`.

    Raises:
        GraphError: the text does not parse, names an unknown operator, value or object.

    >>> from tandem.tracer.parser import parse_graph
    >>> from tandem.tracer.printer import print_graph
    >>> text = '''graph f(%0: float32[2]) {
    ...   %1: float32[2] = td::exp(%0)
    ...   return %1
    ... }'''
    >>> print_graph(parse_graph(text), "f") == text
    True
    """
    sections: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("graph") and any(sections[-1]):
            sections.append([])
        sections[-1].append(line)
    bodies: dict[str, Graph] = {}
    for section in reversed(sections):  # a body comes behind the graph that holds it
        parser = _Parser(objects, bodies)
        graph = parser.parse("\n".join(section))
        bodies[f"&{parser.name}"] = graph
    return graph


class _Line:
    """The tokens of one line, read from the left."""

    def __init__(self, text: str, number: int):
        self.text, self.number = text, number
        self.tokens: list[tuple[str, str]] = []
        self.comment = ""
        self.at = 0
        self._split()

    def _split(self) -> None:
        position = 0
        while self.text[position:].strip():
            if self.text[position:].lstrip().startswith("#"):
                self.comment = self.text[position:].lstrip()[1:].strip()
                return
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self.fault(f"cannot read {self.text[position:].strip()!r}")
            self.tokens.append((match.lastgroup or "", match.group().strip()))
            position = match.end()

    def fault(self, why: str) -> GraphError:
        return GraphError(f"graph text, line {self.number}: {why}\n  {self.text}")

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> tuple[str, str]:
        if self.at >= len(self.tokens) or (wanted and self.tokens[self.at][1] != wanted):
            raise self.fault(f"expected {wanted or 'more'}, found {self.peek() or 'the end of the line'}")
        self.at += 1
        return self.tokens[self.at - 1]

    def listed(self, close: str, item: Callable[[], object]) -> list[Any]:
        """Items up to ``close``, separated by commas; a trailing comma is allowed."""
        result = []
        while self.peek() != close:
            result.append(item())
            if self.peek() != close:
                self.take(",")
        self.take(close)
        return result


class _Parser:
    def __init__(self, objects: Sequence[object], bodies: dict[str, Graph]):
        self.graph = Graph()
        self.objects, self.bodies = objects, bodies
        self.name = ""
        self.values: dict[str, Value] = {}

    def parse(self, text: str) -> Graph:
        lines = [_Line(line, number) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 3 or lines[0].peek() != "graph" or lines[-1].peek() != "}":
            raise GraphError(
                'the text of a graph starts with "graph name(...) {" and ends with "return ..." and "}"'
            )
        self._header(lines[0])
        for line in lines[1:-2]:
            self._statement(line)
        lines[-2].take("return")
        while lines[-2].peek():
            self.graph.outputs.append(self._argument(lines[-2]))
            if lines[-2].peek():
                lines[-2].take(",")
        return self.graph

    def _header(self, line: _Line) -> None:
        line.take("graph")
        if line.peek() != "(":
            self.name = line.take()[1]
        line.take("(")
        for name, spec, weak in line.listed(")", lambda: self._declared(line)):
            self.values[name] = self.graph.add_input(spec, weak)
        line.take("{")

    def _statement(self, line: _Line) -> None:
        if line.peek() == "derived":
            self._derived(line)
        elif line.peek() == "captured":
            self._captured(line)
        else:
            self._node(line)

    def _derived(self, line: _Line) -> None:
        line.take("derived")
        name, spec, weak = self._declared(line)
        line.take("=")
        function = line.take()[1]
        line.take("(")
        operands = tuple(line.listed(")", lambda: self._argument(line)))
        value = self.values[name] = Value(spec, None, len(self.graph.derived), weak)
        self.graph.derived.append(Derived(value, function, operands))

    def _captured(self, line: _Line) -> None:
        line.take("captured")
        name, spec, _ = self._declared(line)
        line.take("=")
        self.values[name] = self.graph.capture(self._argument(line), spec)

    def _node(self, line: _Line) -> None:
        declared = [] if line.peek() == "(" else [self._declared(line)]
        while line.peek() == ",":
            line.take(",")
            declared.append(self._declared(line))
        if not declared:
            line.take("(")
            line.take(")")
        line.take("=")
        name = line.take()[1]
        materialize(name)
        op = operators.get(name)
        if op is None:
            raise line.fault(f"no operator {name} is registered")
        node = Node(op, *self._arguments(line), line.comment)
        node.outputs = tuple(Value(spec, node, index, weak) for index, (_, spec, weak) in enumerate(declared))
        self.values.update({n: value for (n, _, _), value in zip(declared, node.outputs)})
        self.graph.nodes.append(node)

    def _arguments(self, line: _Line) -> tuple[Args, Kwargs]:
        args, kwargs = [], {}

        def one() -> None:
            name = ""
            if line.at + 1 < len(line.tokens) and line.tokens[line.at + 1][1] == "=":
                name = line.take()[1]
                line.take("=")
            value = self._argument(line)
            if name:
                kwargs[name] = value
            else:
                args.append(value)

        line.take("(")
        line.listed(")", one)
        return tuple(args), kwargs

    def _declared(self, line: _Line) -> tuple[str, TensorSpec, type | None]:
        kind, name = line.take()
        if kind != "value" or name in self.values:
            raise line.fault(f"{name} is not a new value")
        line.take(":")
        word = line.take()[1]
        if word == "weak":
            weak = _WEAK.get(line.take()[1])
            if weak is None:
                raise line.fault(f"a weak value is one of {', '.join(_WEAK)}")
            return name, scalar_spec(weak), weak
        line.take("[")
        shape = tuple(line.listed("]", lambda: self._size(line)))
        device = "cpu"
        if line.peek() == "@":
            line.take("@")
            device = line.take()[1]
        return name, TensorSpec(shape, as_dtype(word), device), None

    def _size(self, line: _Line) -> int:
        text = line.take()[1]
        if not text.isdigit():
            raise line.fault(f"expected a size, found {text}")
        return int(text)

    def _argument(self, line: _Line) -> Any:
        kind, text = line.take()
        if kind == "value":
            if text not in self.values:
                raise line.fault(f"{text} is used before it is defined")
            return self.values[text]
        if kind == "object":
            if int(text[1:]) >= len(self.objects):
                raise line.fault(f"{text} has no object: pass it in objects")
            return self.objects[int(text[1:])]
        if kind == "body":
            if text not in self.bodies:
                raise line.fault(f"no graph after this one is named {text}")
            return self.bodies[text]
        if kind == "number":
            return float(text) if text.lstrip("-") in ("inf", "nan") else ast.literal_eval(text)
        if kind == "string":
            return ast.literal_eval(text)
        if kind == "dots":
            return ...
        if text == "(":
            return tuple(line.listed(")", lambda: self._argument(line)))
        return self._word(line, text)

    def _word(self, line: _Line, text: str) -> object:
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text.startswith("dtype."):
            return as_dtype(text.removeprefix("dtype."))
        if text in ("slice", "complex"):
            line.take("(")
            return {"slice": slice, "complex": complex}[text](*line.listed(")", lambda: self._argument(line)))
        raise line.fault(f"cannot read {text!r}")

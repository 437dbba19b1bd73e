"""The graph verifier: a table of rules, and errors that print the graph around a violation.

Source: tinygrad's ``uop/spec.py`` (legality as a table) and the checker in JAX's ``core.py`` (printing the context
of an error).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from ..errors import GraphError, TandemError
from ..named_tuple import NamedTuple
from ..registry.dtypes import DType
from ..registry.operator import operators
from ..registry.schemas.schema import Type
from ..registry.values import SCALARS, TensorBase, TensorSpec
from .graph import SCALAR_DTYPES, Graph, Node, Value, scalar_spec, values_in
from .infer import specs_of
from .lifting import infer_node
from .printer import INDENT, Printer, format_spec

SURROUNDING = 4  # lines printed before and after a violation


class Violation(NamedTuple):
    """A violation of a rule, and its node (None: the graph's parameters or outputs)."""

    message: str
    node: Node | None = None


class Rule(NamedTuple):
    """One rule: its description, and a function that yields the violations of it."""

    statement: str
    violations: Callable[[Graph], Iterator[Violation]]


def _check_parameters(graph: Graph) -> Iterator[Violation]:
    for value in graph.parameters:
        if value.node is not None:
            yield Violation("a parameter is the result of a node")
        if value.weak is not None and (
            value.weak not in SCALAR_DTYPES or value.spec != scalar_spec(value.weak)
        ):
            yield Violation(
                f"a weak parameter has type {value.weak} and spec {value.spec}, which do not match"
            )
    if len(graph.captured) != len(graph.constants):
        yield Violation(f"there are {len(graph.captured)} captured values for {len(graph.constants)} tensors")


def _check_captured(graph: Graph) -> Iterator[Violation]:
    for value, tensor in zip(graph.captured, graph.constants):
        spec = getattr(tensor, "spec", None)
        if isinstance(tensor, TensorBase) and spec != value.spec:
            yield Violation(f"a captured tensor is {spec}, its value in the graph is {value.spec}")


def _check_derived(graph: Graph) -> Iterator[Violation]:
    known = set(graph.inputs)
    for value, function, operands in graph.derived:
        if not hasattr(operator, function):
            yield Violation(f"no function operator.{function} exists to derive a scalar with")
        if any(v not in known or v.weak is None for v in values_in(operands)):
            yield Violation(f"the derived scalar {function} reads a value that is not an earlier scalar")
        known.add(value)


def _check_defined_before_use(graph: Graph) -> Iterator[Violation]:
    known = set(graph.parameters)
    for node in graph.nodes:
        for value in node.inputs:
            if value not in known:
                yield Violation(f"it reads a value {value.spec} that no line before it defines", node)
        known.update(node.outputs)


def _check_outputs(graph: Graph) -> Iterator[Violation]:
    known = {*graph.parameters, *(value for node in graph.nodes for value in node.outputs)}
    for index, output in enumerate(graph.outputs):
        if isinstance(output, Value) and output not in known:
            yield Violation(f"result {index} is a value {output.spec} that no line defines")


def _check_duplicates(graph: Graph) -> Iterator[Violation]:
    known: set[Value] = set()
    for value in graph.parameters:
        if value in known:
            yield Violation(f"a parameter {value.spec} occurs twice")
        known.add(value)
    seen: set[Node] = set()
    for node in graph.nodes:
        if node in seen:
            yield Violation("the node occurs twice", node)
        seen.add(node)
        if known.intersection(node.outputs):
            yield Violation("it defines a value that is defined already", node)
        known.update(node.outputs)


def _check_back_references(graph: Graph) -> Iterator[Violation]:
    for node in graph.nodes:
        for index, value in enumerate(node.outputs):
            if value.node is not node or value.index != index:
                yield Violation(f"result {index} does not refer back to this node", node)


def _check_registered(graph: Graph) -> Iterator[Violation]:
    for node in graph.nodes:
        if operators.get(node.op.name) is not node.op:
            yield Violation(f"operator {node.op.name} is not registered (any more)", node)


def _check_functional(graph: Graph) -> Iterator[Violation]:
    for node in graph.nodes:
        if node.op.schema.is_mutable:
            yield Violation(f"{node.op.name} writes into its argument; a graph is functional", node)


def _check_arity(graph: Graph) -> Iterator[Violation]:
    for node in graph.nodes:
        positional = node.op.schema.positional
        if len(node.args) != len(positional):
            yield Violation(
                f"{node.op.schema} takes {len(positional)} arguments, it has {len(node.args)}", node
            )
        keywords = {a.name for a in node.op.schema.arguments if a.kwarg_only}
        if set(node.kwargs) != keywords:
            yield Violation(
                f"its keyword arguments are {sorted(node.kwargs)}, the schema's {sorted(keywords)}", node
            )


def _check_types(graph: Graph) -> Iterator[Violation]:
    for node in graph.nodes:
        for argument in node.op.schema.arguments:
            value = _find_argument(node, argument.name)
            if value is not _MISSING and not _has_type(argument.type, value):
                yield Violation(
                    f"argument {argument.name!r} is {value!r}, the schema says {argument.type}", node
                )


def _check_specs(graph: Graph) -> Iterator[Violation]:
    for node in graph.nodes:
        try:
            wanted = specs_of(infer_node(node.op, node.args, node.kwargs))
        except (TandemError, TypeError) as fault:
            yield Violation(f"its shape rule refuses the arguments: {fault}", node)
            continue
        result = tuple(value.spec for value in node.outputs)
        if wanted != result:
            texts = [", ".join(map(format_spec, specs)) for specs in (wanted, result)]
            yield Violation(f"its shape rule gives {texts[0]}; the graph says {texts[1]}", node)


def _check_bodies(graph: Graph) -> Iterator[Violation]:
    for node in graph.nodes:
        for arg in node.args:
            for body in arg if type(arg) is tuple else (arg,):
                if type(body) is Graph:
                    try:
                        verify(body)
                    except GraphError as fault:
                        yield Violation(f"in its body: {fault}", node)


RULES: tuple[Rule, ...] = (
    Rule("parameters are not results of nodes, and scalars have the spec of their type", _check_parameters),
    Rule("a captured tensor is what the graph says", _check_captured),
    Rule("derived scalars follow from earlier scalars by functions of the module operator", _check_derived),
    Rule("a value is defined once", _check_duplicates),
    Rule("a value is defined before it is used", _check_defined_before_use),
    Rule("results of the graph are defined", _check_outputs),
    Rule("a node's results point back to it", _check_back_references),
    Rule("operators are registered", _check_registered),
    Rule("nothing is written in place", _check_functional),
    Rule("arguments are those of the schema", _check_arity),
    Rule("arguments have the schema's types", _check_types),
    Rule("the bodies of loops and branches are well formed", _check_bodies),
    Rule("results have the specs that the operator's shape rule gives", _check_specs),
)

_MISSING: object = object()
_BASES: dict[str, tuple[type, ...]] = {
    "Tensor": (Value, *SCALARS),
    "Scalar": (Value, *SCALARS),
    "int": (int,),
    "SymInt": (int,),
    "float": (Value, int, float),
    "complex": (int, float, complex),
    "bool": (bool,),
    "str": (str,),
    "ScalarType": (DType,),
    "Device": (str,),
}


def _find_argument(node: Node, name: str) -> object:
    if name in node.kwargs:
        return node.kwargs[name]
    names = [argument.name for argument in node.op.schema.positional]
    index = names.index(name) if name in names else len(node.args)
    return node.args[index] if index < len(node.args) else _MISSING


def _has_type(kind: Type, value: object) -> bool:
    if kind.form == "optional":
        return value is None or (kind.element is not None and _has_type(kind.element, value))
    if kind.form == "list":
        element = kind.element
        return isinstance(value, tuple) and element is not None and all(_has_type(element, v) for v in value)
    return isinstance(value, _BASES.get(kind.base, object)) and not isinstance(value, TensorSpec)


def verify(graph: Graph, after: str = "") -> Graph:
    """Check a graph against every rule.

    Args:
        graph: the graph.
        after: what has just made or changed it, for the message.

    Returns:
        The graph.

    Raises:
        GraphError: a rule does not hold; the message says which, and prints the graph around the violation.

    >>> import tandem as td
    >>> from tandem.tracer.verify import verify
    >>> graph = td.jit(lambda x: td.exp(x) + 1).trace(td.asarray([1.0])).ir
    >>> graph.nodes.reverse()
    >>> verify(graph)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    tandem.errors.GraphError: the graph breaks a rule: a value is defined before it is used
    ...
    """
    for rule in RULES:
        for violation in rule.violations(graph):
            where = f" after {after}" if after else ""
            raise GraphError(
                f"the graph{where} breaks a rule: {rule.statement}\n{violation.message}\n"
                f"{_print_surroundings(graph, violation)}"
            )
    return graph


def _print_surroundings(graph: Graph, violation: Violation) -> str:
    """The printed graph around a violation, which is marked."""
    printer = Printer(graph)
    lines = printer.format_graph("traced")
    first = 1 + len(printer.format_prologue())
    index = first + graph.nodes.index(violation.node) if violation.node is not None else None
    if index is None:
        index = len(lines) - 2 if "result" in violation.message else 0
    low, high = max(0, index - SURROUNDING), min(len(lines), index + SURROUNDING + 1)
    marked = [(">>> " if i == index else "    ") + lines[i] for i in range(low, high)]
    return "\n".join([f"    {INDENT}..."] * (low > 0) + marked + [f"    {INDENT}..."] * (high < len(lines)))

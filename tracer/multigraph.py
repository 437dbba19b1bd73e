"""Convert graphs to networkx ``MultiDiGraph``, the result of ``f.trace(x)``, and back.

Values and calls are nodes; edges connect a call with its arguments and results. Value nodes are named as in the printed
graph (``"%3"``), calls by their index (``"#0"``).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import lazy
from ..errors import GraphError
from .graph import Derived, Graph, Node, Value, map_values, values_in
from .printer import Printer, format_spec, print_graph

networkx = lazy.Module("networkx")


class Ref(str):
    """The name of a value node inside a call's arguments."""

    __slots__ = ()


@cache
def make_traced_graph_class() -> Any:
    """The class of :func:`to_networkx`'s results; it exists once networkx is loaded."""

    class TracedGraph(networkx.MultiDiGraph):  # type: ignore[misc, name-defined]
        """A traced function as a networkx graph; prints as text.

        Attributes:
            ir: the :class:`.graph.Graph` that it was made from.
        """

        ir: Graph | None = None

        def __str__(self) -> str:
            return str(super().__str__()) if self.ir is None else print_graph(self.ir, self.name)

        def __repr__(self) -> str:
            return f"<traced graph {self.name!r}: {self.number_of_nodes()} nodes, {self.number_of_edges()} edges>"

    return TracedGraph


def to_networkx(graph: Graph, name: str = "traced") -> Any:
    """A networkx ``MultiDiGraph`` of a graph.

    Value nodes have the attributes ``kind`` (``"input"``, ``"derived"``, ``"captured"`` or ``"result"``), ``spec`` (as
    text), ``shape``, ``dtype``, ``weak`` and ``value``; calls have ``kind="call"``, ``op``, ``args``, ``kwargs`` (with
    :class:`Ref` for values), ``source`` and ``order``. The outputs are ``graph["outputs"]``.

    Args:
        graph: the graph.
        name: the function's name.
    """
    printer = Printer(graph)
    made = make_traced_graph_class()(name=name)
    made.ir = graph
    for kind, values in _list_parameters(graph):
        for index, value in enumerate(values):
            made.add_node(printer.format_value(value), **_node_attributes(value), kind=kind, index=index)
    for order, node in enumerate(graph.nodes):
        _add_call(made, printer, node, order)
    made.graph["outputs"] = map_values(lambda v: Ref(printer.format_value(v)), tuple(graph.outputs))
    made.graph["derived"] = [
        (
            printer.format_value(d.value),
            d.function,
            map_values(lambda v: Ref(printer.format_value(v)), d.operands),
        )
        for d in graph.derived
    ]
    made.graph["constants"] = list(graph.constants)
    return made


def _list_parameters(graph: Graph) -> list[tuple[str, list[Value]]]:
    return [
        ("input", graph.inputs),
        ("derived", [item.value for item in graph.derived]),
        ("captured", graph.captured),
    ]


def _node_attributes(value: Value) -> dict[str, object]:
    spec = value.spec
    return {
        "spec": format_spec(spec),
        "shape": spec.shape,
        "dtype": spec.dtype.name,
        "weak": value.weak,
        "value": value,
    }


def _add_call(made: Any, printer: Printer, node: Node, order: int) -> None:
    call = f"#{order}"
    ref = {value: Ref(printer.format_value(value)) for value in node.inputs}
    kwargs = {name: map_values(ref.__getitem__, value) for name, value in node.kwargs.items()}
    args = map_values(ref.__getitem__, node.args)
    made.add_node(call, kind="call", op=node.op, args=args, kwargs=kwargs, source=node.source, order=order)
    for position, value in enumerate(values_in((node.args, tuple(node.kwargs.values())))):
        made.add_edge(ref[value], call, position=position)
    for position, value in enumerate(node.outputs):
        made.add_node(printer.format_value(value), **_node_attributes(value), kind="result", index=position)
        made.add_edge(call, printer.format_value(value), position=position)


def from_networkx(given: Any) -> Graph:
    """The graph that a networkx graph of :func:`to_networkx`'s form describes, which may have been edited.

    Raises:
        GraphError: a call names a value that is not there, or the graph has a cycle.

    >>> import tandem as td
    >>> from tandem.tracer.multigraph import from_networkx
    >>> from tandem.tracer.printer import print_graph
    >>> traced = td.jit(lambda x: td.exp(x)).trace(td.asarray([1.0]))
    >>> print_graph(from_networkx(traced), traced.name) == str(traced)
    True
    """
    graph, values = Graph(), {}
    attributes = dict(given.nodes(data=True))
    for kind in ("input", "derived", "captured"):
        rows = [(name, a) for name, a in attributes.items() if a.get("kind") == kind]
        for index, (name, value) in enumerate(sorted(rows, key=lambda row: row[1]["index"])):
            values[name] = Value(value["value"].spec, None, index, value["weak"])
    graph.inputs = [values[name] for name, a in attributes.items() if a.get("kind") == "input"]
    for name, function, operands in given.graph["derived"]:
        graph.derived.append(Derived(values[name], function, _resolve_refs(operands, values)))
    for (name, value), constant in zip(attributes.items(), _list_constants(given, attributes)):
        if value.get("kind") == "captured":
            graph.captured.append(values[name])
            graph.constants.append(constant)
    for call in _sort_calls(given):
        value = attributes[call]
        args = _resolve_refs(value["args"], values)
        node = Node(
            value["op"],
            args,
            {k: _resolve_refs(v, values) for k, v in value["kwargs"].items()},
            value["source"],
        )
        results = sorted(given.successors(call), key=lambda name: attributes[name]["index"])
        node.outputs = tuple(Value(attributes[r]["value"].spec, node, i) for i, r in enumerate(results))
        values.update(zip(results, node.outputs))
        graph.nodes.append(node)
    graph.outputs = list(_resolve_refs(given.graph["outputs"], values))
    return graph


def _list_constants(given: Any, attributes: dict[str, Any]) -> list[object]:
    """For each node of the networkx graph its captured tensor, or None."""
    known = given.graph["constants"]
    return [known[a["index"]] if a.get("kind") == "captured" else None for a in attributes.values()]


def _sort_calls(given: Any) -> list[str]:
    """The calls in an order in which they can run, as near as possible to that in which they were traced."""
    attributes = given.nodes
    try:
        order = networkx.lexicographical_topological_sort(
            given, key=lambda n: (attributes[n].get("order", -1), str(n))
        )
        return [name for name in order if attributes[name].get("kind") == "call"]
    except networkx.NetworkXUnfeasible:
        raise GraphError("the graph has a cycle, so there is no order in which its calls can run") from None


def _resolve_refs(tree: object, values: dict[str, Value]) -> Any:
    if isinstance(tree, Ref):
        if tree not in values:
            raise GraphError(f"{tree} is used, and no node of the graph makes it before that")
        return values[tree]
    return tuple(_resolve_refs(item, values) for item in tree) if type(tree) is tuple else tree

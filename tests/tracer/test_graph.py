"""Graphs: printing and parsing are inverse, each rule of the verifier detects its fault, conversion to networkx."""

import networkx
import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import errors
from tandem.jit.api import jit
from tandem.registry import dtypes as dt
from tandem.registry.operator import operators
from tandem.registry.values import TensorSpec
from tandem.tracer.graph import Derived, Graph, Node, Value, compute_derived, scalar_spec
from tandem.tracer.multigraph import from_networkx, to_networkx
from tandem.tracer.parser import parse_graph
from tandem.tracer.printer import objects_of, print_graph
from tandem.tracer.verify import RULES, verify

SPEC = TensorSpec((2, 3), dt.float32)
EXP = td.exp.operator
ADD = td.add.operator


def example():
    w = td.asarray(np.ones(3, np.float32))

    def step(params, x, rate):
        y = td.exp(x @ params["w"] + w) * (rate * 2)
        return {"y": y.sum(axis=(0,), keepdims=True), "rate": rate, "same": x, "none": None, "one": 1.5}

    x = td.asarray(np.ones((2, 3), np.float32))
    return jit(step).trace({"w": td.asarray(np.ones((3, 3), np.float32))}, x, 0.5)


# --- text -------------------------------------------------------------------------------------------------


def test_text_of_an_example():
    lines = str(example()).splitlines()
    assert lines[0] == "graph step(%0: float32[3,3], %1: float32[2,3], %2: weak float) {"
    assert lines[1] == "  derived %3: weak float = mul(%2, 2)"
    assert lines[2] == "  captured %4: float32[3] = @0"
    assert lines[-2].startswith("  return %")
    assert "td::exp(" in str(example())
    assert "test_graph.py:" in str(example())


def test_text_rebuilds_the_graph():
    graph = example().ir
    again = parse_graph(print_graph(graph), objects_of(graph))
    assert print_graph(again) == print_graph(graph)
    assert again.constants[0] is graph.constants[0]
    assert [n.source for n in again.nodes] == [n.source for n in graph.nodes]
    verify(again)


literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=8),
    st.sampled_from(dt.ALL),
    st.just(...),
    st.builds(slice, st.integers() | st.none(), st.integers() | st.none(), st.integers() | st.none()),
)
shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple)
specs = st.builds(TensorSpec, shapes, st.sampled_from(dt.ALL), st.sampled_from(["cpu", "meta", "cuda:1"]))
weak_types = st.sampled_from([bool, int, float, complex])


@st.composite
def graphs(draw):
    """Any graph, well typed or not: the text holds what the graph holds."""
    graph = Graph()
    for spec in draw(st.lists(specs, max_size=3)):
        graph.add_input(spec)
    for weak in draw(st.lists(weak_types, max_size=3)):
        graph.add_input(scalar_spec(weak), weak)
    for function in draw(st.lists(st.sampled_from(["add", "and_", "truediv"]), max_size=2)):
        operands = tuple(draw(st.lists(st.sampled_from([*graph.inputs, 1.5]), min_size=1, max_size=2)))
        graph.derived.append(Derived(Value(scalar_spec(float), weak=float), function, operands))
    for spec in draw(st.lists(specs, max_size=2)):
        graph.capture(object(), spec)
    known = graph.parameters
    for _ in range(draw(st.integers(0, 4))):
        leaf = literals | st.sampled_from(known) if known else literals
        arguments = st.recursive(leaf, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
        kwargs = draw(st.dictionaries(st.sampled_from(["axis", "keepdims", "dtype"]), arguments, max_size=2))
        source = draw(st.sampled_from(["", "a.py:3", "/x y/é#.py:10"]))
        made = draw(st.lists(specs, max_size=2))
        op = draw(st.sampled_from([EXP, ADD]))
        node = graph.add_node(op, tuple(draw(st.lists(arguments, max_size=3))), kwargs, tuple(made), source)
        known = [*known, *node.outputs]
    graph.outputs = draw(st.lists(st.sampled_from(known) | literals if known else literals, max_size=3))
    return graph


def equal(one, two, pairs):
    """Whether two arguments are the same, Values by what they are paired with."""
    if isinstance(one, Value):
        return pairs.setdefault(one, two) is two
    if isinstance(one, tuple) and not isinstance(one, TensorSpec):
        return (
            type(two) is tuple and len(one) == len(two) and all(equal(a, b, pairs) for a, b in zip(one, two))
        )
    return one is two or (type(one) is type(two) and repr(one) == repr(two))


@settings(max_examples=200)
@given(graphs())
def test_any_graph_survives_its_text(graph):
    again = parse_graph(print_graph(graph, "f"), objects_of(graph))
    pairs = {}
    for a, b in zip(graph.parameters, again.parameters, strict=True):
        assert (a.spec, a.weak) == (b.spec, b.weak)
        pairs[a] = b
    assert again.constants == graph.constants
    for a, b in zip(graph.derived, again.derived, strict=True):
        assert a.function == b.function
        assert equal(a.operands, b.operands, pairs)
    for a, b in zip(graph.nodes, again.nodes, strict=True):
        assert (a.op, a.source, list(a.kwargs)) == (b.op, b.source, list(b.kwargs))
        assert equal(a.args, b.args, pairs)
        assert equal(tuple(a.kwargs.values()), tuple(b.kwargs.values()), pairs)
        assert [v.spec for v in a.outputs] == [v.spec for v in b.outputs]
        pairs.update(zip(a.outputs, b.outputs))
    assert equal(tuple(graph.outputs), tuple(again.outputs), pairs)
    assert print_graph(again, "f") == print_graph(graph, "f")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "starts with"),
        ("graph f() {\n  return\n", "starts with"),
        ("graph f(%0: float99[2]) {\n  return %0\n}", "float99"),
        ("graph f() {\n  return %0\n}", "before it is defined"),
        ("graph f() {\n  captured %0: float32[] = @0\n  return\n}", "has no object"),
        (
            "graph f(%0: float32[]) {\n  %1: float32[] = td::nothing(%0)\n  return\n}",
            "no operator td::nothing",
        ),
        ("graph f(%0: float32[]) {\n  %0: float32[] = td::exp(%0)\n  return\n}", "not a new value"),
        ("graph f(%0: float32[]) {\n  %1: float32[] = td::exp(%0\n  return\n}", "end of the line"),
        ("graph f(%0: float32[]) {\n  %1: float32[] = td::exp($)\n  return\n}", "cannot read"),
        ("graph f(%0: float32[x]) {\n  return\n}", "expected"),
        ("graph f(%0: weak list) {\n  return\n}", "list"),
    ],
)
def test_text_that_does_not_parse(text, fault):
    with pytest.raises((errors.GraphError, errors.DTypeError), match=fault):
        parse_graph(text)


# --- derived scalars --------------------------------------------------------------------------------------


def test_derive():
    graph = Graph()
    a = graph.add_input(scalar_spec(int), int)
    b = graph.add_derived("add", (a, 1), int)
    c = graph.add_derived("truediv", (1.0, b), float)
    assert graph.add_derived("add", (a, 1), int) is b
    assert graph.add_derived("add", (a, True), int) is not b
    assert compute_derived(graph, [3])[:2] == [4, 0.25]
    assert c in graph.parameters


# --- verifier ---------------------------------------------------------------------------------------------


def good():
    graph = Graph()
    x, a = graph.add_input(SPEC), graph.add_input(scalar_spec(float), float)
    graph.capture(td.asarray(np.ones((2, 3), np.float32)), SPEC)
    y = graph.add_node(EXP, (x,), {}, (SPEC,), "f.py:1")
    z = graph.add_node(ADD, (y.outputs[0], a), {}, (SPEC,), "f.py:2")
    graph.outputs = [z.outputs[0]]
    return graph


def swap(graph):
    graph.nodes.reverse()


def forget(graph):
    del graph.nodes[1]


def twice(graph):
    graph.nodes.append(graph.nodes[1])


def input_twice(graph):
    graph.inputs.append(graph.inputs[0])


def wrong_spec(graph):
    graph.nodes[1].outputs[0].spec = TensorSpec((3, 3), dt.float32)


def wrong_arity(graph):
    graph.nodes[0].args += (1,)


def wrong_keyword(graph):
    graph.nodes[0].kwargs = {"axis": 1}


def wrong_type(graph):
    graph.nodes[1].args = (graph.nodes[0].outputs[0], "text")


def wrong_weak(graph):
    graph.inputs[1].weak = int


def foreign_result(graph):
    graph.nodes[0].outputs[0].node = graph.nodes[1]


def lost_constant(graph):
    graph.constants.clear()


def wrong_constant(graph):
    graph.constants[0] = td.asarray([1.0])


def in_place(graph):
    graph.nodes[1].op = operators["td::add_.Tensor"]


def unregistered(graph):
    with td.Library("graphtest", "DEF") as library:
        library.define("gone(Tensor x) -> Tensor")
        graph.nodes[0].op = td.ops.graphtest.gone.default


def bad_derived(graph):
    graph.derived.append(Derived(Value(scalar_spec(float), weak=float), "add", (graph.inputs[0], 1)))


def made_parameter(graph):
    graph.inputs[0].node = graph.nodes[0]


def refused(graph):
    graph.nodes[1].args = (graph.nodes[0].outputs[0], graph.add_input(TensorSpec((5,), dt.float32)))


def bad_body(graph):
    x = td.asarray([1.0])
    other = jit(lambda x: td.scan(lambda c, _: (td.exp(c), None), x, None, 3)[0]).trace(x).ir
    other.nodes[0].args[0].nodes.clear()
    graph.inputs, graph.nodes, graph.outputs = other.inputs, other.nodes, other.outputs
    graph.derived, graph.captured, graph.constants = [], [], []


FAULTS = {
    bad_body: "bodies of loops",
    swap: "before it is used",
    forget: "results of the graph",
    twice: "twice",
    input_twice: "defined once",
    wrong_spec: r"gives float32\[2,3\]; the graph says float32\[3,3\]",
    wrong_arity: "arguments are those of the schema",
    wrong_keyword: "keyword",
    wrong_type: "schema's types",
    wrong_weak: "weak parameter",
    foreign_result: "point back",
    lost_constant: "captured values for 0",
    wrong_constant: "captured tensor",
    in_place: "in place",
    unregistered: "registered",
    bad_derived: "derived scalar",
    made_parameter: "not results of nodes|result of a node",
    refused: "refuses",
}


@pytest.mark.parametrize("spoil", FAULTS, ids=lambda f: f.__name__)
def test_verifier_catches(spoil):
    graph = good()
    assert verify(graph) is graph
    spoil(graph)
    with pytest.raises(errors.GraphError, match=FAULTS[spoil]) as caught:
        verify(graph, after="a test")
    assert ">>> " in str(caught.value)
    assert "after a test" in str(caught.value)


def test_every_rule_has_a_fault_that_breaks_it():
    broken = set()
    for spoil in FAULTS:
        graph = good()
        spoil(graph)
        broken.add(next(rule.statement for rule in RULES if any(rule.violations(graph))))
    assert broken == {rule.statement for rule in RULES}


def test_mark_is_at_the_fault():
    graph = (
        jit(lambda x: td.exp(td.exp(td.exp(td.exp(td.exp(td.exp(td.exp(x)))))))).trace(td.asarray([1.0])).ir
    )
    graph.nodes[5].args = ()
    with pytest.raises(errors.GraphError) as caught:
        verify(graph)
    marked = [line for line in str(caught.value).splitlines() if line.startswith(">>>")]
    assert marked[0].split("  #")[0] == ">>>   %6: float32[1] = td::exp()"


# --- networkx ---------------------------------------------------------------------------------------------


def test_trace_is_a_networkx_graph():
    traced = example()
    assert isinstance(traced, networkx.MultiDiGraph)
    assert networkx.is_directed_acyclic_graph(traced)
    kinds = set(networkx.get_node_attributes(traced, "kind").values())
    assert kinds == {"input", "derived", "captured", "call", "result"}
    assert traced.nodes["%1"]["shape"] == (2, 3)
    assert traced.nodes["#0"]["source"].startswith(__file__)
    assert traced.subgraph(["%0", "#0"]).number_of_nodes() == 2
    assert "step" in repr(traced)


def test_networkx_and_back():
    traced = example()
    assert print_graph(from_networkx(traced), "step") == str(traced)
    verify(from_networkx(traced))


def test_an_argument_used_twice_has_two_edges():
    traced = jit(lambda x: x * x).trace(td.asarray([1.0]))
    assert traced.number_of_edges("%0", "#0") == 2


def test_edited_networkx_graph():
    graph = jit(lambda x: (td.exp(x), td.sin(x))).trace(td.asarray([1.0])).ir
    edited = to_networkx(graph)
    edited.remove_nodes_from(["#1", "%2"])
    edited.graph["outputs"] = edited.graph["outputs"][:1]
    assert [node.op.schema.name for node in from_networkx(edited).nodes] == ["exp"]


def test_networkx_graph_with_a_cycle():
    edited = to_networkx(jit(lambda x: td.exp(td.exp(x))).trace(td.asarray([1.0])).ir)
    edited.add_edge("%2", "#0")
    with pytest.raises(errors.GraphError, match="cycle"):
        from_networkx(edited)


def test_networkx_graph_with_a_missing_value():
    edited = to_networkx(jit(lambda x: td.exp(td.exp(x))).trace(td.asarray([1.0])).ir)
    edited.remove_node("%1")
    with pytest.raises(errors.GraphError, match="%1"):
        from_networkx(edited)


def test_node_and_value_print():
    node = Node(EXP, (), {})
    assert "td::exp" in repr(node)
    assert "float32[2,3]" in repr(Value(SPEC))

"""Each graph pass performs its rewrite and keeps results bit for bit."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from lowering_harness import given as parameters
from lowering_harness import graph_of
from random_programs import COMMON, inputs, programs
from tandem import config
from tandem.lowering.interpreter import interpret
from tandem.lowering.layout import Layout, contiguous, map_axes
from tandem.lowering.passes import pipeline
from tandem.operators.declare.declaration import Declaration
from tandem.operators.declare.shape_rules import spec_of
from tandem.tracer.verify import verify

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def names(graph):
    return [node.op.schema.name for node in graph.nodes]


def values(graph, args):
    added = [t._array for t in graph.constants]
    return interpret(graph, [*parameters(graph, args)[: len(graph.parameters) - len(added)], *added])


def optimized(function, *args):
    with config.override(verify=True):
        return pipeline.optimize(graph_of(function, *args))


@pytest.mark.parametrize("step", pipeline.PASSES, ids=lambda step: step.__name__)
@settings(max_examples=15, **COMMON)
@given(program=programs(25), arrays=inputs())
def test_each_pass_keeps_every_bit(step, program, arrays):
    with np.errstate(all="ignore"):
        before = graph_of(program, *arrays)
        after = verify(step(before), step.__name__)
        for one, two in zip(values(before, arrays), values(after, arrays), strict=True):
            assert one.tobytes() == two.tobytes() and one.dtype == two.dtype


def test_dead_code_goes_and_the_graph_before_stays():
    def f(x):
        td.exp(x)
        return x + 1

    graph = graph_of(f, X)
    assert names(pipeline.remove_dead_code(graph)) == ["add"]
    assert names(graph) == ["exp", "add"]


def test_the_same_call_is_made_once():
    graph = graph_of(lambda x: td.exp(x) + td.exp(x), X)
    assert names(pipeline.merge_common_subexpressions(graph)) == ["exp", "add"]


def test_zeros_of_different_signs_are_different_arguments():
    graph = graph_of(lambda x: (x * 0.0, x * -0.0, x * 0), X)
    assert names(pipeline.merge_common_subexpressions(graph)) == ["mul", "mul", "mul"]


def test_small_constants_are_folded_into_captured_tensors():
    found = optimized(lambda x: x + td.arange(4) * 2, X)
    assert names(found) == ["add"] and len(found.captured) == 1


def test_captured_tensors_are_never_folded():
    captured = td.asarray([1.0, 2.0, 3.0, 4.0])
    assert names(optimized(lambda x: x + captured * 2, X)) == ["mul", "add"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: td.exp(x) * 1,
        lambda x: 1.0 * td.exp(x),
        lambda x: td.exp(x) - 0.0,
        lambda x: td.exp(x) + -0.0,
        lambda x: td.exp(x) / 1,
        lambda x: td.neg(td.neg(td.exp(x))),
        lambda x: td.permute(td.permute(td.exp(x), (1, 0)), (1, 0)),
        lambda x: td.exp(x).reshape((12,)).reshape((2, 6)).reshape((3, 4)),
        lambda x: td.astype(td.exp(x), td.float32),
        lambda x: td.flip(td.flip(td.exp(x), 0), 0),
    ],
)
def test_what_changes_nothing_goes(function):
    assert names(optimized(function, X)) == ["exp"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: td.exp(x) + 0.0,  # -0.0 + 0.0 is 0.0
        lambda x: td.exp(x) - -0.0,
        lambda x: td.exp(x) * 1 * td.asarray(1.0, dtype=td.float64),
        lambda x: td.astype(td.exp(x), td.float64),
        lambda x: td.permute(td.exp(x), (1, 0)).reshape((3, 4)),
    ],
)
def test_what_changes_something_stays(function):
    assert len(optimized(function, X).nodes) >= 2


def test_passes_add_no_memory_sharing_of_results():
    graph = optimized(lambda x: (x * 1, td.exp(x), td.exp(x), x), X)
    results = values(graph, [X])
    assert not np.shares_memory(results[0], X) and not np.shares_memory(results[1], results[2])
    assert np.shares_memory(results[3], X)
    for found, wanted in zip(results, (X, np.exp(X), np.exp(X), X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_effects_stay_in_order_and_apart():
    seen = []

    def note(x):
        seen.append(float(x._array.sum()))
        return x * 1

    with td.Library("lowering_effects", "DEF") as library:
        declaration = Declaration(
            "lowering_effects::note(Tensor self) -> Tensor",
            "unary",
            "",
            shape_rule=spec_of,
            effects=frozenset({"callback"}),
        )
        library.define("note(Tensor self) -> Tensor", declaration)
        library.impl("note", note, "CPU")
        op = td.ops.lowering_effects.note

        def f(x):
            op(x)
            op(x)
            return x + 1

        graph = optimized(f, X)
        assert names(graph) == ["note", "note", "add"]
        values(graph, [X])
    assert len(seen) == 2


# -- loop-invariant code motion ----------------------------------------------------------------------------------------
def add_inverses(loop):
    """A function whose loop adds an invariant that raises for a singular matrix."""
    zero = td.zeros((), dtype="float64")

    def scanned(a, count):
        xs = td.zeros(count, dtype="float64")
        return td.scan(lambda c, x: (c + td.linalg.inv(a).sum() + x, None), zero, xs)[0]

    def counted(a, count):
        return td.fori_loop(0, count, lambda i, c: c + td.linalg.inv(a).sum(), zero)

    def conditional(a, count):
        state = (td.asarray(0), zero)
        step = lambda s: (s[0] + 1, s[1] + td.linalg.inv(a).sum())  # noqa: E731
        return td.while_loop(lambda s: s[0] < count, step, state)[1]

    return {"scan": scanned, "fori_loop": counted, "while_loop": conditional}[loop]


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop"])
def test_invariants_of_loops_without_steps_raise_nothing(loop):
    function, singular = add_inverses(loop), td.zeros((2, 2), dtype="float64")
    for call in (function, td.jit(function, static_argnames="count")):
        assert call(singular, count=0).item() == 0
        assert call(td.eye(2, dtype="float64"), count=3).item() == 6
        with pytest.raises(td.errors.LinearAlgebraError):
            call(singular, count=1)


# -- layouts -----------------------------------------------------------------------------------------------------------
def test_axes_of_a_view():
    base = contiguous((2, 3, 4))
    assert map_axes(Layout((4, 2, 3), (1, 12, 4)), base) == (2, 0, 1)
    assert map_axes(Layout((2, 1, 3, 4), (12, 7, 4, 1)), base) == (0, None, 1, 2)
    assert map_axes(Layout((5, 2, 3, 4), (0, 12, 4, 1)), base) == (None, 0, 1, 2)
    assert map_axes(Layout((3, 4), (4, 1)), base) is None  # one of the planes
    assert map_axes(Layout((2, 3, 2), (12, 4, 1)), base) is None
    assert map_axes(Layout((2, 12), (12, 1)), base) is None
    assert map_axes(Layout((2, 3, 4), (12, 4, -1), 3), base) is None


def test_results_that_all_branches_leave_unchanged_are_the_operand():
    def f(x, k):
        kept, total = td.cond(k > 0, lambda x, t: (x, t + x[k]), lambda x, t: (x, t - 1), x, td.zeros(()))
        return kept * 2, total

    graph = optimized(f, X[0], np.int64(2))
    (branch,) = (node for node in graph.nodes if node.op.schema.name == "switch")
    assert [output.shape for output in branch.outputs] == [()]
    for k in (2, 0):
        for got, want in zip(td.jit(f)(td.asarray(X[0]), k), f(td.asarray(X[0]), k), strict=True):
            assert got.tolist() == want.tolist()


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
def test_nested_branches_keep_a_carry_in_place():
    """Only one of three ways writes an element; the others return the array as it is, through two branches."""

    def step(i, carry):
        stack, top = carry

        def pop(stack, top):
            return td.cond(top > 0, lambda s, t: (s, t - 1), lambda s, t: (s, t), stack, top)

        return td.cond(i % 3 > 0, lambda s, t: (s.at[t].set(i), t + 1), pop, stack, top)

    def f(x):
        return td.fori_loop(0, 30, step, (x, td.asarray(0)))

    x = td.zeros((400,), dtype=td.int64)
    (loop,) = (s for s in td.jit(f).lower(x)._lowered.steps if hasattr(s, "bodies"))
    assert 0 in loop.in_place and not loop.doubles.get(0)
    for got, want in zip(td.jit(f)(x), f(x), strict=True):
        assert got.tolist() == want.tolist()

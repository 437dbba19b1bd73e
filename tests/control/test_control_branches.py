"""Conditions, associative scans, errors of control flow, its graphs, and random programs."""

import functools
import gc
import signal
import weakref

import numpy as np
import pytest
import tandem as td
from control_harness import assert_close, check, draw
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import config, errors
from tandem.tracer.parser import parse_graph
from tandem.tracer.printer import objects_of, print_graph
from tandem.tracer.verify import verify


# -- cond, switch ------------------------------------------------------------------------------------------------------
def test_cond_runs_only_what_is_taken():
    seen = []
    with td.Library("loopdoc", "DEF") as library:
        library.define("see(Tensor x) -> Tensor")
        library.impl("see", lambda x: (seen.append(x.item()), td.asarray(x.numpy() * 2))[1], "CPU")
        library.impl("see", lambda x: td.empty_like(x), "Meta")
        f = td.jit(lambda x: td.cond(x > 0, td.ops.loopdoc.see, lambda x: x - 1, x))
        assert f(td.asarray(3.0)).item() == 6.0 and f(td.asarray(-3.0)).item() == -4.0
    assert seen == [3.0]


def test_cond():
    def f(p, x):
        return td.cond(p, lambda x: (x["a"] * 2, 1.0), lambda x: (x["b"], x["a"].sum()), x)

    x = {"a": draw(3), "b": draw(3)}
    eager = [f(p, x) for p in (True, False)]
    compiled = td.jit(f)
    for p, wanted in zip((True, False), eager):
        assert_close(wanted[0], compiled(td.asarray(p), x)[0])
        assert_close(wanted[0], compiled(p, x)[0])
        assert float(wanted[1]) == pytest.approx(compiled(td.asarray(p), x)[1].item())


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_switch(index, dtype):
    if dtype == "uint8" and index < 0:
        return
    x = draw(3)
    branches = [td.sin, lambda x: x, lambda x: td.ones(3, dtype=td.float64)]
    check(lambda i, x: td.switch(i, branches, x), td.asarray(index).astype(getattr(td, dtype)), x)
    assert_close(td.jit(lambda i, x: td.switch(i, branches, x))(index, x), td.switch(index, branches, x))


# -- associative_scan --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("length", range(10))
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_associative_scan(length, reverse, axis):
    shape = [2, 2]
    shape[axis] = length
    x = draw(*shape)
    found = check(lambda x: td.associative_scan(td.add, x, reverse=reverse, axis=axis), x)
    array = np.flip(x.numpy(), axis) if reverse else x.numpy()
    wanted = np.cumsum(array, axis)
    np.testing.assert_allclose(found.numpy(), np.flip(wanted, axis) if reverse else wanted)


def test_associative_scan_of_matrices():
    m = draw(6, 2, 2)
    found = td.associative_scan(lambda a, b: a @ b, m).numpy()
    wanted = m.numpy()[0]
    for at in range(1, 6):
        wanted = wanted @ m.numpy()[at]
        np.testing.assert_allclose(found[at], wanted)


# -- errors ------------------------------------------------------------------------------------------------------------
X = td.ones((3, 2))
BAD = {
    "carry of another dtype": (
        lambda x: td.scan(lambda c, x: ({"h": c["h"].astype(td.float64)}, x), {"h": x[0]}, x),
        errors.ArgumentError,
        r"at \['h'\]: .*float32.*float64",
    ),
    "carry of another shape": (
        lambda x: td.scan(lambda c, x: ([c[0], c[1][None]], x), [x[0], x[0]], x),
        errors.ArgumentError,
        r"at \[1\]",
    ),
    "carry of another structure": (
        lambda x: td.scan(lambda c, x: ((c["a"],), x), {"a": x[0]}, x),
        errors.ArgumentError,
        "structure at the root: dict and tuple",
    ),
    "no pair": (lambda x: td.scan(lambda c, x: c, x[0], x), errors.ArgumentError, "pair"),
    "lengths": (lambda x: td.scan(lambda c, x: (c, x), 0, (x, x[:2])), errors.ShapeError, "differ: 3 of xs"),
    "no length": (lambda x: td.scan(lambda c, x: (c, x), x, None), errors.ValueArgumentError, "length"),
    "no axis": (lambda x: td.scan(lambda c, x: (c, x), x, 1.0), errors.ShapeError, "no axis"),
    "no function": (lambda x: td.scan(1, x, x), errors.ArgumentError, "function"),
    "while structure": (
        lambda x: td.while_loop(lambda v: v.sum() < 9, lambda v: (v, v), x),
        errors.ArgumentError,
        "structure",
    ),
    "condition": (
        lambda x: td.while_loop(lambda v: v > 0, lambda v: v, x),
        errors.ArgumentError,
        "condition",
    ),
    "branches": (
        lambda x: td.cond(x.sum() > 0, lambda x: {"a": x}, lambda x: {"a": x[0]}, x),
        errors.ArgumentError,
        r"at \['a'\]",
    ),
    "predicate": (lambda x: td.cond(x > 0, td.sin, td.cos, x), errors.ShapeError, "pred"),
    "index": (lambda x: td.switch(x[0, 0], [td.sin, td.cos], x), errors.DTypeError, "integer"),
    "branches that are none": (lambda x: td.switch(0, 5, x), errors.ArgumentError, "list of functions"),
    "items that shrink": (
        lambda x: td.associative_scan(lambda a, b: (a + b)[:0], x),
        errors.ShapeError,
        r"\(0, 2\) for items of shape",
    ),
    "items that are summed": (
        lambda x: td.associative_scan(lambda a, b: (a + b).sum(), x),
        errors.ShapeError,
        "keep the shape",
    ),
    "no branches": (lambda x: td.switch(0, [], x), errors.ArgumentError, "no branches"),
    "bounds": (lambda x: td.fori_loop(0, x[0, 0], lambda i, v: v, x), errors.DTypeError, "upper"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("compiled", [False, True])
def test_errors(name, compiled):
    function, kind, message = BAD[name]
    if name == "branches" and not compiled:
        return  # eagerly only the branch taken is known
    with pytest.raises(kind, match=message):
        (td.jit(function) if compiled else function)(X)


def test_bodies_may_write_into_the_carry_but_not_into_items():
    """In-place operators rebind the carry: neither the argument of the loop nor the item of a step changes."""

    def step(c, x):
        c += x
        c[0] = 0.0
        return c, c.sum()

    def loops(x):
        total, sums = td.scan(step, x[0], x)
        twice = td.fori_loop(0, 2, lambda _, c: c.mul_(2.0), x)
        small = td.while_loop(lambda c: c.sum() < 100.0, lambda c: c.add_(1.0), x)
        return total, sums, twice, small, x

    def write_item(c, x):
        x += 1.0
        return c, x

    want = loops(td.asarray(X.numpy()))
    assert np.array_equal(want[-1].numpy(), X.numpy())
    for one, other in zip(td.jit(loops)(X), want, strict=True):
        assert np.array_equal(one.numpy(), other.numpy())
    with pytest.raises(errors.UnsupportedError, match="writes into an argument of scan"):
        td.jit(lambda x: td.scan(write_item, x[0], x)[0])(X)


@pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_written_carries_share_no_memory_with_other_values(way):
    """Results of earlier steps, two carries that a body returns as one, and captured tensors keep their elements."""

    def sums(c, x):
        c += x
        return c, c

    def pair(_, carry):
        a, b = carry
        a += 1.0
        b *= 2.0
        return a, a

    kept = td.zeros(2)

    def swap(_, c):
        c += 1.0
        return kept

    def double(x):
        return td.fori_loop(0, 3, lambda _, c: c.mul_(2.0), x).sum()

    assert way(lambda: td.scan(sums, td.zeros(1), td.ones((3, 1)))[1])().tolist() == [[1.0], [2.0], [3.0]]
    assert way(lambda x: td.fori_loop(0, 3, pair, (x, x * 2.0))[0])(td.zeros(2)).tolist() == [3.0, 3.0]
    assert way(lambda c: td.fori_loop(0, 3, swap, c))(td.ones(2)).tolist() == kept.tolist() == [0.0, 0.0]
    assert way(td.grad(double))(td.ones(2)).tolist() == [8.0, 8.0]
    assert way(td.vmap(double))(td.ones((2, 2))).tolist() == [16.0, 16.0]


def test_unchanged_carry_is_the_object_given():
    x = td.ones(3)
    assert td.fori_loop(0, 3, lambda _, c: c, x) is x
    assert td.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x))[1] is x


def test_body_value_escaping_its_body_raises():
    kept = []

    def step(c, x):
        kept.append(c)
        return c + x, None

    td.jit(lambda x: td.scan(step, x[0], x)[0])(X)
    with pytest.raises(errors.LeakedTracerError):
        kept[0] + 1


# -- graphs ------------------------------------------------------------------------------------------------------------
def test_text_of_a_graph_with_bodies():
    def f(x):
        def step(c, x):
            return td.cond(x.sum() > 0, lambda c: c + x, lambda c: c, c), None

        return td.scan(step, x[0], x)[0]

    graph = td.jit(f).trace(X).ir
    text = print_graph(graph, "f")
    assert "control::scan(&body0" in text and "graph body2(" in text
    again = parse_graph(text, objects_of(graph))
    assert print_graph(verify(again), "f") == text


def test_loops_are_compiled():
    lowered = td.jit(lambda x: td.scan(lambda c, x: (td.tanh(c + x), None), x[0], x)[0]).lower(X)
    if config.flags.native:
        assert "loop" in str(lowered.kernels())
        assert "phi i64" in lowered.llvm_ir() and "call_back" not in lowered.llvm_ir()


# -- random programs ---------------------------------------------------------------------------------------------------
STEPS = [
    lambda c, x: (c[1], c[0] + x),
    lambda c, x: (c[0] * 0.5 + x, c[1] - c[0] * 0.25),
    lambda c, x: (td.tanh(c[0] * x), c[1]),
    lambda c, x: (td.where(c[0] > x, c[0], c[1]), c[0]),
    lambda c, x: (c[0] - c[1].mean(), x),
    lambda c, x: td.cond(x.sum() > 0, lambda c: (c[1], c[0]), lambda c: (c[0] * 0.5, c[1]), c),
    lambda c, x: (td.fori_loop(0, 3, lambda i, v: v * 0.5 + x, c[0]), c[1]),
]
RESULTS = [
    lambda c, x: None,
    lambda c, x: c[0],
    lambda c, x: (c[1], x),
    lambda c, x: {"sum": c[0].sum(), "x": x[::-1]},
]


def program(steps, result, reverse, a, b, xs):
    def step(c, x):
        for at in steps:
            c = STEPS[at](c, x)
        return c, RESULTS[result](c, x)

    return td.scan(step, (a, b), xs, reverse=reverse)


PROGRAMS = st.tuples(
    st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=3),
    st.integers(0, len(RESULTS) - 1),
    st.booleans(),
    st.integers(0, 4),
    st.integers(0, 2**16),
)


def arguments(length, seed):
    rng = np.random.default_rng(seed)
    return [td.asarray(rng.standard_normal(shape)) for shape in ((3,), (3,), (length, 3))]


@settings(max_examples=25)
@given(PROGRAMS)
def test_random_programs(drawn):
    steps, result, reverse, length, seed = drawn
    args = arguments(length, seed)
    f = functools.partial(program, steps, result, reverse)
    assert_close(f(*args), td.jit(f)(*args))


@settings(max_examples=15)
@given(PROGRAMS)
def test_gradients_of_random_programs(drawn):
    steps, result, reverse, length, seed = drawn
    args = arguments(length, seed)

    def loss(*args):
        leaves, _ = td.pytree.flatten(program(steps, result, reverse, *args))
        return sum((leaf * leaf).sum() for leaf in leaves)

    gradient = td.grad(loss, (0, 1, 2))
    assert_close(gradient(*args), td.jit(gradient)(*args), rtol=1e-7, atol=1e-7)


def test_effects_in_bodies(capfd):
    @td.jit
    def f(x):
        td.cond(x > 0, lambda: td.debug.print("positive"), lambda: td.debug.print("negative"))
        return td.fori_loop(0, 3, lambda i, v: (td.debug.print("step {}", i), v)[1], x)

    f(td.asarray(1.0))
    assert capfd.readouterr().out.split("\n")[:-1] == ["positive", "step 0", "step 1", "step 2"]


def test_integers_must_fit_in_loop_bodies():
    f = td.jit(lambda x, n: td.scan(lambda c, _: (c + n, None), x, length=2)[0])
    x = td.asarray(np.ones(2, np.int8))
    assert f(x, 3).tolist() == [7, 7]
    with pytest.raises(OverflowError):
        f(x, 300)


def test_loop_bodies_use_changed_kernel():
    with td.Library("loopdoc", "DEF") as library:
        library.define("shift(Tensor x) -> Tensor")
        library.impl("shift", lambda x: td.empty_like(x), "Meta")
        f = td.jit(lambda x: td.fori_loop(0, 2, lambda i, v: td.ops.loopdoc.shift(v), x))
        with library.impl("shift", lambda x: td.asarray(x.numpy() + 1), "CPU"):
            assert f(td.asarray(1.0)).item() == 3.0
        with library.impl("shift", lambda x: td.asarray(x.numpy() + 10), "CPU"):
            assert f(td.asarray(1.0)).item() == 21.0


def test_a_loop_without_end_can_be_interrupted():
    class Enough(Exception):
        pass

    def stop(number, frame):
        raise Enough

    f = td.jit(lambda x: td.while_loop(lambda v: v.sum() < 1e9, td.cos, x))
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(Enough):
            f(td.ones(3))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_call_numbers_as_carries_conditions_and_closures():
    f = td.jit(lambda n, x: td.fori_loop(0, n, lambda i, v: v + x, n))
    assert [f(n, td.asarray(2)).item() for n in (3, 0)] == [9, 0]
    g = td.jit(lambda n, x: td.cond(n > 2, lambda: x * n, lambda: x))
    assert [g(n, td.asarray(2.0)).item() for n in (3, 1)] == [6.0, 2.0]


def test_operands_that_are_views():
    check(lambda x: td.scan(lambda c, row: (c + row.sum(), c), 0.0, (x * 2).T[::-1]), draw(3, 5))


def test_graphs_of_bodies_are_collected():
    f = td.jit(td.grad(lambda x: td.scan(lambda c, _: (td.sin(c), None), x, None, 3)[0]))
    f(td.asarray(1.0))
    graph = weakref.ref(f._specializations[0].graph.nodes[0].args[0])
    assert graph() is not None
    del f
    gc.collect()
    assert graph() is None

"""Compiled control flow: saved residuals, dead-code elimination, exactness, and unsupported cases."""

import numpy as np
import pytest
import tandem as td
from lowering_harness import graph_of, lowered
from tandem import config, errors
from tandem.lowering.loop_bodies import LoopThunk
from tandem.lowering.passes import pipeline
from tandem.tracer.graph import bodies_of

X = td.asarray(np.linspace(-1.0, 1.0, 6).reshape(3, 2))
native = pytest.mark.skipif(not config.flags.native, reason="about machine code")


def control_nodes(function, *args):
    """The loops and branches of the optimised graph."""
    with config.override(verify=True):
        graph = pipeline.optimize(graph_of(function, *args))
    return [node for node in graph.nodes if node.op.schema.namespace == "control"]


def operators(graph):
    return {node.op.schema.name for node in graph.nodes}


# -- what nobody reads -------------------------------------------------------------------------------------------------
def test_unread_results_of_branches():
    def f(x, y):
        one, _ = td.cond(x.sum() > 0, lambda x, y: (x * 2, td.exp(y)), lambda x, y: (x, td.sin(y)), x, y)
        return one

    (node,) = control_nodes(f, X, X + 1)
    assert len(node.outputs) == 1 and len(node.args[2]) == 1
    assert [operators(body) for body in bodies_of(node)] == [set(), {"mul"}]
    np.testing.assert_array_equal(td.jit(f)(X, X).numpy(), f(X, X).numpy())


def test_unread_carries_of_while_loops():
    def f(x, y):
        _, x, _, z = td.while_loop(
            lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2, td.exp(s[2]), s[3]), (0, x, y, y)
        )
        return x + z

    (node,) = control_nodes(f, X, X + 1)
    assert len(node.outputs) == 2  # the counter and x; z never changes
    assert "exp" not in operators(bodies_of(node)[1])
    np.testing.assert_array_equal(td.jit(f)(X, X).numpy(), f(X, X).numpy())


def test_values_needed_elsewhere_are_not_removed():
    def f(x):
        a, *_ = td.while_loop(
            lambda s: s[1].sum() < 50, lambda s: (s[0] + s[2], s[1] + 1, td.cos(s[2])), (x, x, x)
        )
        return a

    (node,) = control_nodes(f, X)
    assert len(node.outputs) == 3
    np.testing.assert_allclose(td.jit(f)(X).numpy(), f(X).numpy(), rtol=1e-12)


def test_unread_results_within_bodies():
    def f(x):
        def step(c, x):
            a, b = td.cond(x.sum() > 0, lambda x: (x * 2, td.exp(x)), lambda x: (x, x), x)
            return c + a, b

        return td.scan(step, x[0], x)[0]

    (node,) = control_nodes(f, X)
    (inner,) = [n for n in bodies_of(node)[0].nodes if n.op.schema.name == "switch"]
    assert len(inner.outputs) == 1
    np.testing.assert_array_equal(td.jit(f)(X).numpy(), f(X).numpy())


def test_effects_stay(capfd):
    def f(x):
        def body(s):
            td.debug.print("{}", s[0])
            return s[0] + 1, td.exp(s[1])

        td.cond(x.sum() < 9, lambda x: td.debug.print("taken") or x, lambda x: x, x)
        return td.while_loop(lambda s: s[0] < 3, body, (0, x))[0]

    assert td.jit(f)(X).item() == 3
    assert capfd.readouterr().out.split() == ["taken", "0", "1", "2"]


# -- counting loops ----------------------------------------------------------------------------------------------------
def test_read_at_loop_counter_is_indexing():
    def f(xs, h):
        return td.fori_loop(0, 3, lambda i, v: v * xs[i] + xs[2 - i] * i, h).sum()

    (node,) = control_nodes(lambda xs, h: td.fori_loop(0, 3, lambda i, v: v * xs[i], h), X, X[0])
    assert [tuple(x.shape) for x in node.args[2]] == [(3, 2)] and not node.args[3]
    for function in (f, td.grad(f, (0, 1))):
        for one, two in zip(td.tree.leaves(td.jit(function)(X, X[0])), td.tree.leaves(function(X, X[0]))):
            np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-12)


@pytest.mark.parametrize("bounds", [(0, 2), (1, 3), (-2, 0), (0, 4)])
def test_counters_with_offset_or_out_of_range(bounds):
    def f(xs):
        return td.fori_loop(*bounds, lambda i, v: v * 2 + xs[i], xs[0])

    if bounds[1] > 3:
        for function in (f, td.jit(f)):
            with pytest.raises(IndexError):
                function(X)
    else:
        np.testing.assert_array_equal(td.jit(f)(X).numpy(), f(X).numpy())


# -- tables ------------------------------------------------------------------------------------------------------------
TABLE = td.asarray(np.random.default_rng(0).standard_normal((7, 2)))
TOKENS = td.asarray([3, 0, 6, 3, -1, 2])


def reading(table, h, tokens):
    return (td.scan(lambda c, t: (td.tanh(c * 0.5 + table[t]), None), h, tokens)[0] ** 2).sum()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 2)])
@pytest.mark.parametrize("tail", [(), (2,), (0, 3)])
def test_rows_that_are_read(dtype, shape, tail):
    x = td.arange(5 * np.prod(tail, dtype=int)).reshape((5, *tail)).astype(td.float32)
    index = td.asarray(np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype))
    index = index - 4 if dtype.startswith("i") else index
    found, wanted = td.jit(lambda x, i: x[i])(x, index), x[index]
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("bad", [7, -8, 1000])
def test_rows_that_do_not_exist(bad):
    tokens = td.asarray([0, bad, 0])
    for function in (lambda t: TABLE[t], lambda t: reading(TABLE, X[0], t)):
        for call in (function, td.jit(function)):
            with pytest.raises(IndexError, match=f"{bad} is out of bounds"):
                call(tokens)


def test_gradient_of_table_is_accumulated_after_loop():
    each = td.vmap(td.grad(reading), in_axes=(None, 0, None))
    for function, h in ((td.grad(reading, (0, 1)), X[0]), (each, X)):
        found, wanted = td.jit(function)(TABLE, h, TOKENS), function(TABLE, h, TOKENS)
        for one, two in zip(td.tree.leaves(found), td.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-12)
    scans = control_nodes(td.grad(reading), TABLE, X[0], TOKENS)
    names = set().union(*(operators(body) for node in scans for body in bodies_of(node)))
    assert "index_put" not in names and "full" not in names
    if config.flags.native:
        assert str(td.jit(td.grad(reading)).lower(TABLE, X[0], TOKENS).kernels()).count("callback: ") == 0


# -- small numbers -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_numbers_are_what_they_are_eagerly(dtype):
    tiny = td.asarray(np.asarray([np.finfo(dtype).tiny, -3 * np.finfo(dtype).tiny], dtype))

    def scanned(x):
        return td.scan(lambda c, x: (c * 0.5 + x * 0.25, c * 0.1), x, td.stack([x, x]))

    def counted(x):
        return td.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * 0.5), (0, x))[1]

    for function in (scanned, counted):
        for one, two in zip(td.tree.leaves(td.jit(function)(tiny)), td.tree.leaves(function(tiny))):
            assert (two != 0).all()
            np.testing.assert_array_equal(one.numpy(), two.numpy())


@native
def test_gradients_flush_denormals_and_restore_mode():
    def loss(w, h):
        return td.scan(lambda c, _: (c * w, None), h, None, length=200)[0].sum()

    w, h = td.asarray([0.5], dtype=td.float32), td.asarray([1.0], dtype=td.float32)
    gradient = td.jit(td.grad(loss, 1))
    assert gradient(w, h).item() == 0.0
    assert "mxcsr" in gradient.lower(w, h).llvm_ir() or "x86" not in gradient.lower(w, h).llvm_ir()
    tiny = np.float32(np.finfo(np.float32).tiny)
    assert tiny * np.float32(0.5) != 0 and td.asarray(tiny).item() * 0.5 != 0


# -- memory ------------------------------------------------------------------------------------------------------------
@native
def test_checkpoint_lowers_memory():
    def loss(step):
        def f(w, h, xs):
            return (td.scan(step(w), h, xs)[0] ** 2).sum()

        return td.jit(td.grad(f))

    def plain(w):
        def step(c, x):
            for _ in range(4):
                c = td.sin(td.exp(-(td.tanh(c @ w + x) ** 2)))
            return c, None

        return step

    args = td.ones((16, 16)) * 0.1, td.zeros((8, 16)), td.ones((64, 8, 16))
    keeps, again = loss(plain), loss(lambda w: td.checkpoint(plain(w)))
    np.testing.assert_allclose(again(*args).numpy(), keeps(*args).numpy(), rtol=1e-5)
    used = [f.lower(*args).compile().memory_analysis()["temp"] for f in (keeps, again)]
    assert used[1] < used[0] / 2


def checkpointed_losses():
    """Losses with ``checkpoint`` inside bodies in several ways, and the same without."""
    policy = td.checkpoint_policies.dots_saveable

    def make(remember):
        def in_scan(w, h, xs):
            inner = remember(lambda c, x: td.sin(td.tanh(c @ w + x)))
            return (td.scan(lambda c, x: (inner(c, x) * c, c.sum()), h, xs)[0] ** 2).sum()

        def nested(w, h, xs):
            @remember
            def row(c, x):
                inner = remember(lambda c: td.exp(-(td.sin(c) ** 2)))
                return td.scan(lambda c, r: (inner(c * r) @ w, c.sum()), c, x)

            return sum(r.sum() for r in td.scan(row, h[0], xs))

        def in_branch(w, h, xs):
            step = lambda c, x: td.cond(x.sum() > 0, remember(lambda c: td.sin(td.exp(c @ w))), td.cos, c)  # noqa: E731
            return (td.scan(lambda c, x: (step(c, x), None), h, xs)[0] ** 2).sum()

        return [in_scan, nested, in_branch]

    keep = lambda f: td.checkpoint(f, policy=policy)  # noqa: E731
    return [(*pair, plain) for *pair, plain in zip(make(td.checkpoint), make(keep), make(lambda f: f))]


@pytest.mark.parametrize("number", range(3))
def test_checkpoint_in_bodies(number):
    random = np.random.default_rng(0)
    args = [td.asarray(random.standard_normal(shape) * 0.5) for shape in ((3, 3), (2, 3), (4, 2, 3))]
    *others, plain = checkpointed_losses()[number]
    square = lambda f: lambda *args: (td.grad(f)(*args) ** 2).sum()  # noqa: E731
    for change in (lambda f: td.grad(f, (0, 1, 2)), lambda f: td.grad(square(f), (0, 1))):
        wanted = td.tree.leaves(change(plain)(*args))
        for other in others:
            for function in (change(other), td.jit(change(other))):
                for one, two in zip(td.tree.leaves(function(*args)), wanted, strict=True):
                    np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-9, atol=1e-12)
    batch = td.vmap(td.grad(others[0]), in_axes=(None, 0, None))
    hs = td.stack([args[1], args[1] * 2])
    wanted = td.vmap(td.grad(plain), in_axes=(None, 0, None))(args[0], hs, args[2])
    np.testing.assert_allclose(td.jit(batch)(args[0], hs, args[2]).numpy(), wanted.numpy(), rtol=1e-9)


# -- what is refused ---------------------------------------------------------------------------------------------------
BAD = {
    "branches of other structures": (
        lambda x: td.cond(x.sum() > 0, lambda x: {"a": [x, x]}, lambda x: {"a": (x, x)}, x),
        errors.ArgumentError,
        r"branches 0 and 1.*\['a'\]",
    ),
    "branches with other keys": (
        lambda x: td.switch((x.sum() > 0).astype(td.int32), [lambda x: {"a": x}, lambda x: {"b": x}], x),
        errors.ArgumentError,
        "branches 0 and 1 differ in structure",
    ),
    "carry of another dtype in a while_loop": (
        lambda x: td.while_loop(
            lambda s: s["n"] < 3, lambda s: {"n": s["n"] * 0.5}, {"n": x.astype(td.int32)[0, 0]}
        ),
        errors.ArgumentError,
        r"at \['n'\]: .*int32.*float32",
    ),
    "carry of another shape in a fori_loop": (
        lambda x: td.fori_loop(0, 3, lambda i, s: (s[0], s[1][None]), (x, x)),
        errors.ArgumentError,
        r"fori_loop: .*at \[1\]",
    ),
    "no steps but another carry": (
        lambda x: td.scan(lambda c, x: ({"h": c["h"][None]}, None), {"h": x[0]}, x[:0]),
        errors.ArgumentError,
        r"at \['h'\]",
    ),
    "unroll": (lambda x: td.scan(lambda c, x: (c, x), 0, x, unroll=-1), ValueError, "unroll"),
    "batch_size": (lambda x: td.map(td.sin, x, batch_size=0), TypeError, "batch_size"),
    "reverse mode of a while_loop": (
        lambda x: td.jit(
            td.grad(lambda x: td.while_loop(lambda v: v.sum() < 9, lambda v: v * 2, x + 2).sum())
        )(x),
        errors.NotDifferentiableError,
        r"td\.scan.*td\.checkpoint",
    ),
    "reverse mode of a fori_loop with traced bounds": (
        lambda x: td.jit(td.grad(lambda x, n: td.fori_loop(0, n, lambda i, v: v * 2, x).sum()))(
            x, td.asarray(3)
        ),
        errors.NotDifferentiableError,
        r"td\.scan.*fixed number of steps.*td\.checkpoint",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        td.jit(function)(X)


STEPS = {
    "the carry": lambda h, x: (td.tanh(h + x),) * 2,
    "another value": lambda h, x: (h * 2 + x, td.tanh(h)),
    "a value before a product": lambda h, x: ((td.tanh(h) * x) @ x, td.tanh(h) * x),
}


@native
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("reverse", [False, True])
def test_stacked_results_are_computed_in_the_stack(name, reverse):
    def f(h, xs):
        return td.scan(STEPS[name], h, xs, reverse=reverse)

    h, xs = X[:2], td.ones((5, 2, 2))
    (loop,) = (step for step in lowered(f, h.numpy(), xs.numpy()).steps if isinstance(step, LoopThunk))
    assert {source.kind for source in loop.bodies[0].sources[1:]} == {"computed"}
    for one, two in zip(td.jit(f)(h, xs), f(h, xs), strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy())


def test_an_unrolled_scan_is_the_same():
    for unroll in (0, 1, 3, True, False):
        assert td.scan(lambda c, x: (c + x, None), 0.0, td.ones(5), unroll=unroll)[0].item() == 5


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_map_in_batches(size, count):
    xs = {"x": td.arange(count * 2.0).reshape((count, 2))}

    def f(xs):
        return td.map(lambda v: (v["x"] @ v["x"], {"y": v["x"] + 1}), xs, batch_size=size)

    wanted = td.tree.leaves(td.map(lambda v: (v["x"] @ v["x"], {"y": v["x"] + 1}), xs))
    for found in (f(xs), td.jit(f)(xs)):
        for one, two in zip(td.tree.leaves(found), wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), two.numpy())


def test_items_within_an_array_are_read_in_place():
    x, table = td.asarray(np.arange(12.0)), td.asarray(np.arange(24.0).reshape(6, 4))

    def program(x, table):
        def step(c, item):
            return c + item * table[2:, 1][1], c

        last, all_of_them = td.scan(step, x[3], x[2:])
        middle = td.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + table[s[0] + 1]), (0, table[5])
        )
        return last, all_of_them, middle, td.cond(x[0] < 1, lambda a: a * 2, lambda a: a, x[5:])

    compiled = td.jit(program)
    for one, two in zip(td.tree.leaves(compiled(x, table)), td.tree.leaves(program(x, table)), strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy())

    total = td.jit(lambda x: td.scan(lambda c, item: (c + item, None), x[0], x[2:])[0])
    if config.flags.native:
        assert "_copy2" not in str(total.lower(x).kernels())

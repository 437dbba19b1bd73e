"""Calls of vjp and linearize that native entries record: the results, values and errors of calls at a level."""

import gc
import sys
import weakref

import numpy as np
import pytest
import tandem as td
from tandem import config, errors
from tandem.eager.layers import recording_scope
from tandem.eager.layers.level_stack import stack
from tandem.eager.tensor.tensor import Tensor

F64 = td.float64
W = {"w": td.asarray(np.linspace(-1, 1, 12).reshape(3, 4)), "b": td.asarray(np.linspace(0, 1, 4))}
X = td.asarray(np.linspace(-2, 2, 15).reshape(5, 3))
V = td.asarray([0.5, -1.5, 2.0], dtype=F64)
double = td.jit(lambda x: td.sin(x) * 2)


@td.custom_vjp
def clipped(x, y):
    return td.clip(x, -1, 1) * y


clipped.defvjp(lambda x, y: (td.clip(x, -1, 1) * y, (x, y)), lambda saved, g: (g * saved[1], g * saved[0]))


class Scaled(td.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        ctx.factor, ctx.parts = y, [y, 2.0]
        return x * y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.factor, (g * x * ctx.parts[1]).sum() + ctx.parts[0] * 0


def network(p, x):
    hidden = td.tanh(x @ p["w"] + p["b"])
    buffer = td.zeros((5, 4), dtype=F64)
    buffer[1:] = hidden[:-1]
    return {"all": td.softmax(buffer * hidden) ** 2, "row": hidden.T[0], "same": p["b"]}


def in_place(x):
    y = x * 2
    y[1:] *= x[:-1]
    y += 1
    return y * x


FUNCTIONS = {
    "network": (network, (W, X)),
    "elementwise": (lambda x: td.exp(-x * x) * td.sqrt(td.abs(x) + 1) / (1 + x * x), (X,)),
    "results": (lambda x: (x.sum(), x, x * 2, x, x.max(axis=0), x.argmax(), 3.0), (X,)),
    "constant": (lambda x: (td.ones(2), V), (X,)),
    "unused": (lambda x, y: x * 2, (X, V)),
    "views": (lambda x: (x[1:, ::2] * x.T[:2, :4].T, x.reshape(-1)[3:7]), (X,)),
    "lists": (lambda x, y: td.concat([td.stack([y, y * y]), x]).std(axis=1), (X, V)),
    "broadcasting": (lambda x, y: x * y + y.sum() - x.mean(axis=1, keepdims=True), (X, V)),
    "in place": (in_place, (V,)),
    "integers": (lambda x, n: x[n] * n, (V, td.asarray([0, 2, 2]))),
    "numbers": (lambda x, y: x**y, (2.0, 3.0)),
    "complex": (
        lambda x: td.abs(x * td.conj(x) + x) + td.real(x * x),
        (td.asarray([1 + 2j, -0.5j, 3.0]),),
    ),
    "jitted": (lambda x: double(x * 2) * x, (X,)),
    "custom rule": (lambda x, y: clipped(x * y, y) * x, (X, V)),
    "function": (lambda x, y: Scaled.apply(x, y.sum()) * x, (X, V)),
    "checkpoint": (lambda x, y: td.checkpoint(lambda a: td.sin(a * y) * a)(x * 2) * x, (X, V)),
    "linear algebra": (lambda x: td.linalg.inv(x.T @ x + td.eye(3, dtype=F64)) @ x.T, (X,)),
    "mask": (lambda x: td.where(x > 0, x * x, td.relu(-x)) + x[x > 0].sum(), (X,)),
    "half": (lambda x: (x * x).astype(td.float32).astype(F64) + x, (X,)),
    "scan": (lambda x: td.scan(lambda c, row: (c * row + row, c.sum()), td.ones(3, dtype=F64), x), (X,)),
}


def bits(tree):
    return [(x.dtype.name, x.shape, np.asarray(x.numpy()).tobytes()) for x in td.tree.leaves(tree)]


def at_a_level(monkeypatch, function):
    with monkeypatch.context() as patch:
        patch.setattr(recording_scope, "is_available", lambda tensors: False)
        return function()


def cotangents_of(value, seed=0):
    rng = np.random.default_rng(seed)
    return td.tree.map(lambda x: td.asarray(rng.normal(size=x.shape)).astype(x.dtype), value)


def run_both(function, args):
    """The results of vjp and linearize, and of several calls of what they return."""
    value, pull = td.vjp(function, *args)
    g = cotangents_of(value)
    again, push = td.linearize(function, *args)
    tangents = [cotangents_of(td.tree.map(td.asarray, arg), 1) for arg in args]
    return [value, pull(g), pull(g), again, push(*tangents), push(*tangents)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bits_of_a_level(monkeypatch, name):
    function, args = FUNCTIONS[name]
    wanted = bits(at_a_level(monkeypatch, lambda: run_both(function, args)))
    with config.override(hot_calls=2, hot_composites=3):
        for _ in range(5):
            results = run_both(function, args)
            assert bits(results) == wanted
    assert not any(x.requires_grad for x in td.tree.leaves(results))
    assert stack.recording is None


UNARY = [td.sin, td.tanh, td.exp, lambda x: x.T, lambda x: x[::-1], lambda x: td.cumulative_sum(x, axis=0)]
BINARY = [td.add, td.multiply, td.subtract, td.matmul, td.minimum, lambda x, y: td.where(x > y, x, y * 2)]


def make_program(rng):
    """A function of two matrices that applies operators to random earlier values, some of them in place."""
    steps = [
        (int(rng.integers(3)), int(rng.integers(6)), *map(int, rng.integers(64, size=2))) for _ in range(9)
    ]

    def program(x, y):
        values = [x, y]
        for kind, op, one, two in steps:
            a, b = values[one % len(values)], values[two % len(values)]
            if kind == 0:
                values.append(UNARY[op](a) * 0.5)
            elif kind == 1:
                values.append(BINARY[op](a, b) * 0.5)
            else:
                c = a * 1
                c[op % 3] = b[0]
                c *= 0.5
                values.append(c)
        return values[-3:]

    return program


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    program = make_program(rng)
    args = [td.asarray(rng.normal(size=(3, 3))) for _ in range(2)]
    wanted = bits(at_a_level(monkeypatch, lambda: run_both(program, args)))
    with config.override(hot_calls=2, hot_composites=3):
        for _ in range(4):
            assert bits(run_both(program, args)) == wanted


def test_values_are_plain_tensors():
    seen = []
    td.vjp(lambda x: seen.append((type(x), stack.recording is not None, list(stack.levels))), X)
    assert seen == [(Tensor, True, [])] and stack.recording is None


@pytest.mark.parametrize("name", ["network", "function", "checkpoint", "jitted", "in place", "complex"])
@pytest.mark.parametrize("make", [td.vjp, td.linearize])
def test_inside_other_transforms(monkeypatch, name, make):
    """What vjp and linearize return is batched, differentiated, traced and flattened."""
    function, args = FUNCTIONS[name]

    def run():
        value, linear = make(function, *args)
        given = (
            [cotangents_of(td.tree.map(td.asarray, x), 1) for x in args]
            if make is td.linearize
            else [cotangents_of(value)]
        )
        batch = td.tree.map(lambda x: td.stack([x, x * 2]), given)
        total = lambda *g: sum(td.abs(leaf).sum() for leaf in td.tree.leaves(linear(*g)))  # noqa: E731
        leaves, treedef = td.tree.flatten(linear)
        return [
            td.vmap(linear)(*batch),
            td.grad(total)(*given),
            td.jit(linear)(*given),
            td.jvp(linear, tuple(given), tuple(given)),
            td.vjp(linear, *given)[1](linear(*given)),
            treedef.unflatten(leaves)(*given),
        ]

    wanted, results = at_a_level(monkeypatch, run), run()
    for one, two in zip(td.tree.leaves(results), td.tree.leaves(wanted), strict=True):
        assert not one.requires_grad
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-13, atol=1e-13)


def test_closures_over_outer_levels():
    def outer(w):
        value, pull = td.vjp(lambda x: (x * x * w).sum(), V)
        return value + (pull(1.0)[0] * w).sum()

    assert td.grad(outer)(td.asarray(2.0, dtype=F64)).item() == pytest.approx(6.5 + 4 * 2 * V.sum().item())
    batch = td.vmap(lambda w: td.linearize(lambda x: x * w, V)[1](V))(td.asarray([1.0, 2.0], dtype=F64))
    assert batch.tolist() == [V.tolist(), (V * 2).tolist()]
    assert td.jit(lambda x: td.vjp(td.sin, x)[1](x)[0])(V).shape == (3,)


def test_leaves_of_the_caller():
    """Results that depend on a leaf of the caller keep their graph; others do not, and its hooks are not called."""
    w = td.asarray([2.0, 3.0, 4.0], dtype=F64, requires_grad=True)
    calls = []
    handle = w.register_hook(lambda g: calls.append(g))
    (one, two), pull = td.vjp(lambda x, y: (x * x * w, td.exp(y)), V, V)
    gx, gy = pull((td.ones(3, dtype=F64), td.ones(3, dtype=F64)))
    assert not calls
    handle.remove()
    assert one.requires_grad and gx.requires_grad and not two.requires_grad and not gy.requires_grad
    (one.sum() + (gx * gx).sum()).backward()
    assert np.allclose(w.grad.numpy(), (V * V + 8 * V * V * w.detach()).numpy())
    first = pull((td.ones(3, dtype=F64), None))[0]
    assert first.tolist() == (2 * V * w.detach()).tolist() and gy.tolist() == td.exp(V).tolist()
    with td.no_grad():
        value, pull = td.vjp(lambda x: (x * w, w), V)
        assert not value[0].requires_grad and value[1] is w
        assert pull((V, None))[0].tolist() == (w.detach() * V).tolist()


def test_results_of_exp_depend_on_leaves_of_the_caller():
    w = td.asarray(0.5, dtype=F64, requires_grad=True)
    pull = td.vjp(lambda x: td.exp(x * w), V)[1]
    pull(td.ones(3, dtype=F64))[0].sum().backward()
    y = V.numpy()
    assert w.grad.item() == pytest.approx((np.exp(y / 2) * (1 + y / 2)).sum())


def test_auxiliary_results():
    captured = td.asarray([3.0, 4.0])
    x = td.asarray([1.0, 2.0])
    value, pull, aux = td.vjp(lambda x: (x * captured, (x, x * 2, captured, "text")), x, has_aux=True)
    assert aux[0] is x and aux[2] is captured and aux[3] == "text"
    assert aux[1].tolist() == [2.0, 4.0] and not aux[1].requires_grad and not value.requires_grad
    assert pull(td.ones(2))[0].tolist() == [3.0, 4.0]


def test_cotangents_that_require_gradients():
    g = td.asarray([1.0, 2.0, 3.0], dtype=F64, requires_grad=True)
    result = td.vjp(lambda x: td.exp(x), V)[1](g)[0]
    result.sum().backward()
    assert g.grad.tolist() == td.exp(V).tolist()


@pytest.mark.parametrize("make", [td.vjp, td.linearize])
def test_what_outlives_the_call_has_ended(make):
    kept = []
    x = td.ones(2)
    result = make(lambda x: (kept.extend([x, x * 2, td.exp(x)]), x * kept[1] * kept[2])[1], x)[1](td.ones(2))
    assert td.tree.leaves(result)[0].tolist() == pytest.approx([6 * np.e] * 2)
    for value in kept:
        with pytest.raises(errors.LeakedTracerError, match="has_aux"):
            value + 1
    with pytest.raises(ZeroDivisionError):
        make(lambda x: (kept.append(x * 3), 1 / 0)[1], x)
    with pytest.raises(errors.LeakedTracerError):
        kept[-1].sum()
    assert stack.recording is None and x.tolist() == [1.0, 1.0] and not x.requires_grad


def test_written_residuals_are_detected():
    value, pull = td.vjp(td.exp, V * 1)
    value += 1
    with pytest.raises(errors.VersionError):
        pull(V)
    x = V * 1
    pull = td.vjp(lambda x: x * x, x)[1]
    x += 1
    with pytest.raises(errors.VersionError):
        pull(V)


@pytest.mark.parametrize(
    "use", [lambda x: x.sum().backward(), lambda x: x.numpy(), lambda x: OUTSIDE.add_(x)]
)
def test_refused_uses(use):
    with pytest.raises(errors.TandemError):
        td.vjp(lambda x: (use(x), x)[1], td.ones(2))
    assert OUTSIDE.tolist() == [0.0, 0.0] and not OUTSIDE.requires_grad


OUTSIDE = td.zeros(2)


def test_operators_without_derivative():
    value, pull = td.vjp(lambda x: td.round(x) + td.bitwise_count(x.astype(td.int32)), V)
    assert pull(V)[0].tolist() == [0.0, 0.0, 0.0] and value.shape == (3,)


def test_the_record_ends_with_the_function():
    held = []

    def function(x):
        y = td.sin(x)
        held.append(weakref.ref(y._array))
        return y * y

    pull = td.vjp(function, V)[1]
    assert held[0]() is not None
    pull(V)
    del pull
    gc.collect()
    assert held[0]() is None


def test_checkpoint_keeps_no_residuals():
    held = []

    def wide(x):
        big = td.sin(x) * td.ones((1000, 3), dtype=F64)
        held.append(weakref.ref(big))
        return (big * big).sum()

    pull = td.vjp(td.checkpoint(wide), V)[1]
    gc.collect()
    assert held[0]() is None
    assert pull(1.0)[0].tolist() == pytest.approx((2000 * td.sin(V) * td.cos(V)).tolist())


@pytest.mark.parametrize("make", [td.vjp, td.linearize])
def test_reference_counts(make):
    x, g = td.ones(4), td.ones(4)
    w = td.asarray([1.0] * 4, requires_grad=True)
    functions = [lambda x: td.exp(x) * x, lambda x: x[:4] * w, lambda x: double(x) + td.softmax(x)]
    watched = [x, g, w, x._array, g._array, *functions]

    def run(count):
        for _ in range(count):
            for function in functions:
                make(function, x)[1](g)

    run(400)  # until all calls are hot
    gc.collect()
    before, objects = [sys.getrefcount(item) for item in watched], len(gc.get_objects())
    run(300)
    gc.collect()
    assert [sys.getrefcount(item) for item in watched] == before
    assert len(gc.get_objects()) < objects + 50

"""Registered batching rules, kernels for the Batched key, and the loop for operators without a rule."""

import threading
import warnings

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.eager.layers.vmap import loop as loops
from tandem.eager.tensor.tensor import wrap

NAMES = iter(range(10_000))


@pytest.fixture
def define():
    """``define(schema, kernel, key)``: an operator that is gone after the test."""
    with td.Library("vmaptest", "FRAGMENT") as lib:

        def make(signature, kernel=None, key="CPU", **options):
            name = f"op{next(NAMES)}"
            lib.define(f"{name}{signature}")
            if kernel is not None:
                lib.impl(name, kernel, key, **options)
            return getattr(td.ops.vmaptest, name).default

        yield make


def through_numpy(function):
    return lambda *args: wrap(
        np.asarray(function(*[a.numpy() if isinstance(a, td.Tensor) else a for a in args]))
    )


X = td.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


# -- the loop ----------------------------------------------------------------------------------------------------------
def test_operator_without_rule_loops_and_warns_once(define):
    op = define(
        "(Tensor x, Tensor y, *, float k=1.0) -> Tensor", lambda x, y, *, k: through_numpy(np.outer)(x, y) * k
    )
    with pytest.warns(UserWarning, match=rf"(?s){op.name}.*no batching rule.*register_vmap"):
        got = td.vmap(op, (0, None))(X, td.asarray([1.0, 10.0]))
    assert got.tolist() == [np.outer(x, [1, 10]).tolist() for x in X.tolist()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = td.vmap(lambda x, y: op(x, y, k=2.0))(X, X)
    assert got.tolist() == [(2 * np.outer(x, x)).tolist() for x in X.tolist()]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_loops_nest_and_keep_structure(define):
    split = define(
        "(Tensor x) -> (Tensor, Tensor[])", lambda x: (x.sum(), [wrap(x.numpy() * 2), wrap(x.numpy() * 3)])
    )
    total, (two, three) = td.vmap(split)(X)
    assert (total.tolist(), two.tolist()) == ([3, 7, 11], (2 * X).tolist())
    total, (two, three) = td.vmap(td.vmap(split))(td.ones((2, 3, 4)))
    assert (total.shape, three.shape) == ((2, 3), (2, 3, 4))
    listed = define(
        "(Tensor[] xs, Tensor? y=None) -> Tensor", lambda xs, y: sum(xs) if y is None else sum(xs) + y
    )
    assert td.vmap(lambda x: listed([x, td.ones(2)]))(X).tolist() == (X + 1).tolist()
    assert td.vmap(lambda x, y: listed([td.ones(2)], y), (None, 0))(X, X).tolist() == (X + 1).tolist()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_loops_are_differentiated_and_traced(define):
    cube = define("(Tensor x) -> Tensor", through_numpy(lambda x: x**3))
    with pytest.raises(errors.NotDifferentiableError, match=cube.name):
        td.vmap(td.grad(lambda x: cube(x).sum()))(X)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_loops_write_into_each_example(define):
    def double_(x, y):
        x.numpy()[...] = x.numpy() * 2 + y.numpy()
        return x

    op = define("(Tensor(a!) x, Tensor y) -> Tensor(a!)", double_)

    def f(x, y):
        z = x.clone()
        assert op(z, y) is z
        return z

    assert td.vmap(f)(X, X).tolist() == (X * 3).tolist()
    outside = td.zeros(2)
    with pytest.raises(errors.UnsupportedError, match=r"was not made inside.*\.at\["):
        td.vmap(lambda y: op(outside, y))(X)
    assert outside.tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_loop_cannot_do(define):
    ragged = define("(Tensor x) -> Tensor", lambda x: wrap(x.numpy()[x.numpy() > 2]))
    with pytest.raises(errors.UnsupportedError, match="shape of its result differs between examples"):
        td.vmap(ragged)(X)
    parts = define("(Tensor x) -> Tensor[]", lambda x: [x] * int(x.numpy()[0]))
    with pytest.raises(errors.UnsupportedError, match="how many results"):
        td.vmap(parts)(X)
    count = define("(Tensor x) -> int", lambda x: 3)
    with pytest.raises(errors.UnsupportedError, match="not a tensor"):
        td.vmap(count)(X)
    view = define("(Tensor(a) x) -> Tensor(a)", lambda x: x)
    with pytest.raises(errors.UnsupportedError, match=r"returns views.*register_vmap"):
        td.vmap(view)(X)
    with pytest.raises(errors.UnsupportedError, match="empty batch"):
        td.vmap(ragged)(td.ones((0, 2)))


# -- rules -------------------------------------------------------------------------------------------------------------
def test_rules_of_operators_from_outside(define):
    seen = []
    op = define(
        "(Tensor x, Tensor[] ys, int n=2, *, bool flip=False) -> (Tensor, Tensor)", lambda *a, **k: None
    )

    def rule(info, in_dims, x, ys, n, *, flip):
        seen.append((info.batch_size, in_dims, x.shape, [y.shape for y in ys], n, flip))
        total = x if in_dims[0] is None else x.sum(1)
        return (total, td.permute(x, (1, 0))), (0, 1)

    handle = td.register_vmap(op, rule)
    total, same = td.vmap(lambda x: op(x, [x, td.ones(2)], 5, flip=True))(X)
    assert seen == [(3, (0, (0, None), None), (3, 2), [(3, 2), (2,)], 5, True)]
    assert (total.tolist(), same.tolist()) == ([3, 7, 11], X.tolist())
    newer = td.register_vmap(
        op, lambda info, in_dims, *args, **kwargs: ((td.zeros(2), td.ones(3)), (None, 0))
    )
    zeros, ones = td.vmap(lambda x: op(x, []))(X)
    assert (zeros.tolist(), ones.tolist()) == ([[0, 0]] * 3, [1, 1, 1])
    newer.remove()
    assert td.vmap(lambda x: op(x, []))(X)[0].tolist() == [3, 7, 11]
    handle.remove()
    with pytest.warns(UserWarning, match="no batching rule"), pytest.raises(errors.UnsupportedError):
        td.vmap(lambda x: op(x, [], 1)[0])(td.ones((0, 2)))


def test_rules_replace_those_that_are_there():
    x = td.zeros((3, 2))
    with td.register_vmap(td.exp, lambda info, in_dims, x: (info.call(x) + 1, 0)):
        assert td.vmap(td.exp)(x).tolist() == [[2, 2]] * 3
        assert td.exp(x).tolist() == [[1, 1]] * 3
        assert td.vmap(td.vmap(td.exp))(x).tolist() == [[3, 3]] * 3
    assert td.vmap(td.exp)(x).tolist() == [[1, 1]] * 3


def test_rules_of_composites():
    calls = []

    def rule(info, in_dims, x, axis):
        calls.append(x.shape)
        return info.call(x, axis % (x.ndim - 1) + 1), 0

    want = td.vmap(td.softmax)(X).tolist()
    with td.register_vmap("td::softmax", rule):
        assert td.vmap(td.softmax)(X).tolist() == want
        assert td.vmap(td.grad(lambda x: td.softmax(x)[0]))(X).shape == (3, 2)
    assert calls == [(3, 2)]
    td.vmap(td.softmax)(X)
    assert len(calls) == 1


def test_a_rule_is_seen_by_a_compiled_function(define):
    op = define("(Tensor x) -> Tensor", lambda x: x + 1, "CompositeImplicit")
    f = td.jit(td.vmap(op))
    assert f(X).tolist() == (X + 1).tolist()
    with td.register_vmap(op, lambda info, in_dims, x: (x + 2, 0)):
        assert td.vmap(op)(X).tolist() == (X + 2).tolist()


@pytest.mark.parametrize(
    ("rule", "kind", "text"),
    [
        (lambda info, dims, x: x, ValueError, r"a pair \(result, out_dims\)"),
        (lambda info, dims, x: (x, 1), ValueError, "out_dims 1, which is not a batch axis of length 3"),
        (lambda info, dims, x: (x, 7), ValueError, "out_dims 7"),
        (lambda info, dims, x: (x, "a"), ValueError, "out_dims 'a'"),
        (lambda info, dims, x: ((x, x), (0,)), ValueError, "2 results and 1 out_dims"),
        (lambda info, dims, x: (2.0, 0), ValueError, "float 2.0"),
    ],
)
def test_what_a_rule_must_not_return(define, rule, kind, text):
    op = define("(Tensor x) -> Tensor", lambda x: x + 0)
    with td.register_vmap(op, rule), pytest.raises(kind, match=text) as caught:
        td.vmap(op)(X)
    assert op.name in str(caught.value)


def test_what_a_rule_may_be_registered_for(define):
    x = td.zeros((3, 2))
    for op in (td.exp, td.exp.operator, "td::exp", td.ops.td.exp, td.ops.td.exp.default):
        with td.register_vmap(op, lambda info, dims, x: (info.call(x) + 1, 0)):
            assert td.vmap(td.exp)(x).tolist() == [[2, 2]] * 3
    op = define("(Tensor x) -> Tensor", lambda x: x + 1)

    @td.register_vmap(op)
    def rule(info, in_dims, x):
        return x + 5, 0

    assert td.vmap(op)(x).tolist() == [[5, 5]] * 3
    assert rule(None, None, 1) == (6, 0)


def test_rules_are_for_operators():
    for op in ("td::no_such", lambda x: x, None):
        with pytest.raises(errors.RegistrationError, match="an operator is needed"):
            td.register_vmap(op, lambda *args: None)
    with pytest.raises(errors.RegistrationError, match="is a function"):
        td.register_vmap(td.exp, 3)


def test_registering_while_others_call(define):
    op = define("(Tensor x) -> Tensor", lambda x: x + 1)
    with td.register_vmap(op, lambda info, dims, x: (x + 1, 0)):
        stop, wrong = threading.Event(), []

        def call():
            mapped = td.vmap(op)
            while not stop.is_set():
                found = mapped(X).tolist()
                if found not in ((X + 1).tolist(), (X + 2).tolist()):
                    wrong.append(found)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            with td.register_vmap(op, lambda info, dims, x: (x + 2, 0)):
                assert td.vmap(op)(X).tolist() == (X + 2).tolist()
            assert td.vmap(op)(X).tolist() == (X + 1).tolist()
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong


# -- the Batched key ---------------------------------------------------------------------------------------------------
def test_batched_kernel_replaces_batching_rule(define):
    op = define("(Tensor x) -> Tensor", lambda x: x + 1)
    with td.Library("vmaptest", "IMPL") as lib:
        lib.impl(op.schema.name, lambda x: x * 10, "Batched")
        assert td.vmap(op)(X).tolist() == (X * 10).tolist()
        assert td.vmap(td.vmap(op))(X).tolist() == (X * 10).tolist()
        assert op(X).tolist() == (X + 1).tolist()
    with td.Library("td", "IMPL") as lib:
        lib.impl("softmax", lambda x, axis: x * 0.0, "Batched")
        assert td.vmap(td.softmax)(X).tolist() == (X * 0).tolist()
    assert td.vmap(td.softmax)(X).tolist() != (X * 0).tolist()


def test_the_layer_is_one_kernel():
    table = td.dispatch_table("exp")
    assert table["Batched"].kind == "fallback"
    assert table["Batched"].registration.name == "_run_batched"
    assert td.dispatch_table("softmax")["Batched"].kind == "composite_implicit"


def test_modes_see_what_the_function_called():
    seen = []

    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append(op.schema.name)
            return op(*args, **kwargs)

    with Log():
        td.vmap(lambda x: x.sum() * 2.0)(X)
    assert seen[:2] == ["sum", "mul"]


def test_autocast_inside_vmap():
    x = td.ones((3, 2, 2))
    with td.autocast("cpu", td.bfloat16):
        assert td.vmap(lambda v: v @ v)(x).dtype is td.bfloat16


def test_said_names_are_operators():
    assert all("::" in name for name in loops._warned)

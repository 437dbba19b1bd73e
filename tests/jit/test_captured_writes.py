"""Jitted functions that write tensors which they capture: buffers of modules, attributes of objects, closures."""

import threading

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_harness import needs_native
from native_calls import native_calls
from tandem.errors import ConcretizationError, TandemError, UnsupportedError

X = np.random.default_rng(0).random((8, 4)).astype(np.float32)


def run(make, count=4, jitted=False):
    """The results of calls of a function, and the contents of what it writes after each."""
    function, written = make()
    function = td.jit(function) if jitted else function
    rows = []
    for k in range(count):
        result = function(td.asarray(X + k))
        rows.append(
            [np.asarray(x.detach()).tolist() for x in (result, *written)] + [x._version > 0 for x in written]
        )
    return rows


def make_norm():
    norm = td.nn.BatchNorm1d(4)
    return norm, [norm.running_mean, norm.running_var, norm.num_batches_tracked]


def make_counter():
    c = td.zeros(4)

    def f(v):
        c.add_(v.sum(0))
        doubled = c * 2
        c[1] = v[0, 0]
        c[2:] *= 2
        return doubled + c

    return f, [c]


def make_views():
    c = td.zeros((3, 4))

    def f(v):
        row = c[1]
        c[1] = v[0]
        turned = c.T
        row += 1
        c.add_(row)
        return turned.sum(0) + c.sum(1)

    return f, [c]


def make_aliases():
    c = td.zeros((3, 4))
    row = c[1]

    def f(v):
        c.add_(v[0])
        return row * 2

    return f, [c, row]


class Average:
    def __init__(self):
        self.total = td.zeros(4)
        self.count = 0.0

    def __call__(self, v):
        self.total += v.mean(0)
        return v - self.total


def make_object():
    average = Average()
    return average, [average.total]


def make_loop():
    c = td.zeros(4)

    def f(v):
        c.add_(1.0)
        result = td.fori_loop(0, 3, lambda i, a: a * c, v[0])
        c.mul_(2.0)
        return td.cond(c.sum() > 20, lambda a: a + c, lambda a: a - c, result)

    return f, [c]


def make_returned():
    c = td.zeros(4)

    def f(v):
        c.add_(v[0])
        return c

    return f, [c]


def make_strided():
    c = td.zeros((4, 6))[:, ::2].T

    def f(v):
        c[0] = v[0]
        c.mul_(1.5)
        return c + v[1]

    return f, [c]


def make_nested():
    c = td.zeros(4)

    @td.jit
    def inner(v):
        c.add_(v)
        return c * 3

    return lambda v: inner(v[0]) + inner(v[1]) + c, [c]


MAKERS = [
    make_norm,
    make_counter,
    make_views,
    make_aliases,
    make_object,
    make_loop,
    make_returned,
    make_strided,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_writes_are_those_of_eager_calls(make):
    for eager, jitted in zip(run(make), run(make, jitted=True), strict=True):
        for one, other in zip(eager, jitted, strict=True):
            np.testing.assert_allclose(other, one, rtol=2e-6)


def test_a_jitted_function_inside_another():
    try:
        jitted = run(make_nested, jitted=True)
    except UnsupportedError as fault:
        assert "from outside of the traced function" in str(fault)
    else:
        assert jitted == run(make_nested)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=8))
def test_random_programs(steps):
    def make():
        c, d = td.asarray(np.arange(9.0).reshape(3, 3)), td.zeros(3)

        def f(v):
            views, total = [c, c[0], c.T], v[0, 0].astype(td.float64)
            for kind, i, j in steps:
                if kind == 0:
                    views.append(c[i])
                elif kind == 1:
                    views[j][i] = total
                elif kind == 2:
                    views[-1 - j] *= 1.5
                elif kind == 3:
                    d[i] = c[j, i]
                elif kind == 4:
                    total = total + views[j].sum() + d.sum()
                elif kind == 5:
                    c[i, j:] = c[j, j:] + 1
                else:
                    d.add_(c[:, j].astype(d.dtype))
            return total + sum(view.sum() for view in views)

        return f, [c, d]

    for eager, jitted in zip(run(make, 3), run(make, 3, jitted=True), strict=True):
        for one, other in zip(eager, jitted, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-6)


def test_gradients_of_a_loss_with_running_statistics():
    one, other = td.nn.BatchNorm1d(4), td.nn.BatchNorm1d(4)
    jitted = td.jit(lambda v: (other(v) ** 3).sum())
    for k in range(5):
        x, y = (td.asarray(X * (k + 1)).requires_grad_() for _ in range(2))
        for norm in (one, other):
            norm.zero_grad()
        (one(x) ** 3).sum().backward()
        jitted(y).backward()
        for a, b in zip([x, *one.parameters()], [y, *other.parameters()], strict=True):
            np.testing.assert_allclose(b.grad, a.grad, rtol=1e-3, atol=1e-4)
        for a, b in zip(one.buffers(), other.buffers(), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6)


def test_second_derivatives_write_nothing_again():
    scale = td.ones(4)

    def f(v):
        scale.mul_(2.0)
        return (v**3 * scale).sum()

    jitted, x = td.jit(f), td.asarray(X[0]).requires_grad_()
    for count in range(1, 4):
        (gradient,) = td.autograd.grad(jitted(x), [x], create_graph=True)
        (second,) = td.autograd.grad(gradient.sum(), [x])
        assert scale.tolist() == [2.0**count] * 4
        np.testing.assert_allclose(gradient.detach(), 3 * X[0] ** 2 * 2.0**count, rtol=1e-5)
        np.testing.assert_allclose(second, 6 * X[0] * 2.0**count, rtol=1e-5)
    assert td.grad(jitted)(td.asarray(X[0])).tolist() == pytest.approx(
        (3 * X[0] ** 2 * 16).tolist(), rel=1e-5
    )
    assert scale.tolist() == [16.0] * 4


def test_failing_calls_leave_what_eager_calls_leave():
    def make():
        c = td.zeros(4)

        def f(v):
            c.add_(1.0)
            td.check(v.sum() > 0, "negative")
            c.add_(10.0)
            return c * v

        return f, c

    (eager, one), (jitted, other) = make(), make()
    jitted = td.jit(jitted)
    for v in (td.ones(4), -td.ones(4), td.ones(4)):
        for function in (eager, jitted):
            try:
                function(v)
            except TandemError:
                assert v[0] < 0
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("leaf", TandemError),
        ("read_only", TandemError),
        ("loop", UnsupportedError),
        ("number", ConcretizationError),
    ],
)
def test_what_cannot_be_written_back_is_refused(name, error):
    c = td.zeros(4)
    if name == "leaf":
        c.requires_grad_()
    if name == "read_only":
        array = np.zeros(4, np.float32)
        array.setflags(write=False)
        c = td.asarray(array)

    def f(v):
        if name == "loop":

            def step(i, a):
                c.add_(1.0)
                return a

            return td.fori_loop(0, 3, step, v)
        with td.no_grad():
            c.add_(1.0)
        return v * (float(c[0].detach().sum() if name != "number" else c.sum()) if name == "number" else 1.0)

    with pytest.raises(error):
        td.jit(f)(td.ones(4))
    assert c.tolist() == [0.0] * 4


def test_data_of_a_written_tensor_cannot_be_read_in_the_trace():
    c, seen = td.zeros(()), []
    alias = c.reshape(())

    def f(v):
        c.add_(1.0)
        other = threading.Thread(target=lambda: seen.append(c.item()))
        other.start()
        other.join()
        for read in (float, bool, np.asarray, td.Tensor.item, td.Tensor.tolist, td.Tensor.numpy, str):
            for x in (c, c.detach(), c.data, alias):
                with pytest.raises(ConcretizationError):
                    read(x)
        return v * c

    assert td.jit(f)(td.ones(2)).tolist() == [1.0, 1.0]
    assert seen == [0.0] and c.item() == 1.0


@needs_native
def test_native_code_answers_such_calls():
    c = td.zeros(16)

    def f(v):
        c.add_(v)
        return c * 2

    jitted, v = td.jit(f), td.ones(16)
    for _ in range(5):
        jitted(v)
    before = native_calls(jitted)
    for _ in range(3):
        jitted(v)
    assert native_calls(jitted) == before + 3
    assert c.tolist() == [8.0] * 16 and jitted(v).tolist() == [18.0] * 16

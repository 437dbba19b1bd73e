"""Printing, callbacks and checks in the bodies of loops and branches."""

import numpy as np
import pytest
import tandem as td
from tandem import errors

X = td.asarray([1.0, 2.0, 3.0, 4.0])


def plain(fn):
    return fn


@pytest.fixture(params=["eager", "jit"])
def way(request):
    return {"eager": plain, "jit": td.jit}[request.param]


def total(x):
    def step(c, x):
        td.check(c < 5, "c = {c}, x = {x}", c=c, x=x)
        return c + x, td.log(5 - c)

    return td.scan(step, td.asarray(0.0), x)


def doubled(x):
    def body(c):
        td.check(c < 5, "c = {c}", c=c)
        return c * 2

    return td.while_loop(lambda c: c < 20, body, x)


def test_scan(way):
    checked = way(td.checkify(total))
    error, (last, logs) = checked(X)
    assert error.get().startswith("c = 6.0, x = 4.0 ")
    assert ("in step 3 (" in error.get()) is (way is td.jit)
    assert last.item() == 10.0
    assert np.isnan(logs.tolist()).tolist() == [False, False, False, True]
    assert checked(X * 0.1)[0].get() is None
    with pytest.raises(errors.CheckError, match=r"c = 6.0, x = 4.0"):
        way(lambda x: total(x)[0])(X)


def test_scan_in_reverse(way):
    def f(x):
        def step(c, x):
            td.check(c < 5, "c = {c}", c=c)
            return c + x, None

        return td.scan(step, td.asarray(0.0), x, reverse=True)[0]

    error, _ = way(td.checkify(f))(X)
    assert error.get().startswith("c = 7.0")


def test_scan_in_a_batch(way):
    rows = td.stack([X * 0.1, X, X * 0.1])
    for mapped in (td.vmap(td.checkify(total)), td.checkify(td.vmap(total))):
        error, (last, _) = way(mapped)(rows)
        assert error.get().startswith("c = 6.0, x = 4.0")
        assert error.get().endswith("at example 1)")
        np.testing.assert_allclose(last.tolist(), [1.0, 10.0, 1.0], rtol=1e-6)
        assert way(mapped)(rows * 0.1)[0].get() is None


def test_gradient_through_a_scan(way):
    def loss(x):
        return total(x)[0] ** 2

    error, gradient = way(td.checkify(td.grad(loss), errors="user"))(X)
    assert error.get().startswith("c = 6.0, x = 4.0")
    assert gradient.tolist() == [20.0] * 4
    assert way(td.checkify(td.grad(loss), errors="user"))(X * 0.1)[0].get() is None


def test_scan_in_scan(way):
    def f(x):
        def outer(c, x):
            def inner(d, y):
                td.check(d < 9, "d = {d}", d=d)
                return d + y, None

            return td.scan(inner, c, td.stack([x, x]))[0], None

        return td.scan(outer, td.asarray(0.0), x)[0]

    error, out = way(td.checkify(f))(X)
    assert out.item() == 20.0
    assert error.get().startswith("d = 9.0")
    if way is td.jit:
        assert "in step 1 in step 2 (" in error.get()


def test_while_loop(way):
    checked = way(td.checkify(doubled))
    error, out = checked(td.asarray(1.0))
    assert error.get().startswith("c = 8.0 ")
    assert out.item() == 32.0
    assert checked(td.asarray(30.0))[0].get() is None


def test_nan_division_and_index_in_a_loop(way):
    def f(x, i):
        return td.fori_loop(0, 3, lambda n, c: td.log(c - n) / x[i], x[0])

    checked = way(td.checkify(f))
    assert checked(X, td.asarray(1))[0].get().startswith("nan given by td::log")
    error, _ = checked(X, td.asarray(9))
    assert error.get().startswith("index 9 is out of bounds for axis 0 with size 4")
    assert checked(X * 0, td.asarray(1))[0].get().startswith("division by zero")


def test_the_first_in_time(way):
    """What fails first in the text fails later in the loop."""

    def f(x):
        def body(c):
            td.check(c != 4, "in the text {c}", c=c)
            td.check(c != 2, "in time {c}", c=c)
            return c + 1

        return td.while_loop(lambda c: c < 6, body, x)

    def g(x):
        def step(c, x):
            td.check(c != 4, "in the text {c}", c=c)
            td.check(c != 2, "in time {c}", c=c)
            return c + 1, None

        return td.scan(step, x, None, length=6)[0]

    for loop in (f, g):
        error, out = way(td.checkify(loop))(td.asarray(0))
        assert error.get().startswith("in time 2")
        assert out.item() == 6
        assert way(td.checkify(loop))(td.asarray(3))[0].get().startswith("in the text 4")


def test_branches(way):
    def small(x):
        td.check(x > 0, "small {x}", x=x)
        return x

    def large(x):
        td.check(x < 100, "large {x}", x=x)
        return x * 2

    checked = way(td.checkify(lambda x: td.cond(x < 10, small, large, x)))
    for value, message in ((-1.0, "small -1.0"), (200.0, "large 200.0")):
        assert checked(td.asarray(value))[0].get().startswith(message)
    for value in (5.0, 50.0):
        assert checked(td.asarray(value))[0].get() is None
    error, _ = way(td.checkify(lambda i, x: td.switch(i, [small, large, small], x)))(
        td.asarray(1), td.asarray(500.0)
    )
    assert error.get().startswith("large 500.0")


def test_prints_of_every_step(way, capsys):
    def f(x):
        def step(c, x):
            td.debug.print("{} {}", c, x)
            return c + x, None

        return td.scan(step, td.asarray(0.0), x)[0]

    compiled = way(f)
    for _ in range(2):
        assert compiled(X).item() == 10.0
        assert capsys.readouterr().out.splitlines() == ["0.0 1.0", "1.0 2.0", "3.0 3.0", "6.0 4.0"]


def test_the_first_nan_in_a_loop(way):
    with (
        td.debug.nans(),
        pytest.raises(errors.NanError, match=r"td::log gave a NaN at .*test_debug_loops.py"),
    ):
        way(lambda x: td.scan(lambda c, x: (c + x, td.log(3 - c)), td.asarray(0.0), x))(X)


def _printing(x):
    td.debug.print("{}", x)
    return x * x


PRINTING = {
    "scan": lambda x: td.scan(lambda c, x: (_printing(c) + x, None), x[0], x)[0],
    "fori_loop": lambda x: td.fori_loop(0, 2, lambda i, c: _printing(c) * x[i], x[0]),
    "cond": lambda x: td.cond(x[0] > 0, lambda x: _printing(x).sum(), lambda x: x.sum(), x),
    "switch": lambda x: td.switch(td.asarray(1), [lambda x: x.sum(), lambda x: _printing(x).sum()], x),
    "checkpoint": lambda x: td.checkpoint(lambda x: x * 2)(_printing(x)).sum(),
}
TRANSFORMED = {
    "grad": td.grad,
    "grad of jit": lambda f: td.grad(td.jit(f)),
    "jit of grad": lambda f: td.jit(td.grad(f)),
    "second order": lambda f: td.jit(td.grad(lambda x: td.grad(f)(x).sum())),
    "jvp": lambda f: td.jit(lambda x: td.jvp(f, (x,), (x,))),
    "jit": td.jit,
}


@pytest.mark.parametrize("transform", TRANSFORMED)
@pytest.mark.parametrize("name", PRINTING)
def test_derivatives_print_once(name, transform, capsys):
    x = td.asarray([2.0, 3.0])
    PRINTING[name](x)
    want = capsys.readouterr().out
    call = TRANSFORMED[transform](PRINTING[name])
    for _ in range(2):
        call(x)
        assert capsys.readouterr().out == want

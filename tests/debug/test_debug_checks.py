"""``td.checkify`` and ``td.check``: errors as values, under every transform."""

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.debug import checks

X = td.asarray([1.0, -2.0, 3.0])
GOOD = td.asarray([1.0, 2.0, 3.0])
ROWS = td.asarray([[1.0, 1.0], [2.0, 2.0], [2.0, -3.0], [-4.0, 1.0]])


def plain(fn):
    return fn


@pytest.fixture(params=["eager", "jit"])
def way(request):
    return {"eager": plain, "jit": td.jit}[request.param]


def f(x):
    td.check(td.all(x > 0), "x must be positive, {x} {1} {0}", 5, [1], x=x)
    return td.log(x).sum()


SOURCE = f"{__file__}:{f.__code__.co_firstlineno + 1}"


def test_user_checks(way):
    checked = way(td.checkify(f))
    for _ in range(3):
        error, out = checked(X)
        assert error.get() == f"x must be positive, [ 1. -2.  3.] [1] 5 ({SOURCE})"
        assert np.isnan(out.item())
        with pytest.raises(errors.CheckError, match="x must be positive") as caught:
            error.throw()
        assert isinstance(caught.value, ValueError)
        error, out = checked(GOOD)
        assert error.get() is None
        assert error.throw() is None
        np.testing.assert_allclose(out.item(), np.log(6), rtol=1e-6)
        assert repr(error) == "Error(None)"


def test_checkify_of_a_jitted_function():
    error, _ = td.checkify(td.jit(f))(X)
    assert error.get().startswith("x must be positive")
    assert td.checkify(td.jit(f))(GOOD)[0].get() is None


def test_the_first_in_the_order_of_the_program(way):
    def g(x):
        td.check(x < 10, "first {}", x)
        td.check(x < 5, "second {}", x)
        td.check(x < 0, "third {}", x)
        return x

    checked = way(td.checkify(g))
    for value, message in ((20.0, "first 20.0"), (7.0, "second 7.0"), (1.0, "third 1.0")):
        assert checked(td.asarray(value))[0].get().startswith(message)
    assert checked(td.asarray(-1.0))[0].get() is None


# -- kinds -------------------------------------------------------------------------------------------------------------
def test_nan(way):
    error, _ = way(td.checkify(lambda x: td.exp(td.log(x)), errors="nan"))(X)
    assert error.get().startswith("nan given by td::log(float32[3]) (")
    assert __file__ in error.get()
    assert way(td.checkify(lambda x: td.exp(td.log(x)), errors="nan"))(GOOD)[0].get() is None


def test_division(way):
    for divide in (lambda x, y: x / y, lambda x, y: x // y, lambda x, y: x % y, td.fmod):
        for x, y in ((X, X * 0), (td.asarray([1, 2]), td.asarray([1, 0]))):
            checked = way(td.checkify(divide, errors={"division"}))
            assert checked(x, y)[0].get().startswith("division by zero in td::")
            assert checked(x, y * 0 + 1)[0].get() is None
    assert way(td.checkify(lambda x: x / 0, errors=["division"]))(X)[0].get().startswith("division by zero")
    assert (
        way(td.checkify(lambda x, k: x / k, errors=["division"]))(X, 0)[0]
        .get()
        .startswith("division by zero")
    )
    assert way(td.checkify(td.reciprocal, errors=["division"]))(X * 0)[0].get().startswith("division by zero")


def _write(x, i):
    y = x.clone()
    y[i] = 0.0
    return y


INDEXED = {
    "index": (lambda x, i: x[i], [-2.0, 3.0]),
    "take": (lambda x, i: td.take(x, i), [-2.0, 3.0]),
    "take_along_axis": (lambda x, i: td.take_along_axis(x, i), [-2.0, 3.0]),
    "at": (lambda x, i: x.at[i].set(0.0), [1.0, 0.0, 0.0]),
    "write": (_write, [1.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("name", INDEXED)
def test_index(name, way):
    fn, want = INDEXED[name]
    checked = way(td.checkify(fn))
    error, out = checked(X, td.asarray([1, 7]))
    assert error.get().startswith("index 7 is out of bounds for axis 0 with size 3 in td::")
    assert out.tolist() == want
    error, out = checked(X, td.asarray([1, 2]))
    assert error.get() is None
    assert out.tolist() == want
    assert checked(X, td.asarray([-4, 2]))[0].get().startswith("index -4 is out of bounds")


def test_index_of_another_axis(way):
    x = td.reshape(td.arange(6.0), (2, 3))
    i, j = td.asarray([0, 1]), td.asarray([1, 3])
    checked = way(td.checkify(lambda x, i, j: x[i, j]))
    error, out = checked(x, i, j)
    assert error.get().startswith("index 3 is out of bounds for axis 1 with size 3 in td::index")
    assert out.tolist() == [1.0, 5.0]
    error, out = way(td.checkify(lambda x, j: td.take(x, j, axis=1)))(x, j)
    assert "axis 1 with size 3" in error.get()
    assert out.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    error, out = way(td.checkify(lambda x: x[9]))(X)
    assert error.get().startswith("index 9 is out of bounds for axis 0")


def test_kinds_that_do_not_count(way):
    error, out = way(td.checkify(lambda x: (td.check(x.sum() > 100, "no"), td.log(x) / 0)[1], errors=()))(X)
    assert error.get() is None
    assert out.shape == (3,)
    with pytest.raises(errors.OutOfBoundsError):
        td.checkify(lambda x, i: x[i], errors="nan")(X, td.asarray([7]))
    with pytest.raises(errors.ValueArgumentError, match="'user', 'nan', 'division', 'index', not 'inf'"):
        td.checkify(f, errors="inf")
    with pytest.raises(errors.ArgumentError, match="takes a function"):
        td.checkify(3)


# -- transforms --------------------------------------------------------------------------------------------------------
def test_vmap_of_checkify_returns_error_per_example(way):
    for mapped in (way(td.vmap(td.checkify(f))), td.vmap(way(td.checkify(f)))):
        error, out = mapped(ROWS)
        assert error.get() == f"x must be positive, [ 2. -3.] [1] 5 ({SOURCE}, at example 2)"
        assert np.isnan(out.tolist()[2])
        assert mapped(ROWS[:2])[0].get() is None
    error, _ = way(td.vmap(td.vmap(td.checkify(lambda x: td.check(x > 0, "x = {x}", x=x)))))(ROWS)
    assert "x = -3.0 (" in error.get()
    assert "at example (2, 1))" in error.get()


def test_checked_of_vmap_names_the_example(way):
    error, _ = way(td.checkify(td.vmap(f)))(ROWS)
    assert error.get() == f"x must be positive, [ 2. -3.] [1] 5 ({SOURCE}, at example 2)"
    assert way(td.checkify(td.vmap(f)))(ROWS[:2])[0].get() is None
    inner = td.vmap(td.vmap(lambda x: td.check(x > 0, "x = {x}", x=x), out_axes=None), out_axes=None)
    error, _ = way(td.checkify(inner))(ROWS)
    assert "x = -3.0 (" in error.get()
    assert "at example (2, 1))" in error.get()
    error, _ = way(td.vmap(td.checkify(td.vmap(lambda x: td.check(x > 0, "x = {x}", x=x), out_axes=None))))(
        ROWS
    )
    assert "x = -3.0 (" in error.get()
    assert "at example (2, 1))" in error.get()


def test_vmap_of_indices(way):
    i = td.asarray([1, 7, 2])
    for mapped in (
        td.vmap(td.checkify(lambda x, i: x[i]), (None, 0)),
        td.checkify(td.vmap(lambda x, i: x[i], (None, 0))),
    ):
        error, out = way(mapped)(X, i)
        assert error.get().startswith("index 7 is out of bounds for axis 0 with size 3")
        assert error.get().endswith("at example 1)")
        assert out.tolist() == [-2.0, 3.0, 3.0]


def test_grad(way):
    error, gradient = way(td.checkify(td.grad(f)))(X)
    assert error.get().startswith("x must be positive, [ 1. -2.  3.]")
    np.testing.assert_allclose(gradient.tolist(), [1.0, -0.5, 1 / 3], rtol=1e-6)
    assert way(td.checkify(td.grad(f)))(GOOD)[0].get() is None

    def loss(x):
        error, out = td.checkify(f)(x)
        return out, error

    gradient, error = way(td.grad(loss, has_aux=True))(X)
    assert error.get().startswith("x must be positive, [ 1. -2.  3.]")
    np.testing.assert_allclose(gradient.tolist(), [1.0, -0.5, 1 / 3], rtol=1e-6)
    error, hess = way(td.checkify(td.grad(td.grad(lambda x: f(td.reshape(x, (1,)))))))(td.asarray(-2.0))
    assert error.get().startswith("x must be positive, [-2.]")
    assert hess.item() == -0.25
    error, _ = way(td.vmap(td.checkify(td.grad(f))))(ROWS)
    assert error.get().endswith("at example 2)")


def test_a_nan_of_the_backward_pass(way):
    error, _ = way(td.checkify(td.grad(lambda x: (td.sqrt(x) * 0).sum()), errors="nan"))(td.zeros(2))
    assert error.get().startswith("nan given by td::")


def test_recorded_tensors():
    x = td.asarray([1.0, -2.0], requires_grad=True)
    error, out = td.checkify(f, errors="user")(x)
    out.backward()
    assert x.grad.tolist() == [1.0, -0.5]
    assert error.get().startswith("x must be positive, [ 1. -2.]")


def test_the_error_is_a_pytree(way):
    error, _ = way(td.checkify(f))(X)
    again = td.tree.map(lambda x: x, error)
    assert again.get() == error.get()
    first, second = way(lambda x: (td.checkify(f)(x)[0], td.checkify(f)(abs(x))[0]))(X)
    assert first.get() == error.get()
    assert second.get() is None


def test_nested_checkify(way):
    def g(x):
        inner, out = td.checkify(f, errors="nan")(x)
        td.check(out > 100, "too small: {}", out)
        return inner

    outer, inner = way(td.checkify(g, errors="user"))(X)
    assert inner.get().startswith("nan given by td::log")
    assert outer.get().startswith("too small")


def test_what_fails_leaves_nothing_behind():
    def fail(x):
        td.check(x > 0, "x")
        raise KeyError("from the function")

    with pytest.raises(KeyError):
        td.checkify(fail)(td.asarray(-1.0))
    assert np.isnan(td.log(X).tolist()[1])
    with pytest.raises(errors.CheckError):
        f(X)


# -- without checkify --------------------------------------------------------------------------------------------------
def test_check_alone_raises(way):
    g = way(f)
    for _ in range(2):
        with pytest.raises(errors.CheckError, match=r"x must be positive, \[ 1. -2.  3.\] \[1\] 5"):
            g(X)
        np.testing.assert_allclose(g(GOOD).item(), np.log(6), rtol=1e-6)
    with pytest.raises(errors.CheckError, match=r"\[ 2. -3.\]"):
        way(td.vmap(f))(ROWS)
    with pytest.raises(errors.CheckError, match=r"\[ 1. -2.  3.\]"):
        way(td.grad(f))(X)


def test_what_check_takes(way):
    with pytest.raises(errors.ShapeError, match=r"boolean scalar, not bool\[3\]"):
        way(lambda x: td.check(x > 0, "m"))(X)
    with pytest.raises(errors.ArgumentError, match="takes a boolean"):
        way(lambda x: td.check(x.sum(), "m"))(X)
    with pytest.raises(errors.ArgumentError, match="asks for the value y"):
        way(lambda x: td.check(x.sum() > 0, "{y}", x=x))(X)
    with pytest.raises(errors.CheckError, match="always"):
        way(lambda x: td.check(False, "always"))(X)
    td.check(True, "never")
    error, _ = way(td.checkify(lambda x, k: td.check(k > 3, "k = {k}", k=k)))(X, 2)
    assert error.get().startswith("k = 2 (")


# -- checks for checkify alone -----------------------------------------------------------------------------------------
def debugged(x):
    td.debug_check(td.all(x > 0), "x is {x}", x=x)
    return td.scan(lambda c, x: (td.debug_check(x < 3, "{} is large", x), (c + x, None))[1], 0.0, x)[0]


def test_debug_checks_do_nothing_outside_of_checkify():
    for program in (debugged, td.jit(debugged), td.grad(debugged), td.jit(td.grad(debugged))):
        program(X)
    assert td.vmap(debugged)(ROWS).tolist() == ROWS.sum(1).tolist()


def test_debug_checks_inside_checkify(way):
    checked = way(td.checkify(debugged))
    for _ in range(2):
        assert checked(X)[0].get().startswith("x is [ 1. -2.  3.]")
        assert checked(GOOD)[0].get().startswith("3.0 is large")
        assert checked(td.asarray([1.0, 2.0]))[0].get() is None
        with pytest.raises(errors.CheckError, match="x is"):
            checked(X)[0].throw()
    assert way(td.checkify(debugged, errors=()))(X)[0].get() is None
    found = way(td.vmap(td.checkify(debugged)))(ROWS)[0]
    assert "at example 2" in found.get()


def test_errors_of_debug_checks():
    with pytest.raises(errors.ShapeError, match="debug_check takes a boolean scalar"):
        td.debug_check(X > 0, "no")
    with pytest.raises(errors.ArgumentError, match="debug_check takes a boolean"):
        td.debug_check(1.0, "no")


def test_compiled_checks_call_python_only_where_they_fail(monkeypatch):
    calls = []
    site = type(checks.CheckSite("user", "", (), ""))
    text = site.text
    monkeypatch.setattr(site, "text", lambda self, *args: calls.append(1) or text(self, *args))

    def program(x, limit):
        td.check((x < limit).all(), "{} is too large", x.max())
        td.check(limit > 0, "limit {}", limit)
        return td.fori_loop(0, 3, lambda i, y: (td.check((y < 100).all(), "step {}", i), y * 2)[1], x)

    f, x = td.jit(program), td.asarray([1.0, 2.0])
    for _ in range(4):
        assert f(x, 5.0).tolist() == [8.0, 16.0] and not calls
    for values, limit, message in (
        ([9.0], 5.0, "9.0 is too large"),
        ([40.0], 90.0, "step 2"),
        ([-3.0], -1.0, "limit"),
    ):
        with pytest.raises(errors.CheckError, match=message):
            f(td.asarray(values), limit)
    assert len(calls) == 3

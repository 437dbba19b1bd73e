"""Printing, callbacks, NaN detection and error values as JAX and PyTorch programs use them."""

import numpy as np
import pytest
import tandem as td
from tandem import errors


def plain(f):
    return f


WAYS = pytest.mark.parametrize("way", [plain, td.jit], ids=["eager", "jit"])
X = td.asarray([1.0, 2.0, -3.0, -4.0])


# -- printing ----------------------------------------------------------------------------------------------------------
@WAYS
def test_print_options_are_those_of_the_place(way, capsys):
    def show(x):
        with np.printoptions(precision=2, suppress=True):
            td.debug.print("{} and {y}", x, y=x[0])

    way(show)(td.asarray([1.2345, 1e-7], dtype="float64"))
    assert capsys.readouterr().out == "[1.23 0.  ] and 1.2345\n"


@WAYS
def test_key_prints_its_bits(way, capsys):
    way(lambda key: td.debug.print("{} {k}", key, k=[key]))(td.random.key(7))
    assert capsys.readouterr().out == "Key([7, 0, 0, 0]) [Key([7, 0, 0, 0])]\n"


@pytest.mark.parametrize("factor", [1.0, 2.0], ids=["same gradient", "other gradient"])
def test_prints_in_custom_vjp_of_compiled_function(factor, capsys):
    """What a backward rule prints depends on both halves, and may be all that the compiled backward half does."""

    @td.jit
    def f(x):
        @td.custom_vjp
        def same(x):
            td.debug.print("plain {x}", x=x)
            return x + 0.0

        def forward(x):
            td.debug.print("forward {x}", x=x)
            return x + 0.0, x

        def backward(x, g):
            td.debug.print("backward {x} {g}", x=x, g=g)
            return (g if factor == 1.0 else factor * g,)

        same.defvjp(forward, backward)
        return same(x)

    x = td.asarray(2.0)
    f(x)
    assert capsys.readouterr().out == "plain 2.0\n"
    _, pull = td.vjp(f, x)
    assert capsys.readouterr().out == "forward 2.0\n"
    (got,) = pull(td.asarray(3.0))
    assert capsys.readouterr().out == "backward 2.0 3.0\n"
    assert got.item() == 3.0 * factor
    leaf = td.tensor(2.0, requires_grad=True)
    f(leaf).backward()
    assert capsys.readouterr().out == "forward 2.0\nbackward 2.0 1.0\n"
    assert leaf.grad.item() == factor


def test_prints_in_loops_are_in_order(capsys):
    @td.jit
    def f(x):
        def body(i, x):
            td.debug.print("{i}: {x}", i=i, x=x)
            return td.cond(x > 4.0, lambda x: (td.debug.print("large"), x)[1], lambda x: 2.0 * x, x)

        return td.fori_loop(0, 4, body, x)

    assert f(td.asarray(1.5)).item() == 6.0
    assert capsys.readouterr().out == "0: 1.5\n1: 3.0\n2: 6.0\nlarge\n3: 6.0\nlarge\n"


# -- callbacks ---------------------------------------------------------------------------------------------------------
def outside(x):
    return td.io_callback(lambda v: v, td.TensorSpec((), "float32"), x)


def test_io_callback_of_examples_that_go_different_ways():
    """All branches would run for all examples, and the outside would see it."""
    chosen = td.jit(td.vmap(lambda p, x: td.cond(p, outside, lambda x: -x, x)))
    with pytest.raises(errors.UnsupportedError, match=r"td\.map"):
        chosen(td.asarray([True, False]), td.ones(2))
    looped = td.jit(td.vmap(lambda x: td.while_loop(lambda x: x < 3, lambda x: outside(x) + 1, x)))
    with pytest.raises(errors.UnsupportedError, match="while_loop"):
        looped(td.ones(2))
    nested = td.jit(
        td.vmap(
            lambda p, x: td.cond(
                p, lambda x: td.scan(lambda c, _: (outside(c), None), x, None, 2)[0], outside, x
            )
        )
    )
    with pytest.raises(errors.UnsupportedError):
        nested(td.asarray([True, False]), td.ones(2))
    same = td.jit(td.vmap(lambda p, x: td.cond(p, outside, lambda x: -x, x), in_axes=(None, 0)))
    assert same(td.asarray(True), td.asarray([1.0, 2.0])).tolist() == [1.0, 2.0]


# -- errors as values --------------------------------------------------------------------------------------------------
@WAYS
def test_int_out_of_range(way):
    checked = way(td.checkify(lambda x: x[9] + x[-9]))
    error, out = checked(X)
    assert error.get().startswith("index 9 is out of bounds for axis 0 with size 4 in td::index")
    assert out.item() == -3.0
    error, out = way(td.checkify(lambda x: x.at[5].set(0.0)))(X)
    assert "index 5" in error.get() and out.tolist() == [1.0, 2.0, -3.0, 0.0]
    error, out = way(td.vmap(td.checkify(lambda x: x[3])))(td.ones((2, 3)))
    assert "at example 0" in error.get() and out.tolist() == [1.0, 1.0]
    with pytest.raises(errors.OutOfBoundsError):
        way(td.checkify(lambda x: x[9], errors="nan"))(X)
    with pytest.raises(errors.OutOfBoundsError):
        td.checkify(lambda x: x[0])(td.ones(0))  # no element is nearest
    with pytest.raises(errors.OutOfBoundsError):
        way(lambda x: x[9])(X)


@WAYS
def test_an_int_outside_in_a_loop(way):
    def f(x):
        return td.scan(lambda c, row: (c + row[7], None), 0.0, x)[0]

    error, out = way(td.checkify(f))(td.ones((2, 3)))
    assert error.get().startswith("index 7 is out of bounds")
    assert out.item() == 2.0


def positive(x):
    td.check(x > 0, "positive, not {x}", x=x)
    return x


def rethrown(x):
    error, out = td.checkify(positive)(x)
    error.throw()
    return out


@WAYS
def test_throw_is_a_part_of_the_program(way):
    assert way(rethrown)(X[0]).item() == 1.0
    with pytest.raises(errors.CheckError, match=r"positive, not -3\.0"):
        way(rethrown)(X[2])
    error, out = way(td.checkify(rethrown))(X[2])
    assert error.get().startswith("positive, not -3.0") and out.item() == -3.0
    assert way(td.checkify(rethrown))(X[0])[0].get() is None


@WAYS
def test_throw_of_stacked_errors(way):
    def each(xs):
        def body(carry, x):
            error, y = td.checkify(positive)(x)
            return carry, (y, error)

        _, (ys, stacked) = td.scan(body, 0.0, xs)
        stacked.throw()
        return ys

    assert way(each)(X[:2]).tolist() == [1.0, 2.0]
    with pytest.raises(errors.CheckError, match=r"not -3\.0 .*at example 2"):
        way(each)(X)
    error, out = way(td.checkify(each))(X)
    assert "not -3.0" in error.get() and "at example 2" in error.get()
    assert out.tolist() == X.tolist()


def test_throw_of_errors_with_two_axes():
    checked = td.vmap(td.vmap(td.checkify(positive)))
    error, _ = checked(td.reshape(X, (2, 2)))
    with pytest.raises(errors.CheckError, match=r"not -3\.0 .*at example \(1, 0\)"):
        error.throw()
    outer, _ = td.checkify(lambda x: checked(x)[0].throw())(td.reshape(X, (2, 2)))
    assert "at example (1, 0)" in outer.get()
    assert td.vmap(td.checkify(rethrown))(X)[0].get().startswith("positive, not -3.0")


@WAYS
def test_both_checks_of_a_while_loop(way):
    def f(x):
        def goes_on(x):
            return td.log(x) < 2.0

        return td.while_loop(goes_on, lambda x: x * td.sqrt(x), x)

    checked = way(td.checkify(f, errors="nan"))
    assert checked(td.asarray(2.0))[0].get() is None
    assert "td::log" in checked(td.asarray(-2.0))[0].get()

    def shrinking(x):
        def goes_on(state):
            td.check(state[1] > 0, "positive, not {x}", x=state[1])
            return state[0] < 5

        return td.while_loop(goes_on, lambda state: (state[0] + 1, state[1] - 1), (0, x))

    checked = way(td.checkify(shrinking))
    assert checked(td.asarray(9.0))[0].get() is None
    assert checked(td.asarray(-1.0))[0].get().startswith("positive, not -1.0")
    error, (count, _) = checked(td.asarray(2.5))
    assert error.get().startswith("positive, not -0.5") and count.item() == 5
    found = way(td.vmap(td.checkify(shrinking)))(td.asarray([9.0, 2.5]))[0].get()
    assert "not -0.5" in found and "at example 1" in found


def test_first_nan_in_branch_and_loop_is_reported():
    for f in (
        lambda x: td.cond(x > 0, lambda x: td.log(-x), td.sqrt, x),
        lambda x: td.fori_loop(0, 3, lambda i, x: td.log(-x), x),
    ):
        for run in (f, td.jit(f)):
            with td.debug.nans(), pytest.raises(FloatingPointError, match="td::log"):
                run(td.asarray(1.0))

"""Control flow returns the same results eagerly, as Python loops, and inside jit, as operators."""

import functools

import numpy as np
import pytest
import tandem as td
from control_harness import RNG, assert_close, check, draw


# -- scan --------------------------------------------------------------------------------------------------------------
def rnn(w, h, xs, **options):
    return td.scan(lambda c, x: (td.tanh(c @ w + x), c.sum()), h, xs, **options)


@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(length, reverse):
    w, h, xs = draw(3, 3), draw(2, 3), draw(length, 2, 3)
    last, sums = check(functools.partial(rnn, reverse=reverse), w, h, xs)
    state, wanted = h.numpy(), np.zeros(length)
    for at in reversed(range(length)) if reverse else range(length):
        wanted[at] = state.sum()
        state = np.tanh(state @ w.numpy() + xs.numpy()[at])
    np.testing.assert_allclose(last.numpy(), state)
    np.testing.assert_allclose(sums.numpy(), wanted)


def test_trees_numbers_and_none():
    def f(xs):
        def step(carry, x):
            return {"n": carry["n"] + 1, "s": carry["s"] + x["a"].sum()}, (x["b"], None, [carry["n"]])

        return td.scan(step, {"n": 0, "s": 0.0}, xs)

    (last, (b, nothing, (numbers,))) = check(f, {"a": draw(4, 2), "b": draw(4)})
    assert last["n"].item() == 4 and nothing is None and numbers.tolist() == [0, 1, 2, 3] and b.shape == (4,)
    assert last["s"].dtype is td.float64  # a Python number takes the dtype of what is added to it


def test_carries_and_stacked_results_of_bodies():
    """Carries that swap, stand still, come from items and constants, and stacked results that are the same value."""
    k = draw(3)

    def f(a, b, xs):
        def step(carry, x):
            p, q, r, _, _ = carry
            new = p + x
            return (q, p, r, x, k), (p, q, new, new, x, k, r)

        return td.scan(step, (a, b, a, b, a), xs)

    check(f, draw(3), draw(3), draw(5, 3))


def test_fibonacci():
    (a, _), found = check(
        lambda x: td.scan(lambda c, _: ((c[1], c[0] + c[1]), c[0]), (x, x), None, 10), td.asarray(1)
    )
    assert found.tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55] and a.item() == 89


def test_views_and_constants_as_results():
    def f(m, xs):
        def step(c, x):
            y = td.exp(c)
            return y.T, (y.T, y[0], y.reshape(-1), td.ones((2,)), x.T, c[1:])

        return td.scan(step, m, xs)

    check(f, draw(3, 3), draw(2, 3, 2))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype):
    kind = getattr(td, dtype if dtype != "bool" else "bool_")
    xs = td.asarray(RNG.integers(0, 3, (5, 4))).astype(kind)
    check(lambda xs: td.scan(lambda c, x: (td.where(x == c, c, x), c), xs[0], xs), xs)


def test_nested_scans_branches_and_loops():
    def f(w, xs):
        def inner(c, x):
            return td.cond(x > 0, lambda c: c * 0.5 + x, lambda c: halved(c), c), c.sum()

        def halved(c):
            return td.while_loop(lambda v: (v * v).sum() > 1.0, lambda v: v * 0.5, c)

        def step(c, x):
            c, sums = td.scan(inner, c @ w, x)
            return c, sums

        return td.scan(step, td.ones(3, dtype=td.float64), xs)

    check(f, draw(3, 3), draw(4, 5))


def test_closures_and_numbers_of_a_call():
    w = draw(3)
    f = lambda x, factor: td.scan(lambda c, _: (c * factor + w, None), x, length=3)[0]  # noqa: E731
    check(f, draw(3), 2.0)
    compiled = td.jit(f)
    x = draw(3)
    for factor in (2.0, 3.0):
        assert_close(f(x, factor), compiled(x, factor))
    assert compiled.cache_info().specializations == 1


def test_map():
    m = draw(2, 3)
    found = check(lambda xs: td.map(lambda x: {"p": m @ x, "s": x.sum()}, xs), draw(4, 3))
    assert found["p"].shape == (4, 2) and found["s"].shape == (4,)


def test_callback_in_a_body():
    with td.Library("loopdoc", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: td.asarray(x.numpy() * 2), "CPU")
        library.impl("twice", lambda x: td.empty_like(x), "Meta")
        twice = td.ops.loopdoc.twice
        check(lambda xs: td.scan(lambda c, x: (twice(c) + x, twice(x)), xs[0], xs), draw(4, 3))


def test_error_in_a_body_reaches_the_caller():
    with td.Library("loopdoc", "DEF") as library:
        library.define("fail(Tensor x) -> Tensor")
        library.impl("fail", lambda x: 1 // 0, "CPU")
        library.impl("fail", lambda x: td.empty_like(x), "Meta")
        f = td.jit(lambda xs: td.scan(lambda c, x: (td.ops.loopdoc.fail(c) + x, x), xs[0], xs))
        with pytest.raises(ZeroDivisionError):
            f(draw(4, 3))


# -- fori_loop, while_loop ---------------------------------------------------------------------------------------------
def test_fori_loop():
    assert check(lambda x: td.fori_loop(2, 6, lambda i, v: v + i * x, 0.0), td.asarray(1.0)).item() == 14.0
    assert_close(td.fori_loop(5, 2, lambda i, v: v + 1, 3), td.asarray(3))
    f = lambda n, x: td.fori_loop(0, n, lambda i, v: v * 2 + i, x)  # noqa: E731
    compiled = td.jit(f)
    for n in (0, 1, 5):
        assert_close(f(n, td.asarray(1)), compiled(n, td.asarray(1)))
        assert_close(f(td.asarray(n), td.asarray(1)), compiled(td.asarray(n), td.asarray(1)))


def test_while_loop():
    def collatz(n):
        return td.while_loop(
            lambda s: s[0] != 1,
            lambda s: (td.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
            (n, 0),
        )

    assert check(collatz, td.asarray(27))[1].item() == 111
    assert check(collatz, td.asarray(1))[1].item() == 0


def test_condition_that_is_a_carry_or_a_constant():
    check(lambda x: td.while_loop(lambda s: s[1], lambda s: (s[0] + 1, s[0] < 3), (x, True)), td.asarray(0.0))
    check(lambda x: td.while_loop(lambda v: False, lambda v: v + 1, x), td.asarray(0.0))

"""Custom derivative rules as JAX and PyTorch programs write them: keywords, symbolic zeros, linear rules."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tandem as td
from tandem import errors

WAYS = {"eager": lambda f: f, "jit": td.jit}


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5, atol=1e-6)


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


# -- arguments ---------------------------------------------------------------------------------------------------------
def test_names_of_arguments_that_are_not_differentiated_by(way):
    @functools.partial(td.custom_jvp, nondiff_argnums=(0,), nondiff_argnames="scale")
    def power(f, x, scale):
        return f(x) * scale

    @power.defjvp
    def rule(f, scale, primals, tangents):
        return power(f, *primals, scale), 100.0 * tangents[0]

    @functools.partial(td.custom_vjp, nondiff_argnums=0, nondiff_argnames=["scale"])
    def product(f, x, scale):
        return f(x) * scale

    product.defvjp(
        lambda f, x, scale: (product(f, x, scale), scale), lambda f, scale, kept, g: (g * kept * scale,)
    )
    close(td.grad(way(lambda x: power(td.sin, x, scale=3.0)))(2.0), 100.0)
    close(td.grad(way(lambda x: product(td.sin, scale=3.0, x=x)))(2.0), 9.0)


def test_unknown_names():
    with pytest.raises(TypeError, match="'y' is not a parameter"):
        td.custom_vjp(lambda x: x, nondiff_argnames="y")


def test_a_partial_keeps_its_keyword(way):
    rule = td.custom_jvp(functools.partial(lambda x, y, a: x + y * a, a=0.5))
    rule.defjvp(lambda p, t: (rule(*p), t[0] + 10 * t[1]))
    close(td.grad(way(lambda x, y: rule(x, y)), (0, 1))(1.0, 2.0), (1.0, 10.0))
    with pytest.raises(TypeError, match="by position"):
        rule(1.0, 2.0, a=3.0)
    with pytest.raises(TypeError, match="'y'"):
        rule(1.0)


def test_numbers_among_the_arguments_have_tangents(way):
    @td.custom_jvp
    def f(x, y, c=1.0):
        return c * (x + y)

    f.defjvp(lambda p, t: (f(*p), t[2]))
    value, tangent = td.jvp(way(lambda x: f(x, 5.0, c=2.0)), (10.0,), (1.0,))
    close((value, tangent), (30.0, 0.0))


# -- rules -------------------------------------------------------------------------------------------------------------
def test_a_linear_function_is_its_own_rule(way):
    @td.custom_jvp
    def flip(x):
        return -x

    flip.defjvp(lambda p, t: (flip(*p), flip(*t)))
    f = way(lambda x: (flip(x) * flip(x)).sum())
    x = td.asarray([1.0, 3.0])
    close(td.grad(f)(x), [2.0, 6.0])
    close(td.hessian(f)(x), 2 * np.eye(2))
    close(td.grad(lambda x: td.scan(lambda c, _: (flip(c), None), x, None, length=3)[0])(3.0), -1.0)

    x = td.tensor([1.0, 1.0], requires_grad=True)
    f(x).backward()
    close(x.grad, [2.0, 2.0])


def test_the_rule_of_another_function_on_tangents(way):
    @td.custom_jvp
    def half(x):
        return x / 2

    half.defjvp(lambda p, t: (half(*p), 5.0 * t[0]))

    @td.custom_jvp
    def f(x):
        return td.sin(x)

    f.defjvp(lambda p, t: (f(*p), half(t[0])))
    close(td.jvp(way(f), (1.0,), (1.0,))[1], 0.5)
    close(td.grad(way(f))(1.0), 5.0)  # its transpose goes by the rule


@pytest.mark.parametrize("batched", [False, True])
def test_symbolic_zeros_of_tangents(way, batched):
    seen = []

    @td.custom_jvp
    def f(c, x):
        return c * x, x

    def rule(primals, tangents):
        seen.append([type(t) is td.SymbolicZero for t in tangents])
        assert tangents[0].shape == () and tangents[0].ndim == 0
        return f(*primals), (primals[0] * tangents[1], tangents[0])

    f.defjvp(rule, symbolic_zeros=True)
    whole = td.vmap(f, in_axes=(None, 0)) if batched else f
    x = td.ones(3) if batched else td.asarray(1.0)
    _, tangent = td.jvp(way(lambda x: whole(2.0, x)), (x,), (x,))
    close(tangent[0], 2.0 * x)
    close(tangent[1], 0.0 * x)
    close(td.grad(way(lambda x: sum(y.sum() for y in whole(2.0, x))))(x), 2.0 * x)
    assert all(row == [True, False] for row in seen)


@pytest.mark.parametrize("batched", [False, True])
def test_symbolic_zeros_of_cotangents(way, batched):
    seen = []

    @td.custom_vjp
    def f(x, y):
        return x * y, td.sin(x), 3.0

    def forward(x, y):
        assert isinstance(x, td.CustomVJPPrimal) and x.perturbed and not y.perturbed
        return f(x.value, y.value), (x.value, y.value)

    def backward(kept, g):
        seen.append([type(item) is td.SymbolicZero for item in g])
        close(g[1].instantiate().shape, g[1].shape)
        return kept[1] * g[0], g[1]

    f.defvjp(forward, backward, symbolic_zeros=True)
    whole = td.vmap(lambda x: f(x, 5.0)[0]) if batched else (lambda x: f(x, 5.0)[0])
    x = td.ones(3) if batched else td.asarray(1.0)
    close(td.grad(way(lambda x: whole(x).sum()))(x), 5.0 * x)
    assert seen and all(row == [False, True, True] for row in seen)


def test_zeros_without_being_asked(way):
    @td.custom_vjp
    def f(x):
        return x, 2 * x

    f.defvjp(lambda x: (f(x), None), lambda _, g: (g[0] + 10.0 * g[1],))
    close(td.grad(way(lambda x: f(x)[1]))(1.0), 10.0)


# -- what does not fit -------------------------------------------------------------------------------------------------
def ruled(result):
    f = td.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: result(p[0], t[0]))
    return f


def pulled(gradients):
    f = td.custom_vjp(lambda x, y: (x * y).sum())
    f.defvjp(lambda x, y: (f(x, y), None), lambda _, g: gradients(g))
    return lambda x: f(x, td.ones(2))


@pytest.mark.parametrize("error", [TypeError, ValueError, errors.AutogradError])
@pytest.mark.parametrize(
    ("f", "match"),
    [
        (ruled(lambda x, t: x), "pair"),
        (ruled(lambda x, t: (x, [t])), "structure"),
        (ruled(lambda x, t: (x, td.ones(3))), r"shape \(3,\)"),
        (pulled(lambda g: g), "2 gradients"),
        (pulled(lambda g: (g,)), "2 gradients"),
        (pulled(lambda g: ([g], g)), "structure"),
        (pulled(lambda g: (td.ones(3), None)), r"shape \(3,\)"),
    ],
)
def test_results_that_do_not_fit(f, match, error):
    with pytest.raises(error, match=match):
        td.grad(lambda x: f(x).sum())(td.ones(2))


def test_gradients_may_be_numbers_and_arrays():
    f = td.custom_vjp(lambda p: p["a"] * p["b"])
    f.defvjp(lambda p: (f(p), None), lambda _, g: ({"a": np.asarray(7.0, "float32"), "b": None},))
    found = td.grad(f)({"a": 2.0, "b": 3.0})
    close((found["a"], found["b"]), (7.0, 0.0))


# -- what rules reach by themselves ------------------------------------------------------------------------------------
def with_jvp(y):
    f = td.custom_jvp(lambda x: x * y.sum())
    f.defjvp(lambda p, t: (f(*p), 2 * t[0] * y.sum() * td.asarray(1.0)))
    return f


def with_vjp(y):
    f = td.custom_vjp(lambda x: x * y.sum())
    f.defvjp(lambda x: (f(x), None), lambda _, g: (g * 2 * y.sum() * td.asarray(1.0),))
    return f


Y = td.asarray([1.0, 2.0, 3.0], dtype=td.float64)
BODIES = {
    "scan": lambda f: lambda x: td.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "cond": lambda f: lambda x: td.cond(x > 0, lambda x: f(f(x)), lambda x: x, x),
    "plain": lambda f: lambda x: f(f(x)),
}


@pytest.mark.once
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("make", [with_jvp, with_vjp])
def test_tensors_that_rules_reach(way, make, body):
    f = BODIES[body](make(Y))
    x = td.asarray(1.0, dtype=td.float64)
    close(td.jvp(way(f), (x,), (x,)), (36.0, 144.0))
    close(way(td.grad(f))(x), 144.0)
    close(way(td.grad(td.grad(lambda x: f(x) ** 2)))(x), 2 * 144.0**2)
    xs = td.ones(3, dtype=td.float64)
    close(way(td.vmap(td.grad(f)))(xs), [144.0] * 3)
    close(way(td.grad(lambda x: td.vmap(f)(x).sum()))(xs), [144.0] * 3)


@pytest.mark.parametrize("body", ["scan", "plain"])
@pytest.mark.parametrize("make", [with_jvp, with_vjp])
def test_arguments_of_the_function_around(way, make, body):
    def f(x, y):
        return BODIES[body](make(y))(x)

    x = td.asarray(1.0, dtype=td.float64)
    close(way(td.grad(f))(x, Y), 144.0)
    close(way(td.vmap(td.grad(f), in_axes=(0, None)))(td.ones(2, dtype=td.float64), Y), [144.0] * 2)
    with pytest.raises(errors.UnsupportedError, match="pass that value as an argument"):
        way(td.grad(f, (0, 1)))(x, Y)


@pytest.mark.parametrize("make", [with_jvp, with_vjp])
def test_examples_of_a_batch_that_rules_reach(way, make):
    ys = td.stack([Y, 2 * Y])
    x = td.asarray(1.0, dtype=td.float64)

    def total(x):
        return td.vmap(lambda y: make(y)(x))(ys).sum()

    close(way(td.grad(total))(x), 2 * (6.0 + 12.0))
    close(td.jvp(way(total), (x,), (x,)), (18.0, 36.0))
    close(way(td.vmap(lambda y: td.grad(make(y))(x)))(ys), [12.0, 24.0])


def test_custom_gradient(way):
    @td.custom_gradient
    def f(x, p, scale=2.0):
        product = x * p["w"]
        return product * scale, lambda g: (g * p["w"] * 10, {"w": g * x * 100}, None)

    p = {"w": td.asarray(3.0)}
    close(way(f)(2.0, p), 12.0)
    close(way(lambda x: f(x, p, scale=3.0))(2.0), 18.0)
    by_x, by_p = way(td.grad(lambda x, p: f(x, p, 2.0), (0, 1)))(2.0, p)
    close((by_x, by_p["w"]), (30.0, 200.0))

    @td.custom_gradient
    def square(x):
        return x**2, lambda g: g * x

    close(way(td.grad(td.grad(square)))(3.0), 1.0)
    close(way(td.vmap(td.grad(square)))(td.ones(2)), [1.0, 1.0])
    close(way(td.grad(lambda x: td.scan(lambda c, _: (square(c), None), x, None, length=2)[0]))(2.0), 8.0)
    with pytest.raises(TypeError, match="pair"):
        td.custom_gradient(lambda x: x)(1.0)


def test_options_of_other_libraries(way):
    policy = td.checkpoint_policies.checkpoint_dots
    f = td.checkpoint(
        lambda x, flag: td.sin(x) if flag else x, policy=policy, static_argnums=(1,), prevent_cse=False
    )
    close(way(lambda x: td.grad(f)(x, True))(0.0), 1.0)

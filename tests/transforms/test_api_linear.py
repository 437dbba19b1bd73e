"""The functions that ``vjp`` and ``linearize`` return, checkpoints in a trace, residuals of rules."""

import numpy as np
import pytest
import tandem as td

X = td.asarray([1.0, 2.0])
G = td.asarray([1.0, -3.0])


def product(x):
    return td.sin(x) * x


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


TRANSFORMS = {
    "vjp": lambda f, x: (td.vjp(f, x)[1], lambda b, g: b(g)[0]),
    "linearize": lambda f, x: (td.linearize(f, x)[1], lambda d, t: d(t)),
}


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_given_by_a_jitted_function(kind):
    call = TRANSFORMS[kind](product, X)[1]
    made = td.jit(lambda x: TRANSFORMS[kind](product, x)[0])(X)
    close(call(made, G), call(TRANSFORMS[kind](product, X)[0], G))


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_pullback_as_jit_argument_compiles_once(kind):
    made = td.jit(lambda x: TRANSFORMS[kind](product, x)[0])
    apply = td.jit(TRANSFORMS[kind](product, X)[1])
    for x in (X, X + 1, X + 2):
        function, call = TRANSFORMS[kind](product, x)
        close(apply(made(x), G), call(function, G))
    assert apply.cache_info().misses == 1


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_given_and_taken_by_vmap(kind):
    batch, directions = td.stack([X, X + 1]), td.stack([G, 2 * G])
    functions = td.vmap(lambda x: TRANSFORMS[kind](product, x)[0])(batch)
    call = TRANSFORMS[kind](product, X)[1]
    found = td.vmap(call)(functions, directions)
    for row, x, g in zip(found, batch, directions):
        close(row, call(TRANSFORMS[kind](product, x)[0], g))


@pytest.mark.parametrize("jitted", ["inside", "taken", "closure", "around"])
def test_pullback_is_differentiable_in_its_residuals(jitted):
    def loss(x):
        make = td.jit(lambda x: td.vjp(product, x)) if jitted == "inside" else lambda x: td.vjp(product, x)
        value, back = make(x)
        if jitted == "taken":
            found = td.jit(lambda b, g: b(g)[0])(back, value)
        elif jitted == "closure":
            found = td.jit(lambda g: back(g)[0])(value)
        else:
            found = back(value)[0]
        return (found**2).sum()

    def plain(x):
        return ((product(x) * (td.cos(x) * x + td.sin(x))) ** 2).sum()

    gradient = td.jit(td.grad(loss)) if jitted == "around" else td.grad(loss)
    close(gradient(X), td.grad(plain)(X))


def test_integers_and_nones_on_both_sides():
    _, back = td.vjp(lambda x, n: (x * n, n + 1), X, 3)
    leaves, treedef = td.tree.flatten(back)
    rebuilt = treedef.unflatten(leaves)
    for function in (back, rebuilt):
        by_x, by_n = function((G, None))
        assert by_x.tolist() == [3.0, -9.0] and by_n.dtype is td.float0
        assert function((None, None))[0].tolist() == [0.0, 0.0]
    with pytest.raises(td.errors.ShapeError, match="cotangent"):
        rebuilt((td.ones(3), None))
    with pytest.raises(td.errors.ArgumentError, match="one tree"):
        rebuilt(G, G)


def test_pullback_leaves_are_residuals():
    _, back = td.vjp(lambda x: 3.0 * x, X)
    doubled = td.tree.map(lambda leaf: leaf * 2, td.vjp(lambda x: x * X, X)[1])
    assert td.tree.leaves(back) == [] or all(leaf.size == 1 for leaf in td.tree.leaves(back))
    close(doubled(G)[0], 2 * X * G)


def test_as_aux_of_another_transform():
    def inner(x):
        value, back = td.vjp(product, x)
        return value.sum(), back

    _, back = td.grad(inner, has_aux=True)(X)
    close(back(G)[0], td.vjp(product, X)[1](G)[0])


# -- a checkpoint that ran before the trace of its derivative ----------------------------------------------------------
def branch(x):
    return td.cond(x.sum() > 0, product, lambda x: x * x, x)


def steps(x):
    return td.scan(lambda c, a: (td.sin(c * a), c), x[0], x)[1]


def jitted(x):
    return td.jit(product)(x)


POLICIES = [None, td.checkpoint_policies.dots_saveable]


@pytest.mark.parametrize("policy", POLICIES, ids=["nothing", "dots"])
@pytest.mark.parametrize("body", [branch, steps, jitted])
def test_jitted_backward_after_eager_forward(body, policy):
    def whole(x):
        return body(td.sin(x) * td.asarray([1.0, 2.0]))

    _, back = td.vjp(td.checkpoint(whole, policy=policy), X)
    close(td.jit(back)(G)[0], td.vjp(whole, X)[1](G)[0])


@pytest.mark.parametrize("control", ["scan", "cond"])
def test_a_policy_and_control_flow_with_products(control):
    w, x = td.asarray([[0.5, -0.2], [0.1, 0.3]]), td.asarray([1.0, 2.0])

    def whole(w):
        def body(x):
            return td.sin(td.sin(x @ w) @ w)

        if control == "scan":
            return td.scan(lambda x, _: (body(x), None), x, None, length=3)[0]
        return td.cond(x.sum() > 0, body, lambda x: x, x)

    light = td.checkpoint(whole, policy=td.checkpoint_policies.dots_saveable)
    plain = td.grad(lambda w: whole(w).sum())(w)
    close(td.grad(lambda w: light(w).sum())(w), plain)
    close(td.jit(td.grad(lambda w: light(w).sum()))(w), plain)
    close(td.grad(lambda w: td.jit(light)(w).sum())(w), plain)


# -- data that rules make inside bodies --------------------------------------------------------------------------------
@td.custom_jvp
def scaled(x):
    return x * np.arange(3.0)


scaled.defjvp(lambda primals, tangents: (scaled(*primals), tangents[0] * np.arange(3.0)))


@td.custom_vjp
def weighed(x):
    return x * np.arange(3.0)


weighed.defvjp(lambda x: (weighed(x), None), lambda _, g: (g * np.arange(3.0),))

BODIES = {
    "scan": lambda f, x: td.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "cond": lambda f, x: td.cond(x.sum() > 0, f, lambda x: x, x),
    "fori": lambda f, x: td.fori_loop(0, 3, lambda i, c: f(c) + 1.0, x),
}


@pytest.mark.once
@pytest.mark.parametrize("rule", [scaled, weighed], ids=["jvp", "vjp"])
@pytest.mark.parametrize("body", BODIES)
def test_custom_rule_in_compiled_body_creates_array(body, rule):
    x = td.asarray(np.arange(3.0) + 1)

    def loss(x, f=rule):
        return (BODIES[body](f, x) ** 2).sum()

    wanted = td.grad(lambda x: loss(x, lambda x: x * np.arange(3.0)))(x)
    close(td.jit(td.grad(loss))(x), wanted)
    close(td.grad(td.jit(loss))(x), wanted)
    close(td.jit(td.vmap(td.grad(loss)))(td.stack([x, x]))[1], wanted)
    close(td.jit(lambda x: td.jvp(loss, (x,), (td.ones_like(x),))[1])(x), wanted.sum())


@pytest.mark.parametrize("body", BODIES)
def test_rule_that_calls_its_function_is_traced_a_few_times(body):
    calls = []

    @td.custom_vjp
    def doubled(x):
        return x * 2.0

    def forward(x):
        calls.append(x)
        return doubled(x), None

    doubled.defvjp(forward, lambda _, g: (g * 2.0,))
    td.jit(td.grad(lambda x: BODIES[body](doubled, x).sum()))(td.ones(3))
    assert 1 <= len(calls) < 10, (
        "once for its captures and once for each derivative, not until the recursion limit"
    )


def test_function_with_custom_rule_as_jit_argument():
    apply = td.jit(lambda x, f=scaled: f(x).sum())
    x = td.ones(3)
    assert apply(x).item() == apply(x, weighed).item() == 3.0
    close(td.grad(apply)(x), np.arange(3.0))

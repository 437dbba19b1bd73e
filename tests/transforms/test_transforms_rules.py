"""Custom rules, checkpoint, implicit functions and named axes under every transform, first and second order."""

import functools
import gc
import weakref

import numpy as np
import pytest
import tandem as td
from helpers import assert_same
from rotation import share_each_commit
from tandem import errors
from tandem.lowering.passes.pipeline import optimize


def f64(values):
    return td.asarray(values, dtype=td.float64)


X, Y = f64([0.3, 0.7, -1.2]), f64([2.0, 3.0, 0.5])
MANY = td.stack([X, 2 * X])


assert_close = functools.partial(assert_same, rtol=1e-9, atol=1e-9)


def eagerly(f):
    x = td.asarray(X.tolist(), dtype=td.float64, requires_grad=True)
    (g,) = td.autograd.grad(f(x, Y), x, create_graph=True)
    return g.detach(), td.autograd.grad((g * g).sum(), x)[0]


# what is done with a function of (x, y) that gives a number
TRANSFORMS = {
    "grad": lambda f: td.grad(f, (0, 1))(X, Y),
    "jvp": lambda f: td.jvp(f, (X, Y), (Y, X)),
    "linearize": lambda f: td.linearize(f, X, Y)[1](Y, X),
    "fwd over rev": lambda f: td.jacfwd(td.jacrev(f))(X, Y),
    "rev over rev": lambda f: td.jacrev(td.jacrev(f))(X, Y),
    "rev over fwd": lambda f: td.jacrev(td.jacfwd(f))(X, Y),
    "fwd over fwd": lambda f: td.jacfwd(td.jacfwd(f))(X, Y),
    "third": lambda f: td.jacfwd(td.jacrev(td.jacfwd(f)))(X, Y),
    "vmap of grad": lambda f: td.vmap(td.grad(f, (0, 1)), (0, None))(MANY, Y),
    "grad of vmap": lambda f: td.grad(lambda x, y: td.vmap(f, (0, None))(x, y).sum(), (0, 1))(MANY, Y),
    "vmap of hessian": lambda f: td.vmap(td.hessian(f), (0, None))(MANY, Y),
    "jit": lambda f: td.jit(f)(X, Y),
    "jit of grad": lambda f: td.jit(td.grad(f, (0, 1)))(X, Y),
    "jit of hessian": lambda f: td.jit(td.hessian(f))(X, Y),
    "grad of jit": lambda f: td.grad(td.jit(f), (0, 1))(X, Y),
    "hessian of jit": lambda f: td.hessian(td.jit(f))(X, Y),
    "backward": eagerly,
}


# -- custom_vjp, custom_jvp --------------------------------------------------------------------------------------------
def plain(x, y):
    return {"s": td.sin(x) * y}, x.sum()


@td.custom_vjp
def by_vjp(x, y):
    return plain(x, y)


def forward(x, y):
    return by_vjp(x, y), {"cos": td.cos(x), "sin": td.sin(x), "y": y, "n": 3}


def backward(kept, g):
    return kept["cos"] * kept["y"] * g[0]["s"] + g[1], kept["sin"] * g[0]["s"]


by_vjp.defvjp(forward, backward)


@td.custom_jvp
def by_jvp(x, y):
    return plain(x, y)


@by_jvp.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return by_jvp(x, y), ({"s": td.cos(x) * y * dx + td.sin(x) * dy}, dx.sum())


def loss(function):
    def f(x, y):
        tree, total = function(x * x, y)
        return (tree["s"] ** 2).sum() * total

    return f


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("function", [by_vjp, by_jvp])
def test_rules_by_hand(function, name):
    assert_close(TRANSFORMS[name](loss(function)), TRANSFORMS[name](loss(plain)))


def test_the_rule_is_what_counts():
    straight = td.custom_vjp(lambda x: td.round(x))
    straight.defvjp(lambda x: (straight(x), None), lambda _, g: (g,))
    assert_close(td.grad(lambda x: (straight(x) * Y).sum())(X), Y)
    assert_close(td.jvp(straight, (X,), (Y,))[1], Y)
    assert_close(td.vmap(td.grad(lambda x: straight(x).sum()))(MANY), np.ones((2, 3)))
    x = td.asarray([1.4], requires_grad=True)
    straight(x).sum().backward()
    assert x.grad.tolist() == [1.0]
    twice = td.custom_jvp(lambda x: x * x)
    twice.defjvps(lambda t, out, x: 10 * t * x)
    assert_close(td.grad(lambda x: twice(x).sum())(X), 10 * X)
    assert_close(td.hessian(lambda x: twice(x).sum())(X), 10 * np.eye(3))


def test_nondiff_arguments_defaults_and_methods():
    @lambda f: td.custom_vjp(f, nondiff_argnums=(0,))
    def apply(g, x, power=2.0):
        return g(x) ** power

    apply.defvjp(
        lambda g, x, power: (apply(g, x, power), (x, power)), lambda g, kept, ct: (ct * 100 * kept[0], None)
    )
    assert_close(td.grad(lambda x: apply(td.sin, x).sum())(X), 100 * X)
    assert_close(td.grad(lambda x: apply(g=td.sin, x=x, power=3.0).sum())(X), 100 * X)
    assert apply.__name__ == "apply"


@pytest.mark.parametrize(
    ("backward", "match"),
    [
        (lambda kept, g: (g, g), "tuple of 1"),
        (lambda kept, g: g, "tuple of 1"),
        (lambda kept, g: ([g],), "structure"),
        (lambda kept, g: (g[1:],), "shape"),
    ],
)
def test_wrong_rules(backward, match):
    f = td.custom_vjp(lambda x: x * 2)
    with pytest.raises(errors.AutogradError, match="defvjp"):
        f(X)
    f.defvjp(lambda x: (x * 2, None), backward)
    with pytest.raises(errors.TandemError, match=match):
        td.grad(lambda x: f(x).sum())(X)
    f.defvjp(lambda x: x * 2, backward)
    with pytest.raises(TypeError, match="pair"):
        td.grad(lambda x: f(x).sum())(X)


def test_captured_values_are_refused():
    def g(w):
        f = td.custom_vjp(lambda x: x * w)
        f.defvjp(lambda x: (x * w, None), lambda _, ct: (ct,))
        return f(w).sum()

    with pytest.raises(errors.UnsupportedError, match="pass that value as an argument"):
        td.grad(g)(X)


def test_closure_convert():
    """A rule for a function that is given a function, whose captured values are differentiated by too."""

    @lambda f: td.custom_vjp(f, nondiff_argnums=(0,))
    def apply(g, x, *hoisted):
        return g(x, *hoisted)

    def backward(g, kept, ct):
        return tuple(2 * t for t in td.vjp(g, *kept)[1](ct))

    apply.defvjp(lambda g, x, *hoisted: (g(x, *hoisted), (x, *hoisted)), backward)

    def f(x, y):
        helper = lambda z: z * y  # noqa: E731
        tree = {"y": [y]}
        converted, hoisted = td.closure_convert(lambda z: td.sin(helper(z)) * tree["y"][0], x)
        assert [h is y for h in hoisted] == [True]
        return (apply(converted, x, *hoisted) ** 2).sum()

    def g(x, y):
        return ((td.sin(x * y) * y) ** 2).sum()

    assert_close(td.grad(f, (0, 1))(X, Y), tuple(2 * t for t in td.grad(g, (0, 1))(X, Y)))
    assert_close(td.vmap(td.grad(f), (0, None))(MANY, Y), 2 * td.vmap(td.grad(g), (0, None))(MANY, Y))


# -- checkpoint --------------------------------------------------------------------------------------------------------
POLICIES = td.checkpoint_policies
CHOICES = {
    "none": None,
    "nothing": POLICIES.nothing_saveable,
    "everything": POLICIES.everything_saveable,
    "dots": POLICIES.dots_saveable,
    "names": POLICIES.save_only_these_names("inner"),
    "others": POLICIES.save_any_names_but_these("inner"),
}
W = f64([[0.5, 0.2, -0.1], [0.1, 0.3, 0.4], [0.9, -0.6, 0.2]])


def deep(layer):
    return lambda x, y: (layer(y, layer(y, x)) ** 2).sum()


def layer(y, x):
    inner = td.checkpoint_name(x @ W, "inner")
    z = td.tanh(inner) * y
    z[0] = x[1] * y[0]
    return z


SOME = ("none", "dots", "names")
EACH = [pytest.param(choice, marks=() if choice in SOME else pytest.mark.full) for choice in CHOICES]


@pytest.mark.parametrize("choice", EACH)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_checkpoint(name, choice):
    again = td.checkpoint(layer, policy=CHOICES[choice])
    assert_close(TRANSFORMS[name](deep(again)), TRANSFORMS[name](deep(layer)))


@pytest.mark.parametrize("choice", EACH)
def test_checkpoint_of_closures(choice):
    def f(x, y, wrap):
        return wrap(lambda z: td.sin(z @ W * x).sum() * y)(x).sum()

    for transform in TRANSFORMS.values():
        found = transform(lambda x, y: f(x, y, lambda g: td.checkpoint(g, policy=CHOICES[choice])))
        assert_close(found, transform(lambda x, y: f(x, y, lambda g: g)))


def test_checkpoint_nested_and_as_decorator():
    @td.checkpoint(policy=POLICIES.dots_saveable)
    def outer(y, x):
        return td.checkpoint(layer)(y, td.sin(x)) + td.checkpoint(layer)(y, x)

    def unwrapped(y, x):
        return layer(y, td.sin(x)) + layer(y, x)

    for transform in TRANSFORMS.values():
        assert_close(transform(deep(outer)), transform(deep(unwrapped)))


def test_checkpoint_lets_go():
    """What the function saves is gone until the backward pass."""
    held = []

    def wide(x):
        big = td.sin(x) * td.ones((1000, 3), dtype=td.float64)
        held.append(weakref.ref(big))
        return (big * big).sum()

    x = td.asarray(X.tolist(), dtype=td.float64, requires_grad=True)
    y = wide(x)
    assert held[-1]() is not None or y is not None
    y = td.checkpoint(wide)(x)
    gc.collect()
    assert held[-1]() is None
    y.backward()
    assert_close(x.grad, td.grad(wide)(X))


def test_checkpoint_survives_lowering():
    """Under jit the second computation is not merged with the first one."""

    def sines(wrap):
        g = td.jit(td.value_and_grad(lambda x: wrap(lambda z: td.exp(td.sin(z)))(x).sum()))
        nodes = optimize(g._trace_for_stages((X,), {}).program).nodes
        return sum(node.op.name == "td::sin" for node in nodes)

    assert (sines(td.checkpoint), sines(lambda g: g)) == (2, 1)


def test_checkpoint_errors():
    flip = []

    @td.checkpoint
    def changing(x):
        flip.append(1)
        return td.sin(x) * x if len(flip) % 2 else td.exp(x)

    with pytest.raises(errors.AutogradError, match="other operators"):
        td.grad(lambda x: changing(x).sum())(X)

    def write(x):
        y = x * 1.0
        z = td.checkpoint(td.sin)(y)
        y += 1.0
        return z.sum()

    with pytest.raises(errors.VersionError, match="run again"):
        td.grad(write)(X)
    with pytest.raises(TypeError, match="policy"):
        td.checkpoint(td.sin, policy="dots")


# -- implicit functions ------------------------------------------------------------------------------------------------
STEPS = 20  # of Newton's method, which is exact after ten, and its derivatives with it


def cubic(x, y):
    """z with z + z**3 * y**2 = x, elementwise."""

    def f(z):
        return z + z**3 * y * y - x

    def solve(f, z):
        for _ in range(STEPS):
            z = z - f(z) / (1 + 3 * z * z * td.stop_gradient(y) ** 2)
        return z

    return td.custom_root(f, td.zeros(3, dtype=td.float64), solve, lambda g, b: b / g(td.ones_like(b)))


def unrolled(x, y):
    z = td.zeros(3, dtype=td.float64)
    for _ in range(STEPS):
        z = z - (z + z**3 * y * y - x) / (1 + 3 * z * z * y * y)
    return z


@pytest.mark.parametrize("name", TRANSFORMS)
def test_root(name):
    assert_close(
        TRANSFORMS[name](lambda x, y: (cubic(x, y) ** 2).sum()),
        TRANSFORMS[name](lambda x, y: (unrolled(x, y) ** 2).sum()),
        rtol=1e-7,
        atol=1e-7,
    )


def adjugate(m):
    """The inverse, by cofactors."""

    def cofactor(i, j):
        k, n, p, q = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
        return m[k, p] * m[n, q] - m[k, q] * m[n, p]

    a = td.stack([td.stack([cofactor(i, j) for i in range(3)]) for j in range(3)])
    return a / (m[0] @ a[:, 0])


def dense(matvec, b):
    eye = td.eye(3, dtype=td.float64)
    return adjugate(td.stack([matvec(eye[i]) for i in range(3)], axis=1)) @ b


@pytest.mark.parametrize("name", share_each_commit(TRANSFORMS, 3))
@pytest.mark.parametrize("options", [{}, {"transpose_solve": dense}])
def test_linear_solve(options, name):
    def matrix(y):
        return W + 2 * td.eye(3, dtype=td.float64) * y

    def solved(x, y):
        return (td.custom_linear_solve(lambda v: matrix(y) @ v, x, dense, **options) ** 3).sum()

    assert_close(
        TRANSFORMS[name](solved),
        TRANSFORMS[name](lambda x, y: ((adjugate(matrix(y)) @ x) ** 3).sum()),
        rtol=1e-7,
        atol=1e-7,
    )


# -- named axes --------------------------------------------------------------------------------------------------------
COLLECTIVES = {
    "psum": (lambda x: td.psum(x, "i"), lambda b: b.sum(0, keepdims=True) + 0 * b),
    "pmean": (lambda x: td.pmean(x, "i"), lambda b: b.mean(0, keepdims=True) + 0 * b),
    "pmax": (lambda x: td.pmax(x, "i"), lambda b: b.max(0, keepdims=True) + 0 * b),
    "pmin": (lambda x: td.pmin(x, "i"), lambda b: b.min(0, keepdims=True) + 0 * b),
    "all_gather": (lambda x: td.all_gather(x, "i").reshape(-1), lambda b: td.stack([b.reshape(-1)] * 2)),
    "axis_index": (lambda x: x * td.axis_index("i"), lambda b: b * f64([[0.0], [1.0]])),
    "ppermute": (lambda x: td.ppermute(x, "i", [(1, 0)]), lambda b: td.stack([b[1], 0 * b[0]])),
    "softmax": (
        lambda x: td.exp(x) / td.psum(td.exp(x), "i"),
        lambda b: td.exp(b) / td.exp(b).sum(0, keepdims=True),
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name):
    inside, outside = COLLECTIVES[name]
    batched = td.vmap(inside, axis_name="i")
    for f, g in (
        (batched, outside),
        (td.jit(batched), outside),
        (td.vmap(td.jit(inside), axis_name="i"), outside),
    ):
        assert_close(f(MANY), g(MANY))
        assert_close(
            td.grad(lambda b, f=f: (f(b) ** 2).sum())(MANY), td.grad(lambda b, g=g: (g(b) ** 2).sum())(MANY)
        )
        assert_close(td.jvp(f, (MANY,), (MANY,)), td.jvp(g, (MANY,), (MANY,)))
        assert_close(
            td.hessian(lambda b, f=f: (f(b) ** 2).sum())(MANY),
            td.hessian(lambda b, g=g: (g(b) ** 2).sum())(MANY),
        )
    three = td.stack([MANY, -MANY, 3 * MANY])
    assert_close(td.vmap(batched)(three), td.stack([outside(b) for b in three]))
    assert_close(td.vmap(td.vmap(inside), 1, 1, axis_name="i")(three), td.stack([outside(b) for b in three]))
    inner = td.vmap(td.grad(lambda x: (inside(x) ** 2).sum()), axis_name="i")(MANY)
    if name != "axis_index":  # the same loss for each example counts once for each
        assert_close(inner, td.grad(lambda b: (outside(b) ** 2).sum())(MANY))


def test_axes_have_names():
    rows = td.vmap(lambda r: td.vmap(lambda e: td.psum(e, ("i", "j")), axis_name="j")(r), axis_name="i")
    assert_close(rows(MANY), np.full((2, 3), float(MANY.sum())))
    assert td.vmap(lambda x: td.psum(1, "i") * x, axis_name="i")(X).tolist() == (3 * X).tolist()
    with pytest.raises(
        NameError, match=r"no vmap around this call has an axis named 'j'; the named axes are \['i'\]"
    ):
        td.vmap(lambda x: td.psum(x, "j"), axis_name="i")(X)
    with pytest.raises(errors.AxisNameError, match="there is no named axis"):
        td.axis_index("i")
    with pytest.raises(TypeError, match="once"):
        td.vmap(lambda x: td.ppermute(x, "i", [(0, 1), (0, 2)]), axis_name="i")(X)

"""``custom_vmap``, ``sequential_vmap``, and collectives along a named axis."""

import functools

import numpy as np
import pytest
import tandem as td
from helpers import assert_same

X = td.asarray([1.0, 2.0, 3.0])
Y = td.asarray([0.5, 0.2, 0.1])


def plain(x, y):
    return td.sin(x) * y


def doubled(x, y):
    return td.sin(x) * y * 2.0


@td.custom_vmap
def ruled(x, y):
    return plain(x, y)


@ruled.def_vmap
def _(axis_size, in_batched, x, y):
    return doubled(x, y), True


assert_close = functools.partial(assert_same, rtol=1e-5, atol=1e-6)


ON_EXAMPLES = {
    "call": lambda f: f(X[0], Y[0]),
    "grad": lambda f: td.grad(f, (0, 1))(X[0], Y[0]),
    "jvp": lambda f: td.jvp(f, (X[0], Y[0]), (1.0, 2.0)),
    "jit": lambda f: td.jit(td.grad(f))(X[0], Y[0]),
}
ON_BATCHES = {
    "vmap": lambda f: td.vmap(f)(X, Y),
    "shared": lambda f: td.vmap(f, (0, None))(X, Y[0]),
    "vmap of vmap": lambda f: td.vmap(td.vmap(f))(td.stack([X, X]), td.stack([Y, Y])),
    "vmap of grad": lambda f: td.vmap(td.grad(f, (0, 1)))(X, Y),
    "vmap of grad by a shared one": lambda f: td.vmap(td.grad(f, (0, 1)), (None, 0))(X[0], Y),
    "vmap of grad of grad": lambda f: td.vmap(td.grad(td.grad(f)))(X, Y),
    "vmap of mixed grads": lambda f: td.vmap(td.grad(td.grad(f), 1))(X, Y),
    "vmap of jvp": lambda f: td.vmap(lambda x, y: td.jvp(f, (x, y), (1.0, y)))(X, Y),
    "vmap of jvp of grad": lambda f: td.vmap(lambda x, y: td.jvp(td.grad(f), (x, y), (1.0, y)))(X, Y),
    "vmap of hessian": lambda f: td.vmap(td.hessian(f))(X, Y),
    "jvp of vmap": lambda f: td.jvp(td.vmap(f), (X, Y), (Y, X)),
    "grad of vmap": lambda f: td.grad(lambda x: td.vmap(f)(x, Y).sum())(X),
    "grad of vmap of grad": lambda f: td.grad(lambda x: td.vmap(td.grad(f))(x, Y).sum())(X),
    "jit of vmap of grad": lambda f: td.jit(td.vmap(td.grad(f)))(X, Y),
    "vmap of grad of jit": lambda f: td.vmap(td.grad(td.jit(f)))(X, Y),
    "vmap of checkpoint": lambda f: td.vmap(td.grad(td.checkpoint(f)))(X, Y),
    "constant cotangent": lambda f: td.vmap(lambda x, y: td.vjp(f, x, y)[1](3.0))(X, Y),
}


@pytest.mark.parametrize("how", ON_EXAMPLES)
def test_examples_do_not_use_the_rule(how):
    assert_close(ON_EXAMPLES[how](ruled), ON_EXAMPLES[how](plain))


@pytest.mark.parametrize("how", ON_BATCHES)
def test_batches_use_the_rule_and_its_derivatives(how):
    assert_close(ON_BATCHES[how](ruled), ON_BATCHES[how](doubled))


@pytest.mark.parametrize("how", [*ON_EXAMPLES, *(how for how in ON_BATCHES if how != "vmap of hessian")])
def test_one_example_after_the_other(how):
    compute = {**ON_EXAMPLES, **ON_BATCHES}[how]
    assert_close(compute(td.sequential_vmap(plain)), compute(plain))


def test_unsupported_nested_derivative_of_loop_is_explained():
    with pytest.raises(td.errors.UnsupportedError, match="whole batch"):
        ON_BATCHES["vmap of hessian"](td.sequential_vmap(plain))


def test_rule_receives_which_arguments_are_batched():
    seen = []

    @td.custom_vmap
    def f(p, x):
        return {"a": p["w"] * x, "b": p["w"] + p["v"]}

    @f.def_vmap
    def _(axis_size, in_batched, p, x):
        seen.append((axis_size, in_batched))
        return {"a": p["w"] * x, "b": p["w"] + p["v"]}, {"a": True, "b": False}

    found = td.vmap(f, in_axes=(None, 0))({"w": td.asarray(2.0), "v": td.asarray(1.0)}, X)
    assert seen == [(3, [{"w": False, "v": False}, True])]
    assert found["a"].tolist() == [2.0, 4.0, 6.0] and found["b"].tolist() == [3.0, 3.0, 3.0]


def test_faults_of_rules_are_named():
    lone = td.custom_vmap(plain)
    with pytest.raises(td.errors.RuleError, match="def_vmap"):
        td.vmap(lone)(X, Y)
    for rule, said in (
        (lambda n, b, x, y: x, "pair"),
        (lambda n, b, x, y: (x[0], True), "batch of 3"),
        (lambda n, b, x, y: (x, [True, True]), "out_batched"),
    ):
        lone.def_vmap(rule)
        with pytest.raises(td.errors.RuleError, match=said):
            td.vmap(lone)(X, Y)


# -- what examples exchange -----------------------------------------------------------------------------------------
CUBE = np.arange(48.0, dtype=np.float32).reshape(4, 4, 3)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(("split", "concat"), [(0, 0), (0, 1), (-2, -1)])
def test_all_to_all_is_a_transpose(split, concat, jitted):
    f = td.vmap(lambda x: td.all_to_all(x, "i", split, concat), axis_name="i")
    wanted = np.moveaxis(CUBE.transpose(1, 0, 2), 1, concat % 2 + 1)
    assert_close((td.jit(f) if jitted else f)(td.asarray(CUBE)), wanted)


def test_all_to_all_of_blocks():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 4, 3)
    found = td.vmap(lambda x: td.all_to_all(x, "i", 0, 1, tiled=True), axis_name="i")(td.asarray(x))
    assert_close(
        found, np.stack([np.concatenate([x[0][:2], x[1][:2]], 1), np.concatenate([x[0][2:], x[1][2:]], 1)])
    )


@pytest.mark.parametrize("tiled", [False, True])
def test_parts_of_a_sum(tiled):
    x = np.arange(32.0, dtype=np.float32).reshape(4, 4, 2) if not tiled else np.arange(64.0).reshape(4, 8, 2)
    found = td.vmap(lambda x: td.psum_scatter(x, "i", tiled=tiled), axis_name="i")(td.asarray(x))
    assert_close(found, x.sum(0).reshape(4, 2, 2) if tiled else x.sum(0))


def test_exchanges_differentiate():
    x = td.asarray(CUBE[:, :, 0])
    w = td.asarray(np.arange(16.0, dtype=np.float32).reshape(4, 4))

    def loss(x, f):
        return (td.vmap(lambda x: f(x, "i"), axis_name="i")(x) * w).sum()

    assert_close(td.grad(lambda x: loss(x, lambda x, i: td.all_to_all(x, i, 0, 0)))(x), w.mT)
    assert_close(td.grad(lambda x: loss(x, lambda x, i: td.pbroadcast(x, i, 2)))(x)[2], w.sum(0))


def test_exchanges_check_their_arguments():
    def run(f):
        return td.vmap(f, axis_name="i")(td.asarray(CUBE))

    for call in (
        lambda x: td.all_to_all(x, "i", 1, 0),
        lambda x: td.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    ):
        with pytest.raises(td.errors.ShapeError, match="examples"):
            run(call)
    with pytest.raises(td.errors.AxisError):
        run(lambda x: td.all_to_all(x, "i", 5, 0))
    with pytest.raises(td.errors.ArgumentError, match="source"):
        run(lambda x: td.pbroadcast(x, "i", 4))
    with pytest.raises(td.errors.AxisNameError):
        run(lambda x: td.psum_scatter(x, "j"))


def test_exchanges_along_two_axes_as_one():
    x = np.arange(16.0, dtype=np.float32).reshape(2, 2, 4)
    both = td.vmap(td.vmap(lambda x: td.all_to_all(x, ("i", "j"), 0, 0), axis_name="j"), axis_name="i")
    assert_close(both(td.asarray(x)), x.reshape(4, 4).T.reshape(2, 2, 4))
    parts = td.vmap(td.vmap(lambda x: td.psum_scatter(x, ("i", "j")), axis_name="j"), axis_name="i")
    assert_close(parts(td.asarray(x)), x.reshape(4, 4).sum(0).reshape(2, 2))


def test_rules_of_methods_and_arguments_by_name():
    class Model:
        @td.custom_vmap
        def apply(self, x, scale=2.0):
            return x * scale

    @Model.apply.def_vmap
    def _(axis_size, in_batched, self, x, scale):
        return x * scale + 1.0, True

    td.pytree.register_static(Model)
    assert td.vmap(lambda x: Model().apply(x=x))(X).tolist() == [3.0, 5.0, 7.0]
    assert Model().apply(3.0, scale=5.0) == 15.0

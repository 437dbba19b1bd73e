"""Jitted functions that capture values of enclosing transforms: captures become inputs."""

from __future__ import annotations

import numpy as np
import pytest
import tandem as td

TRANSFORMS = {
    "grad": (td.grad, 0.7),
    "grad∘grad": (lambda f: td.grad(td.grad(f)), 0.7),
    "jvp": (lambda f: lambda x: td.jvp(f, (x,), (x,)), 0.7),
    "jacfwd": (td.jacfwd, 0.7),
    "hessian": (td.hessian, 0.7),
    "vmap": (td.vmap, [0.7, 0.2]),
    "vmap∘grad": (lambda f: td.vmap(td.grad(f)), [0.7, 0.2]),
    "vmap∘hessian": (lambda f: td.vmap(td.hessian(f)), [0.7, 0.2]),
    "grad∘vmap": (lambda f: td.grad(lambda x: td.vmap(f)(x).sum()), [0.7, 0.2]),
    "grad∘grad∘vmap": (
        lambda f: td.grad(lambda x: td.grad(lambda x: td.vmap(f)(x).sum())(x).sum()),
        [0.7, 0.2],
    ),
    "jit∘grad": (lambda f: td.jit(td.grad(f)), 0.7),
    "linearize": (lambda f: lambda x: td.linearize(f, x)[1](x), 0.7),
}


class Holder:
    w = None


def closure(jit, x):
    @jit
    def inner(y):
        return td.sin(y) * x

    return inner(x * 2.0) + inner(2.0)


def helper(jit, x):
    def scaled(y):
        return y * x

    parts = {"a": x, "b": [x * x, 3.0]}

    @jit
    def inner(y):
        return scaled(y) + parts["a"] * parts["b"][0] * parts["b"][1]

    return inner(x) + inner(td.asarray(2.0, dtype=td.float64))


def nested(jit, x):
    @jit
    def inner(y):
        return td.grad(lambda z: td.sin(z * x) * y)(y)

    return td.vmap(inner)(td.asarray([1.0, 2.0], dtype=td.float64)).sum() * inner(x)


def attribute(jit, x):
    holder = Holder()
    holder.w = x
    inner = jit(lambda y: y * holder.w)
    return inner(x * 2.0) + inner(2.0)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("program", [closure, helper, nested, attribute])
def test_against_plain_functions(program, name):
    transform, x = TRANSFORMS[name]
    x = td.asarray(x, dtype=td.float64)
    found = transform(lambda x: program(td.jit, x))(x)
    wanted = transform(lambda x: program(lambda f: f, x))(x)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9)


def test_the_body_runs_once():
    runs = []

    def loss(w):
        @td.jit
        def layer(x):
            runs.append(x)
            return x * w

        return sum((layer(td.asarray(float(n))) for n in range(5)), 0.0)

    assert td.grad(loss)(2.0).item() == 10.0
    assert len(runs) == 1


GLOBAL = {"w": None}


@td.jit
def of_global(x):
    RUNS.append(x)
    return td.tanh(x * GLOBAL["w"])


RUNS: list[object] = []


def test_a_function_serves_other_values_of_its_variables():
    def loss(w):
        GLOBAL["w"] = w
        try:
            return of_global(1.0)
        finally:
            GLOBAL["w"] = None

    first = [td.grad(loss)(w).item() for w in (0.5, 0.7)]
    assert len(RUNS) == 1 and GLOBAL["w"] is None
    np.testing.assert_allclose(first, 1 - np.tanh([0.5, 0.7]) ** 2, rtol=1e-5)


def test_a_value_of_a_transform_that_has_ended():
    kept = []
    td.grad(lambda x: kept.append(x) or x)(1.0)
    x = kept[0]
    f = td.jit(lambda y: y * x)
    with pytest.raises(td.errors.LeakedTracerError):
        td.grad(lambda y: f(y))(2.0)
    with pytest.raises(td.errors.LeakedTracerError):
        f(2.0)


def test_a_checkpointed_function_that_makes_jitted_ones():
    def f(x):
        inner = td.jit(lambda y: td.sin(y) * x)
        return inner(x) + td.jit(td.cos)(x)

    x = td.asarray(0.7, dtype=td.float64)
    for transform in (td.grad, lambda f: td.grad(td.grad(f)), lambda f: td.jit(td.grad(f))):
        np.testing.assert_allclose(transform(td.checkpoint(f))(x).item(), transform(f)(x).item(), rtol=1e-9)


def test_named_axes_are_part_of_what_is_compiled():
    count = td.jit(lambda: td.psum(1, "i"))
    for size in (2, 3, 3, 2):
        assert (
            td.vmap(lambda _: count(), axis_name="i", axis_size=size)(td.ones(size)).tolist() == [size] * size
        )
    with pytest.raises(td.errors.AxisNameError):
        count()


def test_values_captured_but_unused():
    kept = []

    @td.jit
    def f(x):
        kept.append(x)
        return x * 2.0

    assert [td.grad(f)(1.0).item() for _ in range(3)] == [2.0] * 3
    assert td.vmap(td.grad(lambda x: f(x) * f(3.0)))(td.ones(2)).tolist() == [12.0, 12.0]

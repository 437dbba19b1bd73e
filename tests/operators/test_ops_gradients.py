"""Derivatives of every declared operator in float64, first and second order, by random projection.

For ``f(x) = sum(w * op(x))`` with random ``w`` the derivative in a random direction ``v`` is compared with a central
difference; for the second order ``f`` is replaced by ``sum(u * grad f)``. Richardson's step takes the differences'
error to the fourth power of the step, far below the bound.
"""

import numpy as np
import pytest
import tandem as td
from gradient_harness import BOUND, DIFFERENTIABLE, OPS, directional, projected, smooth_samples
from optable import generator, to_tensors
from rotation import rotating
from tandem.eager.tensor.tensor import wrap
from tandem.operators.declare.derivatives import Rule, parameter_names, reverse_rules
from tandem.registry.dtypes import float64


def dot(gradients, directions):
    return sum(float((g * wrap(np.asarray(d))).sum()) for g, d in zip(gradients, directions, strict=True))


def gradient(f, count):
    return td.grad(f, argnums=tuple(range(count)))


def compare(f, points, rng, what):
    directions = [rng.normal(size=p.shape) for p in points]
    tensors = [wrap(p) for p in points]
    got = dot(gradient(f, len(points))(*tensors), directions)
    want = directional(f, points, directions)
    assert abs(got - want) <= BOUND * max(1.0, abs(want)), f"{what}: {got} instead of {want}"


@rotating
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_order(name):
    op = OPS[name]
    chosen = smooth_samples(op)
    assert chosen, "no sample to differentiate"
    for args, kwargs in chosen:
        rng = generator(op, float64)
        f, points = projected(op, args, kwargs, rng)
        compare(f, points, rng, f"{name} {args} {kwargs}")


@rotating
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_order(name):
    op = OPS[name]
    for args, kwargs in smooth_samples(op)[::2]:
        rng = generator(op, float64)
        f, points = projected(op, args, kwargs, rng)
        weights = [wrap(np.asarray(rng.normal(size=p.shape))) for p in points]

        def slope(*values, f=f, weights=weights):
            found = gradient(f, len(weights))(*values)
            return sum((g * w).sum() for g, w in zip(found, weights, strict=True))

        compare(slope, points, rng, f"{name} {args} {kwargs}")


WITH_JVP = [name for name in DIFFERENTIABLE if isinstance(OPS[name].decl.derivative, Rule)]


def named(op, args, kwargs):
    """The values that rules name, of a call with tensors."""
    args, kwargs = op.binder.bind(to_tensors(args), to_tensors(kwargs))
    values = dict(zip([argument.name for argument in op.schema.positional], args, strict=True)) | kwargs
    values["out"] = op(*args, **kwargs)
    return values | {f"{k}_spec": v.spec for k, v in values.items() if isinstance(v, td.Tensor)}


@pytest.mark.parametrize("name", WITH_JVP)
def test_forward_rule_is_transpose_of_reverse_rule(name):
    """``g . jvp(t) == vjp(g) . t``, for each argument that has both."""
    op = OPS[name]
    rules = op.decl.derivative.jvp
    for args, kwargs in smooth_samples(op):
        rng = generator(op, float64)
        values = named(op, args, kwargs)
        if not isinstance(values["out"], td.Tensor):
            continue
        g = wrap(np.asarray(rng.normal(size=values["out"].shape)))
        for argument in rules.keys() & reverse_rules(op.decl.derivative).keys():
            if not isinstance(values[argument], td.Tensor):
                continue
            t = wrap(np.asarray(rng.normal(size=values[argument].shape)))
            forward, reverse = rules[argument], reverse_rules(op.decl.derivative)[argument]
            ahead = forward(**{n: {**values, "t": t}[n] for n in parameter_names(forward)})
            back = reverse(**{n: {**values, "g": g}[n] for n in parameter_names(reverse)})
            assert float((ahead * g).sum()) == pytest.approx(float((back * t).sum()), rel=1e-9, abs=1e-12)

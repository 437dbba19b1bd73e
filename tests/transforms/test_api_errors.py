"""Errors of transforms: exception types that NumPy and JAX users catch, and messages that name the place."""

from __future__ import annotations

import collections
import copy
import dataclasses

import numpy as np
import pytest
import tandem as td

X = td.ones(3)
BOTH = (TypeError, ValueError)


def solve(f, x):
    return x


CASES = {
    "tangent of another dtype": (lambda: td.jvp(td.sin, (X,), (X.astype(td.float64),)), "float64"),
    "tangent of another shape": (lambda: td.jvp(td.sin, (X,), (X[1:],)), r"shape \(2,\)"),
    "tangents of another structure": (lambda: td.jvp(td.sin, (X,), ([X],)), "structure"),
    "direction of another dtype": (lambda: td.linearize(td.sin, X)[1](X.astype(td.float64)), "float64"),
    "cotangent of another dtype": (lambda: td.vjp(td.sin, X)[1](X.astype(td.float16)), "float16"),
    "cotangent of another shape": (lambda: td.vjp(td.sin, X)[1](td.ones(())), r"shape \(\)"),
    "cotangents of another structure": (lambda: td.vjp(lambda x: (x, x), X)[1](X), "structure"),
    "transpose of another shape": (
        lambda: td.linear_transpose(lambda x: td.stack([x, x]), 1.0)(1.0),
        "shape",
    ),
    "gradient of an array": (lambda: td.grad(td.sin)(X), r"shape \(\)"),
    "shapes that differ": (lambda: X + td.ones(4), r"\(3,\) and \(4,\)"),
    "in_axes of another length": (lambda: td.vmap(td.sin, in_axes=(0, 0))(X), "2 items"),
    "in_axes of another structure": (
        lambda: td.vmap(td.sin, in_axes=([0, 0],))(X),
        "is not a prefix of the tree",
    ),
    "root: f": (
        lambda: td.custom_root(lambda x: (x, x), 0.0, solve, solve),
        r"f\(\) returned another structure",
    ),
    "root: solve": (
        lambda: td.custom_root(lambda x: x, 0.0, lambda f, x: (x, x), solve),
        r"solve\(\) returned",
    ),
    "root: tangent_solve": (
        lambda: td.jvp(
            lambda a: td.custom_root(lambda x: x - a, 0.0, lambda f, x: a, lambda f, x: (x, x)),
            (1.0,),
            (1.0,),
        ),
        r"tangent_solve\(\) returned",
    ),
    "linear solve: matvec": (
        lambda: td.custom_linear_solve(lambda x: [x], 1.0, solve),
        r"matvec\(\) returned",
    ),
    "linear solve: shapes": (
        lambda: td.custom_linear_solve(lambda x: x * td.ones(2), 1.0, solve),
        r"matvec\(\) returned shape \(2,\)",
    ),
}


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("name", CASES)
def test_error_types_and_messages(name, kind):
    call, match = CASES[name]
    with pytest.raises(kind, match=match):
        call()


@pytest.mark.parametrize("kind", [IndexError, ValueError])
def test_axes_that_are_not_there(kind):
    for call in (lambda: td.vmap(td.sin)(1.0), lambda: td.vmap(td.sin, in_axes=2)(X)):
        with pytest.raises(kind, match="has no axis"):
            call()


def test_sizes_are_named_with_their_places():
    with pytest.raises(
        ValueError, match="3 in argument 0 along axis 0, 4 in keyword argument 'y' along axis 0"
    ):
        td.vmap(lambda x, y: x)(X, y=td.ones((4, 2)))


# -- trees -------------------------------------------------------------------------------------------------------------
Pair = collections.namedtuple("Pair", "w b")


@dataclasses.dataclass
class Parameters:
    w: object
    b: object


td.pytree.register_dataclass(Parameters)


@pytest.mark.parametrize("kind", [Pair, Parameters, lambda w, b: {"w": w, "b": b}, lambda w, b: [w, (b,)]])
@pytest.mark.parametrize("way", [lambda f: f, td.jit])
def test_arguments_of_any_structure(kind, way):
    def loss(p, x, q):
        w, b = td.tree.leaves(p) if not isinstance(p, dict) else (p["w"], p["b"])
        return (w * x + b).sum() * q["c"]

    p, q = kind(td.asarray(2.0), td.asarray(1.0)), {"c": td.asarray(3.0)}
    by_p, by_q = way(td.grad(loss, argnums=(0, -1)))(p, X, q)
    assert type(by_p) is type(p)
    np.testing.assert_allclose(sorted(float(g) for g in td.tree.leaves(by_p)), [9.0, 9.0])
    np.testing.assert_allclose(by_q["c"].item(), 9.0)
    rows = way(td.vmap(td.grad(loss), in_axes=(None, 0, None)))(p, td.ones((2, 3)), q)
    assert all(g.shape == (2,) for g in td.tree.leaves(rows))
    second = td.tree.leaves(way(td.hessian(loss))(p, X, q))
    assert len(second) == 4 and all(g.shape == () for g in second)


def test_numpy_takes_our_dtypes():
    assert np.zeros(2, td.float32).dtype == np.float32
    assert np.dtype(td.float0) == np.bool_


def test_traced_numbers_are_copied_as_numbers_are():
    assert td.jit(lambda x: copy.deepcopy({"x": x})["x"] + copy.copy(x))(1) == 2

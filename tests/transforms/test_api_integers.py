"""Integer and boolean arguments of derivatives: their tangents are zeros of ``float0``."""

from __future__ import annotations

import numpy as np
import pytest
import tandem as td

WAYS = {"eager": lambda f: f, "jit": td.jit}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def is_zero(found, shape=()):
    return found.dtype is td.float0 and found.shape == shape and not found.any()


@pytest.mark.parametrize(
    "tangent", [None, 0, 1, np.zeros((), [("float0", "V", 0)]), td.zeros((), dtype=td.float0)]
)
def test_forward_mode(tangent):
    value, found = td.jvp(lambda x, n: (x * n, n + 1), (2.0, 3), (1.0, tangent))
    assert value[1].item() == 4 and found[0].item() == 3.0
    assert is_zero(found[1])


def test_forward_mode_compiled(way):
    value, found = way(lambda x, n: td.jvp(lambda x, n: (x * n, n > 2), (x, n), (x, None)))(2.0, 3)
    assert value[1].item() is True and found[0].item() == 6.0 and is_zero(found[1])


def test_reverse_mode(way):
    n = td.arange(3)
    by_x, by_n = way(lambda x, n: td.vjp(lambda x, n: x * n, x, n)[1](td.ones(3)))(2.0, n)
    assert by_x.item() == 3.0 and is_zero(by_n, (3,))


def test_gradients(way):
    assert is_zero(way(td.grad(lambda n: n * 2.0, allow_int=True))(3))
    tree = {"n": td.arange(2), "w": td.ones(2), "flag": True}
    found = way(td.grad(lambda p: (p["n"] * p["w"]).sum(), allow_int=True))(tree)
    assert found["w"].tolist() == [0.0, 1.0] and is_zero(found["n"], (2,)) and is_zero(found["flag"])
    value, (by_x, by_n) = td.value_and_grad(lambda x, n: x**n, (0, 1), allow_int=True)(2.0, 3)
    assert value.item() == 8.0 and by_x.item() == 12.0 and is_zero(by_n)
    for transform in (td.grad, td.value_and_grad, td.jacrev, td.jacfwd, td.hessian):
        with pytest.raises(TypeError, match="argument 0 is int64"):
            transform(lambda n: n * 2.0)(3)


def test_jacobians(way):
    rows = way(td.jacrev(lambda x, n: td.sin(x * n), (0, 1), allow_int=True))(td.ones(2), td.arange(2))
    assert rows[0].shape == (2, 2) and is_zero(rows[1], (2, 2))


def test_batches(way):
    found = way(td.vmap(td.grad(lambda n, x: n * x, (0, 1), allow_int=True)))(td.arange(3), td.ones(3))
    assert is_zero(found[0], (3,)) and found[1].tolist() == [0.0, 1.0, 2.0]


def test_linearize_and_transpose():
    _, derivative = td.linearize(lambda x, n: (x * n, n), 2.0, 3)
    assert derivative(2.0, None)[0].item() == 6.0 and is_zero(derivative(2.0, 5)[1])
    assert td.linear_transpose(lambda z: (1 + 2j) * z, 1j)(3 + 4j)[0].item() == -5 + 10j
    found = td.linear_transpose(lambda n: 2 * n[1:], td.arange(3))(td.asarray([3, 4]))[0]
    assert found.tolist() == [0, 6, 8] and found.dtype is td.int64
    assert td.linear_transpose(lambda n: 2 * n, 1)(3)[0].item() == 6
    with pytest.raises(TypeError, match="booleans"):
        td.linear_transpose(lambda n: 2 * n, True)


def test_rules_by_hand(way):
    f = td.custom_jvp(lambda x, n: x * n)

    def rule(p, t):
        assert t[1].dtype is td.float0
        return f(*p), p[1] * t[0]

    f.defjvp(rule)
    assert td.grad(way(f))(2.0, td.asarray(3)).item() == 3.0
    assert is_zero(td.grad(way(f), 1, allow_int=True)(2.0, td.asarray(3)))

    g = td.custom_vjp(lambda x, n: x * n)
    g.defvjp(lambda x, n: (g(x, n), n), lambda n, ct: (n * ct, td.zeros((), dtype=td.float0)))
    assert td.grad(way(g))(2.0, td.asarray(3)).item() == 3.0

"""``td.grad`` and ``td.value_and_grad``: pytrees, nesting, levels, leaks, errors."""

import dataclasses
from collections import namedtuple

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.eager.layers.levels import stack

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object


def f64(values):
    return td.asarray(values, dtype=td.float64)


# -- arguments and results ---------------------------------------------------------------------------------------------
def test_numbers_arrays_and_tensors():
    for x in (3.0, np.float32(3), np.array(3.0), td.asarray(3.0), f64(3)):
        value, slope = td.value_and_grad(lambda v: v * v)(x)
        assert (value.item(), slope.item()) == (9.0, 6.0)
        assert value.dtype is slope.dtype is td.asarray(x).dtype
        assert type(value) is type(slope) is td.Tensor


def test_pytrees():
    def loss(p):
        return (
            (p["layers"][0].weight * p["pair"].a).sum()
            + p["pair"].b[0] * p["scale"][1]
            + 0 * p["unused"].sum()
        )

    tree = {
        "layers": [Layer(f64([1, 2]), None)],
        "pair": Pair(f64([3, 4]), (f64(5), 6.0)),
        "scale": (1.0, 2.0),
        "unused": np.ones(2),
    }
    found = td.grad(loss)(tree)
    assert type(found["layers"][0]) is Layer
    assert found["layers"][0].weight.tolist() == [3.0, 4.0]
    assert found["layers"][0].bias is None
    assert type(found["pair"]) is Pair
    assert found["pair"].a.tolist() == [1.0, 2.0]
    assert (found["pair"].b[0].item(), found["pair"].b[1].item()) == (2.0, 0.0)
    assert found["scale"][1].item() == 5.0
    assert found["unused"].tolist() == [0.0, 0.0]


def test_argnums_and_keywords():
    def f(x, y, *, scale=1.0):
        return (x * y * scale).sum()

    x, y = f64([1, 2]), f64([3, 4])
    assert td.grad(f, 1)(x, y).tolist() == [1, 2]
    assert td.grad(f, -1)(x, y).tolist() == [1, 2]
    one, two = td.grad(f, (1, 0))(x, y, scale=2.0)
    assert (one.tolist(), two.tolist()) == ([2, 4], [6, 8])
    assert type(td.grad(f, (0,))(x, y)) is tuple


def test_aux():
    def f(x):
        y = x * x
        return y.sum(), {"y": y, "n": 3, "none": None}

    (value, aux), slope = td.value_and_grad(f, has_aux=True)(f64([1, 2]))
    assert (value.item(), aux["y"].tolist(), aux["n"]) == (5.0, [1, 4], 3)
    assert type(aux["y"]) is td.Tensor
    slope, aux = td.grad(f, has_aux=True)(f64([1, 2]))
    assert (slope.tolist(), aux["n"]) == ([2, 4], 3)


def test_ignored_arguments_give_zeros():
    for f in (lambda x: 1.0, lambda x: td.asarray(2.0), lambda x: (x > 0).astype(td.float32).sum()):
        assert td.grad(f)(td.ones((2, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_control_flow_on_values():
    def f(x):
        return x * 3 if x > 1 else x * x

    assert td.grad(f)(2.0).item() == 3.0
    assert td.grad(f)(0.5).item() == 1.0


def test_results_are_plain_and_writable():
    x = td.ones(3)
    found = td.grad(lambda v: (v + v.sum()).sum())(x)
    found += 1
    assert type(found) is td.Tensor
    assert not found.requires_grad
    assert x.tolist() == [1, 1, 1]


def test_name_and_doc_are_kept():
    def loss(x):
        """Doc."""
        return x

    assert td.grad(loss).__name__ == "loss"
    assert td.value_and_grad(loss).__doc__ == "Doc."


# -- nesting -----------------------------------------------------------------------------------------------------------
def test_higher_orders():
    f, x = (lambda v: v**5), 1.5
    for order, wanted in enumerate([5 * x**4, 20 * x**3, 60 * x**2, 120 * x, 120.0]):
        f = td.grad(f)
        assert f(f64(x)).item() == pytest.approx(wanted), order


def test_no_perturbation_confusion():
    assert td.grad(lambda x: x * td.grad(lambda y: x + y)(1.0))(1.0).item() == 1.0
    assert td.grad(lambda x: x * td.grad(lambda y: x * y)(2.0))(3.0).item() == 6.0
    assert td.grad(lambda x: td.grad(lambda y: x * x * y)(x) + x)(2.0).item() == 5.0


def test_inner_gradient_of_captured_values():
    def outer(x):
        inner = td.grad(lambda y: (y * y * x).sum())(x)  # 2 x^2, where x arrives both ways
        return (inner * x).sum()

    np.testing.assert_allclose(td.grad(outer)(f64([1, 2])).numpy(), 6 * np.array([1.0, 4.0]))


def test_mixed_with_requires_grad():
    w = td.asarray([2.0, 3.0], requires_grad=True)
    found = td.grad(lambda x: (x * x * w).sum())(td.asarray([1.0, 2.0]))
    assert found.requires_grad
    found.sum().backward()
    assert w.grad.tolist() == [2.0, 4.0]
    w.grad = None
    found = td.grad(lambda x: (x**3).sum())(w)
    found.sum().backward()
    assert w.grad.tolist() == [12.0, 18.0]
    with td.no_grad():
        assert not td.grad(lambda x: (x * w).sum())(td.ones(2)).requires_grad
        assert td.grad(lambda x: (x * x).sum())(td.ones(2)).tolist() == [2.0, 2.0]


def test_no_grad_inside():
    def f(x):
        with td.no_grad():
            y = x * x
        return (x * y).sum()

    assert td.grad(f)(f64([3])).tolist() == [9.0]


def test_stop_gradient():
    assert td.grad(lambda x: x * td.stop_gradient(x))(3.0).item() == 3.0
    assert td.grad(lambda x: x * x.detach())(3.0).item() == 3.0
    assert td.grad(td.grad(lambda x: x * x * td.stop_gradient({"x": x})["x"]))(3.0).item() == 6.0


def test_composites_decompose_at_each_level():
    x = f64(np.random.default_rng(0).normal(size=(2, 3)))
    found = td.grad(lambda v: (td.softmax(v) ** 2).sum())(x).numpy()
    p = np.exp(x.numpy()) / np.exp(x.numpy()).sum(-1, keepdims=True)
    wanted = 2 * p * (p - (p * p).sum(-1, keepdims=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


# -- errors ------------------------------------------------------------------------------------------------------------
ONES = td.ones(2)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: td.grad(3), TypeError, "takes a function"),
        (lambda: td.grad(lambda x: x, "x"), TypeError, "argnums"),
        (lambda: td.grad(lambda x: x, ()), TypeError, "argnums"),
        (lambda: td.grad(lambda x: x, 1)(1.0), TypeError, "1 positional"),
        (lambda: td.grad(lambda x: x.sum())(x=ONES), TypeError, "by position"),
        (lambda: td.grad(lambda x: x)(1), TypeError, "argument 0 is int64.*astype"),
        (lambda: td.grad(lambda p: p["w"])({"w": [1.0, True]}), TypeError, r"at \['w'\]\[1\] is bool"),
        (lambda: td.grad(lambda p: p["w"])({"w": "a"}), TypeError, r"at \['w'\].*text"),
        (lambda: td.grad(lambda p: p)(object()), TypeError, "argument 0"),
        (lambda: td.grad(lambda x: x * 2)(ONES), ValueError, r"float32\[2\].*\.sum\(\)"),
        (lambda: td.grad(lambda x: x.argmax())(ONES), TypeError, "int64"),
        (lambda: td.grad(lambda x: None)(ONES), TypeError, "NoneType"),
        (lambda: td.grad(lambda x: (x.sum(), x))(ONES), TypeError, "has_aux=True"),
        (lambda: td.grad(lambda x: x.sum(), has_aux=True)(ONES), TypeError, "pair"),
        (lambda: td.grad(lambda x: (x * 1j).sum())(ONES), TypeError, "complex64"),
    ],
)
def test_errors_say_what_works(call, kind, text):
    with pytest.raises(kind, match=rf"(?s){text}") as caught:
        call()
    assert isinstance(caught.value, errors.TandemError)
    assert not stack.levels

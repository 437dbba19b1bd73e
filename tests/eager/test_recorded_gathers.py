"""Subscripts by positions and masks of tensors that require gradients."""

import numpy as np
import pytest
import tandem as td

rng = np.random.default_rng(0)
KEYS = {
    "positions": lambda n: td.asarray(rng.integers(0, n, 5)),
    "negative positions": lambda n: td.asarray([-1, 0, -n]),
    "list": lambda n: [0, n - 1, 0],
    "mask": lambda n: td.asarray(rng.random(n) < 0.5),
    "empty mask": lambda n: td.asarray(np.zeros(n, bool)),
    "full mask": lambda n: td.asarray(np.ones(n, bool)),
}


def to_numpy(key):
    return key.numpy() if isinstance(key, td.Tensor) else key


@pytest.mark.parametrize("shape", [(6,), (6, 3), (4, 2, 3)])
@pytest.mark.parametrize("name", KEYS)
def test_elements_and_gradients(name, shape):
    for _ in range(30):  # hot calls, too
        values, key = rng.normal(size=shape), KEYS[name](shape[0])
        x = td.asarray(values, requires_grad=True)
        y = x[key]
        assert np.array_equal(y.detach().numpy(), values[to_numpy(key)])
        (y * y).sum().backward()
        wanted = np.zeros(shape)
        np.add.at(wanted, to_numpy(key), 2 * values[to_numpy(key)])
        np.testing.assert_allclose(x.grad.numpy(), wanted)


def test_mask_of_all_axes():
    values = rng.normal(size=(4, 5))
    x = td.asarray(values, requires_grad=True)
    for y in (x[x > 0], x.T[x.T > 0]):
        x.grad = None
        (2 * y).sum().backward()
        assert np.array_equal(x.grad.numpy(), np.where(values > 0, 2.0, 0.0))


def test_second_derivatives_pass_through_masks():
    x = td.asarray(rng.normal(size=5), requires_grad=True)
    (first,) = td.autograd.grad((x[x > 0] ** 3).sum(), [x], create_graph=True)
    first.sum().backward()
    assert np.allclose(x.grad.numpy(), np.where(x.detach().numpy() > 0, 6 * x.detach().numpy(), 0.0))


def test_masks_under_transforms_and_without_recording():
    x, mask = td.asarray(rng.normal(size=6), requires_grad=True), td.asarray([True, False] * 3)
    with td.no_grad():
        assert not x[mask].requires_grad
    assert np.array_equal(
        td.jit(lambda x: x[mask].sum() * 1.0)(x.detach()).numpy(), x[mask].sum().detach().numpy()
    )
    assert td.grad(lambda y: (y[mask] * x[mask].detach()).sum())(td.ones(6, dtype="float64")).tolist() == [
        value if chosen else 0.0 for value, chosen in zip(x.tolist(), mask.tolist(), strict=True)
    ]
    checkpointed = td.checkpoint(lambda x: x[x > 0] * 2.0)(x)
    checkpointed.sum().backward()
    assert x.grad.tolist() == [2.0 if value > 0 else 0.0 for value in x.tolist()]


def test_errors_are_those_of_tensors_without_gradients():
    x = td.asarray(rng.normal(size=(3, 2)), requires_grad=True)
    for key in (td.asarray([5]), td.asarray([True, False]), [3], td.asarray(np.ones((3, 3), bool))):
        with pytest.raises(IndexError) as one:
            x[key]
        with pytest.raises(IndexError) as two:
            x.detach()[key]
        assert type(one.value) is type(two.value)

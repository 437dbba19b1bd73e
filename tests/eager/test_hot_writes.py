"""In-place operators that run as compiled code when they are hot: the elements, and what must see each write."""

import sys

import numpy as np
import pytest
import tandem as td
import tandem.torch as torch
from tandem import config
from tandem.errors import TandemError

CALLS = config.flags.hot_composites + 16

WRITES = {
    "addcmul": (lambda x, y, k: x.addcmul_(y, y, value=0.5), lambda x, y, k: x + 0.5 * y * y),
    "addcdiv": (lambda x, y, k: x.addcdiv_(y, y + 2), lambda x, y, k: x + y / (y + 2)),
    "clamp": (lambda x, y, k: x.clamp_(-0.5, 0.5), lambda x, y, k: np.clip(x, -0.5, 0.5)),
    "lerp": (lambda x, y, k: x.lerp_(y, 0.25), lambda x, y, k: x + 0.25 * (y - x)),
    "alpha": (lambda x, y, k: x.add_(y, alpha=0.5), lambda x, y, k: x + y * 0.5),
    "changing": (lambda x, y, k: x.add_(y, alpha=0.01 * k), lambda x, y, k: x + y * 0.01 * k),
    "changing_bound": (lambda x, y, k: x.clamp_(-0.01 * k, 2.0), lambda x, y, k: np.clip(x, -0.01 * k, 2)),
    "changing_lerp": (lambda x, y, k: x.lerp_(y, 0.001 * k), lambda x, y, k: x + 0.001 * k * (y - x)),
    "compare": (lambda x, y, k: x.gt_(y), lambda x, y, k: (x > y).astype(x.dtype)),
    "broadcast": (lambda x, y, k: x.addcmul_(y[:1], y), lambda x, y, k: x + y[:1] * y),
    "integers": (lambda x, y, k: x.add_((y * 4).to(td.int32)), lambda x, y, k: x + (y * 4).astype("i4")),
    "cumsum": (lambda x, y, k: x.cumsum_(0), lambda x, y, k: np.cumsum(x, 0)),
    "lgamma": (lambda x, y, k: x.abs_().add_(1.0).lgamma_(), lambda x, y, k: td.special.gammaln(abs(x) + 1)),
}


@pytest.mark.parametrize("shape", [(5,), (3, 8), (1,), (0, 2)])
@pytest.mark.parametrize("name", WRITES)
def test_hot_writes_equal_those_of_numpy(name, shape):
    write, compute = WRITES[name]
    random = np.random.default_rng(0)
    for k in range(CALLS):
        a, b = random.standard_normal(shape), random.standard_normal(shape)
        x = td.asarray(a.copy())
        assert write(x, td.asarray(b), k) is x
        np.testing.assert_allclose(x, compute(a, b, k), rtol=1e-12, atol=1e-12)


def test_views_and_operands_that_share_memory():
    whole = td.zeros((4, 3), dtype="float64")
    for k in range(CALLS):
        whole[...] = td.arange(12.0).reshape(4, 3)
        whole[1].addcmul_(whole[2], whole[3], value=0.5)
        expected = np.arange(12.0).reshape(4, 3)
        expected[1] += 0.5 * expected[2] * expected[3]
        np.testing.assert_array_equal(whole, expected)
        x = td.arange(6.0)
        x.addcmul_(x.flip(0), x[::-1])
        np.testing.assert_array_equal(x, np.arange(6.0) + np.arange(6.0)[::-1] ** 2)
        y = td.arange(6.0)
        y[1:].lerp_(y[:-1], 0.5)
        np.testing.assert_array_equal(
            y[1:], np.arange(1.0, 6.0) + 0.5 * (np.arange(5.0) - np.arange(1.0, 6.0))
        )
        assert k >= 0


def test_histories_and_parameters():
    for _ in range(CALLS):
        td.ones(3).addcmul_(td.ones(3), td.ones(3), value=2.0)
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(TandemError, match="leaf"):
        x.addcmul_(torch.ones(3), torch.ones(3), value=2.0)
    y = x * 1.0
    y.addcmul_(x, x, value=2.0)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0, 5.0]
    with torch.no_grad():
        for _ in range(CALLS):
            before = x.clone()
            x.addcdiv_(torch.ones(3), torch.full((3,), 4.0), value=0.5)
            np.testing.assert_array_equal(x, before.numpy() + np.float32(0.125))
    a = torch.ones(3)
    b = x * a
    a.addcmul_(a, a, value=2.0)
    with pytest.raises(td.errors.VersionError):
        b.sum().backward()


def test_wrong_writes_raise_and_write_nothing():
    numbers, fixed = td.arange(3), td.zeros(3)
    for _ in range(CALLS):
        td.zeros(3).lerp_(td.ones(3), 0.5)
        td.zeros(3).addcmul_(td.ones(3), td.ones(3))
    for call in (
        lambda: fixed.lerp_(td.ones(4), 0.5),
        lambda: fixed.addcmul_(td.ones((2, 3)), td.ones(3)),
        lambda: numbers.addcmul_(td.ones(3), td.ones(3)),
        lambda: fixed.addcmul_(td.ones(3)),
        lambda: td.broadcast_to(td.zeros(1), (3,)).addcmul_(td.ones(3), td.ones(3)),
    ):
        with pytest.raises((TandemError, TypeError)):
            call()
    assert numbers.tolist() == [0, 1, 2] and fixed.tolist() == [0.0, 0.0, 0.0]


def test_levels_and_traces_see_hot_writes():
    def write(x, y):
        z = x * 1.0
        z.addcmul_(y, y, value=0.5)
        return z

    for _ in range(CALLS):
        write(td.ones(3), td.ones(3))
    x, y = td.ones((2, 3)), td.arange(6.0).reshape(2, 3)
    expected = 1 + 0.5 * np.arange(6.0).reshape(2, 3) ** 2
    np.testing.assert_allclose(td.vmap(write)(x, y), expected)
    np.testing.assert_allclose(td.jit(write)(x, y), expected)
    np.testing.assert_allclose(td.grad(lambda y: write(x, y).sum())(y), np.arange(6.0).reshape(2, 3))


def test_hot_writes_leave_no_references():
    x, y = td.ones(3), td.ones(3)
    for _ in range(CALLS):
        x.addcmul_(y, y, value=0.0)
    before = [sys.getrefcount(one) for one in (x, y, x._array, y._array)]
    for _ in range(2000):
        x.addcmul_(y, y, value=0.0)
    assert [sys.getrefcount(one) for one in (x, y, x._array, y._array)] == before

"""Regressions: fused kernels that computed wrong results."""

import numpy as np
import pytest
import tandem as td

READ = {
    "reversed": lambda t: t[::-1],
    "transposed": lambda t: t.T,
    "both": lambda t: t.T[::-1],
    "reshaped": lambda t: t.reshape(-1).reshape(t.shape[::-1]),
    "shifted": lambda t: td.roll(t, 1, axis=0),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("shape", [(3, 1), (3, 3), (4, 2)])
def test_sums_of_value_and_its_view_fuse(name, shape):
    """Their kernels are merged by the last addition only if one index serves both."""
    read = READ[name]

    def both(x):
        t = td.exp(x)
        seen = td.tanh(read(t))
        return td.tanh(t).sum() + seen.sum(), seen

    x = td.asarray(np.random.default_rng(0).standard_normal(shape))
    for found, wanted in zip(td.jit(both)(x), both(x), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


def test_the_gradient_through_a_value_and_its_reverse():
    def loss(x):
        t = td.exp(x)
        return td.tanh(t).sum() + td.sin(t[::-1] * x).sum()

    x = td.asarray(np.random.default_rng(0).standard_normal((5, 2)))
    np.testing.assert_allclose(td.jit(td.grad(loss))(x).numpy(), td.grad(loss)(x).numpy(), rtol=1e-12)


def test_a_traced_number_is_written_into_elements():
    def fill(x, s):
        z = x * 1
        z[0] = s
        return z, x.at[1].set(s)

    x = td.asarray(np.zeros(3))
    assert [z.tolist() for z in td.jit(fill)(x, 2.5)] == [[2.5, 0.0, 0.0], [0.0, 2.5, 0.0]]


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (0, 1, 2)])
def test_positions_are_counted_in_axis_order(name, order):
    """The kernel runs in the order of what it fuses the reduction with."""

    def position(x):
        y = td.cos(x)
        seen = td.permute(y, order)
        return getattr(td, name)(seen), getattr(td, name)(td.sin(seen)), y.sum(), getattr(td, name)(y)

    x = td.asarray(np.random.default_rng(1).standard_normal((4, 3, 5)))
    assert [p.item() for p in td.jit(position)(x)][:2] == [p.item() for p in position(x)][:2]
    ties = td.asarray(np.ones((4, 3, 5)))
    assert [p.item() for p in td.jit(position)(ties)][:2] == [0, 0]


@pytest.mark.parametrize("dtype", [td.uint64, td.float32])
def test_fills_with_integers_beyond_int64(dtype):
    def fill(x):
        return x + td.full((2,), 2**64 - 1, dtype=dtype)

    x = td.zeros(2, dtype=dtype)
    assert td.jit(fill)(x).tolist() == fill(x).tolist()


@pytest.mark.parametrize("order", [(1, 2, 0), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
@pytest.mark.parametrize("axes", [2, (1, 2), 1])
def test_copies_of_row_values_are_stored_once_for_each_row(order, axes):
    """The copy of a reshape has other dimensions than its argument, which varies along the rows only."""
    x = np.random.default_rng(0).standard_normal((9, 4, 16))

    def program(a):
        row = td.clip(a.max(axes, keepdims=True), 0.1, 1.5)
        flat = row.permute(order).reshape(-1)
        return (
            flat,
            row <= 1.0,
            td.where(a == row, 1.0, 0.0) / (a == row).astype(a.dtype).sum(axes, keepdims=True),
        )

    got, want = td.jit(program)(td.asarray(x)), program(td.asarray(x))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())

"""The loop that finds the positions of running extrema: blocks of a line, adjacent lines, NaN, equal elements."""

import numpy as np
import pytest
import tandem as td
from references import order
from rotation import share_each_commit
from tandem import config

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")


def numbers(shape, dtype, kind, rng):
    x = rng.integers(-40, 40, shape).astype(dtype)
    if kind == "rising":
        x = np.sort(x, axis=0)
    if kind == "nan" and x.dtype.kind == "f":
        x[rng.random(shape) < 0.02] = np.nan
        x[rng.random(shape) < 0.1] *= -0.0
        x[rng.random(shape) < 0.02] = -np.inf
    return x


@pytest.mark.parametrize("kind", ["any", "rising", "nan"])
@pytest.mark.parametrize(
    "dtype", share_each_commit(["float32", "float64", "float16", "int64", "int8", "uint16"], 3)
)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_positions_of_running_extrema(name, dtype, kind):
    rng = np.random.default_rng(11)
    f, wanted = getattr(td, name), getattr(order, name)
    for shape, axis in (((100,), 0), ((5, 37), 1), ((40, 37), 0), ((3, 9, 40), 1), ((1, 20), 0)):
        x = numbers(shape, dtype, kind, rng)
        values, indices = wanted(x, axis)
        for given in (x, x[::-1].copy()[::-1], np.asfortranarray(x)):
            run = td.jit(lambda x, axis=axis: tuple(f(x, axis)))
            for call in (lambda x, axis=axis: f(x, axis), run):
                got = call(td.asarray(given))
                np.testing.assert_array_equal(got[1].numpy(), indices)
                assert got[0].numpy().tobytes() == values.tobytes()


@native
@pytest.mark.parametrize("name", ["running_argmax", "running_argmin"])
def test_positions_are_found_by_a_loop(name):
    f, x = getattr(td.ops.td, name), td.asarray(np.arange(12.0).reshape(3, 4))
    for axis in (0, 1, -1):
        rows = td.jit(lambda x, axis=axis: f(x, axis)).lower(x).kernels()
        assert {row.choice for row in rows} == {"native"}
    assert "native" in {row.choice for row in td.jit(lambda x: tuple(td.cummax(x, 0))).lower(x).kernels()}


def test_gradients_go_to_the_running_extremum():
    x = td.asarray([1.0, 3.0, 2.0, 3.0, 0.0])
    weights = td.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
    for transform in (td.grad, lambda f: td.jit(td.grad(f))):
        slope = transform(lambda x: (td.cummax(x, 0).values * weights).sum())(x)
        assert slope.tolist() == [1.0, 5.0, 0.0, 9.0, 0.0]
    stack = td.stack([x, -x])
    mapped = td.vmap(lambda x: td.cummin(x, 0).indices)(stack)
    assert mapped.tolist() == [td.cummin(row, 0).indices.tolist() for row in (x, -x)]

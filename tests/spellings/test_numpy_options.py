"""Keywords of NumPy that operators lack: `where`, `initial`, `dtype`, `order`, `shape`, of functions and methods."""

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem.errors import ArgumentError, ValueArgumentError

ARRAYS = {
    "float64": np.array([[1.0, -2.0, 3.5], [0.0, 5.0, -6.0]]),
    "int64": np.array([[1, -2, 3], [0, 5, -6]]),
    "nan": np.array([[1.0, np.nan, 3.5], [np.nan, 5.0, -6.0]]),
}
CALLS = {
    "sum where": lambda m, x: m.sum(x, axis=0, where=x > 0),
    "sum initial": lambda m, x: m.sum(x, initial=5, keepdims=True),
    "prod where": lambda m, x: m.prod(x, axis=1, where=x > 0),
    "max": lambda m, x: m.max(x, axis=0, where=x > 0, initial=-1),
    "any": lambda m, x: m.any(x > 1, axis=1, where=x > 0),
    "mean dtype": lambda m, x: m.mean(x, dtype="float32"),
    "mean where": lambda m, x: m.mean(x, dtype="float64", axis=1, where=x > -5),
    "std where": lambda m, x: m.std(x, dtype="float64", where=x > -5),
    "add dtype": lambda m, x: m.add(x, x, dtype="float32", casting="unsafe"),
    "divide where": lambda m, x: m.divide(x, x, out=m.zeros((2, 3)), where=x != 0),
    "nansum": lambda m, x: m.nansum(x, axis=0, where=x > 0, initial=2),
    "nanprod": lambda m, x: m.nanprod(x, where=x > 0),
    "nanmax": lambda m, x: m.nanmax(x, axis=1, where=x > 0, initial=-1),
    "nanmin": lambda m, x: m.nanmin(x, where=x < 4, initial=9),
    "einsum": lambda m, x: m.einsum("ij,ij->i", x, x, optimize=True, out=m.zeros(2, dtype=x.dtype)),
    "einsum of lists": lambda m, x: m.einsum(x, [0, 1], x, [2, 1], [0, 2]),
    "einsum of the rest": lambda m, x: m.einsum(x, [0, ...], x, [0, ...]),
    "einsum without result": lambda m, x: m.einsum(x, [3, 1]),
    "angle": lambda m, x: m.angle(x.astype("float64") + 1j, deg=True),
}
METHODS = {
    "sum": lambda x: x.sum(axis=0, where=x > 0),
    "prod": lambda x: x.prod(where=x > 0, initial=2),
    "max": lambda x: x.max(where=x > 0, initial=-1),
    "mean": lambda x: x.mean(dtype="float32"),
    "mean where": lambda x: x.mean(1, where=x > -5, dtype="float64"),
    "var": lambda x: x.var(dtype="float64", ddof=1),
    "argsort": lambda x: x.argsort(axis=1, kind="stable"),
    "reshape": lambda x: x.reshape(3, 2, order="F"),
    "reshape to a tuple": lambda x: x.reshape((3, 2), order="F"),
    "ravel": lambda x: x.ravel(order="F"),
}
LAYOUTS = {
    "zeros": lambda m, x: m.zeros((2, 3), order="F"),
    "ones": lambda m, x: m.ones((2, 3), "float32", order="F"),
    "full": lambda m, x: m.full((2, 3), 2.0, order="F"),
    "zeros_like": lambda m, x: m.zeros_like(x, order="F"),
    "of another shape": lambda m, x: m.zeros_like(x, shape=(4, 2), dtype="int8"),
    "full_like": lambda m, x: m.full_like(x, 3, shape=5),
    "ones_like": lambda m, x: m.ones_like(x, subok=False),
    "asarray": lambda m, x: m.asarray(x, order="F"),
    "copy": lambda m, x: m.copy(x, order="F"),
    "copy method": lambda m, x: x.copy(order="F"),
    "require": lambda m, x: m.require(x, "float32", ["F", "A"]),
    "require its own": lambda m, x: m.require(x, requirements="CO"),
}


def check(got, want):
    got = got.numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.dtype == want.dtype and got.shape == want.shape


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", CALLS)
def test_functions(name, kind):
    x = ARRAYS[kind]
    if name == "divide where":
        x = x.astype(float)
    with np.errstate(all="ignore"):
        want = np.asarray(CALLS[name](np, x))
        check(CALLS[name](tnp, tnp.asarray(x)), want)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["float64", "int64"])
def test_methods(name, kind):
    x = ARRAYS[kind]
    for _ in range(2):
        check(METHODS[name](td.asarray(x)), np.asarray(METHODS[name](x)))
        check(td.jit(METHODS[name])(td.asarray(x)), np.asarray(METHODS[name](x)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    x = ARRAYS["float64"]
    got, want = LAYOUTS[name](tnp, tnp.asarray(x)), LAYOUTS[name](np, x)
    check(got, want)
    assert got.strides == want.strides


def test_functions_of_tandem_take_the_same_keywords():
    x = td.asarray([1.0, -2.0])
    assert td.sum(x, where=x > 0).item() == 1.0
    assert td.mean(x, dtype=td.float64).dtype is td.float64
    gradient = td.grad(lambda x: td.sum(x * x, where=x > 0))(x)
    assert gradient.tolist() == [2.0, 0.0]


def test_axes_of_einsum_are_sorted_by_number():
    x = ARRAYS["int64"]
    for axes in ([26, 25], [51, 0], [np.int64(3), 1]):
        check(td.einsum(td.asarray(x), axes), np.einsum(x, axes))


def test_names_of_pytorch_beside_keywords_of_numpy():
    x = td.asarray(ARRAYS["float64"])
    assert x.mean(dim=1, dtype=td.float32).dtype is td.float32
    assert x.sum(dim=0, where=x > 0, keepdim=True).tolist() == [[1.0, 5.0, 3.5]]
    assert td.mean(x, dim=1, dtype=td.float64).tolist() == td.mean(x, 1).tolist()
    with pytest.raises(ValueArgumentError, match="order must be"):
        x.reshape(6, order="bogus")


def test_errors():
    x = td.ones((2, 3))
    with pytest.raises(ArgumentError, match="has no argument 'where'"):
        td.argsort(x, where=x > 0)
    with pytest.raises(ArgumentError, match="no argument 'colour'"):
        td.sum(x, colour=1)
    with pytest.raises(ArgumentError, match="no argument 'colour'"):
        td.einsum("ij->i", x, colour=1)
    with pytest.raises(ArgumentError, match="a list of axes follows"):
        td.einsum(x, [0, 1], x)
    with pytest.raises(ArgumentError, match="axes are numbers"):
        td.einsum(x, [0, 52])
    with pytest.raises(ValueArgumentError, match="require"):
        tnp.require(x, requirements=["C", "F"])
    with pytest.raises(ValueArgumentError, match="order must be"):
        tnp.zeros(2, order="X")

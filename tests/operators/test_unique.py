"""``td.unique`` agrees with NumPy's, and under jit with JAX's."""

import itertools

import numpy as np
import pytest
import tandem as td
from python_calls import python_calls
from tandem import config

GENERATOR = np.random.default_rng(0)
NAN = float("nan")
ARRAYS = {
    "ints": GENERATOR.integers(0, 4, (5, 6)),
    "NaN": np.array([1.0, NAN, NAN, -1.0]),
    "NaN in rows": np.array([[NAN, 1.0], [NAN, 1.0], [0.0, 2.0]]),
    "three axes": GENERATOR.integers(0, 2, (4, 3, 2)).astype(np.float32),
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((3, 0)),
    "0-d": np.array(3),
    "complex": GENERATOR.integers(0, 2, (6, 2)) + 1j * GENERATOR.integers(0, 2, (6, 2)),
    "bools": GENERATOR.integers(0, 2, (5, 3)) > 0,
}


def same(got, want):
    got = got if isinstance(got, tuple) else (got,)
    want = want if isinstance(want, tuple) else (want,)
    for one, other in zip(got, want, strict=True):
        assert one.shape == other.shape
        assert np.array_equal(one.numpy(), np.asarray(other), equal_nan=True)


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_values_and_groups_agree_with_numpy(array, axis):
    if axis is not None and not -array.ndim <= axis < array.ndim:
        with pytest.raises(IndexError, match="unique"):
            td.unique(td.asarray(array), axis=axis)
        return
    for wanted in itertools.product([False, True], repeat=3):
        want = np.unique(array, *wanted, axis)
        same(td.unique(td.asarray(array), *wanted, axis), want)
        same(td.numpy.unique(array, *wanted, axis), want)


@pytest.mark.parametrize("name", ["ints", "three axes", "bools", "NaN"])
@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("fill_value", [None, 1])
def test_padded_results_agree_with_jax(name, size, fill_value):
    jnp = pytest.importorskip("jax.numpy")
    array = ARRAYS[name].astype(np.float32 if name == "NaN" else ARRAYS[name].dtype)
    for axis in (None, *range(array.ndim)):
        options = {"size": size, "fill_value": fill_value}
        want = jnp.unique(jnp.asarray(array), True, True, True, axis, **options)
        for run in (lambda f: f, td.jit):
            same(run(lambda x: td.unique(x, True, True, True, axis, **options))(td.asarray(array)), want)  # noqa: B023


def test_nan_may_differ_from_nan():
    x = td.asarray([NAN, NAN, 1.0])
    assert td.unique(x).shape == (2,)
    assert td.unique(x, equal_nan=False).shape == x.unique().shape == td.torch.unique(x).shape == (3,)


def test_size_is_required_in_a_trace_and_checked():
    x = td.asarray([3, 1, 3])
    with pytest.raises(td.errors.UnsupportedError, match="size=n"):
        td.jit(td.unique)(x)
    with pytest.raises(ValueError, match="negative"):
        td.unique(x, size=-1)
    with pytest.raises(TypeError, match=r"td\.asarray"):
        td.unique([3, 1])


def test_gradients_flow_to_first_occurrences():
    weights = td.asarray([1.0, 10.0, 100.0])
    slope = td.grad(lambda x: (td.unique(x, size=3, fill_value=0.0) * weights).sum())
    assert slope(td.asarray([3.0, 1.0, 3.0])).tolist() == [10.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("options", [{}, {"equal_nan": False}])
def test_all_results_agree_with_numpy(dtype, options):
    for values in ([3, 1, np.nan, 1, np.nan], [np.nan] * 3, [np.nan], [2, 2], [1], []):
        array = np.nan_to_num(values).astype(dtype) if dtype != "float32" else np.asarray(values, dtype)
        for which in range(8):
            asked = {
                name: bool(which >> i & 1)
                for i, name in enumerate(("return_index", "return_inverse", "return_counts"))
            }
            result, wanted = (
                td.unique(td.asarray(array), **asked, **options),
                np.unique(array, **asked, **options),
            )
            for one, other in zip(result, wanted) if which else [(result, wanted)]:
                assert one.numpy().dtype == other.dtype
                np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
@pytest.mark.parametrize(
    "call",
    [
        lambda x: td.unique(x, return_counts=True),
        lambda x: td.unique(x, return_index=True),
        lambda x: td.union1d(x, x),
        lambda x: td.intersect1d(x, x),
        lambda x: td.setdiff1d(x, x),
        lambda x: td.setxor1d(x, x),
    ],
)
def test_small_sets_do_not_use_the_dispatcher(call):
    x = td.asarray([3, 1, 3])
    for _ in range(704):  # of the calls after the first, each 64th is counted in Python
        call(x)
    names = python_calls(call, x)
    assert "dispatch" not in names and len(names) < 30


@pytest.mark.parametrize("code", "bHlQFD")
@pytest.mark.parametrize("shape", [(), (1,), (16,), (4, 5), (2, 3, 4), (5000,)])
def test_hot_values_are_those_of_sorted_elements(code, shape):
    """Eager calls of few elements take the set that NumPy makes, whose arguments have one axis."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 5, shape) + (1j * rng.integers(-1, 2, shape) if code in "FD" else 0)
    a = np.asarray(a).astype(code)
    if code in "FD" and a.size > 2:
        a.flat[1], a.flat[2] = -0.0, complex(0.0, -0.0)
    x = td.asarray(a)
    with td.config.override(hot_calls=1, hot_composites=1):
        for view in (x, x.T, x[::2] if shape else x):
            for _ in range(3):
                values = td.unique_values(view)
                padded = td.unique_values(view, size=values.size)
                assert values.numpy().tobytes() == padded.numpy().tobytes()

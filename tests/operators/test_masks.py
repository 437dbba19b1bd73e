"""Writes at masks need no positions: they trace, batch and differentiate, and agree with NumPy."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from mask_keys import KEYS, MASK, ROWS, X
from tandem.errors import DTypeError, ShapeError, UnsupportedError, VersionError

METHODS = {
    "set": lambda a, v: v,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


def tensors(key):
    return tuple(td.asarray(part) if isinstance(part, np.ndarray) else part for part in key)


def updated(key, method, value):
    result = X.copy()
    result[key] = METHODS[method](result[key], value)
    return result


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("method", METHODS)
def test_updates_at_traced_masks_agree_with_numpy(method, key):
    (position,) = (i for i, part in enumerate(key) if isinstance(part, np.ndarray))

    def update(x, mask, value):
        whole = (*key[:position], mask, *key[position + 1 :])
        return getattr(x.at[whole if len(whole) > 1 else mask], method)(value)

    x, mask, value = td.asarray(X), td.asarray(key[position]), td.asarray(2.5)
    want = updated(key, method, 2.5)
    for way in (lambda f: f, td.jit, td.vmap):
        lift = (lambda t: td.stack([t, t])) if way is td.vmap else (lambda t: t)
        found = way(update)(*map(lift, (x, mask, value)))
        assert np.allclose((found[0] if way is td.vmap else found).numpy(), want, rtol=1e-15)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_traced_assignments_are_those_of_numpy(key):
    def assign(x, value, *masks):
        masks = iter(masks)
        whole = tuple(next(masks) if isinstance(part, np.ndarray) else part for part in key)
        x[whole] = value
        return x

    masks = [td.asarray(part) for part in key if isinstance(part, np.ndarray)]
    want = X.copy()
    want[key] = -1.0
    x = td.asarray(X.copy())
    assert np.array_equal(td.jit(assign)(x, td.asarray(-1.0), *masks).numpy(), want)
    assert np.array_equal(x.numpy(), want), "the argument, too"


@settings(max_examples=60)
@given(
    st.integers(0, 3).flatmap(lambda rank: st.tuples(*[st.integers(0, 3)] * rank)),
    st.data(),
)
def test_values_with_axes_broadcast_as_in_numpy(shape, data):
    """A value may have axes before and behind the axis of the true elements, whose length is 1."""
    array = np.arange(float(np.prod(shape))).reshape(shape)
    first = data.draw(st.integers(0, len(shape)))
    last = data.draw(st.integers(first, len(shape)))
    mask = np.random.default_rng(data.draw(st.integers(0, 99))).random(shape[first:last]) < 0.5
    key = (*[slice(None)] * first, mask)
    selected = [*shape[:first], 1, *shape[last:]]
    start = data.draw(st.integers(0, len(selected)))
    kept = [n if data.draw(st.booleans()) else 1 for n in selected[start:]]
    value = -1.0 - np.arange(float(np.prod(kept))).reshape(kept)
    want = array.copy()
    want[key] = value
    found = td.jit(lambda x, m, v: x.at[(*[slice(None)] * first, m)].set(v))(
        *map(td.asarray, (array, mask, value))
    )
    assert np.array_equal(found.numpy(), want)


def test_gradients_flow_to_elements_and_values():
    def total(x, value):
        return (x.at[td.asarray(MASK)].multiply(value) ** 2).sum()

    args = td.asarray(X), td.asarray(1.5, dtype=td.float64)
    td.check_grads(total, args, order=2, atol=1e-5, rtol=1e-5)
    by_x, by_value = td.jit(td.grad(total, (0, 1)))(*args)
    assert np.allclose(by_x.numpy(), 2 * X * np.where(MASK, 1.5**2, 1.0))
    assert np.allclose(by_value.numpy(), 2 * 1.5 * (X[MASK] ** 2).sum())


def test_function_is_applied_at_a_traced_mask():
    x, mask = td.asarray(X), td.asarray(MASK)
    found = td.jit(lambda x, m: x.at[m].apply(td.sqrt))(x, mask)
    assert np.array_equal(found.numpy(), np.where(MASK, np.sqrt(X), X))
    assert np.array_equal(found.numpy(), x.at[mask].apply(td.sqrt).numpy())


def test_positions_of_constant_masks_are_known_in_a_trace():
    assert np.array_equal(td.jit(lambda x: x[ROWS])(td.asarray(X)).numpy(), X[ROWS])
    assert np.array_equal(td.jit(lambda x: x[MASK.tolist()])(td.asarray(X)).numpy(), X[MASK])
    assert td.jit(lambda x, m: x[m])(td.zeros((0, 2)), td.zeros(0, dtype=td.bool)).shape == (0, 2)


def test_traced_positions_need_a_size():
    x, mask = td.asarray(X), td.asarray(MASK)
    for function in (lambda x, m: x[m], lambda x, m: x.at[m].set(td.arange(6.0))):
        with pytest.raises(UnsupportedError, match=r"nonzero\(mask, size=n\)"):
            td.jit(function)(x, mask)
    rows, columns = td.jit(lambda m: td.nonzero(m, size=6))(mask)
    assert np.array_equal(x[rows, columns].numpy(), X[MASK])


def test_values_that_do_not_fit_are_refused():
    mask = td.asarray(MASK)
    for way in (lambda f: f, td.jit):
        with pytest.raises(ShapeError):
            way(lambda x, m: x.at[m].set(td.ones((2, 1))))(td.asarray(X), mask)
        with pytest.raises(DTypeError):
            way(lambda x, m: x.at[m].set(1.5j))(td.arange(12).reshape(3, 4), mask)
        with pytest.raises(DTypeError):
            way(lambda x, m: x.at[m].divide(2))(td.arange(12).reshape(3, 4), mask)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "complex128"])
def test_hot_reads_and_writes_agree_with_numpy(dtype):
    """Masks of all axes and of the first, in contiguous and other memory, numbers and tensors as values."""
    rng = np.random.default_rng(0)
    for whole in (True, False):
        for turned in (False, True):
            array = rng.integers(0, 2, (4, 3)).astype(getattr(td, dtype).np)
            array = np.asfortranarray(array) if turned else array
            x, mask = td.asarray(array.copy("K")), rng.random((4, 3) if whole else 4) < 0.6
            key, number = td.asarray(mask), True if dtype == "bool" else 1
            values = [number, td.asarray(array[mask].copy()), td.asarray([number], dtype=x.dtype)]
            for value in values * 100:
                assert np.array_equal(x[key].numpy(), array[mask])
                x[key] = value
                array[mask] = value.numpy() if isinstance(value, td.Tensor) else value
                assert np.array_equal(x.numpy(), array)


def test_hot_writes_at_masks_count_as_writes():
    """Gradients that need the old elements are refused; a mask that is the tensor itself is read first."""
    x, mask = td.ones(5), td.asarray([True, False, True, False, False])
    weights = td.asarray([1.0] * 5, requires_grad=True)
    for _ in range(200):
        product = (weights * x).sum()
        x[mask] = 0.0
        with pytest.raises(VersionError):
            product.backward()
        flags = td.asarray([True, False, True])
        flags[flags] = False
        assert not flags.any()
        with pytest.raises(ShapeError):
            x[mask] = td.ones(3)
        with pytest.raises(IndexError):
            x[td.asarray([True])]
        with pytest.raises(DTypeError):
            td.arange(5)[mask] = 0.5j


def test_hot_writes_of_overlapping_views_read_first():
    mask = td.asarray([True] * 6)
    for _ in range(200):
        x = td.arange(6.0)
        x[mask] = x[::-1]
        assert x.tolist() == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]


def test_failed_hot_writes_leave_the_version():
    mask, x = td.asarray([True, False, True]), td.ones(3)
    for _ in range(200):
        x[mask] = 1.0
    y = td.asarray([1.0, 2.0, 3.0], requires_grad=True)
    product = (y * x).sum()
    with pytest.raises(ShapeError):
        x[mask] = td.ones(3)
    product.backward()
    assert y.grad.tolist() == [1.0, 1.0, 1.0]


# -- sizes -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("size", [0, 2, 30])
def test_sized_get_pads_the_selected_elements(key, size):
    (position,) = (i for i, part in enumerate(key) if isinstance(part, np.ndarray))
    known = td.asarray(X).at[tensors(key)]
    want = known.get().numpy()
    view = X[(*key[:position], np.ones_like(key[position]), *key[position + 1 :])]
    axis = next((i for i, (n, m) in enumerate(zip(want.shape, view.shape)) if n != m), 0)

    def get(x, mask):
        return x.at[(*key[:position], mask, *key[position + 1 :])].get(size=size, fill_value=-1.0)

    x, mask = td.asarray(X), td.asarray(key[position])
    for result in (get(x, mask), td.jit(get)(x, mask), td.vmap(get)(td.stack([x]), td.stack([mask]))[0]):
        kept = min(size, want.shape[axis])
        found = np.moveaxis(result.numpy(), axis, 0)
        assert found.shape == (size, *np.moveaxis(want, axis, 0).shape[1:])
        assert np.array_equal(found[:kept], np.moveaxis(want, axis, 0)[:kept])
        assert (found[kept:] == -1).all()


def test_errors_of_traced_masks_name_size():
    for function in (lambda x: x[x > 1], td.nonzero, lambda x: td.where(x > 1), td.unique, td.argwhere):
        with pytest.raises(UnsupportedError, match="size=n"):
            td.jit(function)(td.asarray(X))
    with pytest.raises(ValueError, match="single mask"):
        td.asarray(X).at[0].get(size=2)


def test_where_of_a_condition_returns_positions():
    x = td.asarray(X)
    want = np.where(X > 4)
    assert all(np.array_equal(a.numpy(), b) for a, b in zip(td.where(x > 4), want, strict=True))
    padded = td.jit(lambda x: td.where(x > 4, size=10, fill_value=-1))(x)
    assert [part.tolist() for part in padded] == [[*part.tolist(), -1, -1] for part in want]
    with pytest.raises(TypeError, match="'other'"):
        td.where(x > 4, x)

"""``x.at[index]`` and its keywords, as JAX programs use them."""

import numpy as np
import pytest
import tandem as td

X = td.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
BEYOND = td.asarray([5, -1, 0, -7])
WAYS = pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])


def written(name, value):
    return lambda x: getattr(x.at[1], name)(value)


@WAYS
def test_every_kind_of_writing(way):
    x, two = td.asarray([1.0, 2.0, 3.0]), 2.0
    wanted = {
        "set": 2.0, "add": 4.0, "subtract": 0.0, "multiply": 4.0, "mul": 4.0, "divide": 1.0, "power": 4.0,
        "min": 2.0, "max": 2.0,
    }  # fmt: skip
    for name, value in wanted.items():
        assert way(written(name, two))(x).tolist() == [1.0, value, 3.0], name
    assert way(lambda x: x.at[1].apply(td.square))(x).tolist() == [1.0, 4.0, 3.0]
    assert way(lambda x: x.at[td.asarray([1, 1])].subtract(two))(x).tolist() == [1.0, -2.0, 3.0]


@WAYS
def test_added_values_broadcast_to_the_index(way):
    rows = np.array([[0, 1], [1, 2], [1, 4]])
    for shape in ((2,), (3, 1), (1, 2), (1, 1), (), (3, 2)):
        value = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
        want = np.zeros(5)
        np.add.at(want, rows.ravel(), np.broadcast_to(value, rows.shape).ravel())
        x, i, v = td.zeros(5, dtype=td.float64), td.asarray(rows), td.asarray(value)
        assert way(lambda x, i, v: x.at[i].add(v))(x, i, v).tolist() == want.tolist()
        assert way(lambda x, i, v: x.at[i].subtract(v))(x, i, v).tolist() == (-want).tolist()
        td.ops.td.index_put_(x, [i], v, accumulate=True)
        assert x.tolist() == want.tolist()


COMBINED = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@WAYS
@pytest.mark.parametrize("name", [*COMBINED, "divide", "power"])
def test_every_occurrence_of_a_position_counts(name, way):
    rng = np.random.default_rng(0)
    rows = rng.integers(-4, 4, (6, 2))
    for shape in ((6, 2, 3), (2, 3), (6, 1, 1), ()):
        array, value = rng.uniform(0.5, 2.0, (4, 3)), rng.uniform(0.5, 2.0, shape)
        want, product = array.copy(), np.ones_like(array)
        spread = np.broadcast_to(value, (6, 2, 3)).reshape(12, 3)
        if name in COMBINED:
            COMBINED[name].at(want, rows.ravel(), spread)
        else:
            np.multiply.at(product, rows.ravel(), spread)
            want = want / product if name == "divide" else want**product
        args = td.asarray(array), td.asarray(rows), td.asarray(value)
        found = way(lambda x, i, v: getattr(x.at[i], name)(v))(*args)
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-13)
        assert args[0].tolist() == array.tolist()


@WAYS
@pytest.mark.parametrize(("mode", "product"), [("drop", [4.0, 2.0, 6.0]), ("clip", [8.0, 2.0, 12.0])])
def test_occurrences_count_with_every_mode(mode, product, way):
    x, i = td.asarray([1.0, 2.0, 3.0]), td.asarray([0, 0, 5, -1, -7])
    assert way(lambda x, i: x.at[i].multiply(2.0, mode=mode))(x, i).tolist() == product
    assert way(lambda x, i: x.at[i].max(2.0, mode=mode))(x, i).tolist() == [2.0, 2.0, 3.0]
    assert way(lambda x, i: x.at[i].divide(0.5, mode=mode))(x, i).tolist() == product


def test_gradients_of_repeated_positions():
    i = td.asarray([0, 0, 1])
    of_values = td.grad(lambda v: td.asarray([1.0, 2.0]).at[i].max(v).sum())
    assert np.allclose(of_values(td.asarray([1.0, 1.0, 3.0])).tolist(), [1 / 3, 1 / 3, 1.0])
    of_tensor = td.grad(lambda x: x.at[i].max(td.asarray([1.0, 1.0, 3.0])).sum())
    assert np.allclose(of_tensor(td.asarray([1.0, 2.0])).tolist(), [1 / 3, 0.0])
    x, v = td.asarray(np.array([0.0, 2.0, 3.0])), td.asarray(np.array([0.0, 0.0, 5.0, 2.0]))
    places = td.asarray([1, 1, 1, 0])

    def scattered(v):
        return (x.at[places].multiply(v) ** 2 + x.at[places].multiply(v)).sum()

    def written(v):
        first, second = x[0] * v[3], x[1] * v[0] * v[1] * v[2]
        return first**2 + first + second**2 + second

    for transform in (td.grad, td.hessian, lambda f: td.jit(td.grad(f))):
        assert transform(scattered)(v).tolist() == transform(written)(v).tolist()
    for name in ("multiply", "divide", "power", "min", "max"):
        rng = np.random.default_rng(1)
        x, v = td.asarray(rng.uniform(0.5, 2.0, 3)), td.asarray(rng.uniform(0.5, 2.0, 4))
        td.check_grads(lambda x, v, name=name: getattr(x.at[places], name)(v), (x, v), order=1)


def test_values_of_other_kinds():
    assert td.zeros(3, dtype=td.uint8).at[td.asarray([0, 0, 1])].subtract(1).tolist() == [254, 255, 0]
    assert td.asarray([1], dtype=td.int8).at[0].subtract(-128).tolist() == [-127]
    assert td.ones(3).at[[0, 1]].set([5, 6]).tolist() == [5.0, 6.0, 1.0]
    for key in (0, td.asarray([0, 0])):
        for name, value in (("divide", 2), ("multiply", 2.5), ("subtract", 0.5)):
            with pytest.raises(TypeError, match="does not go into int64"):
                getattr(td.asarray([1, 2]).at[key], name)(value)
        with pytest.raises(TypeError, match="complex"):
            td.asarray([1j]).at[key].max(2)


READ = {"clip": [3.0, 3.0, 1.0, 1.0], "fill": [9.0, 3.0, 1.0, 9.0], "drop": [9.0, 3.0, 1.0, 9.0]}
SET = {"clip": [7.0, 2.0, 7.0], "fill": [7.0, 2.0, 7.0], "drop": [7.0, 2.0, 7.0]}
ADDED = {"clip": [3.0, 2.0, 5.0], "fill": [2.0, 2.0, 4.0], "drop": [2.0, 2.0, 4.0]}


@WAYS
@pytest.mark.parametrize("mode", READ)
def test_positions_beyond_the_axis(mode, way):
    x = X[0]
    assert way(lambda x, i: x.at[i].get(mode=mode, fill_value=9))(x, BEYOND).tolist() == READ[mode]
    assert way(lambda x, i: x.at[i].set(7.0, mode=mode))(x, BEYOND).tolist() == SET[mode]
    assert way(lambda x, i: x.at[i].add(1.0, mode=mode))(x, BEYOND).tolist() == ADDED[mode]
    kept = way(lambda x: x.at[5].multiply(2.0, mode=mode))(x).tolist()
    assert kept == ([1.0, 2.0, 6.0] if mode == "clip" else [1.0, 2.0, 3.0])


@WAYS
def test_several_axes_and_slices(way):
    i, j = td.asarray([0, 1, 2]), td.asarray([[0], [-4]])
    found = way(lambda x: x.at[i, j].get(mode="fill", fill_value=0))(X).tolist()
    assert found == [[1.0, 4.0, 0.0], [0.0, 0.0, 0.0]]
    assert way(lambda x: x.at[:, i + 1].set(0.0, mode="drop"))(X).tolist() == [
        [1.0, 0.0, 0.0],
        [4.0, 0.0, 0.0],
    ]
    assert way(lambda x: x.at[..., 3].get(mode="fill", fill_value=8))(X).tolist() == [8.0, 8.0]
    assert way(lambda x: x.at[-3].set(0.0, mode="drop"))(X).tolist() == X.tolist()
    assert way(lambda x: x.at[7, None, 1:].get(mode="clip"))(X).tolist() == [[5.0, 6.0]]
    assert X.at[X > 2,].set(0.0, mode="drop").tolist() == [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [(td.int8, -128), (td.uint8, 255), (td.int32, -(2**31)), (td.bool_, True), (td.uint64, 2**64 - 1)],
)
def test_what_is_read_where_there_is_nothing(dtype, fill):
    x = td.ones(2, dtype=dtype)
    assert x.at[td.asarray([4])].get(mode="fill").tolist() == [fill]
    assert x.at[td.asarray([4])].get(mode="fill").dtype is dtype
    assert np.isnan(td.ones(2).at[4].get(mode="fill").item())
    assert td.zeros(0).at[td.asarray([0])].get(mode="fill", fill_value=3).tolist() == [3.0]


def test_negative_positions_that_do_not_wrap():
    x = X[0]
    assert x.at[td.asarray([-1, 0])].set(7.0, mode="drop", wrap_negative_indices=False).tolist() == [
        7.0,
        2.0,
        3.0,
    ]
    assert x.at[-1].get(mode="clip", wrap_negative_indices=False).item() == 1.0
    with pytest.raises(IndexError, match="out of bounds"):
        x.at[td.asarray([-1])].get(wrap_negative_indices=False)


def test_gradients_and_batches_go_through():
    i = td.asarray([5, 0, 0])
    read = td.grad(lambda x: (x.at[i].get(mode="fill", fill_value=0.0) ** 2).sum())
    assert read(X[0]).tolist() == [4.0, 0.0, 0.0]
    written = td.grad(lambda v: (X[0].at[i].add(v, mode="drop") ** 2).sum())
    assert written(td.asarray([1.0, 1.0, 2.0])).tolist() == [0.0, 8.0, 8.0]
    found = td.vmap(lambda x, i: x.at[i].set(0.0, mode="drop"))(X, td.asarray([1, 9]))
    assert found.tolist() == [[1.0, 0.0, 3.0], [4.0, 5.0, 6.0]]


def test_hints_change_nothing_and_bad_modes_are_refused():
    x = X[0]
    assert x.at[1].set(0.0, indices_are_sorted=True, unique_indices=True).tolist() == [1.0, 0.0, 3.0]
    assert x.at[1].get(indices_are_sorted=True, unique_indices=True).item() == 2.0
    for mode in (None, "promise_in_bounds"):
        with pytest.raises(IndexError, match="out of bounds"):
            x.at[BEYOND].get(mode=mode)
    with pytest.raises(ValueError, match="mode is one of 'promise_in_bounds'"):
        x.at[0].set(1.0, mode="wrap")
    with pytest.raises(IndexError, match="too many"):
        x.at[0, 0].get(mode="clip")
    with pytest.raises(TypeError, match="unexpected keyword"):
        x.at[0].set(1.0, fill_value=1.0)


def test_numbers_of_the_dtype_of_a_tensor():
    for dtype in (td.float32, td.int8, td.bool_, td.complex64, td.bfloat16):
        number = td.ones(1, dtype=dtype).dtype.type(0)
        assert td.asarray(number).dtype is dtype and number == 0


VALUES = [
    np.float32(2),
    np.array(2, np.int8),
    np.full((2, 3), 2, np.float32),
    np.full(3, 2, np.float64),
    [2, 2, 2],
]
METHODS = ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "way", [lambda f: f, td.jit, td.functionalize], ids=["eager", "jit", "functionalize"]
)
def test_every_method_takes_values_of_numpy(method, way):
    def updated(key, value):
        return way(lambda x: getattr(x.at[key], method)(value))(x)

    x = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3) + 1)
    for key in (..., td.asarray([1, 0]), slice(None)):
        expected = getattr(x.at[key], method)(td.full((2, 3), 2.0)).tolist()
        for value in VALUES:
            found = updated(key, value)
            assert found.dtype is td.float32 and found.tolist() == expected


MASKS = [[True, False], (slice(None), [True, False, True]), [[True, False, True], [False, True, True]]]


@pytest.mark.parametrize("way", [lambda f: f, td.jit, td.vmap, td.functionalize])
@pytest.mark.parametrize("key", [*MASKS, ([False, True], None, [2])])
def test_lists_of_bools_are_masks_in_every_transform(key, way):
    raw = np.arange(6.0).reshape(2, 3)
    written = raw.copy()
    written[key] *= -1
    x = td.asarray(np.stack([raw, raw]) if way is td.vmap else raw)
    last = -1 if way is td.vmap else ...
    assert way(lambda x: x[key] * 1)(x)[last].tolist() == raw[key].tolist()
    assert way(lambda x: x.at[key].multiply(-1))(x)[last].tolist() == written.tolist()

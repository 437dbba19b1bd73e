"""``x.at[index]`` and its keywords: what programs written for JAX ask of them."""

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

"""Eager reads at positions along every axis; NumPy is the reference."""

import numpy as np
import pytest
import tandem as td

DTYPES = ["bool", "uint8", "int16", "float32", "float64", "complex128"]
POSITIONS = ["int8", "uint16", "int32", "int64", "uint64"]


@pytest.mark.parametrize("count", [0, 1, 3, 9, 257, 600])
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_along_every_axis(dtype, count):
    rng = np.random.default_rng(count)
    for shape in [(7,), (5, 4), (3, 1, 6), (2, 3, 4, 5)]:
        array = (rng.normal(size=shape) * 5).astype(dtype)
        strided = td.asarray(np.repeat(array, 2, -1))[..., ::2]
        for axis in range(len(shape)):
            low = -shape[axis] if count % 2 else 0
            positions = rng.integers(low, shape[axis], count)
            wanted = np.take(array, positions, axis)
            key = (slice(None),) * axis + (td.asarray(positions),)
            for x in (td.asarray(array), strided, td.asarray(np.ascontiguousarray(array.T)).T):
                for _ in range(2):
                    np.testing.assert_array_equal(td.take(x, key[-1], axis=axis).numpy(), wanted)
                    np.testing.assert_array_equal(x[key].numpy(), wanted)
            grid = positions[: count // 3 * 3].reshape(3, -1)
            mine = td.take(td.asarray(array), td.asarray(grid).T, axis=axis)
            np.testing.assert_array_equal(mine.numpy(), np.take(array, grid.T, axis))


@pytest.mark.parametrize("dtype", POSITIONS)
def test_positions_of_every_dtype(dtype):
    x = np.arange(100.0)
    positions = np.asarray([3, 99, 0, 7] * 70, dtype)
    strided = td.asarray(np.repeat(positions, 2))[::2]
    for index in (td.asarray(positions), strided):
        np.testing.assert_array_equal(td.asarray(x)[index].numpy(), x[positions])
    info = np.iinfo(dtype)  # NumPy converts uint64 to int64
    for place, wrong in ((0, 100), (279, 127), (5, min(info.max, 2**63 - 1)), (7, info.min)):
        positions[place], kept = wrong, positions[place]
        if wrong:
            for _ in range(3):
                with pytest.raises(td.errors.OutOfBoundsError):
                    td.asarray(x)[td.asarray(positions)]
        positions[place] = kept

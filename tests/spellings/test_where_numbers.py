"""``tandem.numpy.where`` with numbers: NumPy's dtypes, in the first call and in later ones."""

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem import config

MASK = np.array([True, False, True])
VALUES = [1, 2.5, True, 1j, np.float32(2), np.array([1, 2, 3], np.float32), np.arange(3.0), np.arange(3)]


def to_tensor(value):
    return td.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("one", VALUES, ids=repr)
@pytest.mark.parametrize("other", VALUES, ids=repr)
def test_dtypes_are_those_of_numpy(one, other):
    want = np.where(MASK, one, other)
    kinds = [
        np.asarray(value).dtype.kind for value in (one, other) if not isinstance(value, (int, float, complex))
    ]
    if sorted(kinds) == ["f", "i"]:
        pytest.skip("tandem promotes integers with float32 to float32, as JAX does")
    mask, x, y = td.asarray(MASK), to_tensor(one), to_tensor(other)
    with config.override(hot_calls=3):
        for _ in range(8):
            found = tnp.where(mask, x, y)
            assert found.dtype.np == want.dtype
            np.testing.assert_array_equal(found.numpy(), want)
            td.where(mask, x, y)  # its native entry serves the calls that are passed on
    jitted = td.jit(lambda mask: tnp.where(mask, x, y))(mask)
    assert jitted.dtype.np == want.dtype


def test_one_operand_alone_is_refused():
    with pytest.raises(ValueError, match="both x and y"):
        tnp.where(td.asarray(MASK), 1.0)


def test_condition_alone_gives_indices():
    (found,) = tnp.where(td.asarray(MASK))
    assert found.tolist() == [0, 2]

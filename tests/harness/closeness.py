"""When results of two ways of running a program count as equal."""

import numpy as np


def close_enough(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            scale = np.max(np.abs(b[np.isfinite(b)]), initial=1.0)
            tolerance = 1e-3 if a.dtype.itemsize == 4 else 1e-5  # a float64 may come from float32
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)

"""Values and comparisons for tests of kernels in other languages."""

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath

NATIVE = not fastpath.why_off()


needs_native = pytest.mark.skipif(not NATIVE, reason="native code is off")


X = td.asarray([0.5, -1.0, 2.0, 8.0], dtype=td.float64)


def close(found, wanted):
    assert found.dtype.np == np.asarray(wanted).dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)

"""Arguments and exact results for tests of jitted functions."""

import numpy as np
import tandem as td


def tensor(*shape, dtype=np.float32):
    return td.asarray(np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype))


def check(result, wanted):
    assert type(result) is td.Tensor
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-6)

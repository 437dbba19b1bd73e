"""Tensors that compiled code creates: emitted loops where they are large."""

import numpy as np
import pytest
import tandem as td
from tandem import config

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")


@native
@pytest.mark.parametrize(
    "create",
    [
        lambda: td.eye(300),
        lambda: td.eye(260, 270, k=-3, dtype=td.int64),
        lambda: td.eye(260, 270, k=2**40, dtype=td.bool),
        lambda: td.linspace(-3.7, 9.1, 70001),
        lambda: td.linspace(5, -2, 70001, endpoint=False, dtype=td.float64),
        lambda: td.linspace(0, 7, 70001, dtype=td.int64),
    ],
)
def test_large_created_tensors_are_emitted(create):
    """Small ones are constants."""
    jitted, x = td.jit(lambda x: (create(), x)), td.ones(2)
    assert "callback" not in str(jitted.lower(x).kernels())
    result, wanted = jitted(x)[0], create()
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result.numpy(), wanted.numpy())

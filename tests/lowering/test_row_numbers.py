"""What depends on the numbers of a row alone is computed once for the row, as one number."""

import re

import numpy as np
import pytest
import tandem as td
from tandem import config

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")


@native
def test_divisions_of_row_numbers_are_single():
    def normalize(x):
        return x * (1.0 / (1e-3 + td.sqrt((x * x).sum(-1, keepdims=True))))

    x = td.asarray(np.random.default_rng(0).normal(size=3))
    ir = td.jit(normalize).lower(x).llvm_ir()
    assert re.findall(r"fdiv (double|<)", ir) == ["double"]
    np.testing.assert_allclose(
        td.jit(normalize)(x).numpy(), x.numpy() / (1e-3 + np.linalg.norm(x.numpy())), rtol=1e-14
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 17, 100])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "c8"])
def test_row_numbers_have_the_bits_of_vectors(size, dtype):
    def program(x):
        total = x.sum(-1, keepdims=True)
        high = td.abs(x).sum(-1, keepdims=True)
        scale = td.where(high > 3, total * 2, total + 1) - td.exp(-td.abs(high.astype(td.float32)))
        return x * scale + td.sin(high.astype(td.float32))

    x = td.asarray((np.random.default_rng(size).normal(size=(4, size)) * 3).astype(dtype))
    np.testing.assert_allclose(td.jit(program)(x).numpy(), program(x).numpy(), rtol=1e-5, atol=1e-5)

"""Fourier transforms run in the precision of their operand, with the same bits in eager, hot and compiled calls."""

import numpy as np
import pytest
import tandem as td
from tandem import config

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
rng = np.random.default_rng(2)


@pytest.mark.parametrize("count", [1, 7, 64, 1000])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_have_the_same_bits_in_all_calls(dtype, name, count):
    parts = rng.standard_normal((2, 3, count)).astype(dtype)
    x = parts[0] if name == "rfft" else parts[0] + parts[1] * dtype(1) * np.complex64(1j)
    if name == "irfft" and count == 1:
        return
    f, wide = getattr(td.fft, name), np.complex128 if x.dtype.kind == "c" else np.float64
    eager = f(td.asarray(x))
    with config.override(hot_calls=1, hot_composites=1):
        results = [f(td.asarray(x)) for _ in range(4)]
    for result in (*results, td.jit(lambda x: f(x))(td.asarray(x))):
        assert result.numpy().tobytes() == eager.numpy().tobytes()
    wanted = getattr(np.fft, name)(x.astype(wide))
    bound = (1e-6 if dtype is np.float32 else 1e-14) * np.abs(wanted).max()
    assert np.abs(eager.numpy() - wanted).max() <= bound


@native
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_transforms_of_single_precision_are_not_converted(name):
    f = getattr(td.fft, name)
    x = td.asarray((rng.standard_normal(8) + 1j).astype(np.complex64))
    assert "td::cast" not in {row.op for row in td.jit(lambda x: f(x)).lower(x).kernels()}

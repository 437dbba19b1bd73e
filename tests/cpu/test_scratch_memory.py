"""Scratch memory that native loops keep for the next call: of threads that call at once, and of calls of any size."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.native_kernels import loop_code, rt_scratch

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)

rng = np.random.default_rng(0)
argsort = td.jit(lambda x: td.argsort(x, stable=True))


def kept_bytes():
    block = loop_code.scratch_slot.value
    return 0 if block is None else ctypes.c_int64.from_address(block).value


def test_threads_share_one_block():
    arrays = [rng.standard_normal(size) for size in (70, 300, 1000, 5000, 20000)]
    images = [rng.standard_normal((2, 3, size, size)).astype(np.float32) for size in (6, 12, 20)]
    kernel = td.asarray(rng.standard_normal((8, 3, 3, 3)).astype(np.float32))
    convolve = td.jit(lambda x, w: td.nn.functional.conv2d(x, w, padding=1))
    wanted = [convolve(td.asarray(image), kernel).numpy() for image in images]

    def work(number):
        for k in range(60):
            x = arrays[(number + k) % len(arrays)]
            np.testing.assert_array_equal(argsort(td.asarray(x)).numpy(), np.argsort(x, kind="stable"))
            at = (number * k) % len(images)
            np.testing.assert_array_equal(convolve(td.asarray(images[at]), kernel).numpy(), wanted[at])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert 0 < kept_bytes() <= rt_scratch.MOST_KEPT


def test_large_blocks_are_not_kept():
    x = rng.standard_normal(rt_scratch.MOST_KEPT // 16)
    np.testing.assert_array_equal(argsort(td.asarray(x)).numpy(), np.argsort(x, kind="stable"))
    assert kept_bytes() <= rt_scratch.MOST_KEPT


def test_block_is_used_again():
    x = td.asarray(rng.standard_normal(2000))
    argsort(x)
    block = loop_code.scratch_slot.value
    for _ in range(100):
        argsort(x)
        assert loop_code.scratch_slot.value == block

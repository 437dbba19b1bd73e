"""Calls of native kernels whose operands have other sizes each time: their plans are computed from symbolic ones."""

import sys

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.native_kernels import plans

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")

CALLS = {
    "sort": (td.sort, np.sort),
    "sort of axis 0": (lambda x: td.sort(x, axis=0), lambda x: np.sort(x, axis=0)),
    "argsort": (td.argsort, lambda x: np.argsort(x, stable=True)),
    "topk": (lambda x: td.topk(x, 3)[0], lambda x: np.sort(x)[..., :-4:-1]),
    "searchsorted": (
        lambda x: td.searchsorted(td.sort(x.reshape(-1)), 0.5),
        lambda x: np.searchsorted(np.sort(x.reshape(-1)), 0.5),
    ),
    "searchsorted of as many": (
        lambda x: td.searchsorted(td.sort(x.reshape(-1)), x.reshape(-1)),
        lambda x: np.searchsorted(np.sort(x.reshape(-1)), x.reshape(-1)),
    ),
    "fft": (td.fft.fft, lambda x: np.fft.fft(x.astype(np.float64))),
    "rfft": (td.fft.rfft, lambda x: np.fft.rfft(x.astype(np.float64))),
    "irfft": (td.fft.irfft, lambda x: np.fft.irfft(x.astype(np.float64))),
    "inv": (
        lambda x: td.linalg.inv(td.eye(3, dtype=x.dtype) * 4 + x.reshape(-1)[:, None, None]),
        lambda x: np.linalg.inv(4 * np.eye(3) + x.reshape(-1)[:, None, None]),
    ),
    "cholesky": (
        lambda x: td.linalg.cholesky(td.eye(3, dtype=x.dtype) * 4 + x.reshape(-1)[:, None, None]),
        lambda x: np.linalg.cholesky(4 * np.eye(3) + x.reshape(-1)[:, None, None]),
    ),
}
LAYOUTS = {
    "vector": lambda rng, n: rng.random(n),
    "strided": lambda rng, n: rng.random(2 * n)[::2],
    "reversed": lambda rng, n: rng.random(n)[::-1],
    "rows": lambda rng, n: rng.random((n, 5)),
    "columns": lambda rng, n: rng.random((5, n)),
    "transposed": lambda rng, n: rng.random((n, 5)).T,
    "square": lambda rng, n: rng.random((n, n)),
    "part": lambda rng, n: rng.random((200, 8))[:n, 1:6],
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_each_size_has_its_results(name, layout, dtype):
    call, reference = CALLS[name]
    rng = np.random.default_rng(len(name))
    for n in rng.permutation(np.arange(8, 140))[:70]:
        array = LAYOUTS[layout](rng, int(n)).astype(np.float64)
        given = array if dtype == "float64" else array.astype(dtype)
        if dtype != "float64" and layout in ("transposed", "strided", "reversed"):
            continue  # a conversion is contiguous
        np.testing.assert_allclose(call(td.asarray(given)).numpy(), reference(given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["sort", "argsort", "searchsorted", "rfft", "inv"])
def test_no_plan_is_made_for_a_new_size(name, monkeypatch):
    call, made = CALLS[name][0], []
    monkeypatch.setattr(
        plans, "_make_plan", lambda *args, make=plans._make_plan: made.append(1) or make(*args)
    )
    vector = td.asarray(np.random.default_rng(0).random(1024))
    with config.override(hot_calls=1, hot_composites=10**9):
        for n in range(690, 705):
            call(vector[:n])
        before = len(made)
        for n in range(1000, 704, -1):
            call(vector[:n])
    assert len(made) == before


def test_two_sizes_that_differ_have_plans_of_their_own():
    rng = np.random.default_rng(1)
    for n, m in rng.integers(16, 40, (200, 2)):
        x = rng.random((n, m))
        np.testing.assert_array_equal(td.sort(td.asarray(x), axis=0).numpy(), np.sort(x, axis=0))
        np.testing.assert_array_equal(
            td.searchsorted(td.asarray(np.sort(x[0])), td.asarray(x[:, 0])).numpy(),
            np.searchsorted(np.sort(x[0]), x[:, 0]),
        )


def test_default_dtypes_have_plans_of_their_own():
    numbers, before = td.asarray(np.arange(200) % 7), td.get_default_dtype()
    try:
        for dtype in (td.float64, td.float32, td.float64):
            td.set_default_dtype(dtype)
            for n in range(130, 200):
                assert td.special.gammaln(numbers[:n]).dtype is dtype
    finally:
        td.set_default_dtype(before)


def test_errors_are_those_of_python():
    singular = td.zeros(200, 3, 3)
    for n in range(130, 200):
        with pytest.raises(td.errors.TandemError, match="Singular"):
            td.linalg.inv(singular[:n])


def test_references_do_not_grow():
    vector = td.asarray(np.random.default_rng(2).random(1024))

    def run():
        for n in range(1000, 520, -1):
            td.sort(vector[:n])

    run()
    run()
    before = sys.getrefcount(vector)
    assert smallest_block_growth(run) < 50
    assert sys.getrefcount(vector) == before

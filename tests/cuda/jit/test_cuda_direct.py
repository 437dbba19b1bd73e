"""Prewritten kernels in jitted functions on CUDA: scans, gathers, scatters and random bits.

They run on a double of the driver; no GPU is used.
"""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest
import tandem as td
from cuda_jit_harness import linked, native, on_cpu
from optable import replace
from rotation import one_each_commit
from tandem import errors
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.launches.prewritten import make_launches
from tandem.backends.cuda.runtime.compiler import nvrtc_file
from tandem.lowering.thunks import NodeThunk

pytestmark = pytest.mark.usefixtures("cuda")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 5)).astype("f4")
PLACES = RNG.integers(-7, 7, (3, 4))
KEY = np.array([20, 11, 3, 4000000000], "u4")
KEYS = RNG.integers(0, 2**32, (3, 4), "u4")
LONG = RNG.standard_normal((2, 9000)).astype("f4")
TALL = RNG.standard_normal((2, 600, 40)).astype("f4")
FEW = RNG.standard_normal((2, 300, 3)).astype("f4")


def typed(x, name):
    return td.astype(x, getattr(td, name))


SCANS = {
    "rows": (lambda x: td.cumsum(x, 1), (X,)),
    "columns": (lambda x: td.cumsum(x, 0), (X,)),
    "a negative axis": (lambda x: td.cumprod(x, -2), (X,)),
    "all": (lambda x: td.cumsum(x), (X,)),
    "one element": (lambda x: td.cumsum(x[:1, :1], 0), (X,)),
    "a number": (lambda x: td.cumsum(x[0, 0]), (X,)),
    "none": (lambda x: (td.cumsum(x[:0], 0), td.cumsum(x[:, :0], 0), td.cumsum(x[:0])), (X,)),
    "of a transposed one": (lambda x: td.cumsum(x.T, 0), (X,)),
    "of a slice": (lambda x: td.cumprod(x[1:, ::2], -1), (X,)),
    "of rows from the middle": (lambda x: td.cumsum(x[3:], 1), (X,)),
    "of what is computed": (lambda x: td.exp(td.cumsum(td.sin(x) * 2, 1)) + x, (X,)),
    "in another dtype": (lambda x: td.cumsum(x, 1, dtype=td.float64), (X,)),
    "of integers": (lambda x: td.cumsum(typed(x * 3, "int8"), 1), (X,)),
    "of truth values": (lambda x: td.cumsum(x > 0, 0), (X,)),
    "of halves": (lambda x: td.cumsum(typed(x, "bfloat16"), 0), (X,)),
    "of complex ones": (lambda x: td.cumprod(x + 1j * x[::-1], 1), (X,)),
    "long rows, which blocks share": (lambda x: td.cumsum(x, 1), (LONG,)),
    "long columns, which threads share": (lambda x: td.cumsum(x, 1), (TALL,)),
    "few columns, which are turned": (lambda x: td.cumsum(x, -2), (FEW,)),
    "twice": (lambda x: td.cumsum(td.cumsum(x, 1) * 0.01, 1) + td.cumsum(x, 1), (LONG.astype("f8"),)),
}
WRITES = {
    "rows": (lambda x, i: x.at[i].set(x[:4] * 2), (X, PLACES)),
    "rows, added": (lambda x, i: x.at[i].add(x[:4, None, 0]), (X, PLACES)),
    "columns": (lambda x, i: x.at[:, i % 5].set(1.5), (X, PLACES)),
    "columns, added": (lambda x, i: x.at[:, i % 5].add(2), (X, PLACES)),
    "both axes": (lambda x, i: x.at[i, i[:, :1] % 5].add(x[0, 0]), (X, PLACES)),
    "both axes, set": (lambda x, i: x.at[i, i[:, :1] % 5].set(td.arange(4, device=x.device)), (X, PLACES)),
    "one place": (lambda x, i: x.at[i[0, 0]].set(x[1] * 3), (X, PLACES)),
    "a number that is known at the call": (lambda x, i, s: x.at[i].set(s).at[i].add(s), (X, PLACES, 2.5)),
    "a transposed one": (lambda x, i: x.T.at[:, i].set(0.5), (X, PLACES)),
    "a slice": (lambda x, i: x[1:, 1::2].at[i % 6].add(1), (X, PLACES)),
    "what is computed": (lambda x, i: td.exp(td.exp(x).at[i].add(x[:4] * 2)) + 1, (X, PLACES)),
    "no places": (lambda x, i: (x.at[i[:0]].set(1.0), x.at[i[:0]].add(1.0)), (X, PLACES)),
    "nothing": (lambda x, i: x[:, :0].at[i].set(1.0), (X, PLACES)),
    "zeros": (lambda x, i: td.zeros((7, 5), device=x.device).at[i].set(x[:4]), (X, PLACES)),
    "zeros, added": (
        lambda x, i: [
            td.zeros(7, dtype=d, device=x.device).at[i].add(typed(i, d.name))
            for d in (td.int8, td.int64, td.bfloat16, td.complex128)
        ],
        (X, PLACES),
    ),
    "a sum of slices' squares": (
        lambda x, i: td.grad(lambda x: td.sum(x[i] ** 2))(typed(x, "bfloat16")),
        (X, PLACES),
    ),
}
for (
    _dtype
) in "bool int8 uint8 int16 int32 int64 uint64 float16 bfloat16 float64 complex64 complex128".split():
    WRITES[f"{_dtype}, set"] = (
        lambda x, i, d=_dtype: typed(x * 3, d).at[i].set(typed(x[:4], d)),
        (X, PLACES),
    )
    WRITES[f"{_dtype}, added"] = (
        lambda x, i, d=_dtype: typed(td.round(x), d).at[i].add(typed(td.round(x[:4] * 4), d)),
        (abs(X), PLACES),
    )
for _dtype in "int8 int16 int32 uint8 uint32 uint64".split():
    WRITES[f"{_dtype} places"] = (
        lambda x, i, d=_dtype: (x[typed(i, d)], x.at[typed(i, d)].add(1.0)),
        (X, PLACES % 7),
    )
WORDS = {
    "bits": (lambda k: td.random.bits(k, (3, 5)), (KEY,)),
    "pairs of words": (lambda k: td.random.bits(k, 7, bits=64), (KEY,)),
    "none": (lambda k: td.random.bits(k, (0,)), (KEY,)),
    "of several keys": (lambda k: td.random.bits(k, 3), (KEYS,)),
    "of every other key": (lambda k: td.random.bits(k[::2], 3), (KEYS,)),
    "normal": (lambda k: td.random.normal(k, (9,)) * 2 + 1, (KEY,)),
    "uniform": (lambda k: td.random.uniform(k, (9,), dtype=td.float64), (KEY,)),
    "new keys": (lambda k: td.random.split(k, 3), (KEY,)),
    "of new keys": (lambda k: [td.random.bits(key, 2) for key in td.random.split(k)], (KEY,)),
    "folded in": (lambda k: td.random.fold_in(k, -5), (KEY,)),
    "a step folded in": (lambda k, n: td.random.bits(td.random.fold_in(k, n), 3), (KEY, 7)),
    "numbers folded in": (
        lambda k, n: (td.random.fold_in(k[0], n), td.random.fold_in(k, 3), td.random.fold_in(k, n)),
        (KEYS, np.array([1, -2, 3], "i4")),
    ),
    "keys of seeds": (lambda s: td.ops.td.random_key(s), (np.array([1, -2, 2**40]),)),
    "choice by weight": (lambda k, p: td.random.choice(k, 5, (20,), p=td.softmax(p, 0)), (KEY, X[0])),
}
MADE = {
    "joined flat": (lambda x: td.concat([x * 2, x.T, td.astype(x[:1], td.int32)], None), (X,)),
    "joined with numbers": (lambda x, n: td.concat([x, 2.5, x[0], n], None), (X, 3.5)),
    "a number at the end": (lambda x, n: (td.append(x, 2), td.append(x[:, 0], n)), (X, 3.5)),
    "eye": (lambda x: td.eye(7, 5, device=x.device) * x, (X,)),
    "a shifted one": (lambda x: td.eye(7, k=-2, dtype=td.complex64, device=x.device) * x[:, :1], (X,)),
    "far off": (lambda x: x.T @ td.eye(7, 3, k=9, device=x.device), (X,)),
    "a large one": (lambda x: td.sum(td.eye(300, 400, k=3, device=x.device) * x[0, 0], 1), (X,)),
    "of nothing": (lambda x: (td.eye(0, 3, device=x.device), x + 1), (X,)),
}
GROUPS = {"scans": SCANS, "writes": WRITES, "words": WORDS, "made": MADE}
CASES = [pytest.param(*case, id=name) for group in GROUPS.values() for name, case in group.items()]


def there(tree):
    return replace(tree, np.ndarray, lambda a: td.asarray(a, device="cuda"))


def here(tree):
    return replace(tree, np.ndarray, td.asarray)


def steps_of(f, args):
    """The steps of a node each, but for those that are views or emitted."""
    lowered = td.jit(f).lower(*here(args), device="cuda")
    assert "callback" not in {row.choice for row in lowered.kernels()}, str(lowered.kernels())
    return [step for step in lowered._lowered.steps if isinstance(step, NodeThunk) and step.kind == "native"]


def leaves_of(tree):
    found = []
    replace(tree, td.Tensor, found.append)
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_values(group):
    """All of a group in one function, whose scans and writes share scratch memory."""
    cases = GROUPS[group]
    found = td.jit(lambda given: [f(*args) for (f, _), args in zip(cases.values(), given, strict=True)])(
        there([args for _, args in cases.values()])
    )
    for (name, (f, args)), result in zip(cases.items(), found, strict=True):
        wanted = leaves_of([f(*here(args))])
        for got, want in zip(map(on_cpu, leaves_of([result])), wanted, strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape), name
            exact = group == "words" and not want.dtype.is_inexact
            tolerance = 0 if exact else 3e-2 if want.dtype in (td.bfloat16, td.float16) else 2e-4
            ours, theirs = (typed(one, "complex128").numpy() for one in (got, want))
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=name)


@native
@pytest.mark.parametrize(("f", "args"), CASES)
def test_no_python(f, args):
    steps_of(f, args)


@native
def test_scans_choose_as_eager_ones():
    counts = {name: [len(make_launches(s)) for s in steps_of(*case)] for name, case in SCANS.items()}
    assert counts["rows"] == counts["of what is computed"] == [1]
    assert counts["few columns, which are turned"] == counts["of rows from the middle"] == [1]
    assert counts["long rows, which blocks share"] == counts["long columns, which threads share"] == [2]
    assert counts["none"] == [0, 0, 0]


SOME = {
    "scans": ["rows", "long columns, which threads share"],
    "words": ["bits", "folded in"],
}


@native
@pytest.mark.parametrize("architecture", one_each_commit(75, 80, 90, 100))
@pytest.mark.parametrize("all_", [False, pytest.param(True, marks=pytest.mark.full)], ids=["some", "all"])
def test_kernels_are_taken_by_nvrtc(architecture, all_):
    pytest.importorskip("cupy", reason="NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")
    chosen = {name: list(group) for name, group in GROUPS.items()} if all_ else SOME
    cases = [GROUPS[group][name] for group, names in chosen.items() for name in names]
    kernels = [launch.kernel for case in cases for step in steps_of(*case) for launch in make_launches(step)]
    assert len({kernel.name for kernel in kernels}) >= (15 if all_ else 5)
    assert Path(nvrtc_file(module_source(kernels), f"sm_{architecture}")).read_bytes()[:4] == b"\x7fELF"


@native
def test_direct_launches_join_cuda_graphs(cuda):
    def f(x, i, key):
        y = td.cumsum(x + td.random.normal(key, x.shape), 1)
        return y.at[i].add(1.0), y.at[i].set(td.exp(y[i]))

    with td.config.override(cuda_graphs=1):
        jitted = td.jit(f)
        before = cuda.host_count(b"graph launch")
        for n in range(5):
            args = LONG[:, n : n + 8500].copy(), PLACES % 2, KEY + np.uint32(n)
            for got, want in zip(jitted(*there(args)), f(*here(args)), strict=True):
                np.testing.assert_allclose(on_cpu(got).numpy(), want.numpy(), rtol=1e-3, atol=1e-3)
        assert cuda.host_count(b"graph launch") == before + 5


def test_places_out_of_bounds_are_met():
    bad = PLACES.copy()
    bad[1, 2] = 9
    for change in (lambda x: x.set(1.0), lambda x: x.add(1.0)):
        for dtype in (td.int64, td.int32):
            f = td.jit(lambda x, i, change=change, dtype=dtype: change(x.at[i.astype(dtype)]))
            for _ in range(2):
                got = f(*there((X, bad)))
                with pytest.raises(errors.OutOfBoundsError, match="index 9 is out of bounds for axis 0"):
                    td.synchronize("cuda")
                good = PLACES.copy()
                good[1, 2] = good[1, 1]  # nothing is written for the bad one
                assert np.array_equal(on_cpu(got).numpy() != X, on_cpu(f(*there((X, good)))).numpy() != X)
                td.synchronize("cuda")


@native
@pytest.mark.parametrize("calls", [3000, pytest.param(100_000, marks=pytest.mark.full)])
def test_hot_calls_keep_nothing(cuda, caching, calls):
    def f(x, i, key):
        return td.cumsum(x, 1), x.at[i].set(1.0), x.at[:, i].add(2.0), td.random.bits(key, 5)

    args = there((LONG, PLACES % 2, KEY))
    jitted = td.jit(f)
    gc.collect()  # what other tests have left
    cuda.host_noop(1)

    def kept():
        gc.collect()
        data = [one for x in args for one in (x, x._data, x._data.buffer)]
        counts = [sys.getrefcount(one) for one in (jitted, record, *data)]
        return counts, td.cuda.memory_stats()["blocks"], td.cuda.memory_allocated(), cuda.host_live_blocks()

    try:
        record = linked(jitted, *args)
        before, hits = kept(), record.hits
        for _ in range(calls):
            jitted(*args)
        assert (kept(), record.hits) == (before, hits + calls)
    finally:
        cuda.host_noop(0)

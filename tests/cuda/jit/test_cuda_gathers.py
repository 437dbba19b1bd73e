"""Reads at integer positions in jitted functions on CUDA: they are part of the kernels that use the elements.

They run on a double of the driver; no GPU is used.
"""

import os

import numpy as np
import pytest
import tandem as td
from cuda_jit_harness import native, on_cpu
from optable import replace
from rotation import one_each_commit
from tandem import errors
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.launches.call_text import write_kernels
from tandem.backends.cuda.runtime.compiler import nvrtc_file

pytestmark = pytest.mark.usefixtures("cuda")
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((50, 32)).astype("f4")
ROWS = RNG.integers(-50, 50, (3, 5))
LONG = RNG.standard_normal((6, 9000)).astype("f4")
LABELS = RNG.integers(-32, 32, 50)
SCALES = RNG.standard_normal(40).astype("f4")
DTYPES = (
    "bool int8 uint8 int16 int32 int64 uint64 float16 bfloat16 float32 float64 complex64 complex128".split()
)

ONE_KERNEL = {
    "rows": (lambda x, i: x[i] * 2 + 1, (TABLE, ROWS)),
    "rows of odd length": (lambda x, i: x[:, :31][i] * 2, (TABLE, ROWS)),
    "rows of a slice": (lambda x, i: x[1:, 2:20][i % 49] * 2, (TABLE, ROWS)),
    "elements": (lambda x, i, j: td.exp(x[i, j]), (TABLE, ROWS, ROWS % 32)),
    "columns": (lambda x, i: x[:, i] - 1, (TABLE, ROWS % 32)),
    "columns of a transposed table": (lambda x, i: x.T[:, i] - 1, (TABLE, ROWS)),
    "computed positions": (lambda x, i: x[(i + 3) % 50] * x[i], (TABLE, ROWS)),
    "int32 positions": (lambda x, i: x[td.astype(i, td.int32)] * 2, (TABLE, ROWS)),
    "positions that are read at positions": (lambda x, i, j: x[i[j]] * 2, (TABLE, ROWS[0], ROWS % 5)),
    "one row": (lambda x, i: x[i[0, 0]] * x[i[1, 1]], (TABLE, ROWS)),
    "a row by number": (lambda x, n: x[n] * 2, (TABLE, 7)),
    "take": (lambda x, i: td.take(x, i, axis=1) + 1, (TABLE, ROWS % 32)),
    "take_along_axis": (lambda x, i: td.take_along_axis(x, i[:, None], 1) * 2, (TABLE, LABELS)),
    "index_select": (lambda x, i: td.index_select(x, 0, i[0]) * 2, (TABLE, ROWS % 50)),
    "a dynamic slice": (lambda x, n: td.jax.lax.dynamic_slice(x, (n, 3), (4, 16)) * 2, (TABLE, 7)),
    "a softmax of rows": (lambda x, i: td.softmax(x[i], -1), (TABLE, ROWS)),
    "sums of rows": (lambda x, i: td.sum(x[i] * 2, -1), (TABLE, ROWS)),
    "sums over rows": (lambda x, i: td.sum(x[i], 1), (TABLE, ROWS)),
    "sums of elements": (lambda x, i: td.sum(x[:, i], 1), (TABLE, ROWS[0] % 32)),
    "an argmax": (lambda x, i: td.argmax(x[i], 1), (TABLE, ROWS[0])),
    "clipped positions": (lambda x, i: x.at[i].get(mode="clip") * 2, (TABLE, ROWS + 20)),
    "scales of rows": (lambda x, s, i: x * s[i][:, None], (TABLE, SCALES, LABELS)),
    "the rows themselves": (lambda x, i: x[i], (TABLE, ROWS)),
}
OTHERS = {
    "long rows": (lambda x, i: td.sum(x[i], 1), (LONG, ROWS[0] % 6)),
    "a fill value": (lambda x, i: x.at[i].get(mode="fill", fill_value=3.0) * 2, (TABLE, ROWS + 20)),
    "wrapped positions": (
        lambda x, i: x.at[i].get(mode="fill", fill_value=1, wrap_negative_indices=False),
        (TABLE, ROWS),
    ),
    "of something computed": (lambda x, i: td.exp(x)[i] * td.exp(x)[i[0, 0]], (TABLE, ROWS)),
    "a gradient": (lambda x, i: td.grad(lambda x: td.sum(td.sin(x[i])))(x), (TABLE, ROWS)),
    "of a part of a table": (lambda x, i: td.concat([x, x * 2])[i + 50] + 1, (TABLE, ROWS)),
    "no elements": (lambda x, i: x[i[:0]] * 2, (TABLE, ROWS)),
    "twice, with two readers": (lambda x, i: (x[i] * 2, td.sum(x[i], 0), x[i] @ x.T), (TABLE, ROWS)),
}
CASES = ONE_KERNEL | OTHERS


def there(tree):
    return replace(tree, np.ndarray, lambda a: td.asarray(a, device="cuda"))


def here(tree):
    return replace(tree, np.ndarray, td.asarray)


def lower(name):
    f, args = CASES[name]
    return td.jit(f).lower(*here(args), device="cuda")


def leaves_of(tree):
    found = []
    replace(tree, td.Tensor, found.append)
    return found


def test_values_are_those_of_eager_calls():
    calls = list(CASES.values())
    found = td.jit(lambda given: [f(*args) for (f, _), args in zip(calls, given, strict=True)])(
        there([args for _, args in calls])
    )
    for (name, (f, args)), result in zip(CASES.items(), found, strict=True):
        for got, want in zip(leaves_of([result]), leaves_of([f(*there(args))]), strict=True):
            got, want = on_cpu(got), on_cpu(want)
            assert (got.dtype, got.shape) == (want.dtype, want.shape), name
            if name in ONE_KERNEL and "sum" not in name and "softmax" not in name:
                assert got.numpy().tobytes() == want.numpy().tobytes(), name
            else:
                np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=1e-5, err_msg=name)


@native
@pytest.mark.parametrize("name", ONE_KERNEL)
def test_reads_join_their_readers(name):
    steps = lower(name).kernels().steps
    assert len(steps) == 1, steps


@native
@pytest.mark.parametrize("name", OTHERS)
def test_reads_need_no_callbacks(name):
    assert "callback" not in {row.choice for row in lower(name).kernels()}


@pytest.mark.parametrize("part", one_each_commit(0, 1))
def test_elements_keep_their_bits(part):
    numbers = td.asarray(RNG.integers(-9, 9, (11, 6, 8)).astype("f8"), device="cuda")
    tables = {dtype: td.astype(numbers, getattr(td, dtype)) for dtype in DTYPES[part::2]}
    i, j = there((RNG.integers(-11, 11, 7), RNG.integers(-6, 6, 7)))
    reads = {
        "rows": lambda x: x[i],
        "short rows": lambda x: x[i, j],
        "elements": lambda x: x[i, j, j],
        "columns": lambda x: x[:, j],
        "chosen": lambda x: td.where(x[i] == x[i, j][:, None], x[i], x[i[0]]),
    }
    results = td.jit(lambda tables: {d: [f(x) for f in reads.values()] for d, x in tables.items()})(tables)
    for dtype, x in tables.items():
        for (name, f), got in zip(reads.items(), results[dtype], strict=True):
            assert got.dtype is x.dtype
            assert on_cpu(got).tolist() == on_cpu(f(x)).tolist(), (name, dtype)


@native
def test_rows_are_loaded_in_vectors():
    for name in ("rows", "sums of rows", "a softmax of rows", "the rows themselves"):
        assert "load<4>(" in lower(name).cuda_source().rpartition("__global__")[2], name
    odd = lower("rows of odd length").cuda_source().rpartition("__global__")[2]
    assert "load<" not in odd  # the rows of 31 elements are aligned, but no vectors of them are stored
    moved = lower("rows of a slice").cuda_source().rpartition("__global__")[2]
    assert "load<2>(" in moved  # from element 34 of each row on


@native
def test_positions_of_a_row_are_checked_once():
    text = lower("a softmax of rows").cuda_source().rpartition("__global__")[2]
    assert text.count("checked(") == 1
    assert text.index("checked(") < text.index("for (")


def random_read(rng):
    """A read of an array at positions, in a random program, and its arguments."""
    shape = tuple(int(n) for n in rng.choice([1, 2, 4, 8, 12, 33, 64], rng.integers(1, 4)))
    axis = int(rng.integers(0, len(shape)))
    many = int(rng.integers(1, len(shape) - axis + 1))
    common = tuple(int(n) for n in rng.choice([1, 2, 4, 17, 90], rng.integers(0, 3)))
    parts = [tuple(1 if rng.random() < 0.2 else n for n in common) for _ in range(many)]
    indices = [rng.integers(-n, n, part) for n, part in zip(shape[axis : axis + many], parts, strict=True)]
    x = rng.integers(-8, 9, shape).astype(rng.choice(["f4", "f8", "i4", "u1"]))
    key = (slice(None),) * axis
    readers = [
        lambda x, *i: x[(*key, *i)] * 2 + 1,
        lambda x, *i: td.sum(x[(*key, *i)]),
        lambda x, *i: td.max(x[(*key, *i)] + 1, axis=-1, keepdims=True) - x[(*key, *i)],
        lambda x, *i: td.sum(x[(*key, *i)], axis=0),
        lambda x, *i: x[(*key, *i)].T - x[(*key, *i)].T[:1],
        lambda x, *i: (x[(*key, *i)], x[(*key, *i)] == 3),
    ]
    return readers, (x, *indices), len(x[(*key, *indices)].shape)


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(5, 600, 5))])
def test_random_reads(first):
    for number in range(first, first + 5):
        readers, args, rank = random_read(np.random.default_rng((SEED, number)))
        readers = readers if rank else readers[:2]
        got = td.jit(lambda *args, readers=readers: [f(*args) for f in readers])(*there(args))
        want = [f(*here(args)) for f in readers]
        for one, other in zip(leaves_of(got), leaves_of(want), strict=True):
            assert one.dtype is other.dtype, number
            assert on_cpu(one).tolist() == other.tolist(), number


# -- positions out of bounds -------------------------------------------------------------------------------------------
BAD = {
    "index 50 is out of bounds for axis 0 with size 50": (lambda x, i: x[i] * 2, (TABLE, np.array([1, 50]))),
    "index -51 is out of bounds for axis 0 with size 50": (
        lambda x, i: td.softmax(x[i], -1),
        (TABLE, np.array([-51])),
    ),
    "index 32 is out of bounds for axis 1 with size 32": (
        lambda x, i: x[i % 2, i] * 2,
        (TABLE, np.array([3, 32])),
    ),
    "index 40 is out of bounds for axis 0 with size 40": (
        lambda x, s, i: td.sum(x * s[i][:, None], 0),
        (TABLE, SCALES, np.full(50, 40)),
    ),
    "index 77 is out of bounds for axis 1 with size 32": (
        lambda x, i: td.sum(td.where(x[:, i] > 9, x[:, i], 0.0)),
        (TABLE, np.array([77])),
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_positions_out_of_bounds_are_reported(message):
    f, args = BAD[message]
    jitted = td.jit(f)
    for _ in range(2):
        jitted(*there(args))
        with pytest.raises(errors.OutOfBoundsError, match=f"index: {message}"):
            td.synchronize("cuda")
        jitted(*there((*args[:-1], args[-1] * 0)))
        td.synchronize("cuda")


def test_elements_out_of_bounds_are_zero():
    got = td.jit(lambda x, i: (x[i] + 1, x[:, i] + 1))(*there((TABLE, np.array([0, 60, 31]))))
    with pytest.raises(errors.OutOfBoundsError):
        td.synchronize("cuda")
    rows, columns = (on_cpu(one).numpy() for one in got)
    assert np.array_equal(rows, np.stack([TABLE[0] + 1, np.ones(32, "f4"), TABLE[31] + 1]))
    assert np.array_equal(columns, np.stack([TABLE[:, 0] + 1, np.ones(50, "f4"), TABLE[:, 31] + 1], 1))


@native
@pytest.mark.parametrize("architecture", one_each_commit(75, 80, 90, 100))
def test_kernels_are_taken_by_nvrtc(architecture):
    pytest.importorskip("cupy", reason="NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")
    kernels = []
    for number, name in enumerate(CASES):
        for step in lower(name)._lowered.steps:
            if hasattr(step, "kernel"):
                own = step._replace(kernel=step.kernel._replace(name=f"{step.kernel.name}_{number}"))
                kernels += write_kernels(own)
    with open(nvrtc_file(module_source(kernels), f"sm_{architecture}"), "rb") as binary:
        assert binary.read(4) == b"\x7fELF"

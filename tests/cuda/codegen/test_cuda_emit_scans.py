"""CUDA kernels of scans: compiled by NVRTC, run on the CPU against NumPy, and checked for races."""

import ctypes

import numpy as np
import pytest
import tandem as td
from cuda_host.build import compile_program, missing_compiler, run_program
from cuda_host.programs import check_batch
from fold_table import FOLDS
from rotation import one_each_commit
from tandem.backends.cuda.codegen.eager_folds import write_reduction
from tandem.backends.cuda.codegen.eager_scans import CHUNK, write_scan
from tandem.backends.cuda.codegen.kernel import module_source
from tandem.backends.cuda.kernels.scans import choose_scan_variant
from tandem.registry import dtypes as dt

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")

SCANS = {
    "add": (np.cumsum, dt.float16, dt.float32),
    "maximum": (np.maximum.accumulate, dt.float32, dt.float32),
    "minimum": (np.minimum.accumulate, dt.int16, dt.int16),
    "mul": (np.cumprod, dt.bfloat16, dt.bfloat16),
    "count": (np.cumsum, dt.bool_, dt.int64),
    "doubles": (np.cumsum, dt.float64, dt.float64),
}
DECLARED = {"add": "sum", "count": "sum", "doubles": "sum", "mul": "prod", "maximum": "max", "minimum": "min"}
VARIANTS = ("rows", "columns", "split_rows", "split_columns")
LENGTHS = [1, 33, 2047, 2048, 5000]


def write_all():
    return [
        kernel
        for name, (_, dtype, out) in SCANS.items()
        for variant in VARIANTS
        for kernel in write_scan(f"{name}_{variant}", FOLDS[DECLARED[name]], dtype, out, variant)
    ]


@pytest.fixture(scope="module")
def launch():
    kernels = write_all()
    module, known = check_batch(kernels), {k.name: k for k in kernels}

    def run(name, grid, *arguments):
        values = [ctypes.c_longlong(a) if type(a) is int else a for a in arguments]
        module.launch(name, grid, known[name].block, 0, values)

    run.kernels = known
    return run


def given(name, *shape):
    """Numbers whose scans stay what the type holds."""
    rng = np.random.default_rng(sum(shape))
    dtype = SCANS[name][1]
    if name == "mul":
        return rng.choice([-1.0, 1.0], shape).astype(dtype.np)
    x = rng.normal(size=shape) * 100
    return (x > 0 if dtype is dt.bool_ else x).astype(dtype.np)


def wanted(name, x):
    function, dtype, out = SCANS[name]
    wide = x.astype(np.float64 if dtype.kind == "f" else np.int64)
    return function(wide, axis=1).astype(out.np)


def same(out, want):
    np.testing.assert_allclose(out.astype(np.float64), want.astype(np.float64), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows(launch, name, length):
    x = given(name, 3, length)
    out = np.empty_like(wanted(name, x))
    launch(f"{name}_rows", (2, 1, 1), x, out, 3, length)
    same(out, wanted(name, x))


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("length", [33, 2048, 5000])
@pytest.mark.parametrize("shift", [0, 1])
def test_rows_that_blocks_share(launch, name, length, shift):
    """Also where no vector is aligned."""
    x, part = given(name, 3 * length + shift)[shift:], CHUNK
    lines = x.reshape(3, length)
    parts = -(-length // part)
    size = launch.kernels[f"{name}_split_rows_0"].temporaries
    folds = np.full(3 * parts * size + 8, 0x5A, np.uint8)
    want = wanted(name, lines)
    out = np.zeros(3 * length + shift + 1, want.dtype)
    launch(f"{name}_split_rows_0", (parts, 3, 1), x, folds, 3, length, part)
    launch(f"{name}_split_rows_1", (parts, 3, 1), x, folds, out[shift:], 3, length, part)
    same(out[shift:-1].reshape(3, length), want)
    assert out[-1] == 0
    assert (folds[-8:] == 0x5A).all()


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("length", [1, 50, 1000])
def test_columns(launch, name, length):
    x = given(name, 2, length, 35)
    want = wanted(name, x)
    out = np.empty_like(want)
    launch(f"{name}_columns", (1, 1, 1), x, out, 2, length, 35)
    same(out, want)
    for parts in (1, 2, 7):
        part = -(-length // parts)
        size = launch.kernels[f"{name}_split_columns_0"].temporaries
        folds = np.full(2 * parts * 35 * size, 0x5A, np.uint8)
        out = np.empty_like(want)
        launch(f"{name}_split_columns_0", (3, 1, 1), x, folds, 2, length, 35, part)
        launch(f"{name}_split_columns_1", (2, 1, 1), x, folds, out, 2, length, 35, part)
        same(out, want)


def test_nan_stays_to_the_end_of_a_line(launch):
    x = given("maximum", 1, 5000)
    x[0, 2100] = np.nan
    folds, out = np.empty(3, np.float32), np.empty_like(x)
    launch("maximum_split_rows_0", (3, 1, 1), x, folds, 1, 5000, CHUNK)
    launch("maximum_split_rows_1", (3, 1, 1), x, folds, out, 1, 5000, CHUNK)
    np.testing.assert_array_equal(out, np.maximum.accumulate(x, axis=1))


def test_who_shares_what():
    assert choose_scan_variant((1, 1 << 26, 1)) == ("split_rows", 1 << 16)
    assert choose_scan_variant((1000, 1 << 16, 1))[0] == "rows"
    assert choose_scan_variant((1000000, 8, 1))[0] == "columns"
    assert choose_scan_variant((1, 1 << 20, 3))[0] == "transposed"
    assert choose_scan_variant((1, 1 << 20, 64))[0] == "split_columns"
    assert choose_scan_variant((1, 1000, 1 << 20))[0] == "columns"
    for sizes in [(1, 8192, 1), (200, 1 << 20, 1), (3, 4097 * 64, 50)]:
        variant, part = choose_scan_variant(sizes)
        assert variant.startswith("split")
        assert -(-sizes[1] // part) >= 2


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((20001,), 0), ((3, 9000), 1), ((9000, 3), 0), ((2, 600, 40), 1), ((300, 5), 1), ((0,), 0), ((), None)],
)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_tensors(cuda, shape, axis, dtype):
    rng = np.random.default_rng(len(shape))
    x = (rng.normal(size=shape) * 3).astype(dtype)
    got = td.cumsum(td.asarray(x).to("cuda"), axis).to("cpu")
    want = td.cumsum(td.asarray(x), axis)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-2)


def test_tensors_that_are_not_contiguous(cuda):
    x = np.arange(2 * 9000, dtype=np.float64).reshape(9000, 2) % 7 + 0.25
    got = td.cumsum(td.asarray(x).to("cuda").T, 1).to("cpu").numpy()
    np.testing.assert_allclose(got, np.cumsum(x.T, 1))


_MAIN = """
int main() {{
    static double x[{count}], out[{count}], states[64];
    void *px = x, *pout = out, *pstates = states;
    long long {sizes};
    void* one[] = {{{one}}};
    void* two[] = {{{two}}};
    launch_race_0(one, {grid}, {block}, 1, 0);
    launch_race_1(two, {second}, {block}, 1, 0);
    return 0;
}}
"""
COUNT = CHUNK + 700
SHARED = {
    "rows": (write_scan, (FOLDS["sum"], dt.float32, dt.float32, "split_rows")),
    "complex rows": (write_scan, (FOLDS["prod"], dt.complex64, dt.complex64, "split_rows")),
    "sum of a row": (write_reduction, (FOLDS["sum"], dt.float32, dt.float32, "split_rows")),
    "sums of columns": (write_reduction, (FOLDS["sum"], dt.float64, dt.float64, "split_columns")),
}


def launches(write, variant):
    """The parameters and the grids of the two launches."""
    if write is write_scan:
        known = f"outer = 1, length = {COUNT}, part = {CHUNK}"
        one, two = "&px, &pstates, &outer, &length, &part", "&px, &pstates, &pout, &outer, &length, &part"
        return {
            "sizes": known,
            "one": one,
            "two": two,
            "grid": "2, 1, 1",
            "second": "2, 1, 1",
            "block": "256, 1",
        }
    if variant == "split_rows":
        one, two = "&px, &pstates, &length", "&pstates, &pout, &parts"
        known = f"length = {COUNT}, parts = 2"
        return {
            "sizes": known,
            "one": one,
            "two": two,
            "grid": "2, 1, 1",
            "second": "1, 1, 1",
            "block": "256, 1",
        }
    one, two = "&px, &pstates, &outer, &length, &inner", "&pstates, &pout, &outer, &parts, &inner"
    known = "outer = 1, length = 100, inner = 20, parts = 2"
    return {"sizes": known, "one": one, "two": two, "grid": "1, 1, 2", "second": "1, 1, 1", "block": "32, 8"}


def raced(name, change=lambda source: source):
    """What ThreadSanitizer says."""
    write, arguments = SHARED[name]
    source = change(module_source(write("race", *arguments)))
    main = _MAIN.format(count=COUNT, **launches(write, arguments[-1]))
    return run_program(compile_program(source, main))


@pytest.mark.parametrize("name", one_each_commit(*SHARED))
def test_no_races(name):
    assert "data race" not in raced(name)


def test_a_race_is_found():
    assert "data race" in raced("rows", lambda source: source.replace("__syncthreads();", ""))

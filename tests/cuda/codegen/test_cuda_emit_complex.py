"""Complex arithmetic in CUDA C: compiled by NVRTC for one of four architectures, and run on the CPU against NumPy."""

import ctypes
import functools
import os

import numpy as np
import pytest
import tandem as td
from cuda_host.build import missing_compiler
from cuda_host.programs import Program, check_batch
from fold_table import FOLDS
from lowering_harness import graph_of
from rotation import share_each_commit
from tandem.backends.cuda.codegen.eager import write_elementwise
from tandem.backends.cuda.codegen.eager_folds import write_reduction
from tandem.backends.cuda.codegen.eager_scans import CHUNK, write_scan
from tandem.operators.scalar_ir import nodes as s
from tandem.operators.scalar_ir.expr import NODES, apply
from tandem.operators.scalar_ir.numpy_evaluation import UFUNCS
from tandem.registry import dtypes as dt

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
TYPES = (dt.complex64, dt.complex128)
of_each_type = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(d, id=d.name, marks=[pytest.mark.full] if k == SEED % 2 else [])
        for k, d in enumerate(TYPES)
    ],
)
"""The default run takes one type, others take turns."""
REAL = {dt.complex64: dt.float32, dt.complex128: dt.float64}
TOLERANCE = {dt.complex64: 4e-6, dt.complex128: 4e-14}
ONE = [name for name, row in NODES.items() if "c" in row.kinds and row.arity == 1]
TWO = [name for name, row in NODES.items() if "c" in row.kinds and row.arity == 2]
FAR = [name for name in ONE if name not in ("exp", "expm1", "sinh", "cosh", "log1p")]
CASTS = (dt.bool_, dt.int32, dt.float16, dt.float32, dt.float64, *TYPES)


def node(name, dtype):
    args = [s.arg(k, dtype) for k in range(NODES[name].arity)]
    return apply(name, *args)


def write_all(dtype):
    found = []
    for name in (*ONE, *TWO):
        body = node(name, dtype)
        types = [dtype] * NODES[name].arity
        found.append(write_elementwise(f"{name}_{dtype}", body, types, body.dtype, "contiguous"))
    parts = node("complex", REAL[dtype])
    found.append(write_elementwise(f"complex_{dtype}", parts, [REAL[dtype]] * 2, dtype, "unaligned"))
    chosen = s.select(s.eq(s.arg(0, dtype), 1 + 2j), s.const(3 - 0.5j, dtype), s.arg(1, dtype))
    found.append(write_elementwise(f"select_{dtype}", chosen, [dtype] * 2, dtype, "unaligned"))
    for other in CASTS:
        there, back = s.arg(0, dtype), s.arg(0, other)
        found.append(write_elementwise(f"cast_{dtype}_{other}", there, [dtype], other, "contiguous"))
        if other not in TYPES:
            found.append(write_elementwise(f"cast_{other}_{dtype}", back, [other], dtype, "contiguous"))
    for op in ("sum", "prod", "any"):
        out = dt.bool_ if op == "any" else dtype
        for variant in ("rows", "short_rows", "columns", "split_rows", "split_columns"):
            found += write_reduction(f"{op}_{dtype}_{variant}", FOLDS[op], dtype, out, variant)
    for op, fold in {"add": FOLDS["sum"], "mul": FOLDS["prod"]}.items():
        for variant in ("rows", "columns", "split_rows", "split_columns"):
            found += write_scan(f"scan_{op}_{dtype}_{variant}", fold, dtype, dtype, variant)
    return found


@functools.cache
def compiled(dtype):
    kernels = write_all(dtype)
    return check_batch(kernels), {k.name: k for k in kernels}


@pytest.fixture
def launch(dtype):
    module, known = compiled(dtype)

    def run(name, grid, *arguments):
        values = [ctypes.c_longlong(a) if type(a) is int else a for a in arguments]
        module.launch(name, grid, known[name].block, 0, values)

    run.kernels = known
    return run


def elementwise(launch, name, out, *arrays):
    found = np.empty(arrays[0].shape, out.np)
    launch(name, (2, 1, 1), *arrays, found, arrays[0].size)
    return found


def drawn(dtype, count, seed=0):
    """Numbers of any argument, their magnitudes some powers of ten apart, and some near what is singular."""
    rng = np.random.default_rng(seed)
    z = 10 ** rng.uniform(-3, 1.5, count) * np.exp(2j * np.pi * rng.uniform(size=count))
    z[: count // 4] = rng.choice([0, 1, -1, 1j, -1j], count // 4) + 1e-2 * z[: count // 4]
    return z.astype(dtype.np)


def special(dtype):
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
    return np.array([complex(a, b) for a in parts for b in parts], dtype.np)


@pytest.mark.parametrize("name", ONE)
@of_each_type
def test_functions(launch, name, dtype):
    z = drawn(dtype, 3001)
    with np.errstate(all="ignore"):
        want = UFUNCS[name](z.astype(np.complex128))
    got = elementwise(launch, f"{name}_{dtype}", node(name, dtype).dtype, z)
    np.testing.assert_allclose(got, want.astype(got.dtype), rtol=TOLERANCE[dtype], atol=1e-300)


@pytest.mark.parametrize("name", ONE)
@of_each_type
def test_functions_of_special_numbers(launch, name, dtype):
    z = special(dtype)
    with np.errstate(all="ignore"):
        want = UFUNCS[name](z)
    got = elementwise(launch, f"{name}_{dtype}", node(name, dtype).dtype, z)
    for given, one, other in zip(z, got, want):
        for part in ("real", "imag"):
            a, b = getattr(one, part), getattr(other, part)
            if np.isnan(one).any() and np.isinf(b):
                a, b = np.abs(a), np.abs(b)  # C99 leaves the sign open
            assert np.isclose(a, b, rtol=1e-6, atol=1e-6, equal_nan=True), (
                f"{name}({given}) = {one}, not {other}"
            )


@pytest.mark.parametrize("name", FAR)
@of_each_type
def test_functions_of_numbers_far_from_one(launch, name, dtype):
    """Squares of these overflow, or vanish."""
    least = 1e-37 if dtype is dt.complex64 else 1e-300
    sizes = [least, 1e3 * least, least**0.5, 1 / least**0.5, 1e-3 / least, 1 / least]
    parts = [sign * size for size in (*sizes, 1.0, 0.0) for sign in (1, -1)]
    z = np.array([complex(a, b) for a in parts for b in parts], dtype.np)
    if name in ("sin", "cos", "tan", "tanh"):
        z = z[np.abs(z.imag if name != "tanh" else z.real) < 80]
    with np.errstate(all="ignore"):
        want = UFUNCS[name](z)
    got = elementwise(launch, f"{name}_{dtype}", node(name, dtype).dtype, z)
    for given, one, other in zip(z, got, want):
        assert same(one, other, 1e-5), f"{name}({given}) = {one}, not {other}"


def same(one, other, rtol):
    """Whether numbers are equal within a tolerance of their magnitude, or both infinite, or both NaN."""
    if not np.isfinite(other):
        return np.isinf(other) == np.isinf(one) and np.isnan(other) == np.isnan(one)
    return one == other or abs(one - other) <= rtol * abs(other)


@pytest.mark.parametrize("name", TWO)
@of_each_type
def test_operators(launch, name, dtype):
    a, b = drawn(dtype, 3001, 1), drawn(dtype, 3001, 2)
    b[::7] = a[::7]
    if name == "pow":
        b[::3] = np.round(b[::3].real * 3)
        a[5], b[5], a[6], b[6], b[8] = 0, 2, 0, -1, 0
    with np.errstate(all="ignore"):
        wide = np.complex128 if name in ("mul", "truediv", "pow", "uniform_pow") else dtype.np
        want = UFUNCS[name](a.astype(wide), b.astype(wide))
    got = elementwise(launch, f"{name}_{dtype}", node(name, dtype).dtype, a, b)
    rtol = TOLERANCE[dtype] * (50 if "pow" in name and dtype is dt.complex128 else 1)
    with np.errstate(all="ignore"):
        want = want.astype(got.dtype)
    for x, y, one, other in zip(a, b, got, want):
        assert same(one, other, rtol), f"{x} {name} {y} = {one}, not {other}"


@of_each_type
def test_quotients_of_special_numbers(launch, dtype):
    z = special(dtype)
    a, b = (found.reshape(-1) for found in np.meshgrid(z, z))
    with np.errstate(all="ignore"):
        want = a / b
    got = elementwise(launch, f"truediv_{dtype}", dtype, a.copy(), b.copy())
    np.testing.assert_allclose(got, want, rtol=1e-6)


@of_each_type
@pytest.mark.parametrize("other", CASTS, ids=str)
def test_casts(launch, dtype, other):
    z = np.concatenate([drawn(dtype, 1001), np.zeros(3, dtype.np), [1j]]).astype(dtype.np)
    got = elementwise(launch, f"cast_{dtype}_{other}", other, z)
    whole = other in (dt.bool_, *TYPES)
    np.testing.assert_array_equal(got, z.astype(other.np) if whole else z.real.astype(other.np))
    if other not in TYPES:
        x = (np.arange(1001) % 7 - 3).astype(other.np)
        np.testing.assert_array_equal(
            elementwise(launch, f"cast_{other}_{dtype}", dtype, x), x.astype(dtype.np)
        )


@of_each_type
def test_parts_and_choices(launch, dtype):
    re, im = drawn(dtype, 77).real.copy(), drawn(dtype, 77).imag.copy()
    z = elementwise(launch, f"complex_{dtype}", dtype, re, im)
    np.testing.assert_array_equal(z, re + 1j * im)
    z[::2] = 1 + 2j
    got = elementwise(launch, f"select_{dtype}", dtype, z, z)
    np.testing.assert_array_equal(got, np.where(z == 1 + 2j, dtype.np.type(3 - 0.5j), z))


@pytest.mark.parametrize("op", ["sum", "prod", "any"])
@of_each_type
@pytest.mark.parametrize("shape", [(2, 37, 5), (1, 4099, 1), (3, 600, 33)])
def test_reductions(launch, op, dtype, shape):
    outer, length, inner = shape
    z = drawn(dtype, outer * length * inner).reshape(shape)
    if op == "prod":
        z = (z / np.maximum(np.abs(z), 1e-3)).astype(dtype.np)
    if op == "any":
        z[:, :, 0] = 0
    want = getattr(np, op)(z.astype(bool) if op == "any" else z.astype(np.complex128), axis=1)
    out = np.bool_ if op == "any" else dtype.np
    scale = length * TOLERANCE[dtype]

    def close(found):
        np.testing.assert_allclose(found.reshape(want.shape), want.astype(out), rtol=scale, atol=scale)

    rows, name = np.ascontiguousarray(np.moveaxis(z, 1, 2)), f"{op}_{dtype}"
    for variant in ("rows", "short_rows"):
        found = np.empty(outer * inner, out)
        launch(f"{name}_{variant}", (2, 1, 1), rows, found, outer * inner, length)
        close(found)
    found, across = np.empty((outer, inner), out), -(-inner // 32)
    launch(f"{name}_columns", (across, 2, 1), z, found, outer, length, inner)
    close(found)
    states = np.full(3 * outer * inner * launch.kernels[f"{name}_split_rows_0"].temporaries, 0x5A, np.uint8)
    found = np.empty(outer * inner, out)
    launch(f"{name}_split_rows_0", (3, outer * inner, 1), rows, states, length)
    launch(f"{name}_split_rows_1", (outer * inner, 1, 1), states, found, 3)
    close(found)
    found = np.empty((outer, inner), out)
    launch(f"{name}_split_columns_0", (across, 2, 3), z, states, outer, length, inner)
    launch(f"{name}_split_columns_1", (across, 1, 1), states, found, outer, 3, inner)
    close(found)


@pytest.mark.parametrize("op", ["add", "mul"])
@of_each_type
def test_scans(launch, op, dtype):
    length, name = 5000, f"scan_{op}_{dtype}"
    z = drawn(dtype, 2 * length).reshape(2, length)
    if op == "mul":
        z = (z / np.maximum(np.abs(z), 1e-3)).astype(dtype.np)
    want = (np.cumsum if op == "add" else np.cumprod)(z.astype(np.complex128), axis=1)
    scale = length * TOLERANCE[dtype]
    parts, size = -(-length // CHUNK), dtype.itemsize
    folds, out = np.full(2 * parts * size, 0x5A, np.uint8), np.empty_like(z)
    launch(f"{name}_rows", (2, 1, 1), z, out, 2, length)
    np.testing.assert_allclose(out, want, rtol=scale, atol=scale)
    launch(f"{name}_split_rows_0", (parts, 2, 1), z, folds, 2, length, CHUNK)
    launch(f"{name}_split_rows_1", (parts, 2, 1), z, folds, out, 2, length, CHUNK)
    np.testing.assert_allclose(out, want, rtol=scale, atol=scale)
    columns = np.ascontiguousarray(z.T)
    out = np.empty_like(columns)
    launch(f"{name}_columns", (1, 1, 1), columns, out, 1, length, 2)
    np.testing.assert_allclose(out.T, want, rtol=scale, atol=scale)
    launch(f"{name}_split_columns_0", (1, 1, 1), columns, folds, 1, length, 2, CHUNK)
    launch(f"{name}_split_columns_1", (1, 1, 1), columns, folds, out, 1, length, 2, CHUNK)
    np.testing.assert_allclose(out.T, want, rtol=scale, atol=scale)


CALLS = {
    "numbers": lambda z: (2 - 1j) * z + 1.5 * z / (z * z + 3j),
    "parts": lambda z: td.real(z) * td.imag(z) + td.abs(td.conj(z)),
    "comparisons": lambda z: td.where(z == 1, 1j, td.exp(z)),
    "powers": lambda z: (z + 1) ** 2 + td.sqrt(z) ** (1 + 0.5j),
    "real_with_complex": lambda z: td.real(z) * 2j + 1,
    "softmax": lambda z: td.exp(z) / td.sum(td.exp(z), axis=-1, keepdims=True),
    "moments": lambda z: td.mean(z, axis=0) + td.prod(z, axis=0),
    "scan": lambda z: td.cumsum(z, 1),
    "turned": lambda z: (z.T + 1) * z.T,
    "filled": lambda z: (
        td.full(z.shape, 2 - 1j, dtype=z.dtype, device=z.device) * td.ones_like(z) + td.zeros_like(z)
    ),
}


@of_each_type
@pytest.mark.parametrize("name", share_each_commit(CALLS, 2))
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_calls(cuda, dtype, name, jitted):
    z = td.asarray(drawn(dtype, 6 * 37).reshape(6, 37))
    function = td.jit(CALLS[name]) if jitted else CALLS[name]
    got, want = function(z.to("cuda")).to("cpu"), CALLS[name](z)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=50 * TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_operators_are_fused():
    program = Program(graph_of(lambda z: td.sum(td.abs(td.exp(z) * 1j)), drawn(dt.complex64, 100)), "n0")
    assert len(program.steps) == len(program.written()) == 1


def test_gradients(cuda):
    def loss(z):
        return td.sum(td.abs(td.exp(z) * z) ** 2)

    z = td.asarray(drawn(dt.complex64, 33))
    want = td.grad(loss)(z).numpy()
    for found in (td.grad(loss), td.jit(td.grad(loss))):
        np.testing.assert_allclose(found(z.to("cuda")).to("cpu").numpy(), want, rtol=1e-4, atol=1e-5)

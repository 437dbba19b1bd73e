"""Kernels in other languages: NumPy, C through ctypes, cffi and numba, LLVM IR, CUDA C; eager and under jit."""

import ctypes
import ctypes.util
import gc
import shutil
import subprocess

import numpy as np
import pytest
import tandem as td
from kernel_harness import NATIVE, X, close, needs_native
from tandem import errors

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))

SOURCE = """
#include <stdint.h>
#include <stdbool.h>
double cube(double x) { return x * x * x; }
float blend(float x, float y) { return 0.25f * x + y; }
int8_t small(int8_t x) { return x < 0 ? -1 : 1; }
bool positive(double x) { return x > 0; }
int32_t quotient(int32_t x, int32_t y) { return x / y; }
void axpy(const float *x, const float *y, float *out, int64_t n, double alpha) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)(alpha * x[i] + y[i]);
}
void rows(const double *x, double *total, double *largest, int64_t n, int64_t m) {
    for (int64_t i = 0; i < n; i++) {
        total[i] = 0;
        largest[i] = x[i * m];
        for (int64_t j = 0; j < m; j++) {
            total[i] += x[i * m + j];
            if (x[i * m + j] > largest[i]) largest[i] = x[i * m + j];
        }
    }
}
void scale_in_place(double *x, int64_t n, double by) { for (int64_t i = 0; i < n; i++) x[i] *= by; }
void shift(const double *x, const double *offset, double *out, int64_t n, int32_t steps, bool negate) {
    for (int64_t i = 0; i < n; i++) out[i] = (x[i] + (offset ? offset[0] : 0) + steps) * (negate ? -1 : 1);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("c")
    (folder / "kernels.c").write_text(SOURCE)
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "kernels.c", "-o", "kernels.so"], cwd=folder, check=True
    )
    return ctypes.CDLL(str(folder / "kernels.so"))


def choices(f, *args):
    return {row.op: row.choice for row in td.jit(f).lower(*args).kernels()}


# --- C: scalar functions ----------------------------------------------------------------------------------


def test_a_scalar_function_broadcasts_and_fuses(define, library):
    op = define("(Tensor x, Tensor y) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(library.blend, "float(float, float)"))
    x, y = td.asarray([[1.0], [2.0]]), td.asarray([1.0, -3.0, 0.5])
    wanted = np.float32(0.25) * x.numpy() + y.numpy()
    close(op(x, y), wanted)
    close(op(x.mT, 3), np.float32(0.25) * x.numpy().T + np.float32(3))
    close(op(x[::-1], y[::2]), np.float32(0.25) * x.numpy()[::-1] + y.numpy()[::2])
    assert op(td.empty((0, 3)), y).shape == (0, 3)
    f = td.jit(lambda x, y: (op(x * 2, y) + 1).sum())
    np.testing.assert_allclose(
        f(x, y).numpy(), (np.float32(0.5) * x.numpy() + y.numpy() + 1).sum(), rtol=1e-6
    )
    if NATIVE:
        rows = list(td.jit(lambda y: (op(y * 2, y) + 1).sum()).lower(y).kernels())
        assert len({row.group for row in rows}) == 1
        assert "a scalar function in C" in [row.why for row in rows]


@pytest.mark.parametrize("size", [1, 3, 8, 31, 1000])
def test_scalar_functions_of_small_types(define, library, size):
    signs = define("(Tensor x) -> Tensor")
    signs.register_kernel("cpu", td.c_kernel(library.small, "int8_t(int8_t)"))
    above = define("(Tensor x) -> Tensor")
    above.register_kernel("cpu", td.c_kernel(library.positive, "bool(double)"))
    rng = np.random.default_rng(size)
    x, y = rng.integers(-128, 128, size).astype(np.int8), rng.standard_normal(size)
    for run in (lambda f, a: f(a), lambda f, a: td.jit(lambda a: f(a))(a)):
        close(run(signs, td.asarray(x)), np.where(x < 0, -1, 1).astype(np.int8))
        close(run(above, td.asarray(y)), y > 0)


@pytest.mark.parametrize("size", [1, 3, 31, 1000])
def test_scalar_functions_get_only_existing_elements(define, library, size):
    """A division by zero in the rest of a vector would end the process."""
    op = define("(Tensor x, Tensor y) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(library.quotient, "int32_t(int32_t, int32_t)"))
    x, y = np.arange(size, dtype=np.int32), np.arange(1, size + 1, dtype=np.int32)
    close(op(td.asarray(x), td.asarray(y)), x // y)
    for f in (lambda x, y: op(x, y) + 1, lambda x, y: op(x[::-1], y).sum(), lambda x, y: op(x, y[0])):
        wanted = f(td.asarray(x), td.asarray(y))
        assert td.jit(f)(td.asarray(x), td.asarray(y)).tolist() == wanted.tolist()
    grid = td.asarray(np.arange(1, 6 * size + 1, dtype=np.int32).reshape(size, 6))
    assert td.jit(lambda g: op(g, g.mT.mT).sum(0))(grid).tolist() == [size] * 6
    empty = td.empty((0, 3), dtype=td.int32)
    assert td.jit(lambda x: op(x, x).sum())(empty).tolist() == 0


def test_the_signature_of_ctypes_functions_is_read_off(define):
    LIBM.cbrt.argtypes, LIBM.cbrt.restype = [ctypes.c_double], ctypes.c_double
    op = define("(Tensor x) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(LIBM.cbrt))
    close(op(X), np.cbrt(X.numpy()))
    assert op(td.empty(3, dtype=td.float64, device="meta")).shape == (3,)  # no fake is needed
    with pytest.raises(errors.ArgumentError, match="pass its signature"):
        td.c_kernel(LIBM.tan)


def test_dtypes_of_scalar_functions_are_checked(define):
    op = define("(Tensor x) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(LIBM.cbrt, "double(double)"))
    with pytest.raises(
        errors.DTypeError, match=r"takes float64 for 'x', not float32\[4\].*x.astype\(td.float64\)"
    ):
        op(X.astype(td.float32))
    with pytest.raises(errors.TandemError, match="float64"):
        td.jit(lambda x: op(x))(X.astype(td.float32))
    op.register_kernel("cpu", lambda x: x * 0, dtypes=[td.float32])
    assert op(X.astype(td.float32)).tolist() == [0.0] * 4
    close(op(X), np.cbrt(X.numpy()))


def test_numbers_with_tensors(define, library):
    op = define("(Tensor x, Tensor y) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(library.quotient, "int32_t(int32_t, int32_t)"))
    x = td.asarray([7, 8, 9], dtype=td.int32)
    assert op(x, 2).tolist() == [3, 4, 4]
    assert td.jit(lambda x: op(x, 2) + 1)(x).tolist() == [4, 5, 5]
    assert td.jit(lambda x, n: op(x, n) + 1)(x, 2).tolist() == [4, 5, 5]
    assert op(7, 2).tolist() == 3
    for call in (lambda x: op(x, 2.5), lambda x: op(x, True)):
        with pytest.raises(errors.DTypeError, match="number of type int32"):
            call(x)
        with pytest.raises(errors.DTypeError, match="number of type int32"):
            td.jit(call)(x)
    by_argument = td.jit(lambda x, n: op(x, n))
    for call in (lambda x: op(x, 2**40), td.jit(lambda x: op(x, 2**40)), lambda x: by_argument(x, 2**40)):
        with pytest.raises(errors.ScalarOverflowError):
            call(x)


def test_a_function_for_each_dtype(define):
    LIBM.cbrtf.argtypes, LIBM.cbrtf.restype = [ctypes.c_float], ctypes.c_float
    op = define("(Tensor x) -> Tensor", lambda x: td.empty_like(x))
    op.register_kernel("cpu", td.c_kernel(LIBM.cbrt, "double(double)"), dtypes=[td.float64])
    op.register_kernel("cpu", td.c_kernel(LIBM.cbrtf), dtypes=[td.float32])
    f = td.jit(lambda x: op(x) * 2)
    for x in (X, X.astype(td.float32)):
        close(op(x), np.cbrt(x.numpy()))
        close(f(x), np.cbrt(x.numpy()) * 2)
        assert td.opcheck(op, (x,))["dtypes"] == "SUCCESS"
        if NATIVE:
            assert choices(lambda x: op(x), x) == {op.op.name: "fused"}
    with pytest.raises(errors.NoKernelError):
        op(td.asarray([1, 2]))
    op.register_kernel("cpu", lambda x: x * 0, dtypes=[td.float32])  # the newest, in Python
    assert f(X.astype(td.float32)).tolist() == [0.0] * 4


def test_gradients_and_batches_of_c_kernels(define, library):
    op = define("(Tensor x) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(library.cube, "double(double)"))
    op.register_autograd(
        lambda ctx, g: 3 * g * td.square(ctx.saved_tensors[0]),
        lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    op.register_vmap(lambda info, in_dims, x: (op(x), 0))
    assert set(td.opcheck(op, (X,)).values()) == {"SUCCESS"}
    f = td.jit(td.grad(lambda x: op(x).sum()))
    close(f(X), 3 * X.numpy() ** 2)


# --- C: buffer functions ----------------------------------------------------------------------------------

AXPY = "void(const float *x, const float *y, float *out, int64_t out.size, double alpha)"


@pytest.fixture
def axpy(define, library):
    op = define("(Tensor x, Tensor y, float alpha) -> Tensor", lambda x, y, alpha: td.empty_like(x))
    op.register_kernel("cpu", td.c_kernel(library.axpy, AXPY))
    return op


def test_buffer_functions(axpy):
    x, y = td.asarray([[1.0, 2.0], [3.0, 4.0]]), td.asarray([[10.0, 20.0], [30.0, 40.0]])
    wanted = np.float32(2.5) * x.numpy() + y.numpy()
    close(axpy(x, y, 2.5), wanted)
    close(axpy(x.mT, y.mT, 2.5), wanted.T)
    close(td.jit(lambda x, y: axpy(x, y, 2.5))(x, y), wanted)
    close(td.jit(lambda x, y: axpy((x * 1).mT, y[::-1].mT, 2.5) + 1)(x, y[::-1]), wanted.T + 1)
    close(td.jit(lambda x, y, a: axpy(x, y, a))(x, y, 2.5), wanted)
    assert axpy(td.empty((0, 2)), td.empty((0, 2)), 1.0).shape == (0, 2)
    assert td.jit(lambda x, y: axpy(x, y, 1.0))(td.empty((0, 2)), td.empty((0, 2))).shape == (0, 2)


@needs_native
def test_buffer_functions_are_called_from_compiled_code(axpy):
    x = td.asarray([1.0, 2.0])
    f = td.jit(lambda x: axpy(x * 2, x, 3.0) - 1)
    rows = list(f.lower(x).kernels())
    assert [row.choice for row in rows] == ["fused", "native", "fused"]
    assert "the C function void(const float32 *x" in rows[1].why
    assert "call_back" not in f.lower(x).llvm_ir()
    assert f(x).tolist() == [6.0, 13.0]


def test_dtypes_of_buffer_functions_are_checked(axpy):
    with pytest.raises(errors.DTypeError, match="takes float32 for 'y'"):
        axpy(td.ones(2), td.ones(2, dtype=td.float64), 1.0)
    with pytest.raises(errors.DTypeError, match="takes float32 for 'y'"):
        td.jit(lambda x, y: axpy(x, y, 1.0))(td.ones(2), td.ones(2, dtype=td.float64))


def test_results_that_contradict_the_fake(define, library):
    op = define(
        "(Tensor x, Tensor y, float alpha) -> Tensor", lambda x, y, alpha: td.empty(x.shape, dtype=td.int32)
    )
    op.register_kernel("cpu", td.c_kernel(library.axpy, AXPY))
    with pytest.raises(errors.DTypeError, match="writes float32, but the fake declares int32"):
        op(td.ones(2), td.ones(2), 1.0)
    no_fake = define("(Tensor x, Tensor y, float alpha) -> Tensor")
    no_fake.register_kernel("cpu", td.c_kernel(library.axpy, AXPY))
    with pytest.raises(errors.UnsupportedError, match="register_fake"):
        no_fake(td.ones(2), td.ones(2), 1.0)


def test_several_results_and_sizes(define, library):
    op = define("(Tensor x) -> (Tensor, Tensor)", lambda x: (td.empty(x.shape[:1], dtype=x.dtype),) * 2)
    signature = "void(const double *x, double *out0, double *out1, int64_t x.shape[0], int64_t x.shape[1])"
    op.register_kernel("cpu", td.c_kernel(library.rows, signature))
    x = td.asarray([[1.0, 5.0, 2.0], [4.0, 0.0, -1.0]], dtype=td.float64)
    for total, largest in (op(x), td.jit(lambda x: op(x))(x)):
        assert total.tolist() == [8.0, 3.0]
        assert largest.tolist() == [5.0, 4.0]
    if NATIVE:
        assert choices(lambda x: op(x), x) == {op.op.name: "native"}


def test_a_size_that_is_not_there(define, library):
    op = define("(Tensor x) -> Tensor", lambda x: td.empty_like(x))
    signature = "void(double *out, int64_t x.shape[1], double x.ndim)"
    op.register_kernel("cpu", td.c_kernel(library.scale_in_place, signature))
    for call in (op, td.jit(lambda x: op(x))):
        with pytest.raises(errors.ShapeError, match=r"asks for int64 x.shape\[1\], and the shape is \(4,\)"):
            call(X)
    optional = define("(Tensor? x) -> Tensor", lambda x: td.empty(2, dtype=td.float64))
    optional.register_kernel(
        "cpu", td.c_kernel(library.scale_in_place, "void(double *out, int64_t x.size, double x.ndim)")
    )
    assert optional(None).shape == (2,)  # of None the pointer is NULL, and the sizes are 0


def test_numbers_and_optional_tensors(define, library):
    op = define(
        "(Tensor x, Tensor? offset=None, int steps=0, *, bool negate=False) -> Tensor",
        lambda x, offset, steps, *, negate: td.empty_like(x),
    )
    op.register_kernel(
        "cpu",
        td.c_kernel(
            library.shift,
            "void(const double *x, const double *offset, double *out, int64_t x.size, int32_t steps, bool negate)",
        ),
    )
    offset = td.asarray(0.5, dtype=td.float64)
    for call in (
        lambda x: op(x),
        lambda x: op(x, offset, 3, negate=True),
        lambda x: op(x, None, -2),
    ):
        close(td.jit(call)(X), call(X).numpy())
    assert op(X, offset, 3, negate=True).tolist() == (-(X.numpy() + 3.5)).tolist()
    with pytest.raises(errors.ScalarOverflowError):
        op(X, None, 2**40)


def test_a_buffer_function_that_writes_its_argument(define, library):
    op = define("(Tensor(a!) x, float by) -> ()")
    op.register_kernel(
        "cpu", td.c_kernel(library.scale_in_place, "void(double *x, int64_t x.size, double by)")
    )
    x = td.asarray(X.numpy().copy())
    op(x, 2.0)
    assert x.tolist() == (X.numpy() * 2).tolist()
    assert x.storage().version == 1
    op(x[::2], 0.0)  # copied, and written back
    assert x.tolist() == [0.0, -2.0, 0.0, 16.0]

    def f(x):
        y = x + 1
        op(y, 3.0)
        return y

    close(td.jit(f)(X), f(X).numpy())


def test_unnamed_parameters_are_taken_in_order(define, library):
    op = define("(Tensor x, Tensor y, float alpha) -> Tensor", lambda x, y, alpha: td.empty_like(x))
    op.register_kernel(
        "cpu", td.c_kernel(library.axpy, "void(const float*, const float*, float*, int64_t, double alpha)")
    )
    assert op(td.ones(2), td.ones(2), 3.0).tolist() == [4.0, 4.0]


def test_addresses_and_what_is_none(define):
    address = ctypes.cast(LIBM.cbrt, ctypes.c_void_p).value
    op = define("(Tensor x) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(address, "double(double)"))
    close(op(X), np.cbrt(X.numpy()))
    for wrong in (0, -1, len, "sin", None):
        with pytest.raises(errors.ArgumentError, match="c_kernel"):
            td.c_kernel(wrong, "double(double)")


def test_functions_are_kept_alive(define):
    """A ctypes callback lives as long as the kernel and the code that calls it."""
    op = define("(Tensor x) -> Tensor")
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    op.register_kernel("cpu", td.c_kernel(prototype(lambda x: x + 0.5)))
    f = td.jit(lambda x: op(x) * 2)
    gc.collect()
    assert op(X).tolist() == (X.numpy() + 0.5).tolist()
    assert f(X).tolist() == ((X.numpy() + 0.5) * 2).tolist()
    assert f(X).tolist() == ((X.numpy() + 0.5) * 2).tolist()


def test_cffi_pointers(define):
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()

    @ffi.callback("double(double)")
    def half(x):
        return x / 2

    op = define("(Tensor x) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(half, "double(double)"))
    assert op(X).tolist() == (X.numpy() / 2).tolist()
    assert td.jit(lambda x: op(x) + 1)(X).tolist() == (X.numpy() / 2 + 1).tolist()


def test_numba_cfuncs(define):
    numba = pytest.importorskip("numba")

    @numba.cfunc("float64(float64, float64)")
    def norm(x, y):
        return (x * x + y * y) ** 0.5

    @numba.cfunc(numba.types.void(*[numba.types.CPointer(numba.types.float64)] * 2, numba.types.int64))
    def running(x, out, n):
        total = 0.0
        for i in range(n):
            total += x[i]
            out[i] = total

    op = define("(Tensor x, Tensor y) -> Tensor")
    op.register_kernel("cpu", td.c_kernel(norm))  # the signature is numba's
    close(op(X, X), np.hypot(X.numpy(), X.numpy()))
    close(td.jit(lambda x: op(x, x * 2))(X), np.hypot(X.numpy(), 2 * X.numpy()))
    sums = define("(Tensor x) -> Tensor", lambda x: td.empty_like(x))
    sums.register_kernel("cpu", td.c_kernel(running, "void(const double *x, double *out, int64_t x.size)"))
    close(sums(X), np.cumsum(X.numpy()))
    close(td.jit(lambda x: sums(x + 1) * 2)(X), 2 * np.cumsum(X.numpy() + 1))

"""Hot eager calls of operators whose kernels are C functions or LLVM IR: compiled code runs them without Python."""

import ctypes
import ctypes.util

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import config, errors

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
IR = "define double @f(double %x) { %y = fmul double %x, 3.0 ret double %y }"
NEGATED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)

pytestmark = needs_native


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_composites=2, hot_calls=1):
        yield


@NEGATED
def negate(x, out, count):
    given = np.ctypeslib.as_array(ctypes.cast(x, ctypes.POINTER(ctypes.c_double)), (count,))
    np.ctypeslib.as_array(ctypes.cast(out, ctypes.POINTER(ctypes.c_double)), (count,))[:] = -given


KERNELS = {
    "C": (lambda: td.c_kernel(LIBM.cbrt, "double(double)"), np.cbrt),
    "LLVM": (lambda: td.llvm_kernel(IR), lambda x: x * 3.0),
    "buffers": (
        lambda: td.c_kernel(negate, "void(const double *x, double *out, int64_t x.size)"),
        np.negative,
    ),
}


@pytest.fixture
def op(define):
    return define("(Tensor x) -> Tensor", lambda x: td.empty_like(x))


def is_compiled(op):
    """Whether a call of a kind is compiled, and the next calls of the kind do not reach Python."""
    counts = getattr(getattr(op.target, "__self__", None), "counts", {})
    return -1 in counts.values()


@pytest.mark.parametrize("language", KERNELS)
def test_hot_calls_are_compiled(op, language):
    make, reference = KERNELS[language]
    op.register_kernel("cpu", make())
    for shape in ((5,), (2, 3), ()):
        x = td.asarray(np.random.default_rng(0).standard_normal(shape))
        results = {op(x).numpy().tobytes() for _ in range(8)}
        assert len(results) == 1
        np.testing.assert_allclose(op(x).numpy(), reference(x.numpy()), rtol=1e-15)
    assert is_compiled(op)
    strided = td.asarray(np.arange(10.0)[::-2], copy=False)
    for _ in range(4):
        np.testing.assert_allclose(op(strided).numpy(), reference(strided.numpy()), rtol=1e-15)


@pytest.mark.parametrize("language", KERNELS)
def test_hot_calls_follow_a_change_of_the_kernel(op, language):
    x = td.asarray([1.0, 8.0], dtype="float64")
    python = op.register_kernel("cpu", lambda x: x + 100)
    for _ in range(6):
        assert op(x).tolist() == [101, 108]
    machine = op.register_kernel("cpu", KERNELS[language][0]())
    expected = KERNELS[language][1](np.array([1.0, 8.0])).tolist()
    for _ in range(6):
        assert op(x).tolist() == pytest.approx(expected, rel=1e-15)
    assert is_compiled(op)
    over = op.register_kernel("cpu", lambda x: x - 100)
    for _ in range(6):
        assert op(x).tolist() == [-99, -92]
    over.remove()
    for _ in range(6):
        assert op(x).tolist() == pytest.approx(expected, rel=1e-15)
    machine.remove()
    assert [op(x).tolist() for _ in range(4)] == [[101, 108]] * 4
    python.remove()
    with pytest.raises(errors.NoKernelError):
        op(x)


@pytest.mark.parametrize("key", ["Tracer", "CompositeImplicit"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_hot_calls_run_the_kernel_of_eager_calls(op, key, first):
    """A kernel that runs while tracing in place of the call is not what an eager call computes."""
    x = td.asarray([1.0, 8.0], dtype="float64")
    if first:
        op.register_kernel(key, lambda x: x + 100)
    op.register_kernel("cpu", KERNELS["LLVM"][0]())
    for _ in range(6):
        assert op(x).tolist() == [3, 24]
    handle = op.register_kernel(key, lambda x: x + 200)
    for _ in range(6):
        assert op(x).tolist() == [3, 24]
    assert td.jit(lambda x: op(x))(x).tolist() == [201, 208]
    handle.remove()
    for _ in range(6):
        assert op(x).tolist() == [3, 24]
    assert is_compiled(op)


@pytest.mark.parametrize("name", ["softmax", "var"])
def test_hot_composites_run_the_kernel_of_eager_calls(name):
    function, x = getattr(td, name), td.asarray([1.0, 8.0, 2.0])
    want = function(x, 0).tolist()
    for _ in range(6):
        assert function(x, 0).tolist() == pytest.approx(want, rel=1e-6)
    with td.register_kernel(f"td::{name}", "Tracer", lambda x, *how, **options: x.sum() + 100):
        for _ in range(6):
            assert function(x, 0).tolist() == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("key", ["Tracer", "CompositeImplicit", "CompositeExplicit"])
def test_hot_composites_of_users_run_the_kernel_of_eager_calls(op, key):
    """An operator that a composite calls runs its kernel for the CPU, not the one that `jit` traces."""
    x = td.asarray([1.0, 8.0], dtype="float64")
    op.register_kernel(key, lambda x: x * 7)
    op.register_kernel("cpu", KERNELS["LLVM"][0]())
    outer = td.composite_op("kernels::outer(Tensor x) -> Tensor", lambda x: op(x) + 1)
    for _ in range(6):
        assert outer(x).tolist() == [4, 25]
    assert is_compiled(outer)
    assert td.jit(lambda x: outer(x))(x).tolist() == ([4, 25] if key == "CompositeExplicit" else [8, 57])
    with td.register_kernel("kernels::op0", "CPU", lambda x: x + 100):
        for _ in range(6):
            assert outer(x).tolist() == [102, 109]
    for _ in range(6):
        assert outer(x).tolist() == [4, 25]
    outer.remove()


def test_hot_calls_of_wrong_dtypes_raise(op):
    op.register_kernel("cpu", KERNELS["C"][0]())
    for _ in range(6):
        op(td.ones(3, dtype="float64"))
        with pytest.raises(errors.DTypeError, match="takes float64"):
            op(td.ones(3, dtype="float32"))


def test_hot_calls_are_differentiated(op):
    op.register_kernel("cpu", KERNELS["LLVM"][0]())
    op.register_autograd(lambda ctx, grad: grad * 3.0)
    for _ in range(8):
        x = td.asarray([1.0, 2.0], dtype="float64").requires_grad_()
        op(x).sum().backward()
        assert x.grad.tolist() == [3, 3]


def test_modes_see_hot_calls(op):
    seen = []
    op.register_kernel("cpu", KERNELS["LLVM"][0]())
    x = td.ones(2, dtype="float64")
    for _ in range(6):
        op(x)

    class Mode(td.DispatchMode):
        def __tandem_dispatch__(self, called, types, args, kwargs):
            seen.append(called.name)
            return called(*args, **kwargs)

    with Mode():
        assert op(x).tolist() == [3, 3]
    assert seen[:1] == [op.operator.name]

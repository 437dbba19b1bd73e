"""Kernels of custom operators in LLVM IR and CUDA C."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import NATIVE, X, close, needs_native
from tandem import errors

# --- LLVM -------------------------------------------------------------------------------------------------

CUBE = """
define internal double @square(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
define double @cube(double %x) {
  %y = call double @square(double %x)
  %z = fmul double %y, %x
  ret double %z
}
"""


@needs_native
def test_llvm_text_is_inlined(define):
    op = define("(Tensor x) -> Tensor")
    op.register_kernel("cpu", td.llvm_kernel(CUBE))
    close(op(X), X.numpy() ** 3)
    f = td.jit(lambda x: (op(x + 1) * 2).sum())
    close(f(X), ((X.numpy() + 1) ** 3 * 2).sum())
    rows = list(f.lower(X).kernels())
    assert len({row.group for row in rows}) == 1
    assert "a scalar function in LLVM" in [row.why for row in rows]
    assert "define linkonce_odr double @user_" in f.lower(X).llvm_ir()


@needs_native
def test_two_llvm_kernels_in_one_function(define):
    one, two = define("(Tensor x) -> Tensor"), define("(Tensor x, Tensor y) -> Tensor")
    one.register_kernel("cpu", td.llvm_kernel(CUBE))
    two.register_kernel("cpu", td.llvm_kernel(lambda b, x, y: b.fsub(x, y), "double(double, double)"))
    f = td.jit(lambda x: two(one(x), one(x * 2)))
    close(f(X), X.numpy() ** 3 - (2 * X.numpy()) ** 3)


DESCENDING = """define double @pair(double %v) {
  %pair = alloca [16 x i8]
  %high = getelementptr i8, ptr %pair, i64 8
  %a = insertelement <1 x double> poison, double %v, i64 0
  %sum = fadd <1 x double> %a, %a
  store <1 x double> %sum, ptr %high
  %product = fmul <1 x double> %a, splat (double 5.0)
  store <1 x double> %product, ptr %pair
  %both = load <2 x double>, ptr %pair
  %swapped = shufflevector <2 x double> %both, <2 x double> poison, <2 x i32> <i32 1, i32 0>
  %quotients = fdiv <2 x double> %both, %swapped
  %r = extractelement <2 x double> %quotients, i64 1
  ret double %r
}"""


@needs_native
def test_llvm_text_that_stores_vectors_from_the_highest_address_down(define):
    """LLVM 22 puts the merged vector where the highest part is stored, unless the lifetime is marked."""
    op = define("(Tensor x) -> Tensor")
    op.register_kernel("cpu", td.llvm_kernel(DESCENDING))
    close(op(td.exp(X)), np.full(X.shape, 0.4))
    f = td.jit(lambda x: op(td.exp(x)) * 2)
    close(f(X), np.full(X.shape, 0.8))
    assert "@llvm.lifetime.start.p0(ptr %pair)" in f.lower(X).llvm_ir()


@needs_native
def test_llvm_builders_and_integers(define):
    op = define("(Tensor x, Tensor y) -> Tensor")
    op.register_kernel(
        "cpu", td.llvm_kernel(lambda b, x, y: b.add(b.mul(x, y), x), "uint8_t(uint8_t, uint8_t)")
    )
    x = np.arange(40, dtype=np.uint8)
    close(op(td.asarray(x), td.asarray(x[::-1].copy())), x * x[::-1] + x)
    close(td.jit(lambda x: op(x, x))(td.asarray(x)), x * x + x)


@needs_native
def test_llvm_calls_of_libm_and_intrinsics(define):
    op = define("(Tensor x) -> Tensor")
    text = """
    declare double @tanh(double)
    declare double @llvm.fabs.f64(double)
    define double @f(double %x) {
      %a = call double @llvm.fabs.f64(double %x)
      %b = call double @tanh(double %a)
      ret double %b
    }
    """
    op.register_kernel("cpu", td.llvm_kernel(text))
    close(op(X), np.tanh(np.abs(X.numpy())))
    close(td.jit(lambda x: td.tanh(op(abs(x))))(X), np.tanh(np.tanh(np.abs(X.numpy()))))


@needs_native
@pytest.mark.parametrize(
    ("source", "signature", "error", "what"),
    [
        ("define double @f(double %x) { ret double %y }", None, ValueError, "undefined value"),
        ("define double @f(double %x) { ret float 0.0 }", None, ValueError, "LLVM refuses"),
        ("declare double @f(double)", None, ValueError, "defines 0 functions"),
        (
            "declare double @nowhere(double)\ndefine double @f(double %x) { "
            "%y = call double @nowhere(double %x)\n ret double %y }",
            None,
            ValueError,
            "calls 'nowhere'",
        ),
        (
            "define <2 x double> @f(<2 x double> %x) { ret <2 x double> %x }",
            None,
            ValueError,
            "no function of numbers",
        ),
        (
            "define double @f(double %x) { ret double %x }",
            "float(float)",
            ValueError,
            "the signature is float32",
        ),
        (lambda b, x: x, None, ValueError, "needs a signature"),
        (lambda b, x: None, "double(double)", ValueError, "returned None"),
        (3, None, TypeError, "LLVM IR as text"),
    ],
    ids=["undefined", "type", "none", "symbol", "vector", "signature", "unsigned", "nothing", "number"],
)
def test_bad_llvm_is_refused_where_it_is_given(source, signature, error, what):
    with pytest.raises(error, match=what):
        td.llvm_kernel(source, signature)


@pytest.mark.skipif(NATIVE, reason="native code is on")
def test_llvm_needs_native_code():
    with pytest.raises(errors.BackendUnavailableError, match="needs native code"):
        td.llvm_kernel(CUBE)


# --- CUDA -------------------------------------------------------------------------------------------------


def test_cuda_source_is_compiled_where_nvrtc_is_installed():
    pytest.importorskip("cupy")
    with pytest.raises(errors.ValueArgumentError, match='identifier "missing" is undefined'):
        td.cuda_kernel('extern "C" __global__ void f(float *out) { out[0] = missing; }', "f")


def test_cuda_kernels_state_what_they_need(define):
    source = 'extern "C" __global__ void twice(const float *x, float *out, long long n) { }'
    op = define("(Tensor x) -> Tensor", lambda x: td.empty_like(x))
    kernel = td.cuda_kernel(source, "twice", "void(const float *x, float *out, int64_t x.size)")
    op.register_kernel("cuda", kernel)
    entry = td.dispatch_table(op.op.name)["CUDA"]
    assert entry.registration.name == "cuda_twice"
    assert entry.fn.cuda.source == source
    with pytest.raises(errors.BackendUnavailableError, match="needs a CUDA backend"):
        op.op.call_for_key("CUDA", X)
    with pytest.raises(errors.ValueArgumentError, match="called 'thrice'"):
        td.cuda_kernel(source, "thrice")
    with pytest.raises(errors.ArgumentError, match="source"):
        td.cuda_kernel(b"", "twice")

"""The language of C signatures, and NumPy kernels."""

import ctypes
import ctypes.util

import pytest
import tandem as td
from kernel_harness import X, close
from tandem import errors
from tandem.operators.foreign.c_signature import parse_c_signature

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))


# --- the signature language -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("double(double)", "float64(float64)"),
        ("double hypot(double x, double y);", "float64(float64 x, float64 y)"),
        (
            "void(const float*x, float * out, size_t out.size)",
            "void(const float32 *x, float32 *out, uint64 out.size)",
        ),
        (
            "void f(float const *x, int8_t *out, int x.shape[ -1 ])",
            "void(const float32 *x, int8 *out, int32 x.shape[-1])",
        ),
    ],
)
def test_signatures_parse(text, printed):
    assert str(parse_c_signature(text)) == printed


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("double", 0, "parenthesis"),
        ("dbl(double)", 0, "unknown type 'dbl'"),
        ("double(float x", 14, "closing"),
        ("double(quad x)", 7, "unknown type 'quad'"),
        ("double *(double)", 7, "returns a pointer"),
        ("void(const float *x)", 0, "not const"),
        ("double(const double *x)", 7, "takes numbers"),
        ("double()", 8, "at least one"),
        ("void(float **x)", 11, "pointers to pointers"),
        ("void(float *x.size)", 14, "is a number"),
        ("void(float *out, int x.rank)", 16, "expected a type and a name"),
    ],
)
def test_bad_signatures_give_the_column(text, column, what):
    with pytest.raises(errors.SchemaError, match=what) as caught:
        parse_c_signature(text)
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("signature", "what"),
    [
        ("void(const float *z, float *out)", "there is no 'z'"),
        ("void(float *x, float *out)", "not written by the schema"),
        ("void(const float *out, float *out)", "not const"),
        ("void(const float *x, float *out, int n.size, double alpha)", "has no size"),
        ("void(const float *alpha, float *out)", "is not a tensor"),
        ("void(float *out, double x)", "not a number"),
        ("void(const float *x, float *out, double)", "name it after"),
        ("void(const float *x, float *out, float *)", "nothing left"),
        ("double(double, double)", "as many tensors"),
    ],
)
def test_signatures_are_checked_against_the_schema(define, signature, what):
    op = define("(Tensor x, int n, float alpha) -> Tensor")
    with pytest.raises(errors.SchemaError, match=what):
        op.register_kernel("cpu", td.c_kernel(LIBM.sin, signature))


# --- NumPy ------------------------------------------------------------------------------------------------


def test_numpy_kernels(define):
    op = define("(Tensor x, Tensor[] rest, int axis) -> (Tensor, Tensor)", lambda x, rest, axis: (x[0], x))
    kernel = td.numpy_kernel(lambda x, rest, axis: (x.sum(axis), x + sum(rest)))
    op.register_kernel("cpu", kernel)
    x = X.reshape((2, 2))
    total, moved = op(x, [x, x], 0)
    close(total, x.numpy().sum(0))
    close(moved, x.numpy() * 3)
    total, moved = td.jit(lambda x: op(x * 2, [x], 0))(x)
    close(total, x.numpy().sum(0) * 2)
    assert "numpy_" in str(td.dispatch_table(op.op.name))
    with pytest.raises(errors.ArgumentError, match="function of NumPy arrays"):
        td.numpy_kernel(3)


def test_a_numpy_kernel_that_gives_something_else(define):
    op = define("(Tensor x) -> Tensor")
    op.register_kernel("cpu", td.numpy_kernel(lambda x: "text"))
    with pytest.raises(errors.ArgumentError, match="must return arrays"):
        op(X)

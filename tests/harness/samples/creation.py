"""Sample inputs and error inputs of the operators of creation."""

from tandem.operators.declare.declaration import ErrorInput, SampleInput, TensorSample


def common_errors(*args):
    """The errors of every creation operator: unknown dtypes and devices, and an unavailable GPU."""
    return [
        ErrorInput(args, TypeError, "not a dtype", {"dtype": "float12"}),
        ErrorInput(args, ValueError, "unknown device", {"device": "tpu"}),
        ErrorInput(args, RuntimeError, "pip install", {"device": "cuda"}),
    ]


def shape_errors(*rest):
    """The errors of operators that take a shape."""
    return [
        *common_errors((2,), *rest),
        ErrorInput(((-1,), *rest), ValueError, "negative"),
        ErrorInput(((float("nan"),), *rest), TypeError, "shape"),
        ErrorInput(((2.0,), *rest), TypeError, "shape"),
        ErrorInput(((2**40, 2**40), *rest), ValueError, "too many"),
        ErrorInput(((2**55,), *rest), MemoryError, "no memory"),
    ]


def full_samples(dtype):
    for shape in ((), (3,), (2, 0), (2, 3)):
        yield SampleInput((shape, 1), {"dtype": dtype})
    yield SampleInput((4, 0), {"dtype": dtype})
    yield SampleInput(((2,), True))
    yield SampleInput(((2,), -0.0))
    yield SampleInput(((2,), 3))
    yield SampleInput(((2,), 3j))


def full_errors():
    return [*shape_errors(1.0), ErrorInput(((2,), 300), OverflowError, "fit", {"dtype": "int8"})]


def arange_samples(dtype):
    for args in ((5,), (0,), (2, 9), (1, 10, 3), (9, 1, -2), (5, 1)):
        yield SampleInput(args, {"dtype": dtype})
    yield SampleInput((5,))
    yield SampleInput((0.5, 3))
    yield SampleInput((0, 1, 0.1))


def arange_errors():
    return [
        *common_errors(3),
        ErrorInput((float("nan"),), ValueError, "finite"),
        ErrorInput((0, 1, 0), ValueError, "step"),
        ErrorInput((2**62,), ValueError, "too many"),
        ErrorInput((2**50,), MemoryError, "no memory"),
        ErrorInput((10**400,), OverflowError, "fit"),
        ErrorInput((0, 1e308, 1e-300), ValueError, "too many"),
        ErrorInput((3,), TypeError, "real", {"dtype": "bool"}),
        ErrorInput(("a",), TypeError, "start"),
    ]


def linspace_errors():
    return [
        *common_errors(0, 1, 3),
        ErrorInput((0, 1, -1), ValueError, "negative"),
        ErrorInput((0, 1, 2.5), TypeError, "num"),
        ErrorInput((0, 1, 2**50), MemoryError, "no memory"),
    ]


def eye_errors():
    return [
        *common_errors(3),
        ErrorInput((-1,), ValueError, "negative"),
        ErrorInput((2**29, 2**29), MemoryError, "no memory"),
    ]


def shape_samples(dtype):
    for shape in ((), 3, (2, 0), (2, 3)):
        yield SampleInput((shape,), {"dtype": dtype})
    yield SampleInput((2,))


def like_samples(dtype, *rest):
    for shape in ((), (0,), (2, 3)):
        yield SampleInput((TensorSample(shape), *rest))
    yield SampleInput((TensorSample((2,)), *rest), {"dtype": dtype})


def like_errors(*rest):
    return [
        ErrorInput((TensorSample((2,)), *rest), TypeError, "not a dtype", {"dtype": "float12"}),
        ErrorInput((TensorSample((2,)), *rest), RuntimeError, "pip install", {"device": "cuda"}),
        ErrorInput((None, *rest), TypeError, "Tensor"),
    ]

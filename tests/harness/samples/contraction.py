"""Sample inputs and error inputs of the operators of contraction."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import bool_, int64, uint64

MATRICES = (
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((1, 1), (1, 1)),
    ((33, 17), (17, 9)),
)


STACKS = (((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)))


MIXED = (
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((0,), (0,)),
    ((2, 0, 3), (3, 4)),
)


def matmul_samples(dtype):
    for one, two in (*MATRICES, *STACKS, *MIXED):
        yield SampleInput((TensorSample(one), TensorSample(two)))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), TensorSample((4, 5), layout=layout)))
        yield SampleInput((TensorSample((3, 4), layout=layout), TensorSample((4,), layout=layout)))


def matmul_errors():
    yield ErrorInput((TensorSample((3, 4)), TensorSample((3, 4))), ValueError, "inner sizes are 4 and 3")
    yield ErrorInput((TensorSample((2, 3, 4)), TensorSample((3, 4, 5))), ValueError, "broadcast")
    yield ErrorInput((TensorSample(()), TensorSample((3,))), ValueError, "0-d")
    yield ErrorInput((TensorSample((3,)), 2.0), ValueError, "0-d")
    yield ErrorInput(
        (TensorSample((3,), dtype=bool_), TensorSample((3,), dtype=bool_)), TypeError, "does not take bool"
    )
    yield ErrorInput((TensorSample((3,), dtype=int64), TensorSample((3,), dtype=uint64)), TypeError, "uint64")
    yield ErrorInput((TensorSample((3,)), None), TypeError, "other")


# -- dot, inner, vdot, matvec, vecmat ----------------------------------------------------------------------------------
def _pairs(*shapes):
    for one, two in shapes:
        yield SampleInput((TensorSample(one), TensorSample(two)))


def dot_samples(dtype):
    yield from _pairs(((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((3,), (2, 3, 2)), ((2, 3), (2, 3, 2)))
    yield from _pairs(((), (3,)), ((2,), ()), ((0,), (0,)))


def inner_samples(dtype):
    yield from _pairs(((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((), (3,)), ((0,), (0,)))


def vdot_samples(dtype):
    yield from _pairs(((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (6,)), ((), ()), ((0,), (0,)))


def dot_errors():
    yield ErrorInput((TensorSample((2,)), TensorSample((3,))), ValueError, "(3,)")


def matvec_samples(dtype):
    yield from _pairs(((2, 3), (3,)), ((4, 2, 3), (3,)), ((2, 3), (4, 3)), ((2, 0), (0,)))


def matvec_errors():
    yield ErrorInput((TensorSample((2,)), TensorSample((2,))), ValueError, "axes")
    yield ErrorInput((TensorSample((2, 3)), TensorSample((2,))), ValueError, "matmul")


def vecmat_samples(dtype):
    yield from _pairs(((2,), (2, 3)), ((4, 2), (2, 3)), ((2,), (4, 2, 3)), ((0,), (0, 2)))


def vecmat_errors():
    yield ErrorInput((TensorSample((2,)), TensorSample((2,))), ValueError, "axes")
    yield ErrorInput((TensorSample((3,)), TensorSample((2, 3))), ValueError, "matmul")

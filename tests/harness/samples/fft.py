"""Sample inputs and error inputs of the operators of fft."""

from tandem.operators.declare.declaration import SampleInput, TensorSample


def one_samples(dtype):
    yield SampleInput((TensorSample((5,)),))
    yield SampleInput((TensorSample((4,)), 6))
    yield SampleInput((TensorSample((6,)), 3, -1, "ortho"))
    yield SampleInput((TensorSample((4, 3), layout="transposed"), None, 0, "forward"))
    yield SampleInput((TensorSample((2, 3, 4)), 5, 1))


def pair_samples(dtype):
    yield SampleInput((TensorSample((3, 4)),))
    yield SampleInput((TensorSample((2, 3, 4)), (4, 2)))
    yield SampleInput((TensorSample((3, 2, 4)), None, (0, 2), "ortho"))


def many_samples(dtype):
    yield SampleInput((TensorSample((3, 4)),))
    yield SampleInput((TensorSample((2, 3, 4)), (4, 2), (0, -1)))
    yield SampleInput((TensorSample((3, 2, 4)), None, (2, 1), "forward"))
    yield SampleInput((TensorSample((5,)),))


def shift_samples(dtype):
    return [
        SampleInput((TensorSample((5,)),)),
        SampleInput((TensorSample((3, 4)),)),
        SampleInput((TensorSample((3, 4)), 0)),
        SampleInput((TensorSample((2, 3, 4)), (0, -1))),
    ]


def point_samples(dtype, *rest):
    return [
        SampleInput((TensorSample((*lead, n)), *rest))
        for lead, n in (((), 1), ((), 5), ((2,), 4), ((2, 3), 6), ((0,), 3))
    ]


def c2c_samples(dtype):
    return [*point_samples(dtype), *point_samples(dtype, True)]

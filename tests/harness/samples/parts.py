"""Sample inputs and error inputs of chunk, narrow, split_with_sizes, unflatten, unfold, t and block_diag."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample


def chunk_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((5, 3), layout=layout), 2))
    yield SampleInput((TensorSample((2, 5)), 4, -1))
    yield SampleInput((TensorSample((3,)), 7))


def chunk_errors():
    yield ErrorInput((TensorSample((3,)), 0), ValueError, "at least 1")
    yield ErrorInput((TensorSample(()), 1), IndexError, "out of bounds")


def split_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((5, 3), layout=layout), (2, 3)))
    yield SampleInput((TensorSample((2, 5)), (0, 4, 1), -1))


def split_errors():
    yield ErrorInput((TensorSample((3,)), (1, 1)), ValueError, "must be 3")
    yield ErrorInput((TensorSample((3,)), (4, -1)), ValueError, "must be 3")


def narrow_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((5, 3), layout=layout), 0, 1, 3))
    yield SampleInput((TensorSample((2, 5)), -1, -2, 2))
    yield SampleInput((TensorSample((3,)), 0, 3, 0))


def narrow_errors():
    yield ErrorInput((TensorSample((3,)), 0, 2, 2), IndexError, "exceed")
    yield ErrorInput((TensorSample((3,)), 0, 2, -1), IndexError, "exceed")


def unflatten_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((6, 4), layout=layout), 0, (2, 3)))
    yield SampleInput((TensorSample((2, 6)), -1, (3, -1)))


def unflatten_errors():
    yield ErrorInput((TensorSample((6,)), 0, (4, 2)), ValueError, "does not fit")
    yield ErrorInput((TensorSample((6,)), 0, (-1, 4)), ValueError, "does not fit")


def unfold_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((5, 3), layout=layout), 0, 2, 1))
    yield SampleInput((TensorSample((2, 7)), -1, 3, 2))
    yield SampleInput((TensorSample((3,)), 0, 3, 5))


def unfold_errors():
    yield ErrorInput((TensorSample((3,)), 0, 4, 1), ValueError, "do not fit")
    yield ErrorInput((TensorSample((3,)), 0, 1, 0), ValueError, "do not fit")


def t_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((5, 3), layout=layout),))
    yield SampleInput((TensorSample((2,)),))
    yield SampleInput((TensorSample(()),))


def t_errors():
    yield ErrorInput((TensorSample((1, 2, 3)),), ValueError, "at most two")


def block_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput(((TensorSample((2, 3), layout=layout), TensorSample((3, 1)), TensorSample((2,))),))
    yield SampleInput(((TensorSample(()), TensorSample((0, 2))),))


def block_errors():
    yield ErrorInput(((),), ValueError, "at least one")
    yield ErrorInput(((TensorSample((1, 1, 1)),),), ValueError, "at most two")

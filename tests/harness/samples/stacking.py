"""Sample inputs and error inputs of the operators that stack, split, insert and delete."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample


def stack_samples(dtype, axis):
    """Vectors, matrices, 3-d tensors that differ along an axis, and numbers."""
    for layout in LAYOUTS:
        yield SampleInput(((TensorSample((3, 4), layout=layout), TensorSample((3, 4))),))
    other = tuple(size + (at == axis) for at, size in enumerate((2, 3, 2)))
    yield SampleInput(((TensorSample((2, 3, 2)), TensorSample(other)),))
    yield SampleInput(((TensorSample((3,)), TensorSample((3,)), TensorSample((3,))),))
    yield SampleInput(((TensorSample(()), TensorSample(())),))
    yield SampleInput(((TensorSample((2, 0)),),))


def stack_errors():
    yield ErrorInput(((),), ValueError, "at least one")
    yield ErrorInput(((TensorSample((2, 3)), TensorSample((3, 2))),), ValueError, "shape")


def rank_samples(dtype):
    for shape in ((), (3,), (0,), (2, 3), (2, 1, 3), (1, 2, 1, 2)):
        yield SampleInput((TensorSample(shape),))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))


# -- splitting ---------------------------------------------------------------------------------------------------------
def array_split_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((5, 3), layout=layout), 2))
    yield SampleInput((TensorSample((2, 5)), (1, 3), 1))
    yield SampleInput((TensorSample((2,)), 4))
    yield SampleInput((TensorSample((0, 2)), 1, -1))


def axis_split_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((4, 2, 6), layout=layout), 2))
    yield SampleInput((TensorSample((4, 2, 4)), [1, 2]))


def axis_split_errors():
    yield ErrorInput((TensorSample(()), 1), ValueError, "axes")
    yield ErrorInput((TensorSample((3, 3, 3)), 2), ValueError, "equal parts")


# -- rotating, inserting and deleting ----------------------------------------------------------------------------------
def rot90_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))
    for k in (-1, 0, 2, 7):
        yield SampleInput((TensorSample((2, 3, 2)), k, (1, 2)))


def append_samples(dtype):
    yield SampleInput((TensorSample((3, 4)), TensorSample((2,))))
    yield SampleInput((TensorSample((3, 4)), TensorSample((2, 4)), 0))
    yield SampleInput((TensorSample((3, 2)), TensorSample((3, 1)), -1))


def insert_samples(dtype):
    x = TensorSample((3, 4))
    yield SampleInput((x, 1, TensorSample(())))
    yield SampleInput((x, 1, TensorSample((4,)), 0))
    yield SampleInput((x, -1, TensorSample((3,)), 1))
    yield SampleInput((x, 2, TensorSample((2, 4)), 0))
    yield SampleInput((x, [0, 2], TensorSample((3, 2)), 1))
    yield SampleInput((x, [2, 0, 2], TensorSample((4,)), 0))
    yield SampleInput((TensorSample((5,)), slice(1, 4), TensorSample((3,))))
    yield SampleInput((TensorSample((5,)), [1], TensorSample((3,))))


def insert_errors():
    yield ErrorInput((TensorSample((3,)), 5, TensorSample(())), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)), "a", TensorSample(())), TypeError, "insert")
    yield ErrorInput((TensorSample((3,)), [0, 1], TensorSample((3,))), ValueError, "insert")


def delete_samples(dtype):
    x = TensorSample((3, 4))
    for positions, axis in ((1, None), (1, 0), (-1, 1), ([0, 2], 1), (slice(0, 3, 2), 1), ([], 0)):
        yield SampleInput((x, positions, axis))
    yield SampleInput((TensorSample((3,)), [True, False, True]))


def delete_errors():
    yield ErrorInput((TensorSample((3,)), 5), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)), "a"), TypeError, "delete")

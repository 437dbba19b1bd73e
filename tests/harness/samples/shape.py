"""Sample inputs and error inputs of the operators of shape."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int64,
    uint8,
    uint32,
)


def diagonals_samples(dtype):
    return [
        *(SampleInput((TensorSample((3, 4), layout=layout),)) for layout in LAYOUTS),
        *(SampleInput((TensorSample((4, 3)),), {"offset": k}) for k in (1, -2, 9)),
        SampleInput((TensorSample((2, 3, 3)),), {"axis1": -2, "axis2": -1}),
        SampleInput((TensorSample((2, 3, 3)), -1, 2, 0)),
        SampleInput((TensorSample((0, 2)),)),
    ]


def diagonals_errors():
    return [
        ErrorInput((TensorSample((3,)),), IndexError, "out of bounds"),
        ErrorInput((TensorSample((3, 3)), 0, 1, -1), ValueError, "twice"),
    ]


def concat_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput(((TensorSample((2, 3), layout=layout), TensorSample((4, 3), layout=layout)),))
    yield SampleInput(((TensorSample((2, 3)), TensorSample((2, 1)), TensorSample((2, 0))), 1))
    yield SampleInput(((TensorSample((2, 3)), TensorSample((2, 1))), -1))
    yield SampleInput(((TensorSample((2, 3)), TensorSample((2,))), None))
    yield SampleInput(((TensorSample((3,)),),))


def concat_errors():
    yield ErrorInput(((),), ValueError, "at least one")
    yield ErrorInput(
        ((TensorSample((2, 3)), TensorSample((2, 4))),), ValueError, "differ in an axis other than 0"
    )
    yield ErrorInput(((TensorSample((2, 3)), TensorSample((2,))),), ValueError, "differ")
    yield ErrorInput(((TensorSample(()),),), ValueError, "0-d")
    yield ErrorInput(((TensorSample((2,)),), 1), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((2,)),), TypeError, "sequence")


def rearranged_samples(dtype, shape, *rests):
    """Samples of each memory layout, then of each set of further arguments."""
    for layout in LAYOUTS:
        yield SampleInput((TensorSample(shape, layout=layout), *rests[0]))
    for rest in rests[1:]:
        yield SampleInput((TensorSample(shape), *rest))


def transpose_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))
    for shape, axes in (
        ((), ()),
        ((2, 0), None),
        ((2, 3, 4), None),
        ((2, 3, 4), (1, -1, 0)),
        ((2, 3), (0, 1)),
    ):
        yield SampleInput((TensorSample(shape), axes))


def triangles_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))
    for k in (1, -1, 9, -9):
        yield SampleInput((TensorSample((2, 3, 3)),), {"k": k})
    yield SampleInput((TensorSample((0, 2)),))


def triangles_errors():
    yield ErrorInput((TensorSample((3,)),), ValueError, "two axes")
    yield ErrorInput((TensorSample((3, 3)),), TypeError, "'k' must be an int", {"k": 0.5})


def reshape_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), (2, 6)))
    yield SampleInput((TensorSample((3, 4)), (-1,)))
    yield SampleInput((TensorSample((3, 4)), (2, -1, 2)))
    yield SampleInput((TensorSample(()), (1, 1)))
    yield SampleInput((TensorSample((1,)), ()))
    yield SampleInput((TensorSample((0, 3)), (3, 0)))


def reshape_errors():
    yield ErrorInput((TensorSample((3, 4)), (5, 2)), ValueError, "does not reshape")
    yield ErrorInput((TensorSample((3, 4)), (-1, -1)), ValueError, "does not reshape")
    yield ErrorInput((TensorSample((3, 4)), (-2, -6)), ValueError, "negative")
    yield ErrorInput((TensorSample((3, 4)), (12.0,)), TypeError, "shape")


def permute_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), (1, 0)))
    yield SampleInput((TensorSample((2, 3, 4)), (2, 0, 1)))
    yield SampleInput((TensorSample((2, 0, 4)), (-1, 0, 1)))
    yield SampleInput((TensorSample(()), ()))


def permute_errors():
    yield ErrorInput((TensorSample((3, 4)), (0,)), ValueError, "permutation")
    yield ErrorInput((TensorSample((3, 4)), (0, 0)), ValueError, "permutation")
    yield ErrorInput((TensorSample((3, 4)), (0, 2)), IndexError, "out of bounds")


def broadcast_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), (2, 3, 4)))
    yield SampleInput((TensorSample((3, 1)), (2, 3, 4)))
    yield SampleInput((TensorSample(()), (2,)))
    yield SampleInput((TensorSample((1, 0)), (2, 0)))
    yield SampleInput((TensorSample((3, 1)), (3, 0)))


# -- padding -----------------------------------------------------------------------------------------------------------
def pad_samples(dtype):
    """Memory layouts, forms of widths and values, and each mode with widths beyond the axis."""
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), ((1, 2), (0, 1))))
    yield SampleInput((TensorSample((2, 3)), 1), {"value": True})
    yield SampleInput((TensorSample((2, 3)), ((1, 2), (3, 0))), {"value": ((1, 2), (3, 4))})
    yield SampleInput((TensorSample((2,)), (0, 3)))
    yield SampleInput((TensorSample((0,)), 1))
    yield SampleInput((TensorSample(()), 2))
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        yield SampleInput((TensorSample((3, 4)), ((1, 2), (5, 7)), mode))
        yield SampleInput((TensorSample((1, 2)), 3, mode))
    if dtype.kind == "b":
        return
    for mode in ("reflect", "symmetric"):
        yield SampleInput((TensorSample((3, 2)), ((1, 2), (3, 5)), mode), {"reflect_type": "odd"})
    yield SampleInput((TensorSample((3, 4)), ((1, 2), (5, 0)), "linear_ramp"))
    if dtype.kind == "c":
        return
    yield SampleInput((TensorSample((3,)), (2, 3), "linear_ramp"), {"end_values": (1, 5)})
    for mode in ("maximum", "mean", "median", "minimum"):
        yield SampleInput((TensorSample((3, 4), distinct=True), ((1, 2), (0, 2)), mode))
        yield SampleInput((TensorSample((5,), distinct=True), (2, 1), mode), {"stat_length": (2, 3)})


def pad_errors():
    yield ErrorInput((TensorSample((3,)), -1), ValueError, "width")
    yield ErrorInput((TensorSample((3,)), ((1, 1), (1, 1))), ValueError, "width")
    yield ErrorInput((TensorSample((3,)), 0.5), ValueError, "width")
    yield ErrorInput((TensorSample((3,)), 1, "mirror"), ValueError, "mode is one of")
    yield ErrorInput((TensorSample((0,)), 1, "edge"), ValueError, "needs elements")
    yield ErrorInput((TensorSample((3,)), 1, "edge"), ValueError, "'constant'", {"value": 1})
    yield ErrorInput((TensorSample((3,)), 1, "wrap"), ValueError, "reflect_type", {"reflect_type": "odd"})
    yield ErrorInput((TensorSample((3,)), 1, "mean"), ValueError, "stat_length", {"stat_length": 0})
    yield ErrorInput((TensorSample((3,)), 1), ValueError, "value", {"value": (1, 2, 3)})


# -- bits --------------------------------------------------------------------------------------------------------------
_OF_SIZE = {
    1: (int8, uint8),
    2: (int16, float16, bfloat16),
    4: (uint32, float32),
    8: (int64, float64, complex64),
}


def bitcast_samples(dtype):
    """Layouts; dtypes of the same, a smaller and a larger size."""
    same = _OF_SIZE.get(dtype.itemsize, (complex128,))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), same[0]))
    for other in same:
        yield SampleInput((TensorSample(()), other))
    yield SampleInput((TensorSample((2, 4)), uint8))
    yield SampleInput((TensorSample((2, 16)), int64))
    yield SampleInput((TensorSample((2, 16)), float32 if dtype.itemsize != 4 else float64))


def view_part_samples(dtype):
    """Layouts, a number and no elements."""
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), True))
    for shape in ((), (5,), (0, 2), (2, 1, 3)):
        yield SampleInput((TensorSample(shape), False))


def view_part_errors():
    yield ErrorInput((TensorSample((2,), dtype=float32), True), TypeError, "imaginary")


def as_strided_samples(dtype):
    """Rows, overlapping windows, a diagonal, reversed and repeated elements, and none."""
    yield SampleInput((TensorSample((3, 4)), (2, 3), (4, 1)))
    yield SampleInput((TensorSample((14,)), (4, 3, 2), (1, 4, 1), 1))
    yield SampleInput((TensorSample((4, 4)), (4,), (5,)))
    yield SampleInput((TensorSample((6,)), (3,), (-2,), 5))
    yield SampleInput((TensorSample((2, 3)), (2, 5), (3, 0)), {"storage_offset": 2})
    yield SampleInput(
        (TensorSample((1, 1)), (2, 1), (0, 7))
    )  # contiguous in each layout, so that none is copied
    yield SampleInput((TensorSample((3,)), (0, 9), (1, 1)))


def as_strided_errors():
    yield ErrorInput((TensorSample((3,)), (4,), (1,)), IndexError, "memory")
    yield ErrorInput((TensorSample((3,)), (2,), (-1,)), IndexError, "memory")
    yield ErrorInput((TensorSample((3,)), (2,), (1, 1)), ValueError, "strides")


def bitcast_errors():
    yield ErrorInput((TensorSample((3,)), float64), ValueError, "whole number")
    yield ErrorInput((TensorSample(()), float64), ValueError, "0-d")
    yield ErrorInput((TensorSample((3,)), bool_), TypeError, "bools")

"""Sample inputs and error inputs of the operators of elementwise."""

import math

from samples.kinds import elementwise_errors, unary_samples
from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import ALL, NUMERIC, as_dtype, bool_, int64


def float_samples(dtype):
    for shape in ((), (0,), (33,)):
        yield SampleInput((TensorSample(shape),))
    yield SampleInput((TensorSample((3, 4), layout="transposed"),))


def pow_errors():
    return [
        *elementwise_errors(2, NUMERIC),
        ErrorInput((TensorSample((2,), dtype=NUMERIC[3]), -1), ValueError, "negative power"),
    ]


def cast_samples(dtype):
    for target in ALL:
        if not (dtype.kind == "c" and target.kind not in "bc"):
            # values out of an integer type's range are tested with the scalar IR
            low = 0.0 if target.kind == "u" else -3.0
            yield SampleInput((TensorSample((3, 4), low, layout="transposed"), target))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), dtype))
    yield SampleInput((TensorSample(()), dtype))
    yield SampleInput((TensorSample((0, 2)), dtype))


def cast_errors():
    return [
        ErrorInput((TensorSample((2,)), "float12"), TypeError, "not a dtype"),
        ErrorInput((TensorSample((2,), dtype=as_dtype("complex64")), "float32"), TypeError, "imaginary"),
    ]


def layout_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))
    yield SampleInput((TensorSample(()),))
    yield SampleInput((TensorSample((2, 0)),))


def sinc_samples(dtype):
    yield SampleInput((TensorSample((3, 4)),))
    yield SampleInput((TensorSample((), -0.1, 0.1),))
    yield SampleInput((TensorSample((5,), values=(0.0, 0.5, -0.25, 0.1, 1e-3)),))
    yield SampleInput((TensorSample((0,)),))


def nan_to_num_samples(dtype):
    return [
        *unary_samples(dtype, (-3.0, 3.0), ()),
        *(
            SampleInput((sample.args[0],), {"nan": 2.0, "posinf": 3.0, "neginf": -1.0})
            for sample in nonfinite_samples(dtype)
        ),
    ]


def nonfinite_samples(dtype):
    if dtype.is_inexact:
        yield SampleInput((TensorSample((4,), values=(math.nan, math.inf, -math.inf, 0.5)),))


def where_samples(dtype):
    for condition, self, other in (((), (), ()), ((5,), (5,), (5,)), ((3, 1), (4,), ()), ((0,), (1,), (0,))):
        yield SampleInput((TensorSample(condition, dtype=bool_), TensorSample(self), TensorSample(other)))
    for layout in LAYOUTS:
        yield SampleInput(
            (
                TensorSample((3, 4), dtype=bool_, layout=layout),
                TensorSample((3, 4)),
                TensorSample((4,), layout=layout),
            )
        )
    weak = True if dtype.kind == "b" else 2
    yield SampleInput((TensorSample((4,), dtype=bool_), TensorSample((4,)), weak))
    yield SampleInput((TensorSample((4,), dtype=bool_), weak, TensorSample((4,))))


def where_errors():
    yield ErrorInput((TensorSample((2,), dtype=int64), 1, 0), TypeError, "condition is a bool")
    yield ErrorInput((TensorSample((2,), dtype=bool_), TensorSample((3,)), 0), ValueError, "do not broadcast")
    yield ErrorInput((TensorSample((2,), dtype=bool_), "x", 0), TypeError, "must be a Tensor")


def clip_samples(dtype):
    low, high = TensorSample((4,), low=-2, high=0), TensorSample((3, 1), low=0, high=2)
    yield SampleInput((TensorSample((3, 4)), low, high))
    yield SampleInput((TensorSample((3, 4)),), {"min": low})
    yield SampleInput((TensorSample((3, 4), layout="transposed"),), {"max": high})
    weak = (False, True) if dtype.kind == "b" else (1, 2)
    yield SampleInput((TensorSample((33,)), *weak))
    yield SampleInput((TensorSample(()), *weak))

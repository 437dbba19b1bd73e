"""Sample inputs and error inputs of the operators of elementwise."""

import math

from samples.kinds import elementwise_errors, unary_samples
from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import ALL, NUMERIC, as_dtype, bool_, float32, int32, int64, uint8


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
    if dtype.kind != "b":  # numpy.clip refuses bools without bounds
        yield SampleInput((TensorSample((3, 4)),))
    yield SampleInput((TensorSample((3, 4)),), {"min": low})
    yield SampleInput((TensorSample((3, 4), layout="transposed"),), {"max": high})
    weak = (False, True) if dtype.kind == "b" else (1, 2)
    yield SampleInput((TensorSample((33,)), *weak))
    yield SampleInput((TensorSample(()), *weak))


def closeness_samples(dtype):
    values = (0, 1, 2, 3) if not dtype.is_inexact else (0.0, 1.0, math.inf, math.nan)
    others = (0, 1, 2, 4) if not dtype.is_inexact else (0.0, 1.5, math.inf, math.nan)
    for options in ({}, {"rtol": 0.75}, {"atol": 0.75, "equal_nan": True}):
        yield SampleInput((TensorSample((4,), values=values), TensorSample((4,), values=others)), options)
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), TensorSample((4,))), {"rtol": 0.5})
    yield SampleInput((TensorSample((0,)), TensorSample((0,))))


def array_equiv_samples(dtype):
    ones = TensorSample((3,), values=(1, 1, 1))
    yield SampleInput((ones, ones))
    yield SampleInput((ones, TensorSample((3,), values=(1, 0, 1))))
    yield SampleInput((ones, TensorSample((), values=(1,))))
    yield SampleInput((ones, TensorSample((2,))))
    yield SampleInput((TensorSample((3, 4)), TensorSample((3, 4))))
    yield SampleInput((TensorSample((0,)), TensorSample((0,))))


def array_equal_samples(dtype):
    yield from array_equiv_samples(dtype)
    if dtype.is_inexact:
        x = TensorSample((2,), values=(math.nan, 1.0))
        yield SampleInput((x, x))
        yield SampleInput((x, x), {"equal_nan": True})


def divmod_samples(dtype):
    for shape in ((3, 4), (4,), ()):
        yield SampleInput((TensorSample((3, 4)), TensorSample(shape, 0.5, 3.0)))
    yield SampleInput((TensorSample((5,)), 2))


def ldexp_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), TensorSample((4,), dtype=int32)))
    yield SampleInput((TensorSample((5,)), 3))
    if dtype.is_inexact:
        x = TensorSample((4,), values=(math.inf, -math.inf, math.nan, 0.0))
        yield SampleInput((x, TensorSample((4,), dtype=int32)))


def frexp_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))
    yield SampleInput((TensorSample((6,), values=(0, 1, 2, 4, 8, 100)),))
    yield SampleInput((TensorSample((0,)),))


def float_power_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), 0.5, 3.0, layout=layout), TensorSample((4,), 0.5, 3.0)))
    yield SampleInput((TensorSample((5,), 1.0, 3.0), 2))
    yield SampleInput((TensorSample((5,), 1.0, 3.0), 2.0))


def around_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))
    yield SampleInput((TensorSample((5,)), 2))
    yield SampleInput((TensorSample((5,), 0.0, 99.0), -1))


def packbits_samples(dtype):
    bits = tuple(at % 3 % 2 for at in range(30))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 10), values=bits, layout=layout),))
    for axis in (0, 1):
        yield SampleInput((TensorSample((3, 10), values=bits), axis, "little"))


def packbits_errors():
    yield ErrorInput((TensorSample((3,), dtype=float32),), TypeError, "integers")
    yield ErrorInput((TensorSample((3,), dtype=int64), 1), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,), dtype=int64), 0, "middle"), ValueError, "bitorder")


def unpackbits_samples(dtype):
    numbers = (0, 255, 3, 128, 77, 200)
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 2), values=numbers, layout=layout),))
    for axis, count in ((0, None), (1, 5), (-1, 20), (0, -3)):
        yield SampleInput((TensorSample((3, 2), values=numbers), axis, count), {"bitorder": "little"})


def unpackbits_errors():
    x = TensorSample((3,), dtype=uint8)
    yield ErrorInput((TensorSample((3,), dtype=int64),), TypeError, "uint8")
    yield ErrorInput((x, 1), IndexError, "out of bounds")
    yield ErrorInput((x, 0, -99), ValueError, "cut")
    yield ErrorInput((x, 0, None, "middle"), ValueError, "bitorder")


def integer_pair_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), -30, 30, layout=layout), TensorSample((4,), -9, 9)))
    yield SampleInput(
        (TensorSample((5,), values=(0, 12, 7, 0, 100)), TensorSample((5,), values=(0, 8, 0, 5, 75)))
    )
    yield SampleInput((TensorSample((3,), 0, 40), 6))
    yield SampleInput((TensorSample(()), TensorSample((2, 0))))


def integer_pair_errors():
    x = TensorSample((3,), dtype=int64)
    yield ErrorInput((x, TensorSample((2,), dtype=int64)), ValueError, "broadcast")
    yield ErrorInput((x, TensorSample((3,), dtype=float32)), TypeError, "does not take")

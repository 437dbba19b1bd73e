"""Keys, and sample inputs and error inputs of the operators on keys, of bits and of uniform numbers."""

from tandem.operators.declare.declaration import ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import float32, int64, uint32, uint64

KEY = TensorSample((4,), values=(20, 11, 3, 4000000000), dtype=uint32)


KEYS = TensorSample((2, 4), values=(1, 2, 3, 4, 5, 6, 7, 8), dtype=uint32)


def key_errors(*rest):
    """The errors of every operator that takes a key."""
    return [
        ErrorInput((0, *rest), TypeError, "td.random.key"),
        ErrorInput((TensorSample((4,), dtype=float32), *rest), TypeError, "td.random.key"),
        ErrorInput((TensorSample((2,), dtype=uint32), *rest), ValueError, "4 words"),
        ErrorInput((TensorSample((), dtype=uint32), *rest), ValueError, "4 words"),
    ]


def bits_samples(dtype):
    for bits in (32, 64):
        for shape in ((), (0,), (1,), (7,), (3, 5)):
            yield SampleInput((KEY, shape), {"bits": bits})
        yield SampleInput((KEYS, (3,)), {"bits": bits})


def bits_errors():
    return [
        *key_errors(3),
        ErrorInput((KEY, (-1,)), ValueError, "negative"),
        ErrorInput((KEY, 3), ValueError, "32 or 64", {"bits": 7}),
        ErrorInput((KEY, 2**50), MemoryError, "no memory"),
    ]


def split_samples(dtype):
    return [
        SampleInput((KEY,)),
        SampleInput((KEY, 5)),
        SampleInput((KEY, 0)),
        SampleInput((KEYS, 3)),
    ]


def split_errors():
    return [
        *key_errors(),
        ErrorInput((KEY, -1), ValueError, "negative"),
        ErrorInput((KEY, 0.5), TypeError, "n"),
    ]


def fold_in_samples(dtype):
    return [
        *(SampleInput((KEY, data)) for data in (0, 1, -1, 2**40)),
        SampleInput((KEY, TensorSample((3,), 0, 9, dtype=int64))),
        SampleInput((KEYS, 5)),
        SampleInput((KEYS, TensorSample((2,), 0, 9, dtype=int64))),
    ]


def fold_in_errors():
    return [*key_errors(1), ErrorInput((KEY, 0.5), TypeError, "integer")]


def polar_samples(dtype):
    for shape in ((), (7,), (3, 5), (0,)):
        yield SampleInput((TensorSample(shape, 0.01, 0.99), TensorSample(shape, 0.02, 0.2)))
    values = (2.0**-33, 1e-6, 0.1, 0.5, 0.7, 1.0), (0, 0.1, 0.4, 0.6, 0.9, 0)
    yield SampleInput(tuple(TensorSample((6,), values=row) for row in values))


def uniform_samples(dtype):
    return [
        *(SampleInput((KEY, shape), {"dtype": dtype}) for shape in ((), (0,), (3, 5))),
        SampleInput((KEY, 7), {"dtype": dtype, "minval": -2, "maxval": 2.5}),
        SampleInput((KEYS, 3), {"dtype": dtype}),
        SampleInput((KEY, 3)),
    ]


def uniform_errors():
    return [
        *key_errors(3),
        ErrorInput((KEY, 3), TypeError, "floats", {"dtype": "int32"}),
        ErrorInput((KEY, (-1,)), ValueError, "negative"),
    ]


def standard_normal_samples(dtype):
    return [
        *(SampleInput((KEY, shape), {"dtype": dtype}) for shape in ((), (0,), (3, 5))),
        SampleInput((KEYS, 3), {"dtype": dtype}),
        SampleInput((KEY, 3)),
    ]


def normal_errors():
    return [*key_errors(3), ErrorInput((KEY, 3), TypeError, "floats", {"dtype": "int32"})]


def integers_samples(dtype):
    return [
        *(SampleInput((KEY, shape, 0, 10), {"dtype": dtype}) for shape in ((), (0,), (3, 5))),
        *([SampleInput((KEY, 5, -100, 100), {"dtype": dtype})] if dtype.kind == "i" else []),
        SampleInput((KEY, 5, -(2**63), 2**63)),
        SampleInput((KEY, 5, -(2**62), 2**63 - 1)),
        SampleInput((KEY, 5, 0, 2**64), {"dtype": uint64}),
        SampleInput((KEY, 5, 2**63, 2**64 - 1), {"dtype": uint64}),
        SampleInput(
            (
                KEY,
                (2,),
                TensorSample((2,), values=(-5, 5), dtype=int64),
                TensorSample((2,), values=(0, 9), dtype=int64),
            )
        ),
        SampleInput((KEYS, 3, 0, 7)),
    ]


def integers_errors():
    return [
        *key_errors(3, 0, 5),
        ErrorInput((KEY, 3, 5, 5), ValueError, "at least 5"),
        ErrorInput((KEY, 3, 0, 1.5), TypeError, "integers"),
        ErrorInput((KEY, 3, 0, 300), OverflowError, "fit", {"dtype": "int8"}),
        ErrorInput((KEY, 3, 0, 5), TypeError, "float32", {"dtype": "float32"}),
    ]


def order_samples(dtype):
    return [SampleInput((KEY, n)) for n in (0, 1, 2, 9)] + [SampleInput((KEYS, 5))]


def order_errors():
    return [*key_errors(3), ErrorInput((KEY, -1), ValueError, "negative")]


def permutation_samples(dtype):
    return [
        SampleInput((KEY, 6)),
        SampleInput((KEY, TensorSample((5,), dtype=float32))),
        SampleInput((KEY, TensorSample((2, 5), dtype=float32), 1)),
        SampleInput((KEY, TensorSample((4, 3), dtype=float32), 0, True)),
    ]


def permutation_errors():
    return [
        *key_errors(3),
        ErrorInput((KEY, -1), ValueError, "negative"),
        ErrorInput((KEY, 2.5), TypeError, "an int"),
        ErrorInput((KEY, TensorSample(())), TypeError, "an int"),
        ErrorInput((KEYS, 3), ValueError, "one key"),
        ErrorInput((KEY, TensorSample((3,)), 1), IndexError, "out of bounds"),
    ]


def bernoulli_samples(dtype):
    return [
        *(SampleInput((KEY, p, (3, 5))) for p in (0.0, 0.25, 1.0)),
        SampleInput((KEY, TensorSample((4,), 0, 1, dtype=float32))),
        SampleInput((KEY, 0.5)),
        SampleInput((KEYS, 0.5, 3)),
    ]


def bernoulli_errors():
    return [
        *key_errors(0.5),
        ErrorInput((KEY, 1.5), ValueError, "probability"),
        ErrorInput((KEY, -0.1), ValueError, "probability"),
    ]

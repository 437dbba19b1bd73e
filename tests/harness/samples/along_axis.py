"""Sample inputs and error inputs of the operators that read and write along one axis."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import bool_, float32, int64


def positions(shape, *values):
    return TensorSample(shape, values=values or None, dtype=int64)


def _cases():
    """Shape, axis and index of reads and writes; each position once, so that derivatives are unique."""
    yield (3, 4), 0, positions((2, 4), 0, 1, 2, 0, 2, 0, -2, 1)
    yield (3, 4), -1, positions((3, 2), 0, 3, 2, 1, -1, 0)
    yield (2, 3, 2), 1, positions((1, 2, 2), 2, 0, 1, 2)
    yield (5,), 0, positions((0,))


def gather_samples(dtype):
    for shape, axis, index in _cases():
        yield SampleInput((TensorSample(shape), axis, index))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), 1, positions((3, 1), 0, 3, 2)))


def gather_errors():
    yield ErrorInput((TensorSample((3, 4)), 0, positions((2,), 0, 1)), ValueError, "as many axes")
    yield ErrorInput((TensorSample((3,)), 0, positions((1,), 3)), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)), 0, TensorSample((1,))), IndexError, "integers")
    yield ErrorInput((TensorSample((3,)), 1, positions((1,), 0)), IndexError, "out of bounds")


def scatter_samples(dtype):
    for shape, axis, index in _cases():
        yield SampleInput((TensorSample(shape), axis, index, TensorSample(index.shape)))
    for layout in LAYOUTS:
        source = TensorSample((4, 5), layout=layout)
        yield SampleInput((TensorSample((3, 4), layout=layout), 1, positions((3, 1), 0, 3, 2), source))
    yield SampleInput((TensorSample((3,)), 0, positions((2,), 0, 2), dtype.kind == "b" or 2))


def scatter_errors():
    yield ErrorInput(
        (TensorSample((3,)), 0, positions((2,), 0, 1), TensorSample((1,))),
        ValueError,
        "longer than the source",
    )
    yield ErrorInput((TensorSample((3,)), 0, positions((1,), 3), 1), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)), 0, positions((1, 1), 0), 1), ValueError, "as many axes")


def scatter_reduce_samples(dtype):
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for keep in (True, False):
            yield SampleInput(
                (
                    TensorSample((2, 3), 0.0, 3.0, distinct=True),
                    1,
                    positions((2, 4), 0, 2, 2, 0, 1, 1, 1, 0),
                    TensorSample((2, 4), 0.0, 3.0, distinct=True),
                    reduce,
                ),
                {"include_self": keep},
            )


def scatter_reduce_errors():
    args = (TensorSample((3,)), 0, positions((1,), 0), TensorSample((1,)), "median")
    yield ErrorInput(args, ValueError, "reduce is one of")


def select_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), 0, positions((3,), 2, 0, -1)))
    yield SampleInput((TensorSample((2, 3, 2)), -2, positions((2,), 1, 1)))
    yield SampleInput((TensorSample((3,)), 0, positions((), 1)))


def select_errors():
    yield ErrorInput((TensorSample((3,)), 0, positions((1, 1), 0)), ValueError, "one axis")
    yield ErrorInput((TensorSample((3,)), 0, positions((1,), 3)), IndexError, "out of bounds")


def index_write_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput(
            (
                TensorSample((3, 4), layout=layout),
                0,
                positions((2,), 2, 0),
                TensorSample((2, 4), layout=layout),
            )
        )
    yield SampleInput((TensorSample((2, 3, 2)), -2, positions((1,), -1), TensorSample((2, 1, 2))))
    yield SampleInput((TensorSample((3,)), 0, positions((0,)), TensorSample((0,))))


def index_write_errors():
    yield ErrorInput((TensorSample((3,)), 0, positions((1,), 0), TensorSample((2,))), ValueError, "must have")
    yield ErrorInput(
        (TensorSample((3,)), 0, positions((1,), 3), TensorSample((1,))), IndexError, "out of bounds"
    )


def index_fill_samples(dtype):
    value = dtype.kind == "b" or 2
    yield SampleInput((TensorSample((3, 4)), 0, positions((2,), 2, 0), value))
    yield SampleInput((TensorSample((2, 3, 2)), -2, positions((1,), -1), TensorSample(())))


def index_fill_errors():
    yield ErrorInput((TensorSample((3,)), 0, positions((1,), 0), TensorSample((1,))), ValueError, "no axes")


def mask(*shape):
    return TensorSample(shape, dtype=bool_)


def masked_fill_samples(dtype):
    value = dtype.kind == "b" or 2
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), mask(3, 4), value))
    yield SampleInput((TensorSample((3, 1)), mask(4), TensorSample(())))
    yield SampleInput((TensorSample((0,)), mask(1), value))


def masked_fill_errors():
    yield ErrorInput((TensorSample((2,)), mask(2), TensorSample((2,))), ValueError, "no axes")
    yield ErrorInput((TensorSample((2,), dtype=int64), mask(2), 0.5), TypeError, "cannot be written")
    yield ErrorInput((TensorSample((2,)), TensorSample((2,), dtype=int64), 1), TypeError, "bool")


def masked_scatter_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), mask(3, 4), TensorSample((12,))))
    yield SampleInput((TensorSample((3, 1)), mask(4), TensorSample((4, 3))))
    yield SampleInput((TensorSample((0,)), mask(1), TensorSample((1,))))


def masked_scatter_errors():
    yield ErrorInput(
        (TensorSample((2,), dtype=int64), mask(2), TensorSample((2,), dtype=float32)), TypeError, "dtype"
    )

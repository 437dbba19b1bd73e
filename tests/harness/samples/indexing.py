"""Sample inputs and error inputs of the operators of indexing."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.operators.indexing.gather import index_shape
from tandem.operators.indexing.index_reduce import COMBINE
from tandem.operators.indexing.slicing import plan_shape
from tandem.registry.dtypes import int32, int64, uint8
from tandem.registry.values import TensorSpec


def index_cases():
    """Test cases: the shape of the tensor, index tensors, axis."""
    one = TensorSample((4,), values=(2, 0, -1, 2), dtype=int64)
    yield (3, 4), (one,), 0
    yield (3, 4), (one,), 1
    yield (3, 4), (one, TensorSample((), values=(1,), dtype=int32)), 0
    yield (3, 4), (TensorSample((), values=(-1,), dtype=int64),), -2
    yield (2, 3, 4), (TensorSample((2, 1), values=(2, 0), dtype=uint8), one), 1
    yield (5,), (TensorSample((0,), dtype=int64),), 0
    yield (3, 0), (one,), 0


def gather_read_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput(
            (
                TensorSample((3, 4), layout=layout),
                (TensorSample((2, 2), values=(0, 2, -3, 1), dtype=int64, layout=layout),),
            )
        )
    for shape, indices, axis in index_cases():
        yield SampleInput((TensorSample(shape), indices, axis))


def gather_read_errors():
    one = TensorSample((2,), values=(0, 1), dtype=int64)
    yield ErrorInput(
        (TensorSample((3,)), (TensorSample((1,), values=(3,), dtype=int64),)), IndexError, "out of bounds"
    )
    yield ErrorInput(
        (TensorSample((3,)), (TensorSample((1,), values=(-4,), dtype=int64),)), IndexError, "out of bounds"
    )
    yield ErrorInput((TensorSample((3,)), (TensorSample((2,)),)), IndexError, "integers, not float32")
    yield ErrorInput((TensorSample((3,)), (one, one)), IndexError, "too many")
    yield ErrorInput((TensorSample((3,)), (one,), 1), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)), ()), TypeError, "at least one")
    yield ErrorInput((TensorSample((3, 3)), (one, TensorSample((3,), dtype=int64))), ValueError, "broadcast")


def gather_write_samples(dtype):
    for accumulate in (False, True):
        for shape, indices, axis in index_cases():
            selected = index_shape("index_put", shape, [TensorSpec(i.shape, int64) for i in indices], axis)
            yield SampleInput(
                (TensorSample(shape), indices, TensorSample(selected), axis), {"accumulate": accumulate}
            )
        yield SampleInput(
            (TensorSample((3, 4)), (TensorSample((2,), values=(1, 1), dtype=int64),), TensorSample((4,))),
            {"accumulate": accumulate},
        )
        pairs = TensorSample((3, 2), values=(0, 1, 1, 2, 1, 4), dtype=int64)
        yield SampleInput((TensorSample((5,)), (pairs,), TensorSample((2,))), {"accumulate": accumulate})
        yield SampleInput((TensorSample((5,)), (pairs,), TensorSample((3, 1))), {"accumulate": accumulate})
        weak = True if dtype.kind == "b" else 1
        yield SampleInput(
            (TensorSample((3,)), (TensorSample((2,), values=(1, 1), dtype=int64),), weak),
            {"accumulate": accumulate},
        )


def gather_write_errors():
    one = TensorSample((2,), values=(0, 1), dtype=int64)
    yield ErrorInput((TensorSample((3,)), (one,), TensorSample((3,))), ValueError, "broadcast")
    yield ErrorInput((TensorSample((3,), dtype=int64), (one,), 0.5), TypeError, "does not go into")
    yield ErrorInput((TensorSample((3,), dtype=uint8), (one,), 300), OverflowError, "fit")
    yield ErrorInput((TensorSample((1,)), (one,), 1), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)), (TensorSample((2,)),), 1), IndexError, "integers")


def index_reduce_samples(dtype):
    twice = TensorSample((4,), values=(2, 0, -1, 2), dtype=int64)
    pairs = TensorSample((3, 2), values=(0, 1, 1, 2, 1, -1), dtype=uint8)
    for reduce in COMBINE if dtype.kind != "c" else ("multiply",):
        options = {"reduce": reduce}
        yield SampleInput((TensorSample((3, 4)), (twice,), TensorSample((4, 4))), options)
        yield SampleInput((TensorSample((2, 3)), (twice,), TensorSample((1, 4)), 1), options)
        yield SampleInput((TensorSample((3, 4)), (twice, twice), TensorSample((4,))), options)
        yield SampleInput(
            (TensorSample((5,)), (pairs._replace(values=(0, 1, 1, 2, 1, 4)),), TensorSample((2,))), options
        )
        yield SampleInput(
            (
                TensorSample((2, 3, 2)),
                (TensorSample((2, 1), values=(1, 0), dtype=int64), twice),
                TensorSample((2, 4, 2)),
            ),
            options,
        )
        yield SampleInput(
            (
                TensorSample((3,), layout="reversed"),
                (TensorSample((), values=(-1,), dtype=int64),),
                TensorSample(()),
            ),
            options,
        )
        yield SampleInput((TensorSample((3, 0)), (twice,), TensorSample((4, 0))), options)
        yield SampleInput(
            (TensorSample((3,)), (TensorSample((0,), dtype=int64),), TensorSample((0,))), options
        )
        yield SampleInput((TensorSample((3,)), (twice,), True if dtype.kind == "b" else 2), options)


def index_reduce_errors():
    one, options = TensorSample((2,), values=(0, 1), dtype=int64), {"reduce": "maximum"}
    yield ErrorInput(
        (TensorSample((3,)), (one,), TensorSample((2,))),
        ValueError,
        "'multiply', 'minimum', 'maximum'",
        {"reduce": "mean"},
    )
    yield ErrorInput((TensorSample((3,)), (one,), TensorSample((3,))), ValueError, "broadcast", options)
    yield ErrorInput((TensorSample((3,), dtype=int64), (one,), 0.5), TypeError, "does not go into", options)
    yield ErrorInput((TensorSample((1,)), (one,), 1), IndexError, "out of bounds", options)
    yield ErrorInput((TensorSample((3,)), (TensorSample((2,)),), 1), IndexError, "integers", options)


def plan_cases():
    yield (3, 4), (1, (0, 4, 1))
    yield (3, 4), ((2, 3, -1), (3, 2, -2))
    yield (3, 4), ((1, 2, 1), None, 2)
    yield (3, 4), (0, 0)
    yield (3, 4), ((0, 0, 1), (1, 3, 1))
    yield (), (None, None)


def slicing_read_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), ((0, 2, 2), (1, 3, 1))))
    for shape, plan in plan_cases():
        yield SampleInput((TensorSample(shape), plan))


def slicing_read_errors():
    yield ErrorInput((TensorSample((3, 4)), (3, 0)), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3, 4)), ((0, 4, 1), 0)), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3, 4)), (0,)), TypeError, "plan")
    yield ErrorInput((TensorSample((3,)), (slice(1),)), TypeError, "neither")


def slicing_write_samples(dtype):
    for keywords in ({}, {"accumulate": True}):
        for shape, plan in plan_cases():
            yield SampleInput((TensorSample(shape), TensorSample(plan_shape(plan)), plan), keywords)
        yield SampleInput(
            (TensorSample((3, 4), layout="transposed"), TensorSample((4,)), ((0, 2, 2), (0, 4, 1))), keywords
        )
        yield SampleInput((TensorSample((5,)), dtype.kind == "b" or 1, ((0, 3, 2),)), keywords)


def along_errors():
    yield ErrorInput((TensorSample((3, 4)), TensorSample((3,), dtype=int64)), ValueError, "as many axes")
    yield ErrorInput((TensorSample((3, 4)), TensorSample((2, 4), dtype=int64)), ValueError, "broadcast")
    yield ErrorInput((TensorSample((3, 4)), TensorSample((3, 1))), IndexError, "integers")
    yield ErrorInput(
        (TensorSample((3, 4)), TensorSample((3, 1), values=(4, 0, 0), dtype=int64)),
        IndexError,
        "out of bounds",
    )
    yield ErrorInput(
        (TensorSample((3, 4)), TensorSample((3, 1), dtype=int64), 2), IndexError, "out of bounds"
    )

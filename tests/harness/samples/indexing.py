"""Sample inputs and error inputs of the operators of indexing."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.operators.indexing.gather import index_shape
from tandem.operators.indexing.index_reduce import COMBINE
from tandem.operators.indexing.slicing import plan_shape
from tandem.registry.dtypes import bool_, float32, int32, int64, uint8
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
    yield ErrorInput((TensorSample((3,), dtype=int64), (one,), 0.5j), TypeError, "does not go into")
    options = {"accumulate": True}
    yield ErrorInput((TensorSample((3,), dtype=int64), (one,), 0.5), TypeError, "does not go into", options)
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


# -- positions and elements that a condition selects -------------------------------------------------------------------
_MASK = TensorSample((7,), values=(0, 1, 0, 1, 1, 0, 1))


def argwhere_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))
    yield SampleInput((TensorSample((0,)),))
    yield SampleInput((TensorSample(()),))
    yield SampleInput((_MASK,), {"size": 2})
    yield SampleInput((_MASK,), {"size": 6, "fill_value": -1})
    yield SampleInput((TensorSample((2, 3), values=(0, 1, 0, 1, 1, 0)),), {"size": 4})


def where_condition_samples(dtype):
    return (sample for sample in argwhere_samples(dtype) if sample.args[0].shape)


def size_errors():
    yield ErrorInput((TensorSample((2,)),), ValueError, "negative", {"size": -1})


_CONDITION = TensorSample((4,), values=(0, 1, 1, 0), dtype=bool_)


def extract_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput(
            (TensorSample((2, 2), values=(0, 1, 1, 0), dtype=bool_), TensorSample((2, 2), layout=layout)),
            {"size": 2},
        )
    yield SampleInput((_CONDITION, TensorSample((5,))), {"size": 1})
    yield SampleInput((_CONDITION, TensorSample((4,))), {"size": 3, "fill_value": 1})


def extract_errors():
    yield ErrorInput((_CONDITION, TensorSample((4,))), ValueError, "negative", {"size": -1})
    yield ErrorInput((_CONDITION, TensorSample((3,))), ValueError, "longer")


def compress_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((_CONDITION, TensorSample((4, 3), layout=layout), 0), {"size": 2})
    yield SampleInput((_CONDITION, TensorSample((3, 4)), -1), {"size": 3, "fill_value": 1})
    yield SampleInput((_CONDITION, TensorSample((2, 3))), {"size": 1})


def compress_errors():
    yield ErrorInput((_CONDITION, TensorSample((4,))), ValueError, "negative", {"size": -1})
    yield ErrorInput((_CONDITION, TensorSample((3,))), ValueError, "longer")
    yield ErrorInput((_CONDITION, TensorSample((4,)), 1), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((2, 2)), TensorSample((4,))), ValueError, "one axis")


# -- choices -----------------------------------------------------------------------------------------------------------
def choose_samples(dtype):
    choices = (TensorSample((4,), dtype=float32), TensorSample((4,), dtype=float32), 2.5)
    yield SampleInput((TensorSample((4,), values=(0, 2, 1, 0)), choices))
    yield SampleInput((TensorSample((2, 1), values=(1, 0)), (TensorSample((3,)), TensorSample((2, 3)))))
    for mode in ("wrap", "clip"):
        yield SampleInput(
            (TensorSample((5,), values=(0, 7, 1, 2, 3)), (TensorSample((5,)), 3)), {"mode": mode}
        )


def choose_errors():
    index = TensorSample((2,), values=(0, 2), dtype=int64)
    yield ErrorInput((index, (TensorSample((2,)), TensorSample((2,)))), IndexError, "out of bounds")
    yield ErrorInput((index, ()), ValueError, "at least one")
    yield ErrorInput((index, (TensorSample((2,)),), "drop"), ValueError, "mode")
    yield ErrorInput((TensorSample((2,), dtype=float32), (TensorSample((2,)),)), TypeError, "integers")


def select_samples(dtype):
    masks = tuple(TensorSample((3, 4), dtype=bool_) for _ in range(2))
    for layout in LAYOUTS:
        yield SampleInput((masks, (TensorSample((3, 4), layout=layout), TensorSample((4,)))))
    yield SampleInput((masks, (TensorSample((3, 4)), TensorSample(())), TensorSample((3, 1))))
    yield SampleInput((masks[:1], (TensorSample(()),), 1))


def select_errors():
    mask = TensorSample((2,), dtype=bool_)
    yield ErrorInput(((), ()), ValueError, "at least one")
    yield ErrorInput(((mask,), (TensorSample((2,)), TensorSample((2,)))), ValueError, "as many")
    yield ErrorInput(((TensorSample((2,), dtype=int64),), (TensorSample((2,)),)), TypeError, "bools")


# -- functional writes -------------------------------------------------------------------------------------------------
def put_along_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput(
            (
                TensorSample((3, 4), layout=layout),
                TensorSample((3, 1), values=(0, -1, 2), dtype=int64),
                TensorSample((3, 1)),
            )
        )
    rows = TensorSample((1, 4), values=(0, -1, 2, 1), dtype=int64)
    yield SampleInput((TensorSample((3, 4)), rows, 2, 0))
    yield SampleInput(
        (TensorSample((5,)), TensorSample((2,), values=(4, 1), dtype=int64), TensorSample((2,)))
    )
    flat = TensorSample((2,), values=(7, -1), dtype=int64)
    yield SampleInput((TensorSample((3, 4)), flat, TensorSample((2,)), None))


def put_along_errors():
    x, row = TensorSample((3, 4)), TensorSample((3,), values=(0, 1, 2), dtype=int64)
    far = TensorSample((3, 1), values=(0, 1, 4), dtype=int64)
    yield ErrorInput((x, row, 1), ValueError, "as many axes")
    yield ErrorInput((x, TensorSample((3, 1)), 1), IndexError, "integers")
    yield ErrorInput((x, far, 1, 2), IndexError, "out of bounds")
    yield ErrorInput((x, far, 1), IndexError, "out of bounds")
    yield ErrorInput((x, far, 1, None), ValueError, "one axis")
    yield ErrorInput((x, far, 1), NotImplementedError, "inplace", {"inplace": True})


def fill_diagonal_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), 1))
    yield SampleInput((TensorSample((5, 2)), TensorSample((2,)), True))
    yield SampleInput((TensorSample((5, 2)), TensorSample(()), False))
    yield SampleInput((TensorSample((3, 3, 3)), TensorSample((2,))))


def fill_diagonal_errors():
    yield ErrorInput((TensorSample((3,)), 1), ValueError, "two axes")
    yield ErrorInput((TensorSample((2, 2, 3)), 1), ValueError, "one length")
    yield ErrorInput((TensorSample((2, 2)), TensorSample((0,))), ValueError, "no values")
    yield ErrorInput((TensorSample((2, 2)), 1), NotImplementedError, "inplace", {"inplace": True})


# -- flat indices ------------------------------------------------------------------------------------------------------
def ravel_samples(dtype):
    rows, columns = TensorSample((3,), values=(0, 1, 1)), TensorSample((2, 1), values=(2, 0))
    for order in ("C", "F"):
        yield SampleInput(((rows, columns), (2, 3)), {"order": order})
    for mode in ("wrap", "clip"):
        yield SampleInput(((TensorSample((3,), values=(0, 7, 4)), 1), (3, 2), mode))
    yield SampleInput(((rows,), (4,)))


def ravel_errors():
    index = TensorSample((2,), values=(0, 2), dtype=int64)
    yield ErrorInput(((index, index), (2, 3)), IndexError, "out of bounds")
    yield ErrorInput(((index,), (2, 3)), ValueError, "do not fit")
    yield ErrorInput(((index,), (3,), "drop"), ValueError, "mode")
    yield ErrorInput(((index,), (3,)), ValueError, "order", {"order": "K"})
    yield ErrorInput(((TensorSample((2,), dtype=float32),), (3,)), TypeError, "integers")


def unravel_samples(dtype):
    for order in ("C", "F"):
        yield SampleInput((TensorSample((2, 3), values=(0, 1, 7, 23, 11, 5)), (2, 3, 4), order))
    yield SampleInput((TensorSample((), values=(3,)), (5,)))


def unravel_errors():
    index = TensorSample((2,), values=(0, 6), dtype=int64)
    yield ErrorInput((index, (2, 3)), IndexError, "out of bounds")
    yield ErrorInput((index, (3, 3), "K"), ValueError, "order")
    yield ErrorInput((TensorSample((2,), dtype=float32), (3,)), TypeError, "integers")

"""Sample inputs and error inputs of the operators of nn."""

from samples.random import KEY
from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.operators.nn.losses import REDUCTIONS
from tandem.operators.nn.normalization import INF
from tandem.registry.dtypes import bool_, int64

ONES_1D, ONES_2D = (1,), (1, 1)


def convolution_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput(
            (
                TensorSample((2, 3, 7), layout=layout),
                TensorSample((4, 3, 3), layout=layout),
                ONES_1D,
                (0, 0),
                ONES_1D,
                ONES_1D,
            )
        )
    yield SampleInput((TensorSample((1, 2, 7)), TensorSample((2, 2, 2)), (2,), (1, 2), ONES_1D, (2,)))
    yield SampleInput((TensorSample((2, 2, 5)), TensorSample((3, 2, 3)), (3,), (1, -1), (2,), ONES_1D))
    yield SampleInput(
        (TensorSample((1, 4, 5)), TensorSample((4, 2, 2)), ONES_1D, (-1, 1), ONES_1D, ONES_1D, 2)
    )
    yield SampleInput((TensorSample((1, 8, 4)), TensorSample((1, 8, 3)), ONES_1D, (2, 2), (2,), ONES_1D))
    yield SampleInput(
        (TensorSample((2, 3, 5, 6)), TensorSample((2, 3, 2, 3)), (1, 2), (1, 0, 0, 2), ONES_2D, (2, 1))
    )
    yield SampleInput(
        (TensorSample((1, 4, 4, 3)), TensorSample((2, 2, 3, 2)), ONES_2D, (2, 2, 1, 1), (2, 3), ONES_2D, 2)
    )
    yield SampleInput(
        (
            TensorSample((1, 1, 3, 2, 4)),
            TensorSample((2, 1, 2, 2, 1)),
            (1, 1, 2),
            (0, 1) * 3,
            (1,) * 3,
            (1,) * 3,
        )
    )
    yield SampleInput((TensorSample((0, 2, 4)), TensorSample((3, 2, 2)), ONES_1D, (0, 0), ONES_1D, ONES_1D))
    yield SampleInput((TensorSample((2, 0, 4)), TensorSample((3, 0, 2)), ONES_1D, (0, 0), ONES_1D, ONES_1D))


def convolution_errors():
    x, w = TensorSample((1, 2, 5)), TensorSample((3, 2, 2))
    yield ErrorInput(
        (TensorSample((2, 5)), w, ONES_1D, (0, 0), ONES_1D, ONES_1D), ValueError, "needs an input"
    )
    yield ErrorInput((x, w, ONES_2D, (0, 0), ONES_1D, ONES_1D), ValueError, "not for 1 axes")
    yield ErrorInput((x, w, (0,), (0, 0), ONES_1D, ONES_1D), ValueError, "at least 1")
    yield ErrorInput((x, w, ONES_1D, (0, 0), ONES_1D, ONES_1D, 2), ValueError, "do not fit")
    yield ErrorInput((x, w, ONES_1D, (0, 0), ONES_1D, (5,)), ValueError, "longer than")
    yes = TensorSample((1, 2, 5), dtype=bool_), TensorSample((3, 2, 2), dtype=bool_)
    yield ErrorInput((*yes, ONES_1D, (0, 0), ONES_1D, ONES_1D), TypeError, "does not take bool")


SIZES = {1: ((6,), (3,)), 2: ((3, 4), (2, 2)), 3: ((2, 3, 2), (1, 2, 2))}


def sample_tensors(rank):
    size, kernel = SIZES[rank]
    return TensorSample((2, 2, *size)), TensorSample((4, 2, *kernel)), size, kernel


def conv_samples(dtype, rank):
    x, w, size, kernel = sample_tensors(rank)
    return [
        SampleInput((x, w)),
        SampleInput((x, w, TensorSample((4,)), 2, "same", 1, 1)),
        SampleInput((x, TensorSample((4, 2, *(1,) * rank)), None, (2,) * rank, "valid", 2)),
        SampleInput((TensorSample((2, *size)), w), {"padding": 1, "bias": TensorSample((4,))}),
        SampleInput((x, TensorSample((4, 1, *kernel))), {"padding": ((1, 0),) * rank, "groups": 2}),
    ]


def conv_errors(rank):
    yield from channel_errors(rank)
    yield ErrorInput((*sample_tensors(rank)[:2], None, 1, 0, 9), ValueError, "longer than")


def channel_errors(rank):
    x, w, _, _ = sample_tensors(rank)
    return [
        ErrorInput((TensorSample((4,)), w), ValueError, "axes"),
        ErrorInput((x, TensorSample((6, 4))), ValueError, "weight"),
        ErrorInput((x, w, TensorSample((3,))), ValueError, "bias"),
        ErrorInput((x, w, None, 0), ValueError, "stride"),
        ErrorInput((x, w, None, 1, -1), ValueError, "padding"),
        ErrorInput((x, w, None, 1, "full"), ValueError, "padding"),
        ErrorInput((x, TensorSample((4, 3, *(1,) * rank))), ValueError, "do not fit"),
    ]


def conv_transpose_samples(dtype, rank):
    size, kernel = SIZES[rank]
    x, w = TensorSample((1, 2, *size)), TensorSample((2, 3, *kernel))
    return [
        SampleInput((x, w)),
        SampleInput((x, w, TensorSample((3,)), 2, 1, 1)),
        SampleInput((TensorSample((2, *size)), w), {"dilation": 2}),
        SampleInput((x, TensorSample((2, 2, *kernel)), TensorSample((4,))), {"groups": 2, "stride": 3}),
    ]


def dropout_samples(dtype):
    return [
        *(SampleInput((TensorSample((3, 4), layout=layout), KEY)) for layout in LAYOUTS),
        *(SampleInput((TensorSample((7,)), KEY, p)) for p in (0.0, 0.1, 1.0)),
        SampleInput((TensorSample(()), KEY)),
        SampleInput((TensorSample((0,)), KEY)),
    ]


def dropout_errors():
    return [
        ErrorInput((TensorSample((2,)), KEY, 1.5), ValueError, "probability"),
        ErrorInput((TensorSample((2,), dtype=bool_), KEY), TypeError, "floats"),
        ErrorInput(
            (TensorSample((2,)), 0.5),
            TypeError,
            "Pass the probability after it: td.dropout(x, td.random.key(0), p)",
        ),
    ]


def cross_entropy_samples(dtype):
    classes = TensorSample((3,), values=(3, 0, 1), dtype=int64)
    for reduction in REDUCTIONS:
        yield SampleInput((TensorSample((3, 4)), classes), {"reduction": reduction})
        yield SampleInput((TensorSample((3, 4)), TensorSample((3, 4), 0.0, 1.0)), {"reduction": reduction})
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), -50.0, 50.0, layout=layout), classes))
    yield SampleInput((TensorSample((3, 4)), classes), {"label_smoothing": 0.1})
    yield SampleInput((TensorSample((3, 4)), TensorSample((3, 4), 0.0, 1.0)), {"label_smoothing": 0.25})
    yield SampleInput((TensorSample((2, 4, 3)), TensorSample((2, 3), 0, 3, dtype=int64)), {"axis": 1})
    yield SampleInput((TensorSample((4,)), TensorSample((), values=(2,), dtype=int64)))


def cross_entropy_errors():
    logits, classes = TensorSample((3, 4)), TensorSample((3,), 0, 3, dtype=int64)
    yield ErrorInput((logits, TensorSample((4,), 0, 3, dtype=int64)), ValueError, "classes of shape (3,)")
    yield ErrorInput((logits, TensorSample((3,))), ValueError, "probabilities of shape (3, 4)")
    yield ErrorInput((logits, classes), ValueError, "reduction", {"reduction": "max"})
    yield ErrorInput((logits, classes), ValueError, "label_smoothing", {"label_smoothing": 1.5})
    yield ErrorInput((logits, classes), IndexError, "out of bounds", {"axis": 2})
    yield ErrorInput((TensorSample((3, 0)), classes), ValueError, "no classes")
    yield ErrorInput((TensorSample((3, 4), dtype=int64), classes), TypeError, "logits")


def softmax_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),))
    for axis in (0, 1, -1):
        yield SampleInput((TensorSample((2, 3, 4)), axis))
    yield SampleInput((TensorSample((33,), -100.0, 100.0),))
    yield SampleInput((TensorSample((0, 3)),))
    if dtype.is_floating:
        yield SampleInput((TensorSample((2, 3), values=(-INF, 1.0, 2.0, -INF, -INF, -INF)),))
        yield SampleInput((TensorSample((2, 2), values=(float("nan"), 1.0, 1000.0, 999.0)),))


def softmax_errors():
    yield ErrorInput((TensorSample((2, 3)), 2), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((2, 0)),), ValueError, "nothing")
    yield ErrorInput((TensorSample((2,), dtype=bool_),), TypeError, "real numbers")
    yield ErrorInput((TensorSample(()),), IndexError, "out of bounds")


POOL_SIZES = {1: (7,), 2: (3, 4), 3: (2, 2, 3)}


def max_pool_samples(dtype, rank):
    size = POOL_SIZES[rank]
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((2, 2, *size), layout=layout, distinct=True), 2))
    yield SampleInput((TensorSample((2, 2, *size), distinct=True), 3, 1, 1))
    yield SampleInput((TensorSample((3, *size), distinct=True), 2, 2, "same"))
    yield SampleInput(
        (TensorSample((1, 2, *size), distinct=True), (1, *(2,) * (rank - 1))), {"stride": 1, "dilation": 1}
    )
    yield SampleInput((TensorSample((0, 2, *size)), 2))


def avg_pool_samples(dtype, rank):
    size = POOL_SIZES[rank]
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((2, 2, *size), layout=layout), 2))
    yield SampleInput((TensorSample((2, 2, *size)), 3, 1, 1))
    yield SampleInput((TensorSample((3, *size)), 2, 2, "same"), {"count_include_pad": False})
    yield SampleInput((TensorSample((0, 2, *size)), 2))


def pooling_errors(rank):
    x = TensorSample((1, 2, *POOL_SIZES[rank]))
    return [
        ErrorInput((TensorSample((3,)), 2), ValueError, "axes"),
        ErrorInput((x, 0), ValueError, "kernel_size"),
        ErrorInput((x, 2, -1), ValueError, "stride"),
        ErrorInput((x, 2, None, 2), ValueError, "smaller"),
        ErrorInput((x, 9), ValueError, "longer than"),
        ErrorInput(
            (TensorSample((1, 2, *POOL_SIZES[rank]), dtype=bool_), 2), TypeError, "does not take bool"
        ),
    ]

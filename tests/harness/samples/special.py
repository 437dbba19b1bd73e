"""Sample inputs and error inputs of the operators of special."""

from tandem.operators.declare.declaration import SampleInput, TensorSample
from tandem.special.gammas import BETWEEN, POSITIVE


def gammainc_samples(dtype):
    return [SampleInput((a, *one.args)) for a in (0.5, 2.5) for one in interval_samples(dtype, POSITIVE)]


def gammaincc_samples(dtype):
    return [SampleInput((a, *one.args)) for a in (0.5, 2.5) for one in interval_samples(dtype, POSITIVE)]


def zeta_samples(dtype):
    return [SampleInput((2.5, *one.args)) for one in interval_samples(dtype, POSITIVE)]


def betainc_samples(dtype):
    return [SampleInput((0.5, 2.5, *one.args)) for one in interval_samples(dtype, BETWEEN)]


def interval_samples(dtype, *spans):
    """0-d, empty and small tensors with values in an interval for each argument."""
    for shape in ((), (0,), (5,), (3, 4)):
        yield SampleInput(tuple(TensorSample(shape, *span) for span in spans))
    for layout in ("transposed", "reversed", "strided"):
        yield SampleInput(tuple(TensorSample((3, 4), *span, layout=layout) for span in spans))
    if len(spans) > 1:
        shapes = ((3, 1), (4,), ())
        yield SampleInput(tuple(TensorSample(shape, *span) for shape, span in zip(shapes, spans)))

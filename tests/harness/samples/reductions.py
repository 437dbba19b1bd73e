"""Sample inputs and error inputs of the operators of reductions."""

from samples.kinds import reduction_samples
from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample


def sorting_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout, distinct=True),))
    yield SampleInput((TensorSample((3, 4), distinct=True),), {"axis": 0, "descending": True})
    yield SampleInput((TensorSample((0, 2)),))
    yield SampleInput((TensorSample((9,), values=(1, 0, 1, 0, 1, 1, 0, 0, 1)),), {"descending": True})
    yield SampleInput(
        (TensorSample((5,), values=(2, float("nan"), 1, float("inf"), 0)),)
        if dtype.is_inexact
        else (TensorSample((1,)),)
    )


def sorting_errors():
    yield ErrorInput((TensorSample(()),), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)),), IndexError, "out of bounds", {"axis": 1})


def uneven_samples(dtype):
    """The samples of `var` whose elements differ: the square root has no derivative at 0."""
    for sample in reduction_samples(dtype):
        if sample.kwargs.get("axis") != () and sample.args[0].shape not in ((), (1,)):
            yield sample

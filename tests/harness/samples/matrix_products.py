"""Sample inputs and error inputs of mm, bmm, mv, ger, and of addmm and its kind."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample

SHAPES = {
    (1, 1): (((3,), (4,)), ((0,), (2,))),
    (2, 1): (((3, 4), (4,)), ((2, 0), (0,))),
    (2, 2): (((3, 4), (4, 5)), ((2, 0), (0, 3))),
    (3, 3): (((2, 3, 4), (2, 4, 5)), ((0, 2, 3), (0, 3, 2))),
}
RESULTS = {(1, 1): (3, 4), (2, 1): (3,), (2, 2): (3, 5), (3, 3): (2, 3, 5)}


def product_samples(dtype, *ranks):
    for one, two in SHAPES[ranks]:
        yield SampleInput((TensorSample(one), TensorSample(two)))
    one, two = SHAPES[ranks][0]
    for layout in LAYOUTS if len(one) > 1 else ():
        yield SampleInput((TensorSample(one, layout=layout), TensorSample(two)))


def product_errors(*ranks):
    yield ErrorInput((TensorSample((2,) * 4), TensorSample((2,))), ValueError, "axes")
    if ranks[0] == 3:
        yield ErrorInput((TensorSample((2, 1, 1)), TensorSample((3, 1, 1))), ValueError, "different lengths")


def sum_samples(dtype, one, two, drops_axis):
    left, right = SHAPES[one, two][0]
    shape = RESULTS[one, two]
    if len(left) == 3 and drops_axis:
        shape = shape[1:]
    yield SampleInput((TensorSample(shape), TensorSample(left), TensorSample(right)))
    yield SampleInput((TensorSample(shape[-1:]), TensorSample(left), TensorSample(right)), {"alpha": 2})
    factors = {"beta": 3, "alpha": 2}
    yield SampleInput(
        (TensorSample(shape, layout="strided"), TensorSample(left), TensorSample(right)), factors
    )
    yield SampleInput((TensorSample(()), TensorSample(left), TensorSample(right)), {"beta": 0})


def sum_errors(*ranks):
    left, right = SHAPES[ranks][0]
    args = TensorSample((2, 2, 2, 2)), TensorSample(left), TensorSample(right)
    yield ErrorInput(args, ValueError, "broadcast")
    yield ErrorInput((TensorSample(()), TensorSample((2,) * 4), TensorSample((2,))), ValueError, "axes")

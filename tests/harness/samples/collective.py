"""Sample inputs and error inputs of the operators of collective."""

from tandem.operators.declare.declaration import ErrorInput, SampleInput, TensorSample


def collective_samples(dtype):
    return [SampleInput((TensorSample(shape), "i", 3)) for shape in ((3, 4), (), (0, 2))]


def collective_errors():
    return [
        ErrorInput((None, "i", 3), TypeError, "Tensor"),
        ErrorInput((TensorSample((2,)), "i", "n"), TypeError, "axis_size"),
    ]

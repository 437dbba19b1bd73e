"""Sample inputs and error inputs of lerp, addcmul, addcdiv, rsub, clamp_min, clamp_max and of PyTorch's options."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample


def lerp_samples(dtype):
    for weight in (0.25, 0.75):
        yield SampleInput((TensorSample((3, 4)), TensorSample((4,)), weight))
    for layout in LAYOUTS:
        args = TensorSample((3, 4), layout=layout), TensorSample((3, 4)), TensorSample((3, 1), 0.0, 1.0)
        yield SampleInput(args)
    yield SampleInput((TensorSample((0,)), TensorSample((0,)), TensorSample(())))


def lerp_errors():
    yield ErrorInput((TensorSample((2,)), TensorSample((3,)), 0.5), ValueError, "broadcast")


def product_samples(dtype):
    yield SampleInput((TensorSample((3, 4)), TensorSample((4,)), TensorSample((3, 1))))
    for layout in LAYOUTS:
        args = TensorSample((3, 4), layout=layout), TensorSample((3, 4)), TensorSample((3, 4))
        yield SampleInput(args, {"value": 2})
    yield SampleInput((TensorSample((0,)), TensorSample((0,)), TensorSample(())))


def quotient_samples(dtype):
    for sample in product_samples(dtype):
        self, one, two = sample.args
        yield SampleInput((self, one, two._replace(low=0.5)), sample.kwargs)


def product_errors():
    yield ErrorInput((TensorSample((2,)), TensorSample((3,)), TensorSample((3,))), ValueError, "broadcast")


def difference_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), TensorSample((4,))))
    yield SampleInput((TensorSample((3,)), TensorSample((3,))), {"alpha": 2})
    yield SampleInput((TensorSample((3,)), 2))


def difference_errors():
    yield ErrorInput((TensorSample((2,)), TensorSample((3,))), ValueError, "broadcast")


def bound_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout, distinct=True), 1))
    yield SampleInput((TensorSample((3, 1)), TensorSample((4,))))


def alpha_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), TensorSample((4,))), {"alpha": 2})
    yield SampleInput((TensorSample((3,)), 2), {"alpha": 1})


def alpha_errors():
    yield ErrorInput((TensorSample((2,)), TensorSample((3,))), ValueError, "broadcast", {"alpha": 2})


def rounding_samples(dtype):
    for mode in ("floor", "trunc"):
        for layout in LAYOUTS:
            args = TensorSample((3, 4), layout=layout, distinct=True), TensorSample((4,), 1.0, 3.0)
            yield SampleInput(args, {"rounding_mode": mode})
    if dtype.is_inexact:
        yield SampleInput((TensorSample((3,)), TensorSample((3,), 1.0, 3.0)), {"rounding_mode": None})


def rounding_errors():
    yield ErrorInput((TensorSample((2,)), 2.0), ValueError, "rounding_mode", {"rounding_mode": "up"})


def decimals_samples(dtype):
    for decimals in (0, 1, -1):
        for layout in LAYOUTS:
            yield SampleInput((TensorSample((3, 4), layout=layout),), {"decimals": decimals})

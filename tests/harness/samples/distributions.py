"""Sample inputs and error inputs of distributions."""

from samples.random import KEY, KEYS, key_errors
from tandem.operators.declare.declaration import ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import float32, int32, int64


def plain_samples(dtype):
    for shape in ((), (0,), (3, 5)):
        yield SampleInput((KEY, shape), {"dtype": dtype})
    yield SampleInput((KEYS, 3), {"dtype": dtype})
    yield SampleInput((KEY, 3))


def plain_errors():
    return [
        *key_errors(3),
        ErrorInput((KEY, 3), TypeError, "floats", {"dtype": "int32"}),
        ErrorInput((KEY, (-1,)), ValueError, "negative"),
    ]


def distribution_samples(dtype, bounds, own):
    """Calls of a distribution with parameters within bounds, of the dtype ``own`` or, for None, of that under test."""
    middle = tuple((low + high) / 2 for low, high in bounds)
    yield SampleInput((KEY, *middle), {"shape": (3, 4), "dtype": dtype})
    yield SampleInput((KEY, *(TensorSample((4,), *one, dtype=own) for one in bounds)), {"dtype": dtype})
    yield SampleInput((KEY, *(TensorSample((4,), *one, dtype=own) for one in bounds)), {"shape": (2, 4)})
    yield SampleInput(
        (KEYS, *(TensorSample((), *one, dtype=own) for one in bounds)), {"shape": (3,), "dtype": dtype}
    )
    yield SampleInput((KEY, *(TensorSample((0,), *one, dtype=own) for one in bounds)), {"dtype": dtype})


def distribution_errors(count):
    """The errors of every distribution with parameters."""
    ones = (1.0,) * count
    return [
        *key_errors(*ones),
        ErrorInput((KEY, *ones), TypeError, "floats", {"dtype": "int32"}),
        ErrorInput((KEY, *ones), ValueError, "negative", {"shape": (-1,)}),
        ErrorInput((KEY, TensorSample((3,), 1, 2), *ones[1:]), ValueError, "broadcast", {"shape": (2,)}),
    ]


def draw_poisson_samples(dtype):
    return [
        SampleInput((KEY, TensorSample((6,), 0.1, 30.0), (2, 6))),
        SampleInput((KEYS, TensorSample((2, 1), 0.5, 60.0), (3,))),
        SampleInput((KEY, TensorSample((0,), 1, 2), (0,))),
    ]


def draw_poisson_errors():
    return [*key_errors(TensorSample((3,), 1, 2, dtype=float32), (3,))]


def draw_binomial_samples(dtype):
    return [
        SampleInput((KEY, TensorSample((3,), values=(5, 40, 1000)), TensorSample((3,), 0.1, 0.9), (2, 3))),
        SampleInput((KEYS, TensorSample((), values=(30,)), TensorSample((2, 1), 0.2, 0.6), (3,))),
        SampleInput((KEY, TensorSample((0,), 1, 2), TensorSample((), 0, 1), (0,))),
    ]


def draw_binomial_errors():
    return [
        *key_errors(TensorSample((3,), 1, 2, dtype=float32), TensorSample((3,), 0, 1, dtype=float32), (3,))
    ]


def rate_samples(dtype):
    yield SampleInput((KEY, 3.0), {"shape": (3, 4)})
    yield SampleInput((KEY, TensorSample((4,), 0.5, 20.0)))
    yield SampleInput((KEY, TensorSample((4,), 0.5, 20.0)), {"shape": (2, 4), "dtype": int32})
    yield SampleInput((KEYS, TensorSample((), 0.5, 20.0)), {"shape": (3,)})


def poisson_errors():
    return [
        *key_errors(1.0),
        ErrorInput((KEY, -1.0), ValueError, "rate"),
        ErrorInput((KEY, 1.0), TypeError, "integers", {"dtype": "bool"}),
        ErrorInput((KEY, TensorSample((3,), 1, 2, dtype=float32), (2,)), ValueError, "broadcast"),
    ]


def trial_samples(dtype):
    yield SampleInput((KEY, 10, 0.3), {"shape": (3, 4), "dtype": dtype})
    yield SampleInput((KEY, 100, TensorSample((4,), 0.1, 0.9, dtype=float32)))
    yield SampleInput(
        (KEY, TensorSample((2, 1), 5, 60, dtype=int64), TensorSample((4,), 0.1, 0.9, dtype=float32)),
        {"shape": (2, 4)},
    )
    yield SampleInput((KEYS, 20, TensorSample((), 0.1, 0.9, dtype=float32)), {"shape": (3,)})


def binomial_errors():
    return [
        *key_errors(3, 0.5),
        ErrorInput((KEY, 3, 1.5), ValueError, "probability"),
        ErrorInput((KEY, 3, 0.5), TypeError, "floats", {"dtype": "int32"}),
        ErrorInput((KEY, 3, TensorSample((3,), 0, 1, dtype=float32), (2,)), ValueError, "broadcast"),
    ]


def geometric_samples(dtype):
    return [
        SampleInput((KEY, 0.3), {"shape": (3, 4)}),
        SampleInput((KEY, TensorSample((4,), 0.1, 0.9))),
        SampleInput((KEYS, TensorSample((), 0.1, 0.9)), {"shape": (3,), "dtype": int32}),
    ]


def geometric_errors():
    return [
        *key_errors(0.5),
        ErrorInput((KEY, 0.0), ValueError, "probability"),
        ErrorInput((KEY, 0.5), TypeError, "integers", {"dtype": "bool"}),
    ]


def rademacher_samples(dtype):
    return [
        *(SampleInput((KEY, shape)) for shape in ((), (0,), (3, 5))),
        SampleInput((KEYS, 3), {"dtype": float32}),
    ]


def rademacher_errors():
    return [*key_errors(3), ErrorInput((KEY, 3), TypeError, "signed", {"dtype": "uint8"})]


def class_samples(dtype):
    yield SampleInput((KEY, TensorSample((5,), distinct=True)))
    yield SampleInput((KEY, TensorSample((2, 3), distinct=True)))
    yield SampleInput((KEY, TensorSample((3, 2), distinct=True)), {"axis": 0, "shape": (4, 2)})
    yield SampleInput((KEYS, TensorSample((3,), distinct=True)), {"shape": (4,)})
    yield SampleInput((KEY, TensorSample((5,), distinct=True)), {"shape": (3,), "replace": False})
    yield SampleInput((KEY, TensorSample((2, 4), distinct=True)), {"shape": (3, 2), "replace": False})


def categorical_errors():
    return [
        *key_errors(TensorSample((3,), dtype=float32)),
        ErrorInput((KEY, TensorSample((3,), dtype=int64)), TypeError, "floats"),
        ErrorInput((KEY, TensorSample((3,), dtype=float32)), IndexError, "out of bounds", {"axis": 1}),
        ErrorInput((KEY, TensorSample((2, 3), dtype=float32)), ValueError, "end as", {"shape": (3,)}),
        ErrorInput((KEY, TensorSample((0,), dtype=float32)), ValueError, "no class"),
        ErrorInput(
            (KEY, TensorSample((3,), dtype=float32)), ValueError, "cannot", {"shape": (4,), "replace": False}
        ),
    ]


def choice_samples(dtype):
    p = TensorSample((4,), values=(0.1, 0.0, 0.6, 0.3), dtype=float32)
    for replace in (True, False):
        yield SampleInput((KEY, 6, (4,), replace))
        yield SampleInput((KEY, TensorSample((5, 2), distinct=True), (2, 2), replace))
        yield SampleInput((KEY, TensorSample((2, 4), distinct=True), 3, replace), {"p": p, "axis": 1})
        yield SampleInput((KEY, 4, (), replace, p))
        yield SampleInput((KEY, 4, (0,), replace))


def choice_errors():
    return [
        *key_errors(3),
        ErrorInput((KEYS, 3), ValueError, "one key"),
        ErrorInput((KEY, -1), ValueError, "number of items"),
        ErrorInput((KEY, 0, 2), ValueError, "nothing to choose"),
        ErrorInput((KEY, 3, 4, False), ValueError, "cannot be chosen"),
        ErrorInput((KEY, 2.5), TypeError, "an int"),
        ErrorInput((KEY, 3, 2, True, TensorSample((2,), 0, 1, dtype=float32)), ValueError, "one probability"),
        ErrorInput((KEY, TensorSample((3,)), 2), IndexError, "out of bounds", {"axis": 1}),
    ]


def draw_samples(dtype):
    yield SampleInput((KEY, TensorSample((), 0.5, 3.0), (5,)))
    yield SampleInput((KEY, TensorSample((6,), 0.1, 4.0), (2, 6)))
    yield SampleInput((KEYS, TensorSample((2, 1), 0.5, 30.0), (3,)))
    yield SampleInput((KEY, TensorSample((0,), 1, 2), (0,)))


def draw_errors():
    x = TensorSample((3,), 1, 2, dtype=float32)
    return [
        *key_errors(x, (3,)),
        ErrorInput((KEY, x, (2,)), ValueError, "broadcast"),
        ErrorInput((KEY, x, (-1,)), ValueError, "negative"),
    ]


def dirichlet_samples(dtype):
    yield SampleInput((KEY, TensorSample((4,), 0.5, 3.0, dtype=float32)))
    yield SampleInput((KEY, TensorSample((2, 3), 0.5, 3.0, dtype=float32)), {"shape": (3, 2), "dtype": dtype})
    yield SampleInput((KEYS, TensorSample((3,), 0.5, 3.0, dtype=float32)), {"shape": (2,)})
    yield SampleInput((KEY, TensorSample((0, 3), 0.5, 3.0, dtype=float32)))


def dirichlet_errors():
    return [
        *key_errors(TensorSample((3,), 1, 2)),
        ErrorInput((KEY, 1.0), ValueError, "one axis"),
        ErrorInput((KEY, TensorSample((0,), 1, 2)), ValueError, "one axis"),
        ErrorInput((KEY, TensorSample((2, 3), 1, 2)), ValueError, "broadcast", {"shape": (3,)}),
        ErrorInput((KEY, TensorSample((3,), 1, 2)), TypeError, "floats", {"dtype": "int32"}),
    ]


def outcome_samples(dtype):
    yield SampleInput((KEY, 10, TensorSample((3,), 0.1, 0.9, dtype=float32)))
    yield SampleInput((KEY, 50, TensorSample((2, 4), 0.1, 0.9, dtype=float32)), {"dtype": dtype})
    yield SampleInput(
        (KEY, TensorSample((2,), values=(5, 60)), TensorSample((3,), 0.1, 0.9, dtype=float32)),
        {"shape": (4, 2, 3)},
    )
    yield SampleInput((KEYS, 20, TensorSample((3,), 0.1, 0.9, dtype=float32)))


def multinomial_errors():
    return [
        *key_errors(3, TensorSample((3,), 0, 1, dtype=float32)),
        ErrorInput((KEY, 3, 0.5), ValueError, "axis of outcomes"),
        ErrorInput((KEY, 3, TensorSample((0,), dtype=float32)), ValueError, "axis of outcomes"),
        ErrorInput((KEY, 3, TensorSample((3,), 0, 1, dtype=float32), (2,)), ValueError, "broadcast"),
        ErrorInput(
            (KEY, 3, TensorSample((3,), 0, 1, dtype=float32)), TypeError, "floats", {"dtype": "int32"}
        ),
    ]


def normal_samples(dtype):
    mean, cov = TensorSample((2,), -1, 1), TensorSample((2, 2), values=(2.0, 0.5, 0.5, 1.0), dtype=float32)
    yield SampleInput((KEY, mean, cov), {"dtype": dtype})
    yield SampleInput((KEY, mean, cov), {"shape": (3, 2)})
    yield SampleInput((KEYS, mean, cov), {"shape": (3,)})
    yield SampleInput((KEY, TensorSample((3, 2), -1, 1), cov), {"dtype": dtype})


def multivariate_normal_errors():
    return [
        *key_errors(TensorSample((2,)), TensorSample((2, 2))),
        ErrorInput((KEY, TensorSample((2,)), TensorSample((2, 3))), ValueError, "square"),
        ErrorInput((KEY, TensorSample((3,)), TensorSample((2, 2))), ValueError, "mean"),
        ErrorInput((KEY, TensorSample((2,)), TensorSample((2, 2))), TypeError, "floats", {"dtype": "int32"}),
        ErrorInput(
            (KEY, TensorSample((2, 3)), TensorSample((3, 3))), ValueError, "broadcast", {"shape": (3,)}
        ),
        ErrorInput((KEY, TensorSample((2,)), TensorSample((2, 2))), ValueError, "method", {"method": "lu"}),
    ]


def orthogonal_samples(dtype):
    return [
        SampleInput((KEY, 3)),
        SampleInput((KEY, 2, (2,)), {"dtype": dtype, "m": 4}),
        SampleInput((KEYS, 3), {"m": 2}),
    ]


def orthogonal_errors():
    return [
        *key_errors(3),
        ErrorInput((KEY, -1), ValueError, "negative"),
        ErrorInput((KEY, 2), TypeError, "floats", {"dtype": "int32"}),
    ]


def ball_samples(dtype):
    return [
        SampleInput((KEY, 3)),
        SampleInput((KEY, 2, 1.0, (4,)), {"dtype": dtype}),
        SampleInput((KEYS, 2), {"shape": (3,)}),
    ]


def ball_errors():
    return [
        *key_errors(3),
        ErrorInput((KEY, 0), ValueError, "dimension"),
        ErrorInput((KEY, 2, -1.0), ValueError, "positive"),
        ErrorInput((KEY, 2), TypeError, "floats", {"dtype": "int32"}),
    ]

"""Random programs of 5 to 60 operators, as Hypothesis strategies."""

import numpy as np
import tandem as td
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tandem.tracer.scalar import TracerScalar

UNARY = (
    "neg",
    "abs",
    "square",
    "floor",
    "sign",
    "relu",
    "logical_not",
    "isnan",
    "tanh",
    "sigmoid",
    "exp",
    "sqrt",
)


BINARY = ("add", "sub", "mul", "maximum", "minimum", "lt", "eq", "ge", "logical_and", "hypot", "div")


REDUCTIONS = ("sum", "max", "min", "any", "all", "mean", "argmax", "prod", "var")


VIEWS = (
    "reshape",
    "permute",
    "expand",
    "flat",
    "cast",
    "softmax",
    "cumsum",
    "matmul",
    "outer_sum",
    "flip",
    "clone",
)


SHAPES = ((), (1,), (3,), (4, 3), (4, 1), (2, 4, 3), (1, 3), (2, 1, 3), (17,), (0, 3))


DTYPES = ("float32", "float64", "int32", "uint8", "bool", "int64")


INEXACT = {
    "tanh",
    "sigmoid",
    "exp",
    "hypot",
    "sum",
    "mean",
    "var",
    "softmax",
    "cumsum",
    "matmul",
    "outer_sum",
}
"""Where rounding may differ between the ways of running, if the operands are floats."""


STEP_LIKE = {
    "floor",
    "sign",
    "logical_not",
    "lt",
    "eq",
    "ge",
    "logical_and",
    "any",
    "all",
    "argmax",
    "argmin",
    "cast",
}
"""Where a small difference becomes a large one: these take only values that are the same to the last bit."""


class Program:
    """Steps drawn ahead of running, each a function of the values so far.

    What does not fit is left out: the same in every run, since that depends on shapes and dtypes alone. So is what
    would turn a difference in rounding into another integer.
    """

    def __init__(self, steps, shown):
        self.steps, self.shown = steps, shown

    def __call__(self, *inputs):
        values = [x for x in inputs if not isinstance(x, PYTHON)]
        scalars = [x for x in inputs if isinstance(x, PYTHON)] or [2]
        exact, first = [True] * len(values), len(values)
        for name, picks, number in self.steps:
            places = [p % len(values) for p in picks]
            operands = [values[p] for p in places]
            if number == "scalar":
                number = scalars[0] if name in BINARY else None
            same = all(exact[p] for p in places)
            if not same and name in STEP_LIKE:
                continue
            try:
                found = STEPS[name](name, operands, number)
            except (td.errors.TandemError, OverflowError):
                continue
            if np.prod(found.shape) <= 4096:
                values.append(found)
                exact.append(
                    same and not (name in INEXACT and any(x.dtype.is_inexact for x in (*operands, found)))
                )
        results = values[first:] or [values[0] + 1]
        return tuple(results[-1 - (p % len(results))] for p in self.shown)

    def __repr__(self):
        return f"Program({self.steps!r}, {self.shown!r})"


PYTHON = (bool, int, float, TracerScalar)


def unary(name, picks, number):
    x = picks[0]
    if name == "exp":
        x = td.minimum(x, 3) if x.dtype.kind != "b" else x
    if name == "sqrt":
        x = td.abs(x)
    return getattr(td, name)(x)


def binary(name, picks, number):
    a, b = picks
    b = number if number is not None else b
    if name == "div":
        b = td.abs(b) + 1 if number is None else number * number + 1
    return getattr(td, name)(a, b)


def reduction(name, picks, number):
    x = picks[0]
    rank = len(x.shape)
    axis = number % rank if type(number) is int and rank else None
    if name in ("max", "min", "argmax", "mean", "var") and 0 in x.shape:
        raise td.errors.ShapeError("nothing to choose from")
    if name == "prod" and x.dtype.is_inexact:
        x = td.sign(x)
    return getattr(td, name)(x, axis, keepdims=bool(len(x.shape) % 2))


def view(name, picks, number):
    x, y = picks
    k = number if type(number) is int else 0
    if name == "reshape":
        return x.reshape((*x.shape[1:], *x.shape[:1]))
    if name == "flat":
        return x.reshape((-1,)) if 0 not in x.shape else x
    if name == "permute":
        return td.permute(x, tuple((i + k) % len(x.shape) for i in range(len(x.shape))))
    if name == "expand":
        return td.broadcast_to(x, (2, *x.shape))
    if name == "cast":
        x = td.minimum(td.maximum(x, 0), 9) if x.dtype.is_inexact else x
        return td.astype(x, (td.float32, td.int64, td.float64, td.int16)[k % 4])
    if name == "softmax":
        return td.softmax(x)
    if name == "cumsum":
        return td.cumsum(x, k % len(x.shape)) if x.shape else x + 1
    if name == "matmul":
        return td.matmul(td.tanh(x), td.tanh(y))
    if name == "outer_sum":
        return x.reshape((*x.shape, 1)) + td.sum(y)
    if name == "flip":
        return td.flip(x, 0) if x.shape else x
    return td.ops.td.clone(x)


STEPS = (
    dict.fromkeys(UNARY, unary)
    | dict.fromkeys(BINARY, binary)
    | dict.fromkeys(REDUCTIONS, reduction)
    | dict.fromkeys(VIEWS, view)
)


NAMES = UNARY + BINARY * 2 + REDUCTIONS + VIEWS


@st.composite
def programs(draw, largest=60):
    steps = []
    for _ in range(draw(st.integers(5, largest))):
        name = draw(st.sampled_from(NAMES))
        picks = (-1 - draw(st.integers(0, 6)), draw(st.integers(0, 60)))
        number = draw(
            st.none() | st.integers(-3, 3) | st.sampled_from([0.5, -1.25, 0.0, -0.0, True, "scalar"])
        )
        steps.append((name, picks, number))
    return Program(steps, draw(st.lists(st.integers(0, 60), min_size=1, max_size=9)))


@st.composite
def inputs(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    found = []
    for _ in range(draw(st.integers(1, 4))):
        shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(DTYPES))
        values = rng.normal(size=shape) * 2
        found.append(
            np.asarray(np.abs(values) if dtype == "uint8" else values).astype(dtype)
            if dtype != "bool"
            else np.asarray(values > 0)
        )
    if draw(st.booleans()):
        found.append(draw(st.sampled_from([2, -1.5, True, 3.0])))
    return found


def drawn(count, first):
    """Random programs and their inputs, others for each ``first``."""
    found = []

    @seed(first)
    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(), inputs())
    def collect(program, arrays):
        found.append((program, arrays))

    collect()
    return found


COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}

"""Eager loops and maps of functions that capture objects, whose results depend on more than the attributes they name.

A program calls ``repeat`` between changes of what it captures; its results are those of Python loops.
"""

import dataclasses
import weakref

import numpy as np
import pytest
import tandem as td
from hot_loop_checks import XS, bits, fresh
from tandem import config
from tandem.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not config.flags.native, reason="native code is off"),
    pytest.mark.usefixtures(fresh.__name__),
]
X = XS[0]
CALLS = []
FACTOR = 2.0


def repeat(step):
    """The results of loops and maps of a function, twice with compiled code if there is some."""
    values = []
    for _ in range(3):
        values += bits([td.fori_loop(0, 3, step, X), td.vmap(lambda x: step(0, x))(XS)])
    return values


class Value:
    number = 1.0

    def __init__(self, number=2.0):
        self.number = number


PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def objects_as_keys():
    value = Value()
    factors = {value: 2.0}
    return repeat(lambda i, x: x * factors.get(value, 1.0) * value.number)


@program
def tensors_as_keys():
    weight = td.ones(3)
    factors = {weight: 2.0}
    return repeat(lambda i, x: x * factors.get(weight, 1.0))


@program
def functions_as_keys():
    def scale(x):
        return x * 0.5

    factors = {scale: 2.0}
    return repeat(lambda i, x: scale(x) * factors.get(scale, 1.0))


class Layer:
    def __init__(self, activation):
        self.activation, self.weight = activation, td.ones(3) * 2

    def step(self, i, x):
        x = self.activation(x) * self.weight
        return x if self.activation == F.gelu or self.activation in (squash, F.relu) else x * 3.0


def squash(x):
    return td.tanh(x) * FACTOR


@program
def functions_that_are_compared():
    return [repeat(Layer(activation).step) for activation in (F.gelu, squash, F.relu, F.silu)]


@program
def comparisons_of_a_dataclass():
    @dataclasses.dataclass
    class Options:
        rate: float = 0.5

        def __eq__(self, other):
            CALLS.append(1)
            return True

    first, second = Options(0.1), Options(0.2)
    return repeat(lambda i, x: x * 2 if first == second else x)


@program
def comparisons_that_are_inherited():
    @dataclasses.dataclass
    class Options:
        rate: float = 0.5

    class Special(Options):
        pass

    first, second = Special(0.1), Special(0.2)
    return repeat(lambda i, x: x * 2 if first == second else x)


class Text:
    hidden = 1

    def __init__(self):
        self.hidden = 2

    def __repr__(self):
        return str(self.hidden)


TEMPLATE, RATE = "%s", "{0.rate}"
TEXTS = {
    "call": lambda i, x: x * float(str(TEXT)),
    "f-string": lambda i, x: x * float(f"{TEXT}"),
    "operator": lambda i, x: x * float("%s" % TEXT),  # noqa: UP031
    "operator with a variable": lambda i, x: x * float(TEMPLATE % TEXT),
    "format": lambda i, x: x * float("{}".format(TEXT)),  # noqa: UP032
}
TEXT = Text()


@program
def texts():
    results = []
    for step in TEXTS.values():
        for TEXT.hidden in (2, 3, 3, 4):
            results += repeat(step)
    return results


@program
def texts_with_effects():
    class Counted:
        def __str__(self):
            CALLS.append(1)
            return "2"

    value = Counted()
    return repeat(lambda i, x: x * float(str(value)))


class Made:
    def __init__(self, x):
        CALLS.append(1)
        self.x = x * FACTOR

    @classmethod
    def make(cls, x):
        return cls(x)

    def step(self, i, x):
        return self.make(x).x


@program
def objects_that_methods_make():
    global FACTOR
    made, results = Made(1.0), []
    for factor in (2.0, 0.5, 2.0):
        FACTOR = factor
        results += repeat(made.step)
    return results


@program
def kinds_of_members():
    class Model:
        def step(self, i, x):
            return self.scale(x)

    def scale(*args):
        return args[-1] * len(args)

    model, results = Model(), []
    for Model.scale in (staticmethod(scale), scale, classmethod(scale), staticmethod(scale)):
        results += repeat(model.step)
    del Model.scale
    model.scale = scale
    return results + repeat(model.step)


@program
def methods_that_are_added():
    class Model:
        def __init__(self):
            self.factor = 2.0

        def step(self, i, x):
            return x * self.factor if self else x

    model = Model()
    results = repeat(model.step)
    Model.__bool__ = lambda self: False
    results += repeat(model.step)
    del Model.__bool__
    Model.__getattribute__ = lambda self, name: (
        3.0 if name == "factor" else object.__getattribute__(self, name)
    )
    return results + repeat(model.step)


@program
def forward_methods_that_are_replaced():
    class Layer(td.nn.Linear):
        pass

    td.nn.manual_seed(0)
    results, own = [], td.nn.Linear.forward
    try:
        with td.no_grad():
            for kind in (Layer, td.nn.Linear):
                model = kind(3, 3)
                mapped, step = td.vmap(model), lambda i, x, model=model: model(x)
                results += [bits([mapped(XS) for _ in range(3)]), repeat(step)]
                kind.forward = lambda self, x: x * 2
                results += [bits([mapped(XS) for _ in range(3)]), repeat(step)]
    finally:
        td.nn.Linear.forward = own
    return results


@program
def slots_that_are_hidden():
    class Base:
        __slots__ = ("factor",)

        def step(self, i, x):
            return x * self.factor

    class Again(Base):
        __slots__ = ("factor",)

    class Property(Base):
        __slots__ = ()

        @property
        def factor(self):
            CALLS.append(1)
            return 3.0

    class Constant(Base):
        __slots__ = ()
        factor = 4.0

    again = Again()
    again.factor = 2.0
    return [repeat(value.step) for value in (again, Property(), Constant())]


@program
def details_of_arrays():
    array = np.ones(4, np.float32)[:3]
    other = array[:]
    return [
        *repeat(lambda i, x: x * 2 if array.flags.writeable else x),
        *repeat(lambda i, x: x * 2 if array.base is None else x),
        *repeat(lambda i, x: x * 2 if np.shares_memory(array, other) else x),
    ]


@program
def gradients_of_parameters():
    model, results = td.nn.Linear(3, 3), []
    td.nn.init.constant_(model.weight, 0.5)
    td.nn.init.constant_(model.bias, 0.5)

    def clip(i, x):
        td.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        return model(x)

    def freeze(i, x):
        model.requires_grad_(False)
        return model(x)

    def match(i, x):
        match model.weight:
            case td.Tensor(requires_grad=True):
                return x * 2
        return x

    for step in (clip, match, freeze):
        for parameter in model.parameters():
            parameter.grad = td.ones(parameter.shape)
        with td.no_grad():
            results += repeat(step)
        results += bits([parameter.grad for parameter in model.parameters()])
        results += [parameter.requires_grad for parameter in model.parameters()]
    return results


@program
def arrays_that_a_ufunc_writes():
    array = np.ones(3, np.float32)

    def step(i, x):
        np.multiply.at(array, 0, 2.0)
        return x * array

    return repeat(step), array.tolist()


class Settings:
    rate = 1.0

    def __init__(self):
        self.rate = 2.0

    def keys(self):
        CALLS.append("keys")
        return ["rate"]

    def __getitem__(self, name):
        return 2.0

    def max(self, axis=None, out=None):
        CALLS.append("max")
        return self.rate


@program
def attributes_that_are_read_in_c():
    settings = Settings()

    def scale(x, rate=1.0):
        return x * rate

    return [
        *repeat(lambda i, x: x * float(RATE.format(settings))),
        *repeat(lambda i, x: scale(x, **settings)),
        *repeat(lambda i, x: x * float(np.amax(settings))),
    ]


@program
def proxies_of_functions():
    weight, results = td.ones(3), []

    def scale(x):
        return x * weight

    proxy = weakref.proxy(scale)
    for _ in range(2):
        results += repeat(lambda i, x: proxy(x))
        weight = weight * 2
    return results


@program
def jitted_methods():
    class Model:
        factor = 2.0

        @td.jit
        def step(self, i, x):
            return x * self.factor

    model, results = Model(), []
    for Model.factor in (2.0, 3.0):
        results += repeat(model.step)
    return results


@program
def classes_without_a_module():
    kind = type("Model", (), {"__module__": None, "factor": 2.0, "step": lambda self, i, x: x * self.factor})
    return repeat(kind().step)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_python_loops(name):
    results = []
    for limit in (10**6, 0):
        CALLS.clear()
        with config.override(hot_loops=limit):
            results.append((PROGRAMS[name](), len(CALLS)))
    assert results[0] == results[1]

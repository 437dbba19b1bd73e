"""Limits of what eager loops that are compiled compare and keep."""

import gc
import weakref

import numpy as np
import pytest
import tandem as td
from hot_loop_checks import XS, fresh
from tandem import config
from tandem.control import captured_values, hot_loops

pytestmark = [
    pytest.mark.skipif(not config.flags.native, reason="native code is off"),
    pytest.mark.usefixtures(fresh.__name__),
]
X = XS[0]


class Value:
    number = 1.0

    def __init__(self, number=2.0):
        self.number = number


class Records:
    def __init__(self, numbers=(), arrays=()):
        self.numbers, self.arrays = list(numbers), list(arrays)

    def step(self, i, x):
        return x * self.numbers[0]

    def shift(self, i, x):
        return x + self.arrays[0][0]


def list_nested(depth):
    return [list_nested(depth - 1)] * 8 if depth else (0.0,) * 8


LISTS = list_nested(4)


@pytest.mark.parametrize(
    "step",
    [
        Records([0.0] * 1000).step,
        Records([0.0, *map(Value, range(1000))]).step,
        Records(arrays=[np.zeros(2048, np.float32)] * 20).shift,
        lambda i, x, values=LISTS: x + len(values),
        lambda i, x, values=((0.0,) * 100,) * 100: x + len(values),
    ],
    ids=["numbers", "objects", "arrays", "lists", "tuples"],
)
def test_keys_have_limited_size(step):
    with config.override(hot_loops=0):
        td.fori_loop(0, 3, step, X)
    assert not hot_loops._loops
    assert len(hot_loops._rejected) == 1


def test_classes_that_are_rejected_are_freed():
    class Model:
        def __init__(self):
            self.seen = {1, 2}

        def __call__(self, x):
            return x * len(self.seen)

    kind = weakref.ref(Model)
    model = Model()
    td.vmap(model)(XS)
    assert len(hot_loops._rejected) == 1
    del model, Model
    gc.collect()
    assert kind() is None


def test_classes_with_slots_are_freed():
    def use():
        class Model:
            __slots__ = ("factor",)

            def step(self, i, x):
                return x * self.factor

        model = Model()
        model.factor = 2.0
        td.fori_loop(0, 3, model.step, X)
        return weakref.ref(Model)

    kinds = [use() for _ in range(2)]
    hot_loops._loops.clear()
    gc.collect()
    assert [kind() for kind in kinds] == [None, None]


def test_attributes_are_read_in_linear_time(monkeypatch):
    reads = []

    class Counted(captured_values.ObjectReads):
        def read_new(self, names):
            reads.append(self.number)
            return super().read_new(names)

    monkeypatch.setattr(captured_values, "ObjectReads", Counted)
    first = last = Value()
    for _ in range(100):
        last.inner = last = Value()
    td.fori_loop(0, 3, lambda i, x: x * first.inner.inner.number, X)
    assert len(reads) <= 2 * 101

"""Caches by shape, geometry, value or class: none keeps an entry for each, and classes and functions are freed."""

import gc
import sys
import weakref
from collections import namedtuple

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.eager import hot_calls
from tandem.eager.hot_calls import REJECTED, HotCalls

FILL, MORE = 1100, 300  # the largest bound is 1024


def filled(*shape, dtype=np.float32):
    return td.asarray(np.full(shape, 0.5, dtype))


def shape_of(i):
    return i % 32 + 2, i // 32 + 2


def convolution(i):
    rows, columns = shape_of(i)
    td.nn.functional.conv2d(filled(1, 1, rows, columns), filled(1, 1, 2, 2))


def convolution_gradient(i):
    rows, columns = shape_of(i)
    weight = td.asarray(np.ones((1, 1, 2, 2), np.float32), requires_grad=True)
    td.nn.functional.conv2d(filled(1, 1, rows, columns), weight).sum().backward()


def product(i):
    x = filled(*shape_of(i))
    (x @ x.T, td.einsum("ij,kj->ik", x, x))


def folds(i):
    x = filled(*shape_of(i))
    (x.sum(0), x.mean(1), x.max(), td.cumsum(x, 0), td.softmax(x, axis=-1), td.sort(x), td.argsort(x))


def views(i):
    x = filled(*shape_of(i))
    (x.T, x[0], x[:, ::2], x.reshape(-1), td.take(x, td.asarray([0, 1]), 0), x.at[0].set(1.0))


def values(i):
    x = filled(3, 4)
    (x + i, td.full((2,), i), td.clip(x, i, i + 1), td.roll(x, i, 0), td.arange(i, i + 3), td.tril(x, i))


def transforms(i):
    x = filled(2, *shape_of(i))
    (td.fft.rfft(x), td.special.gammaln(x), td.vmap(lambda row: row.sum() * i)(x))


def matrices(i):
    x = td.asarray(np.broadcast_to(np.eye(i % 4 + 1) * 2, (i // 4 + 1, i % 4 + 1, i % 4 + 1)).copy())
    (td.linalg.inv(x), td.linalg.det(x), td.linalg.cholesky(x))


def jitted_names(i):
    td.grad(lambda x: (x * i).sum())(filled(3))
    td.scan(lambda h, x: (h + x * i, h), filled(2), filled(3, 2))


FAMILIES = (
    convolution,
    convolution_gradient,
    product,
    folds,
    views,
    values,
    transforms,
    matrices,
    jitted_names,
)


def containers():
    """All containers of the process, with their lengths."""
    owned = [
        value
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "tandem"
        for value in list(vars(module).values())
    ]
    return [(c, len(c)) for c in (*owned, *gc.get_objects()) if type(c) in (dict, list, set)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_no_cache_keeps_all_shapes(family):
    for i in range(FILL):
        family(i)
        family(i)
    gc.collect()
    before = containers()
    for i in range(FILL, FILL + MORE):
        family(i)
        family(i)
    gc.collect()
    grown = [c for c, count in before if len(c) > FILL and len(c) - count > MORE // 2 and c is not before]
    assert not [next(iter(c)) for c in grown]


def test_rejected_kinds_of_hot_calls_are_bounded(monkeypatch):
    monkeypatch.setattr(hot_calls, "MOST_KINDS", 8)
    calls = HotCalls(None, lambda x: x, lambda x: x)
    calls._compile = lambda args, kwargs: REJECTED
    with config.override(hot_composites=1):
        for i in range(40):
            calls.call(td.ones(i))
            assert len(calls.counts) <= 8


def define_module():
    class Layer(td.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = td.nn.Linear(3, 2)

        def forward(self, x):
            return self.linear(x)

    layer = Layer()
    td.grad(lambda layer: layer(filled(3)).sum())(layer)
    td.jit(lambda layer: layer(filled(3)))(layer)
    return Layer


def define_tuple():
    kind = namedtuple("Point", "x y")
    td.vmap(lambda p: p.x * p.y)(kind(filled(3), filled(3)))
    return kind


def define_function():
    def f(x):
        return (x * 2).sum()

    td.grad(f)(filled(3))
    td.jit(f)(filled(3))
    td.vmap(f)(filled(2, 3))
    return f


@pytest.mark.parametrize("define", [define_module, define_tuple, define_function], ids=lambda f: f.__name__)
def test_classes_and_functions_are_freed(define):
    refs = [weakref.ref(define()) for _ in range(5)]
    gc.collect()
    assert [ref() for ref in refs] == [None] * 5

"""Defaults that a call does not replace: the function finds them where they are, as it does without jit."""

import functools
import types

import numpy as np
import pytest
import tandem as td
from tandem import config

X = td.asarray(np.arange(9.0, dtype=np.float32).reshape(3, 3))
S = td.asarray([1.0, 2.0, 3.0])
SCALE, ARRAY = types.SimpleNamespace(by=2.0), np.arange(3, dtype=np.float32)

FUNCTIONS = {
    "axes": lambda a, axis=(0, 1): td.sum(a, axis=axis),
    "shape": lambda a, shape=(9,): a.reshape(shape),
    "list of positions": lambda a, at=[0, 2]: a[at],
    "keywords": lambda a, options={"axis": 1}: td.sum(a, **options),
    "slice": lambda a, at=slice(0, 2): a[at],
    "object": lambda a, scale=SCALE: a * scale.by,
    "none": lambda a, b=None: a + 1 if b is None else a * b,
    "tensor": lambda a, s=S: a * s,
    "keyword-only tensor": lambda a, *, s=S: a * s,
    "tensor before a number": lambda a, s=S, by=2.0: a * s * by,
    "array": lambda a, s=ARRAY: a * s,
    "dict of tensors": lambda a, p={"w": S}: a * p["w"],
    "partial": functools.partial(lambda a, s: a * s, s=S),
}
TENSORS = [name for name, f in FUNCTIONS.items() if "tensor" in name or name in ("array", "partial")]
TRANSFORMED = {
    "vmap": td.vmap,
    "vmap of grad": lambda f: td.vmap(td.grad(lambda *a, **k: f(*a, **k).sum())),
    "jacrev of vmap": lambda f: td.jacrev(td.vmap(f)),
    "checkpoint of vmap": lambda f: td.checkpoint(td.vmap(f)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_default_is_used_as_it_is(name):
    function = FUNCTIONS[name]
    jitted = td.jit(function)
    for _ in range(4):
        assert jitted(X).tolist() == function(X).tolist()
    assert jitted.cache_info().misses == 1
    if config.flags.native:
        assert jitted._native._record.chain


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("transform", TRANSFORMED)
def test_transforms_see_the_arguments_that_were_given(transform, name):
    function = TRANSFORMED[transform](FUNCTIONS[name])
    jitted = td.jit(function)
    for _ in range(3):
        assert jitted(X).tolist() == function(X).tolist()


def test_default_and_argument_alternate():
    f = td.jit(FUNCTIONS["tensor before a number"])
    for _ in range(3):
        assert f(X, by=3.0).tolist() == (X * S * 3.0).tolist()
        assert f(X, td.zeros(3)).tolist() == (X * 0).tolist()
        assert f(X).tolist() == (X * S * 2.0).tolist()


def test_contents_of_a_default_are_read_at_each_call():
    scale = td.ones(3)
    f = td.jit(lambda a, s=scale: a * s)
    for by in (1.0, 2.0, 4.0):
        assert f(X).tolist() == (X * by).tolist()
        scale *= 2


CHANGES = {
    "number": ([1.0, 2.0], lambda x, y: x * y[0], lambda y: y.__setitem__(0, 9.0)),
    "tensor": ({"a": td.ones(3)}, lambda x, y: x * y["a"], lambda y: y.__setitem__("a", td.zeros(3))),
    "appended": ([td.ones(3)], lambda x, y: sum((v * x for v in y), x), lambda y: y.append(td.ones(3))),
    "removed": ({"a": 1.0, "b": 2}, lambda x, y: x * len(y), lambda y: y.pop("b")),
    "nested": (([1.0],), lambda x, y: x + y[0][0], lambda y: y[0].__setitem__(0, 2.0)),
    "kind": ([1], lambda x, y: (x.to(td.int32) * y[0]).to(td.float64), lambda y: y.__setitem__(0, 1.5)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_a_container_are_noticed(name):
    value, function, change = CHANGES[name]
    f = td.jit(lambda x, y=value: function(x, y))
    for _ in range(4):
        assert f(X).tolist() == function(X, value).tolist()
    if config.flags.native:
        assert f._native._record.chain
    change(value)
    for _ in range(4):
        assert f(X).tolist() == function(X, value).tolist()


def test_default_is_written():
    @td.jit
    def add(a, total=td.zeros(3)):  # noqa: B008
        total += a.sum(0)
        return total * 1

    sums = X.sum(0)
    assert [add(X).tolist() for _ in range(4)] == [(sums * n).tolist() for n in (1, 2, 3, 4)]


def test_default_gets_gradients():
    w = td.asarray([1.0, 2.0, 3.0]).requires_grad_()
    f = td.jit(lambda a, w=w: (a * w).sum())
    for _ in range(4):
        f(X).backward()
    assert w.grad.tolist() == (4 * X.sum(0)).tolist()

"""Calls of jitted functions: methods, ``*args`` and ``**kwargs``, eviction of specializations."""

import functools
import gc
import inspect
import itertools
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.registry import native_type

X = td.asarray(np.arange(3, dtype=np.float32))
native_only = pytest.mark.skipif(not config.flags.native, reason="machine code is off")


class Scale:
    factor = 3.0

    def __init__(self, by):
        self.by = by

    @td.jit
    def named(self, x, plus=0.0):
        return x * self.by + plus

    @td.jit
    def unnamed(this, x):  # noqa: N805
        return x * this.by

    @td.jit
    def rest(*args, **named):
        return args[1] * args[0].by + sum(named.values())

    @staticmethod
    @td.jit
    def static(x):
        return x + 1

    @td.jit
    @staticmethod
    def inner_static(x):
        return x + 1

    @classmethod
    @td.jit
    def of_class(cls, x):
        return x * cls.factor

    @td.jit
    @classmethod
    def inner_of_class(cls, x):
        return x * cls.factor

    @property
    @td.jit
    def doubled(this):  # noqa: N805
        return X * this.by * 2

    @td.jit
    def __call__(me, x):  # noqa: N805
        return x - me.by

    half = functools.partialmethod(unnamed, X)


class Slotted(Scale):
    __slots__ = ()


class OnlySlots:
    __slots__ = ("by",)

    @td.jit
    def scaled(this, x):  # noqa: N805
        return x * this.by


class Steep(Scale):
    factor = 5.0

    def unnamed(self, x):
        return super().unnamed(x) + 100


def hot(call, *args, **kwargs):
    """The result of a call after many."""
    for _ in range(config.flags.hot_calls + 2):
        result = call(*args, **kwargs)
    return result.tolist()


@pytest.mark.parametrize("name", ["named", "unnamed", "rest", "__call__"])
def test_methods_bind_to_each_instance(name):
    plain = vars(Scale)[name].__wrapped__
    for by in (2.0, 4.0):
        scale = Scale(by)
        assert hot(getattr(scale, name), X) == plain(scale, X).tolist()
        assert hot(getattr(Scale, name), scale, X) == plain(scale, X).tolist()
        assert hot(functools.partial(getattr(scale, name), X)) == plain(scale, X).tolist()
    assert getattr(scale, name).__self__ is scale


def test_methods_take_keywords_and_defaults():
    scale = Scale(2.0)
    assert (
        hot(scale.named, X, 1.0)
        == hot(scale.named, X, plus=1.0)
        == hot(scale.named, plus=1.0, x=X)
        == [1, 3, 5]
    )
    assert hot(scale.rest, X, a=1.0, b=2.0) == [3, 5, 7]
    assert list(inspect.signature(scale.named).parameters) == ["x", "plus"]


def test_other_kinds_of_methods_bind():
    scale, steep = Scale(2.0), Steep(2.0)
    for call in (scale.static, Scale.static, scale.inner_static, Scale.inner_static):
        assert hot(call, X) == [1, 2, 3]
    for call in (scale.of_class, Scale.of_class, scale.inner_of_class, Scale.inner_of_class):
        assert hot(call, X) == [0, 3, 6]
    for call in (steep.of_class, Steep.of_class, steep.inner_of_class):
        assert hot(call, X) == [0, 5, 10]
    assert [scale.doubled.tolist() for _ in range(50)][-1] == [0, 4, 8]
    assert hot(scale.half) == [0, 2, 4]
    assert hot(steep.unnamed, X) == [100, 102, 104]


def test_methods_of_objects_without_weak_references():
    for by in (2.0, 4.0):
        found = OnlySlots()
        found.by = by
        assert hot(found.scaled, X) == [0, by, 2 * by]


def test_method_added_to_class_binds():
    class Late:
        by = 2.0

    Late.scaled = td.jit(lambda it, x: x * it.by)
    assert hot(Late().scaled, X) == [0, 2, 4]


def test_plain_function_rejects_instances():
    with pytest.raises(td.errors.ArgumentError, match="argument thing: a Scale is given"):
        td.jit(lambda thing, x: x)(Scale(1.0), X)


def test_instances_are_not_kept_alive():
    scale = Scale(2.0)
    scale.compiled = td.jit(scale.unnamed)
    gone = weakref.ref(scale)
    hot(scale.unnamed, X), hot(scale.compiled, X)
    del scale
    gc.collect()
    assert gone() is None


SIGNATURES = {
    "rest": lambda *args: sum(args),
    "named": lambda **named: sum(named.values()),
    "both": lambda *args, **named: sum(args) + sum(named.values()),
    "after": lambda a, b=2.0, *args, c=3.0, **named: a * b + c + sum(args) + sum(named.values()),
    "only": lambda a, /, b, *, c, d=1.5: a * b + c * d,
    "defaults": lambda a, b=2.0, /, c=3.0, *, d=X, e=None: a * b + c * d,
    "order": lambda **named: sum(X * value * place for place, value in enumerate(named.values())),
}


def calls_of(fn, rng):
    """Random ways to call a function with up to five arguments."""
    values = [X + k for k in range(3)] + [1.5, 2.5]
    for count, names in itertools.product(
        range(5), [(), ("b",), ("c",), ("c", "d"), ("d", "c"), ("z", "y"), ("b", "c", "q")]
    ):
        args = [values[i] for i in rng.integers(0, 5, count)]
        named = {name: values[rng.integers(0, 5)] for name in names}
        if any(isinstance(value, td.Tensor) for value in (*args, *named.values())):
            yield args, named


@pytest.mark.parametrize("name", SIGNATURES)
def test_calls_of_every_form_agree_with_eager(name):
    fn = SIGNATURES[name]
    compiled = td.jit(fn)
    with config.override(hot_calls=2):
        for args, named in calls_of(fn, np.random.default_rng(0)):
            try:
                expected = fn(*args, **named)
            except TypeError:
                with pytest.raises((td.errors.ArgumentError, TypeError)):
                    compiled(*args, **named)
                continue
            for _ in range(4):
                assert np.allclose(np.asarray(compiled(*args, **named)), np.asarray(expected)), (args, named)


@native_only
@pytest.mark.parametrize("name", SIGNATURES)
def test_calls_of_every_form_are_native(name):
    fn = SIGNATURES[name]
    compiled, answered = td.jit(fn), 0
    slow = compiled._call
    with config.override(hot_calls=2):
        for args, named in calls_of(fn, np.random.default_rng(1)):
            try:
                inspect.signature(fn).bind(*args, **named)
                compiled(*args, **named)
            except TypeError:
                continue
            for _ in range(3):
                compiled(*args, **named)
            compiled._call = None  # Python must not answer
            fresh = {"".join(list(key)): value for key, value in named.items()}  # names that are not interned
            compiled(*args, **fresh)
            compiled._call = slow
            answered += 1
    assert answered > 1
    assert native_type.entry_of(compiled)


@native_only
def test_recorded_calls_of_any_number_of_arguments():
    weights = [td.asarray(np.full(3, k, np.float32), requires_grad=True) for k in range(4)]
    compiled = td.jit(lambda *args, **named: (sum(args) * named["w"]).sum())
    for _ in range(40):
        compiled(*weights[:3], w=weights[3]).backward()
        gradients = [weight.grad.tolist() for weight in weights]
        for weight in weights:
            weight.grad = None
    assert gradients == [[3.0] * 3] * 3 + [[3.0] * 3]


def test_order_of_dict_is_part_of_the_structure():
    compiled = td.jit(lambda d: list(d.values()))
    for _ in range(50):
        compiled({"a": X, "b": X + 1})
    assert [value.tolist() for value in compiled({"b": X + 1, "a": X})] == [[1, 2, 3], [0, 1, 2]]
    keys = {1: X, "b": X}
    for _ in range(50):
        compiled(keys)
    assert len(compiled({True: X, "b": X})) == 2


def test_least_recently_used_specialization_is_dropped():
    compiled = td.jit(lambda x: x + 1)
    shapes = [td.asarray(np.zeros(n, np.float32)) for n in range(1, 5)]
    with config.override(specializations=3, hot_calls=2):
        for x in shapes[:3]:
            for _ in range(5):
                compiled(x)
        for x in (shapes[0], shapes[2]):  # which leaves the second one as the oldest
            compiled(x)
        compiled(shapes[3])
        misses = compiled.cache_info().misses
        for x in (shapes[0], shapes[2], shapes[3]):
            compiled(x)
        assert compiled.cache_info().misses == misses
        compiled(shapes[1])
        assert compiled.cache_info().misses == misses + 1
    assert compiled.cache_info().specializations == 3


def test_least_recently_used_gradient_is_dropped():
    compiled = td.jit(lambda x: (x * x).sum())
    shapes = [td.asarray(np.ones(n, np.float32), requires_grad=True) for n in range(1, 5)]
    with config.override(specializations=3, hot_calls=2):
        for x in (*shapes[:3] * 5, shapes[0], shapes[2], shapes[3]):
            compiled(x).backward()
        misses = compiled.cache_info().misses
        for x in (shapes[0], shapes[2], shapes[3]):
            compiled(x).backward()
        assert compiled.cache_info().misses == misses


@native_only
def test_dropping_one_specialization_keeps_others_linked():
    compiled = td.jit(lambda x: x + 1)
    with config.override(specializations=4, hot_calls=2):
        first = td.asarray(np.zeros(1, np.float32))
        for n in range(2, 30):
            for _ in range(3):
                compiled(first)
            call, compiled._call = compiled._call, None
            compiled(first)  # Python must not answer
            compiled._call = call
            for _ in range(3):
                compiled(td.asarray(np.zeros(n, np.float32)))
            chain = compiled._native._record.chain
            assert len(chain) <= 4
            compiled._call = None
            compiled(first)
            compiled._call = call


def test_dropping_specializations_while_threads_call():
    compiled = td.jit(lambda x: td.exp(x).sum())
    inputs = [td.asarray(np.zeros(n, np.float32)) for n in range(1, 9)]
    faults = []

    def call(k):
        for step in range(40):
            n = (step * (k + 1)) % 8
            if compiled(inputs[n]).item() != n + 1:
                faults.append(n)

    with config.override(specializations=3, hot_calls=2):
        threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not faults


@native_only
def test_reshaped_intermediates_are_native_results():
    f = td.jit(lambda x: (td.exp(x).reshape((6,)), td.sin(x)))
    x = td.ones((2, 3))
    with config.override(hot_calls=1):
        for _ in range(3):
            found = f(x)
    assert not any(isinstance(record, str) for record in f._specializations[0].records.values())
    assert found[0].shape == (6,) and found[0].is_contiguous() and found[1].shape == (2, 3)
    np.testing.assert_allclose(found[0].numpy(), np.exp(np.ones(6, np.float32)), rtol=1e-6)


LAZY = """
import numpy as np, tandem as td
x = td.asarray(np.ones((2, 3, 4)))
for f in (lambda x: td.repeat(x, 2, 1), lambda x: td.var(x, 0), lambda x: td.linalg.inv(x[0, :3, :3] + td.eye(3))):
    jitted = td.jit(f)
    for _ in range(3):
        jitted(x)
    assert jitted.cache_info().misses == 1, jitted.cache_info()
"""


def test_operators_that_a_trace_loads_do_not_invalidate_it():
    subprocess.run([sys.executable, "-c", LAZY], check=True)

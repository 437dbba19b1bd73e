"""Eager calls that differ by numbers share compiled code, which takes the numbers as arguments."""

import gc
import sys

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.entries.rt_kernels import SAMPLE_MASK
from tandem.eager import hot_calls as hot_calls_module
from tandem.eager.compiled import compile_when_hot

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)
HOT = 16
ENOUGH = HOT + 3 * SAMPLE_MASK  # after many calls in other tests only one of SAMPLE_MASK + 1 reaches Python


@pytest.fixture(autouse=True)
def hot(monkeypatch):
    monkeypatch.setattr(hot_calls_module, "MOST_COMPILED", 10**9)  # other tests compile kinds too
    monkeypatch.setattr(hot_calls_module, "MOST_REJECTED", 10**9)
    with config.override(hot_composites=HOT):
        yield


class Watched(td.DispatchMode):
    """Runs calls operator by operator."""

    def __tandem_dispatch__(self, op, types, args, kwargs):
        return op(*args, **kwargs)


F = td.nn.functional
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)

CALLS = {
    "clip": lambda x, v: td.clip(x, -v, v),
    "leaky_relu": lambda x, v: F.leaky_relu(x, v),
    "lerp": lambda x, v: td.lerp(x, 2 * x, v),
    "nan_to_num": lambda x, v: td.nan_to_num(x / x, nan=v),
    "layer_norm": lambda x, v: F.layer_norm(x, (4,), eps=v),
    "full_like": lambda x, v: td.full_like(x, v),
    "isclose": lambda x, v: td.isclose(x, x + 0.5, rtol=v),
    "quantile": lambda x, v: td.quantile(x, v),
    "interp": lambda x, v: td.interp(v, x[0], x[1]),
    "dropout": lambda x, v: F.dropout(x, v, training=False),
}


def numbers(count):
    return np.random.default_rng(5).uniform(0.01, 1, count).tolist()


def heat(call, *values):
    for value in [*numbers(ENOUGH), *values]:
        call(value)


@pytest.mark.parametrize("name", CALLS)
def test_new_floats_run_compiled_code(name):
    call, x = CALLS[name], td.asarray(X)
    heat(lambda v: call(x, v))
    for value in [*numbers(40), 0.0, 0.25, 1.0]:
        result = call(x, value)
        with Watched():
            expected = call(x, value)
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(result.numpy(), expected.numpy())


@pytest.mark.parametrize("name", ["clip", "leaky_relu", "lerp", "layer_norm"])
def test_gradients_with_new_floats(name):
    call, array = CALLS[name], X.astype(np.float64)

    def gradient(value):
        x = td.asarray(array).requires_grad_()
        (call(x, value) * td.asarray(array)).sum().backward()
        return x.grad.numpy()

    heat(gradient)
    for value in numbers(8):
        wanted = td.jit(td.grad(lambda x, v: (call(x, v) * td.asarray(array)).sum()))(
            td.asarray(array), value
        )
        np.testing.assert_allclose(gradient(value), wanted.numpy(), rtol=1e-13)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: td.quantile(x, 1.5),
        lambda x: td.quantile(x, float("nan")),
        lambda x: td.random.bernoulli(td.random.key(0), 1.5, (3,)),
        lambda x: tnp.percentile(x, -1.0),
        lambda x: F.dropout(x, 1.5),
    ],
)
def test_numbers_that_are_refused_are_refused_later_too(call):
    x = td.asarray(X)
    heat(lambda v: (td.quantile(x, v), td.random.bernoulli(td.random.key(0), v, (3,)), F.dropout(x, v)))
    heat(lambda v: tnp.percentile(x, v))
    for _ in range(3):
        with pytest.raises(ValueError):
            call(x)


def test_cases_that_a_trace_does_not_see_keep_calls_in_python():
    """A function that takes numbers of a class in another way than what a trace passes."""

    def scale(x, factor):
        return x if type(factor) is float and factor == 1.0 else x * factor

    hot, x = compile_when_hot(scale), td.asarray([3], dtype=td.int32)
    heat(lambda v: hot(x, v), 1.0)
    for _ in range(3):
        assert hot(x, 1.0).dtype is td.int32
        assert hot(x, 0.5).dtype is td.float32


def test_new_integers_run_compiled_code():
    x = td.arange(-20, 20)
    for value in range(1, ENOUGH):
        np.testing.assert_array_equal(td.clip(x, -value, value).numpy(), np.clip(x.numpy(), -value, value))
    with pytest.raises(OverflowError):
        td.clip(x, -(2**70), 3)
    small = td.asarray(X).astype(td.int8)
    for value in range(1, ENOUGH):
        assert td.full_like(small, value % 128).numpy()[0, 0] == value % 128
    with pytest.raises(OverflowError):
        td.full_like(small, 128)


def test_few_floats_are_compiled_together():
    """A kind of call need not occur often with one number, if others come between."""

    def scale(x, factor):
        calls.append(factor)
        return x * factor + 1

    calls = []
    hot, x = compile_when_hot(scale), td.asarray(X)
    for count in range(ENOUGH):
        np.testing.assert_array_equal(
            hot(x, 0.5 * (count % 7)).numpy(), X * np.float32(0.5 * (count % 7)) + 1
        )
    assert len(calls) < HOT + 24  # with those that check the compiled code


def test_functions_that_compute_with_their_numbers_in_python_run_operator_by_operator():
    hot = compile_when_hot(lambda x, v: x * (float(v) ** 2) if v > 0.5 else x)
    x = td.asarray(X)
    for value in numbers(ENOUGH):
        expected = X * np.float32(value**2) if value > 0.5 else X
        np.testing.assert_array_equal(hot(x, value).numpy(), expected)


def test_calls_with_new_floats_leak_nothing():
    x = td.asarray(X)
    heat(lambda v: td.clip(x, -v, v))
    values = numbers(1000)
    gc.collect()
    before, blocks = sys.getrefcount(x), sys.getallocatedblocks()
    for _ in range(100):
        for value in values:
            td.clip(x, 0.0, value)
    gc.collect()
    assert sys.getrefcount(x) == before
    assert sys.getallocatedblocks() < blocks + 200

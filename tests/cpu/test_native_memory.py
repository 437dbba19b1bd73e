"""The pool of large results never recycles a buffer that is still referenced."""

import gc
import pickle
import resource

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.compiler import engine, lang
from tandem.backends.cpu.fastpath.compiler.structs import sizeof
from tandem.backends.cpu.fastpath.glue.structs import StructMemory
from tandem.backends.cpu.fastpath.runtime import rt_base, rt_memory

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)

SIZE = 200_000  # float32, above rt_memory.POOLED


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        x = td.asarray(np.ones(4, np.float32))
        for _ in range(3):
            td.add(x, x), td.add(x, 1.0), td.sum(x)
        yield


def pool():
    kept = native_layer.stubs().runtime.process.kept
    return next(r for r in kept if isinstance(r, StructMemory) and len(r.memory) == sizeof(rt_base.Pool))


def spare():
    gc.collect()
    return pool().get(rt_base.Pool.spare)


def test_size_steps():
    import ctypes

    code = engine.compile_ir(
        lang.emit({"step": rt_memory.size_step, "most": rt_memory.step_bytes}), ["step", "most"]
    )
    step, most = (ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code[n]) for n in ("step", "most"))
    for size in [*range(5, 3000), *(2**k + d for k in range(12, 45) for d in (-1, 0, 1))]:
        assert most(step(size)) >= size
        assert step(size) == 0 or most(step(size) - 1) < size


def test_results_look_like_any_array():
    x = td.asarray(np.ones((SIZE // 4, 4), np.float32))
    y = td.add(x, 1.0)._array
    plain = np.ones((SIZE // 4, 4), np.float32) + 1
    assert not y.flags.owndata
    assert (y.flags.num & ~4) == (plain.flags.num & ~4)
    assert y.strides == plain.strides
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(y)), plain)


def test_buffer_is_reused_only_when_unreferenced():
    x = td.asarray(np.arange(SIZE, dtype=np.float32))
    first = td.add(x, 1.0)
    address, view = first._array.ctypes.data, first._array[::2][3:]
    expected = view.copy()
    del first
    for _ in range(5):
        other = td.add(x, 2.0)
        assert other._array.ctypes.data != address
        del other
    np.testing.assert_array_equal(view, expected)
    before = spare()
    del view
    assert spare() > before
    again = td.add(x, 3.0)
    assert again._array.ctypes.data == address
    np.testing.assert_array_equal(again._array, np.arange(SIZE, dtype=np.float32) + 3)


def test_buffers_dropped_in_any_order():
    rng, x, held = np.random.default_rng(0), td.asarray(np.zeros(SIZE, np.float32)), {}
    for k in range(300):
        held[k] = (td.add(x, float(k)), float(k))
        if len(held) > 8:
            del held[list(held)[rng.integers(len(held))]]
        for tensor, value in held.values():
            assert tensor._array[0] == tensor._array[-1] == value


def test_memory_does_not_grow():
    x = td.asarray(np.ones(SIZE, np.float32))

    def work():
        for _ in range(300):
            td.sum(td.add(td.add(x, 1.0), x))

    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048

"""Device memory: large blocks, cupy's pool, captured streams, a failed device; no GPU is used."""

import ctypes
import gc
import inspect
import re

import numpy as np
import pytest
import tandem as td
from cuda_host import cupy_double
from cuda_host.host import host_blas
from cuda_jit_harness import native
from tandem import errors, lazy
from tandem.backends.cuda.blas import cublas
from tandem.backends.cuda.runtime import api, memory, toolkit
from tandem.backends.cuda.runtime.devices import device_at

LARGE = 1 << 18  # elements of float32: 1 MiB; more are large blocks


@pytest.fixture
def pooled(cuda):
    """Memory comes from the double of cupy's pool, and is kept."""
    with td.config.override(cuda_caching=True):
        memory._forget()
        yield cuda
        gc.collect()
        cuda.host_break(0)
        memory.empty_cache()


def cupy_pool():
    return toolkit.toolkit().cupy().get_default_memory_pool()


def large(size=2 * LARGE):
    """Memory that no kernel has written, for the double takes its time over kernels."""
    return td.empty(size, dtype=td.float32, device="cuda")


# -- large blocks ------------------------------------------------------------------------------------------------------
@native
@pytest.mark.parametrize("size", [16, 2 * LARGE, 13 * LARGE])
def test_large_results_need_no_python(pooled, monkeypatch, size):
    f, x = td.jit(lambda x: td.exp(x) * 2), td.ones(16, dtype=td.float32, device="cuda")
    pooled.host_noop(1)
    try:
        x = td.empty(size, dtype=td.float32, device="cuda")
        for _ in range(60):
            x + x, f(x)
        asked = []
        real = memory.Pool.get
        monkeypatch.setattr(
            memory.Pool, "get", lambda pool, nbytes: asked.append(nbytes) or real(pool, nbytes)
        )
        before = td.cuda.memory_stats()
        for _ in range(200):
            x + x, f(x)
        assert len(asked) <= 4, "Python is asked for a size once"
        assert td.cuda.memory_stats()["misses"] <= before["misses"] + 4
    finally:
        pooled.host_noop(0)


def test_kept_memory_is_bounded(pooled):
    stats = memory.stats_at(0)
    stats.bound = 24 << 20
    for number in range(1, 40):
        large(LARGE * number)
        assert stats.cached <= stats.bound
    assert cupy_pool().used_bytes() == stats.reserved
    large(20 * LARGE)
    misses = stats.misses
    for _ in range(5):
        large(20 * LARGE)
    assert stats.misses == misses, "old sizes go, and the newest stays"


def test_other_streams_give_blocks_back_first(pooled):
    stats, stream = memory.stats_at(0), td.cuda.Stream()
    stats.bound = 16 << 20
    with stream:
        large(4 * LARGE)
    mine = [large(4 * LARGE) for _ in range(4)]
    mine.clear()
    assert stats.cached <= stats.bound
    assert not any(stream.pool.free.values())
    assert any(td.cuda.current_stream().pool.free.values())


def test_freed_large_block_waits_for_other_streams(pooled):
    stream, x = td.cuda.Stream(), large()
    address = x.storage().data_ptr
    x[:9].fill_(1.0)
    td.synchronize()
    with stream:
        y = x[:9] + 1
    del x
    z = large()  # the same memory, written after the other stream has read it
    assert z.storage().data_ptr == address
    z[:9].fill_(5.0)
    td.cuda.current_stream().wait_stream(stream)
    assert y[7].item() == 2.0
    assert z[7].item() == 5.0


# -- cupy's pool -------------------------------------------------------------------------------------------------------
def test_blocks_come_from_cupys_pool(pooled):
    gc.collect()  # what other tests have left
    before = pooled.host_live_bytes()
    x = td.ones(1000, device="cuda")
    y = large()
    assert cupy_pool().used_bytes() == td.cuda.memory_allocated()
    del x, y
    assert cupy_pool().used_bytes() > 0, "kept by tandem"
    td.cuda.empty_cache()
    assert cupy_pool().used_bytes() == 0
    assert pooled.host_live_bytes() <= before


def test_memory_error_of_cupy_is_tandems(pooled):
    pooled.host_limit(64 << 20)
    x = td.ones(9, dtype=td.float32, device="cuda")
    with pytest.raises(errors.OutOfMemoryError, match="cuda:0 has no memory for 128 MiB"):
        large(128 * LARGE)
    assert (x + 1)[3].item() == 2.0
    for number in (4, 8, 12, 16):
        large(number * LARGE)
    assert large(56 * LARGE).shape == (56 * LARGE,), "what is kept goes back before memory runs out"


@pytest.mark.skipif(not lazy.is_installed("cupy"), reason="cupy is not installed")
def test_names_of_the_double_are_cupys():
    cupy, double = lazy.module("cupy"), cupy_double.CupyDouble(None)
    for name in ("RawModule", "get_default_memory_pool", "from_dlpack"):
        assert hasattr(cupy, name)
    for name in vars(double.cuda):
        assert name in ("calls", "pool") or hasattr(cupy.cuda, name), name
    ours = {name: found for name, found in vars(cupy_double.Runtime).items() if not name.startswith("_")}
    for name, found in ours.items():
        theirs = getattr(cupy.cuda.runtime, name)
        if callable(found):
            parameters = list(inspect.signature(found).parameters)[1:]
            words = re.search(r"\((.*?)\)", theirs.__doc__)[1].replace("=", " ").split(", ")
            expected = [re.match(r"(?:unsigned )?\w+ (\w+)", word)[1] for word in words if word]
            assert parameters == expected, (name, theirs.__doc__)
        else:
            assert theirs == found, name
    kinds = ("memcpyHostToDevice", "memcpyDeviceToHost", "memcpyDeviceToDevice")
    assert [getattr(cupy.cuda.runtime, kind) for kind in kinds] == [
        api.TO_DEVICE,
        api.TO_HOST,
        api.ON_DEVICE,
    ]
    pairs = [
        (cupy_double.Function, cupy.cuda.Function),
        (cupy_double.RawKernel, cupy.RawKernel),
        (cupy_double._RawModule, cupy.RawModule),
        (double.cuda.Stream, cupy.cuda.Stream),
        (double.cuda.Device, cupy.cuda.Device),
        (type(double.cuda.pool), cupy.cuda.MemoryPool),
    ]
    own = {"calls", "arenas", "lock", "used", "reserved"}
    for ours, theirs in pairs:
        public = {name for name in vars(ours) if not name.startswith("_")} - own
        assert public <= set(dir(theirs)), (ours, public - set(dir(theirs)))
    assert hasattr(cupy.cuda.Function, "ptr")


# -- captured streams --------------------------------------------------------------------------------------------------
def capture(stream, mode):
    toolkit.toolkit().driver.cuStreamBeginCapture_v2(stream.handle, mode)


def end_capture(stream):
    graph = ctypes.c_void_p()
    toolkit.toolkit().driver.cuStreamEndCapture(stream.handle, ctypes.addressof(graph))
    return graph


def test_capture_forbids_new_memory(pooled):
    stream = td.cuda.Stream()
    with stream:
        x = td.ones(100, dtype=td.float32, device="cuda")
        x + 1  # its block is kept
        stream.synchronize()
        capture(stream, 0)
        y = x + 1
        with pytest.raises(errors.CudaError, match="STREAM_CAPTURE_UNSUPPORTED"):
            td.empty(5 * LARGE, device="cuda")
        with pytest.raises(errors.CudaError, match="CAPTURE"):
            y.tolist()
        with pytest.raises(errors.CudaError, match="STREAM_CAPTURE_INVALIDATED"):
            end_capture(stream)
    stream.synchronize()
    assert (x + 1).tolist() == [2.0] * 100


def test_wait_in_captured_stream_is_refused(pooled):
    stream = td.cuda.Stream()
    with stream:
        capture(stream, 2)
        for wait in (stream.synchronize, stream.query, lambda: stream.wait_stream(td.cuda.default_stream())):
            with pytest.raises(errors.CudaError, match="CAPTURE"):
                wait()
    with pytest.raises(errors.CudaError, match="INVALIDATED"):
        end_capture(stream)


@pytest.mark.filterwarnings("error")
def test_block_is_isolated_when_captured_stream_cannot_wait(pooled):
    stream, other = td.cuda.Stream(), td.cuda.Stream()
    with stream:
        x = td.ones(100, dtype=td.float32, device="cuda")
    stream.synchronize()
    with other:
        y = x + 1
    capture(stream, 2)
    address = x.storage().data_ptr
    del x
    gc.collect()
    with stream:
        assert memory.allocate(400, 0).ptr != address
    with pytest.raises(errors.CudaError, match="INVALIDATED"):
        end_capture(stream)
    td.cuda.current_stream().wait_stream(other)
    assert y.to("cpu").tolist() == [2.0] * 100
    del y
    td.cuda.empty_cache()
    assert memory.stats_at(0).reserved == memory.stats_at(0).allocated


# -- a device that has failed ------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [16, 2 * LARGE])
def test_failed_device_raises_its_own_error(pooled, size):
    x, f, stream = large(size), td.jit(lambda x: td.exp(x) * 2), td.cuda.Stream()
    pinned, event = td.ones(4, dtype=td.float32).pin_memory(), td.cuda.Event()
    event.record()
    there = pinned.to("cuda", non_blocking=True)
    td.synchronize()
    pooled.host_noop(1)
    for _ in range(60):
        x + x, f(x)
    td.synchronize()
    pooled.host_noop(0)
    pooled.host_break(700)
    calls = {
        "eager": lambda: x + x,
        "jitted": lambda: f(x),
        "product": lambda: there.reshape((2, 2)) @ there.reshape((2, 2)),
        "copy to the host": lambda: x.to("cpu"),
        "copy to the device": lambda: td.asarray(np.ones(7), device="cuda"),
        "new memory": lambda: td.empty(3 * LARGE, device="cuda"),
        "synchronize": td.synchronize,
        "event": event.synchronize,
        "stream": stream.synchronize,
        "page-locked memory": lambda: td.ones(4).pin_memory(),
    }
    for name, call in calls.items():
        try:
            call()
        except errors.CudaError as fault:
            assert "ILLEGAL_ADDRESS" in str(fault) or "CUBLAS_STATUS" in str(fault), name
            assert not isinstance(fault, errors.OutOfMemoryError), name
        else:
            pytest.fail(f"{name}: nothing was raised")
    calls.clear()
    pinned = None
    gc.collect()


# -- cuBLAS ------------------------------------------------------------------------------------------------------------
def test_products_run_on_their_operands_device(cuda):
    assert td.cuda.device_count() == 2
    for index in (1, 0, 1):
        x = td.ones((3, 3), dtype=td.float32, device=f"cuda:{index}")
        assert td.cuda.current_device() == 0
        assert (x @ x).tolist() == [[3.0] * 3] * 3
        assert td.jit(lambda x: x @ x)(x).tolist() == [[3.0] * 3] * 3


def test_cublas_double_refuses_another_device(cuda):
    blas, x = host_blas(), td.ones((2, 2), dtype=td.float32, device="cuda:1")
    known = cublas.cublas_at(0)
    functions = known.functions
    address, one = x.storage().data_ptr, cublas.GEMM_TYPES["float32"]
    given = (known.handle, 0, 0, 2, 2, 2, known.address + one.one, address, 0, 2, address, 0, 2)
    rest = (known.address + one.zero, address, 0, 2, one.compute, -1)
    device_at(1).make_current()
    assert functions["cublasSetStream_v2"](known.handle, None) == 0
    assert functions["cublasGemmEx"](*given, *rest) == 13
    assert blas.blas_calls() > 0


def test_questions_to_failed_device_raise(pooled):
    """cupy's ``Event.done`` and ``Stream.done`` say "not yet" for ever: whoever asks in a loop would not end."""
    event, stream = td.cuda.Event(), td.cuda.Stream()
    event.record()
    pooled.host_break(700)
    for query in (event.query, stream.query):
        with pytest.raises(errors.CudaError, match="ILLEGAL_ADDRESS"):
            query()


def test_exceptions_of_others_keep_their_cause(cuda):
    cause, fault = ValueError("why"), RuntimeError("no status of CUDA")
    with pytest.raises(RuntimeError) as caught, api.translate_cupy_errors("work"):
        raise fault from cause
    assert caught.value is fault
    assert fault.__cause__ is cause

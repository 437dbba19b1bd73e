"""Calls of jitted functions on CUDA tensors: memory, errors, threads, native entries.

They run on a double of the driver (no GPU is used).
"""

import ctypes
import sys
import threading

import numpy as np
import pytest
import tandem as td
from cuda_jit_harness import linked, native, on_cpu, random
from tandem import errors
from tandem.backends.cuda.launches.graphs import QUEUE
from tandem.backends.cuda.runtime import arrays
from tandem.backends.cuda.runtime.devices import device_at

pytestmark = pytest.mark.usefixtures("cuda")


# -- memory, faults, threads -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("calls", [2000, pytest.param(10000, marks=pytest.mark.full)])
def test_nothing_grows(cuda, calls):
    x, w = random(16, 16), random(16, 16, seed=1)
    f = td.jit(lambda x, w, s: (td.softmax(td.tanh(x * s) @ w, axis=-1), x.T))
    f(x, w, 1.5)
    cuda.host_noop(1)
    try:
        before = cuda.host_live_blocks(), td.cuda.memory_stats()["blocks"], td.cuda.memory_allocated()
        for _ in range(calls):
            f(x, w, 1.5)
        assert before == (
            cuda.host_live_blocks(),
            td.cuda.memory_stats()["blocks"],
            td.cuda.memory_allocated(),
        )
    finally:
        cuda.host_noop(0)


@pytest.mark.parametrize("number", range(3))
def test_each_allocation_may_fail(cuda, number):
    x, w = random(8, 8), random(8, 8, seed=1)
    f = td.jit(lambda x, w: (td.sum(td.exp(x @ w), axis=0), x + 1))
    want = [r.tolist() for r in f(x, w)]
    blocks = cuda.host_live_blocks()
    cuda.host_fail_allocation(number)
    found = None
    try:
        found = f(x, w)
    except errors.OutOfMemoryError:
        pass
    finally:
        cuda.host_fail_allocation(-1)
    del found
    assert cuda.host_live_blocks() <= blocks  # those that were spare have been given back
    assert [r.tolist() for r in f(x, w)] == want


@native
def test_a_refused_launch_raises(cuda):
    x = random(64)
    f = td.jit(lambda x: td.sum(td.exp(x)) + td.cumsum(x, 0))
    want = f(x).tolist()
    blocks = cuda.host_live_blocks()
    table, refuses = (
        f._specializations[0].executable.choice.submission.table,
        ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 701),
    )
    good, table[QUEUE] = table[QUEUE], ctypes.cast(refuses, ctypes.c_void_p).value
    with pytest.raises(errors.CudaError, match="cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        f(x)
    table[QUEUE] = good
    assert cuda.host_live_blocks() == blocks
    assert f(x).tolist() == want


def test_threads_with_streams_of_their_own():
    f = td.jit(lambda x, s: td.sum(td.tanh(x * s)))
    x = random(100)
    want = [f(x, s / 4).item() for s in range(8)]
    wrong = []

    def work(number):
        with td.cuda.Stream():
            for _ in range(20):
                if f(x, number / 4).item() != want[number]:
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- by machine code ---------------------------------------------------------------------------------------------------
def test_calls_by_machine_code():
    x, w = random(6, 5), random(5, seed=1)
    f = td.jit(
        lambda p, s, *, flag=True: {"a": td.exp(p["x"]) * s, "b": (p["w"], td.sum(p["x"] * p["w"], axis=1))}
    )
    record = linked(f, {"x": x, "w": w}, 2.0)
    assert f._specializations[0].executable.convention.storages
    for s in (0.5, 3.0):
        found = f({"x": x, "w": w}, s)
        assert found["b"][0] is w
        np.testing.assert_allclose(on_cpu(found["a"]).numpy(), np.exp(x.cpu().numpy()) * s, rtol=1e-6)
        np.testing.assert_allclose(
            on_cpu(found["b"][1]).numpy(), (x.cpu().numpy() * w.cpu().numpy()).sum(1), rtol=1e-5
        )
    hits, misses = record.hits, f.cache_info().misses
    other = random(7, 5)[1:].T.T  # aligned or not, it lies 20 bytes behind
    np.testing.assert_allclose(
        on_cpu(f({"x": other, "w": w}, 1.0)["a"]).numpy(), np.exp(other.cpu().numpy()), rtol=1e-6
    )
    grad = td.asarray(x.cpu(), device="cuda", requires_grad=True)
    assert f({"x": grad, "w": w}, 1.0)["a"].requires_grad
    assert (record.hits, f.cache_info().misses) == (hits, misses + 1)


def test_machine_code_serves_every_stream():
    x = random(64)
    f = td.jit(lambda x: td.tanh(x) * 2)
    record = linked(f, x)
    want, hits = f(x).tolist(), record.hits
    with td.cuda.Stream() as stream:
        y = x + 0
        assert f(x).tolist() == f(y).tolist() == want
        assert f(y)._data.buffer.pool.stream is stream
        assert record.hits == hits + 3
    assert f(y).tolist() == want  # the first call on memory of another stream is Python's
    assert record.hits == hits + 3
    assert f(y).tolist() == want
    assert record.hits == hits + 4
    assert f(x).tolist() == want
    assert record.hits == hits + 5
    with td.cuda.device(1):
        assert f(x).device == "cuda:0"


@pytest.mark.parametrize("number", range(4))
def test_allocations_may_fail_in_machine_code(cuda, number):
    x, w = random(8, 8), random(8, 8, seed=1)
    f = td.jit(lambda x, w: (td.sum(td.softmax(x, axis=1) @ w, axis=0), x + 1))
    record = linked(f, x, w)
    want = [r.tolist() for r in f(x, w)]
    blocks, counts = cuda.host_live_blocks(), [sys.getrefcount(one) for one in (x, w, x._data, w._data, f)]
    hits = record.hits
    cuda.host_fail_allocation(number)
    try:
        found = f(x, w)
    except errors.OutOfMemoryError:
        found = None
    finally:
        cuda.host_fail_allocation(-1)
    assert record.hits == hits + 1
    del found
    assert cuda.host_live_blocks() <= blocks  # those that were spare have been given back
    assert counts == [sys.getrefcount(one) for one in (x, w, x._data, w._data, f)]
    assert [r.tolist() for r in f(x, w)] == want


def test_a_launch_refused_in_machine_code_raises(cuda):
    x = random(64)
    f = td.jit(lambda x: td.sum(td.exp(x)))
    linked(f, x)
    want, blocks = f(x).tolist(), cuda.host_live_blocks()
    table, refuses = (
        f._specializations[0].executable.choice.submission.table,
        ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 701),
    )
    good, table[QUEUE] = table[QUEUE], ctypes.cast(refuses, ctypes.c_void_p).value
    with pytest.raises(errors.CudaError, match="cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        f(x)
    table[QUEUE] = good
    assert cuda.host_live_blocks() == blocks
    assert f(x).tolist() == want


@native
def test_forward_passes_that_are_recorded():
    x, other = random(6, 5), random(6, 5, seed=1)
    w = td.asarray(random(5, seed=2).cpu(), device="cuda", requires_grad=True)
    f = td.jit(lambda w, x: td.sum(td.tanh(x * w)))
    for _ in range(40):
        f(w, x)
    (record,) = f._recorder._native._record.chain
    hits = record.hits
    f(w, x).backward()
    (f(w, other) * 2).backward()
    assert record.hits == hits + 2
    host = td.asarray(w.detach().cpu(), requires_grad=True)
    td.sum(td.tanh(x.cpu() * host)).backward()
    (td.sum(td.tanh(other.cpu() * host)) * 2).backward()
    np.testing.assert_allclose(on_cpu(w.grad).numpy(), host.grad.numpy(), rtol=1e-5, atol=1e-6)
    w.requires_grad_(False)
    g = td.jit(lambda w: td.exp(w) * 2)
    record = linked(g, w)
    w.requires_grad_()
    hits = record.hits
    with td.no_grad():
        assert not g(w).requires_grad
    assert record.hits == hits + 1
    assert g(w).requires_grad
    assert record.hits == hits + 1


@native
def test_many_layouts_elsewhere():
    x = random(6, 5)
    f = td.jit(lambda x: td.exp(x) * 2)
    record = linked(f, x)
    hits = record.hits
    for size in range(arrays.MAX_LAYOUTS + 1):
        arrays.layout_of((3, size), (size, 1), td.float32, 0)
    assert len(arrays._layouts) < arrays.MAX_LAYOUTS
    f(x + 1)
    assert record.hits == hits + 1


@native
def test_calls_on_the_cpu_leave_the_device():
    host, x = td.ones(5), random(5)
    f = td.jit(lambda x: td.exp(x) * 2)
    for given in (host, x):
        for _ in range(40):
            f(given)
    device_at(1).make_current()
    driver, other = device_at(1).driver, device_at(1).context
    f(host)
    assert driver.get("cuCtxGetCurrent", ctypes.c_void_p) == other
    f(x)
    assert driver.get("cuCtxGetCurrent", ctypes.c_void_p) == device_at(0).context


@native
def test_explain_tells_why_python_answers():
    x = random(4, 6)
    for f, why in (
        (lambda x: td.exp(x).T, "a result on a device that is a view, a constant, or there twice"),
        (lambda x: x.add_(1.0), "it writes into an argument"),
    ):
        jitted = td.jit(f)
        for _ in range(40):
            jitted(x)
        assert f"calls are answered by Python: {why}" in jitted.explain(x)
    jitted = td.jit(lambda x: td.exp(x))
    linked(jitted, x)
    assert "by Python" not in jitted.explain(x)

"""Jitted functions on CUDA tensors: operators, programs, gradients and models against eager and the CPU, on a double of
the driver (no GPU is used)."""

import ctypes
import gc
import itertools
import os
import sys
import threading
import zlib

import numpy as np
import pytest
import tandem as td
from cuda_host.fixture import cuda  # noqa: F401
from optable import arrays_of, check, expected, generator, replace, rows, table
from tandem import errors
from tandem.backends.cuda.compiler import nvrtc_image
from tandem.backends.cuda.executable import CudaExecutable
from tandem.backends.cuda.tensor import CudaTensor
from tandem.lowering.lowered import Interpreted
from tandem.registry.function import functions
from test_random_programs import close_enough, drawn

pytestmark = pytest.mark.usefixtures("cuda")
native = pytest.mark.skipif(not td.config.flags.native, reason="native code is off: graphs are interpreted")
OPS = table()
CHECKED = [name for name, op in OPS.items() if op.decl.reference and op.decl.samples]
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
SHARE = 10  # of the operators are tried in one default run


def to_cuda(tree):
    return replace(tree, np.ndarray, lambda array: td.asarray(array, device="cuda"))


def on_cpu(result):
    assert type(result) is CudaTensor
    return result.to("cpu")


# -- operators ---------------------------------------------------------------------------------------------------------
def run_rows(op, found):
    """Call an operator on several rows in one jitted function of their tensors: one module of kernels for all."""
    drawn = [arrays_of(sample, dtype, generator(op, dtype)) for dtype, sample in found]
    given = [to_cuda(one) for one in drawn]
    kept = [row for row in zip(given, drawn, found, strict=True) if tensors_of(row[0])]
    if not kept:
        return
    given, drawn, found = zip(*kept, strict=True)

    @td.jit
    def jitted(*leaves):
        leaves = iter(leaves)
        calls = [replace(one, td.Tensor, lambda _: next(leaves)) for one in given]
        return [functions[op.name](*args, **options) for args, options in calls]

    try:
        results = jitted(*tensors_of(given))
    except errors.UnsupportedError as fault:
        assert "trace" in str(fault), op.name
        return
    for got, (args, kwargs), (dtype, sample) in zip(results, drawn, found, strict=True):
        want = expected(op, args, kwargs)
        pair = [one if isinstance(one, tuple) else (one,) for one in (got, want)]
        check(op, tuple(map(on_cpu, pair[0])), pair[1], args, f"jitted on cuda: {op.name} {dtype} {sample}")


def tensors_of(tree):
    found = []
    replace(tree, td.Tensor, found.append)
    return found


def chosen(name):
    return zlib.crc32(f"{SEED} jit {name}".encode()) % SHARE == 0


@pytest.mark.parametrize("part", range(4))
def test_operators_agree_with_their_references(part):
    """A sample: one row of some of the operators."""
    for name in CHECKED[part::4]:
        if chosen(name):
            found = list(rows(OPS[name]))
            first = zlib.crc32(f"{SEED} row {name}".encode()) % len(found)
            run_rows(OPS[name], [found[first]])


@pytest.mark.full
@pytest.mark.parametrize("name", CHECKED)
def test_every_row_agrees_with_its_reference(name):
    found = list(rows(OPS[name]))
    for first in range(0, len(found), 24):
        run_rows(OPS[name], found[first : first + 24])


# -- programs ----------------------------------------------------------------------------------------------------------
def jitted(program):
    return td.jit(lambda *leaves: program(*leaves))


def check_programs(chosen):
    for program, arrays in chosen:
        with np.errstate(all="ignore"):
            leaves = to_cuda(list(arrays))
            want = program(*leaves)
            got = jitted(program)(*leaves)
            pairs = [
                [on_cpu(x).numpy() for x in (r if isinstance(r, tuple | list) else (r,))] for r in (got, want)
            ]
            close_enough(*pairs)


def test_programs_agree_with_eager():
    check_programs(drawn(6, SEED + 40))


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_every_program(first):
    check_programs(drawn(20, 2000 + first))


# -- calls -------------------------------------------------------------------------------------------------------------
def random(*shape, dtype="float32", seed=0):
    return td.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype), device="cuda")


def test_a_call():
    f = td.jit(lambda x, s: td.tanh(x) * s)
    x = random(5, 7)
    assert np.allclose(f(x, 2.0).cpu().numpy(), np.tanh(x.cpu().numpy()) * 2, rtol=1e-6)
    compiled = CudaExecutable if td.config.flags.native else Interpreted
    assert type(f._specializations[0].executable) is compiled
    f(x, 3.0)
    assert f.cache_info()[:2] == (1, 1)
    f(x.T, 3.0)
    f(x.cpu(), 3.0)
    f(td.ones((5, 7), device="cuda:1"), 3.0)
    assert f.cache_info()[:2] == (1, 4)
    assert "on cuda:0" in str(f._specializations[0].guards[0])


def test_devices_are_kept_apart():
    f = td.jit(lambda x: x + 1)
    f(td.ones(3))
    assert "device was cpu, now cuda:1" in f.explain(td.ones(3, device="cuda:1"))
    for device in ("cuda:0", "cuda:1", "cpu"):
        assert f(td.ones(3, device=device)).device == device
    with td.cuda.device(1):
        assert f(td.ones(3, device="cuda")).device == "cuda:1"
        assert f(td.ones(3, device="cuda:0")).device == "cuda:0"


def test_mixed_devices_say_what_eager_says():
    x, y = random(3), td.ones(3)
    for pair in ((x, y), (y, x), (x, td.ones(3, device="cuda:1"))):
        with pytest.raises(errors.DeviceError) as eager:
            td.add(*pair)
        with pytest.raises(errors.DeviceError) as jitted_:
            td.jit(lambda a, b: a + b)(*pair)
        assert str(jitted_.value) == str(eager.value)
    with pytest.raises(errors.DeviceError, match="cuda:0"):
        td.jit(lambda a: a @ y)(x)


def test_numbers_and_positions_may_lie_on_the_host():
    x, s = random(5, 3), td.asarray(2.0)
    found = td.jit(lambda x, s: (x * (s * 3 + 1), x[[0, 2]], td.fori_loop(0, 3, lambda i, c: c + i, x)))(x, s)
    want = x * 7, x[[0, 2]], x + 3
    for a, b in zip(found, want, strict=True):
        assert np.allclose(on_cpu(a).numpy(), b.cpu().numpy())


def test_work_on_several_devices_is_interpreted():
    f = td.jit(lambda x: (x + 1, (x * 2).to("cpu") + 1, td.arange(3)))
    x = random(4)
    a, b, c = f(x)
    assert (a.device, b.device, c.tolist()) == ("cuda:0", "cpu", [0, 1, 2])
    assert np.allclose(b.numpy(), x.cpu().numpy() * 2 + 1)
    assert {row.choice for row in f.lower(x).kernels()} == {"interpreted"}
    assert td.jit(lambda x: x.to("cuda") + 1)(td.ones(2)).device == "cuda:0"


def test_layouts_of_arguments():
    wide = random(8, 12)
    f = td.jit(lambda x: x * 2 + 1)
    for x in (
        wide.T,
        wide[1:, 1:],
        wide[::2, ::-1],
        wide[:, :1],
        wide.reshape(96)[1:],
        td.broadcast_to(wide[0], (3, 12)),
    ):
        assert np.array_equal(f(x).cpu().numpy(), x.cpu().numpy() * 2 + 1)


def test_results_that_are_views_and_arguments():
    x = random(4, 6)

    @td.jit
    def f(x):
        y = td.exp(x)
        return x, x.T, y, y[1:], x * 1, x.reshape(24)

    same, turned, y, part, product, flat = f(x)
    assert same is x
    assert turned.storage() is x.storage() and flat.storage() is x.storage()
    assert product.storage() is not x.storage()
    part.add_(1.0)
    assert np.allclose(y.cpu().numpy(), np.exp(x.cpu().numpy()), rtol=1e-6)


def test_writes_are_written_back():
    @td.jit
    def f(x, y):
        x[0] = 7.0
        x.add_(y)
        return x.sum()

    def plain(x, y):
        x[0] = 7.0
        x.add_(y)
        return x.sum()

    ours, theirs, y = random(3, 4), random(3, 4), random(3, 4, seed=1)
    version = ours._version if hasattr(ours, "_version") else None
    assert np.allclose(f(ours, y).item(), plain(theirs, y).item(), rtol=1e-6)
    assert np.array_equal(ours.cpu().numpy(), theirs.cpu().numpy())
    assert version is None or ours._version > version
    f(ours[:, 1:3], y[:, 1:3])
    plain(theirs[:, 1:3], y[:, 1:3])
    assert np.array_equal(ours.cpu().numpy(), theirs.cpu().numpy())
    f(ours, ours)  # one memory: as it is written
    plain(theirs, theirs)
    assert np.array_equal(ours.cpu().numpy(), theirs.cpu().numpy())
    with pytest.raises(errors.UnsupportedError, match="broadcast"):
        f(td.broadcast_to(y[0], (3, 4)), y)


def test_callbacks_get_the_elements(capsys):
    x = random(3)
    td.jit(lambda x: td.debug.print("here: {}", x * 0 + 1))(x)
    td.synchronize("cuda")
    assert capsys.readouterr().out == "here: [1. 1. 1.]\n"


def test_captured_tensors_are_read_at_each_call():
    w = random(4)
    f = td.jit(lambda x: x * w)
    x = random(3, 4, seed=1)
    assert np.array_equal(f(x).cpu().numpy(), (x * w).cpu().numpy())
    w.mul_(2.0)
    assert np.array_equal(f(x).cpu().numpy(), (x * w).cpu().numpy())
    assert f.cache_info().misses == 1


def test_autocast():
    x, w = random(4, 8), random(8, 3, seed=1)
    f = td.jit(lambda x, w: td.relu(x @ w))
    assert f(x, w).dtype is td.float32
    with td.autocast("cuda", td.bfloat16):
        found = f(x, w)
        assert found.dtype is td.bfloat16
        assert np.array_equal(
            found.cpu().astype(td.float32).numpy(), td.relu(x @ w).cpu().astype(td.float32).numpy()
        )


def test_transforms():
    x, w = random(6, 5), random(5, 4, seed=1)

    def loss(w, x):
        return td.sum(td.tanh(x @ w) ** 2)

    f = td.jit(loss)
    near = lambda a, b: np.testing.assert_allclose(on_cpu(a).numpy(), b.cpu().numpy(), rtol=2e-5, atol=1e-6)  # noqa: E731
    near(td.grad(f)(w, x), td.grad(loss)(w.cpu(), x.cpu()))
    near(td.jit(td.grad(loss))(w, x), td.grad(loss)(w.cpu(), x.cpu()))
    near(td.vmap(f, in_axes=(None, 0))(w, x), td.vmap(loss, in_axes=(None, 0))(w.cpu(), x.cpu()))
    near(
        td.jit(td.vmap(td.grad(loss), in_axes=(None, 0)))(w, x),
        td.vmap(td.grad(loss), in_axes=(None, 0))(w.cpu(), x.cpu()),
    )
    near(td.jvp(f, (w, x), (w, x))[1], td.jvp(loss, (w.cpu(), x.cpu()), (w.cpu(), x.cpu()))[1])
    near(
        td.grad(lambda w: td.sum(td.grad(f)(w, x) ** 2))(w),
        td.grad(lambda w: td.sum(td.grad(loss)(w, x.cpu()) ** 2))(w.cpu()),
    )


def test_loops():
    h, w = random(3, 3), random(3, 3, seed=1)

    def f(h, w):
        last, all_ = td.scan(lambda h, _: (td.tanh(h @ w), td.sum(h)), h, None, length=4, reverse=True)
        grown = td.while_loop(lambda x: td.sum(x) < 10, lambda x: x + 1, td.abs(last))
        return last, all_, grown, td.cond(td.sum(last) > 0, lambda x: x + 1, lambda x: x - 1, last)

    for got, want in zip(td.jit(f)(h, w), f(h.cpu(), w.cpu()), strict=True):
        np.testing.assert_allclose(on_cpu(got).numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    g = lambda h, w: td.grad(lambda w: td.sum(f(h, w)[0]))(w)  # noqa: E731
    np.testing.assert_allclose(
        td.jit(g)(h, w).cpu().numpy(), g(h.cpu(), w.cpu()).numpy(), rtol=1e-5, atol=1e-6
    )
    empty = td.scan(lambda c, x: (c + x, c), h[0], h[:0])
    for got, want in zip(
        td.jit(lambda h: td.scan(lambda c, x: (c + x, c), h[0], h[:0]))(h), empty, strict=True
    ):
        assert np.array_equal(got.cpu().numpy(), want.cpu().numpy())


# -- models: forward and backward, against the CPU ---------------------------------------------------------------------
def mlp(params, x, y):
    for w, b in params[:-1]:
        x = td.relu(x @ w + b)
    w, b = params[-1]
    return td.cross_entropy(x @ w + b, y)


def mlp_arguments():
    rng = np.random.default_rng(3)
    sizes = (64, 32, 10)
    params = [
        (rng.standard_normal((m, n)).astype("f4") / 8, np.zeros(n, "f4"))
        for m, n in itertools.pairwise(sizes)
    ]
    return params, rng.random((50, 64)).astype("f4"), rng.integers(0, 10, 50)


def block(params, x, y):
    """A block of a small language model: attention with a mask, then a gated layer, then the loss of each position."""
    h = params["embed"][x]
    n, t, c = h.shape
    z = td.layer_norm(h, (c,), params["g1"], params["b1"])
    q, k, v = (
        td.permute(td.reshape(z @ params[w], (n, t, 2, c // 2)), (0, 2, 1, 3)) for w in ("q", "k", "v")
    )
    mask = td.arange(t, device=x.device)[:, None] >= td.arange(t, device=x.device)
    scores = q @ td.permute(k, (0, 1, 3, 2)) * (c // 2) ** -0.5
    a = td.softmax(td.where(mask, scores, -1e9), axis=-1) @ v
    h = h + td.reshape(td.permute(a, (0, 2, 1, 3)), (n, t, c)) @ params["o"]
    z = td.layer_norm(h, (c,), params["g2"], params["b2"])
    h = h + td.gelu(z @ params["up"]) @ params["down"]
    logits = h @ params["embed"].T
    return td.cross_entropy(td.reshape(logits, (n * t, logits.shape[-1])), td.reshape(y, (n * t,)))


def block_arguments():
    rng = np.random.default_rng(4)
    c, vocabulary = 16, 11
    shapes = {"embed": (vocabulary, c), "up": (c, 4 * c), "down": (4 * c, c)} | dict.fromkeys("qkvo", (c, c))
    params = {name: rng.standard_normal(shape).astype("f4") / 4 for name, shape in shapes.items()}
    params |= {
        "g1": np.ones(c, "f4"),
        "g2": np.ones(c, "f4"),
        "b1": np.zeros(c, "f4"),
        "b2": np.zeros(c, "f4"),
    }
    return params, rng.integers(0, vocabulary, (2, 5)), rng.integers(0, vocabulary, (2, 5))


def check_model(loss, arguments):
    given_ = arguments()
    there = to_cuda(given_)
    host = replace(given_, np.ndarray, td.asarray)
    want, slopes = td.value_and_grad(loss)(*host)
    value, found = td.jit(td.value_and_grad(loss))(*there)
    assert np.allclose(value.item(), want.item(), rtol=1e-5)
    for a, b in zip(tensors_of(found), tensors_of(slopes), strict=True):
        np.testing.assert_allclose(on_cpu(a).numpy(), b.numpy(), rtol=1e-3, atol=1e-5)
    # the other way: a jitted forward pass whose gradient is recorded
    params = replace(given_[0], np.ndarray, lambda x: td.asarray(x, device="cuda", requires_grad=True))
    jitted_ = td.jit(loss)
    for _ in range(2):
        jitted_(params, *there[1:]).backward()
    for a, b in zip(tensors_of(params), tensors_of(slopes), strict=True):
        np.testing.assert_allclose(on_cpu(a.grad).numpy(), 2 * b.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("loss", "arguments"), [(mlp, mlp_arguments), (block, block_arguments)])
def test_models_agree_with_the_cpu(loss, arguments):
    check_model(loss, arguments)


# -- memory, faults, threads -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("calls", [2000, pytest.param(10000, marks=pytest.mark.full)])
def test_nothing_grows(cuda, calls):  # noqa: F811
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
def test_each_allocation_may_fail(cuda, number):  # noqa: F811
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
def test_a_refused_launch_raises(cuda):  # noqa: F811
    x = random(64)
    f = td.jit(lambda x: td.sum(td.exp(x)) + td.cumsum(x, 0))
    want = f(x).tolist()
    blocks = cuda.host_live_blocks()
    executable = f._specializations[0].executable
    refuses = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 701)
    good, executable.launches[0] = executable.launches[0], ctypes.cast(refuses, ctypes.c_void_p).value
    with pytest.raises(errors.CudaError, match="cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        f(x)
    executable.launches[0] = good
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
def linked(f, *args):
    """The record by which machine code answers such calls."""
    if not td.config.flags.native:
        pytest.skip("native code is off")
    for _ in range(40):
        f(*args)
    (record,) = f._specializations[0].records.values()
    assert not isinstance(record, str), record
    hits = record.hits
    f(*args)
    assert record.hits == hits + 1
    return record


def test_calls_by_machine_code():
    x, w = random(6, 5), random(5, seed=1)
    f = td.jit(
        lambda p, s, *, flag=True: {"a": td.exp(p["x"]) * s, "b": (p["w"], td.sum(p["x"] * p["w"], axis=1))}
    )
    record = linked(f, {"x": x, "w": w}, 2.0)
    assert f._specializations[0].executable.plan.storages
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


def test_machine_code_leaves_other_streams_to_python():
    x = random(64)
    f = td.jit(lambda x: td.tanh(x) * 2)
    record = linked(f, x)
    want, hits = f(x).tolist(), record.hits
    with td.cuda.Stream():
        y = x + 0
        assert f(x).tolist() == f(y).tolist() == want
    assert record.hits == hits
    assert f(y).tolist() == want
    assert f(x).tolist() == want
    assert record.hits == hits + 1
    with td.cuda.device(1):
        assert f(x).device == "cuda:0"


@pytest.mark.parametrize("number", range(4))
def test_allocations_may_fail_in_machine_code(cuda, number):  # noqa: F811
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


def test_a_launch_refused_in_machine_code_raises(cuda):  # noqa: F811
    x = random(64)
    f = td.jit(lambda x: td.sum(td.exp(x)))
    linked(f, x)
    want, blocks = f(x).tolist(), cuda.host_live_blocks()
    table, refuses = f._specializations[0].executable.launches, ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 701)
    good, table[0] = table[0], ctypes.cast(refuses, ctypes.c_void_p).value
    with pytest.raises(errors.CudaError, match="cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        f(x)
    table[0] = good
    assert cuda.host_live_blocks() == blocks
    assert f(x).tolist() == want


# -- CUDA graphs -------------------------------------------------------------------------------------------------------
def many(x, s):
    a = td.softmax(x * s, axis=0)
    b = td.softmax(a + 1, axis=1)
    return a, td.sum(b) + td.max(a, axis=0)


@native
def test_replayed_graphs_give_the_same(cuda):  # noqa: F811
    x, y = random(40, 30), random(40, 30, seed=1)
    plain = td.jit(many)
    plain(x, 1.0)
    with td.config.override(cuda_graphs=2):
        replayed = td.jit(many)
        before = cuda.host_count(b"graph launch")
        kept = []
        for n in range(50):
            given = (y if n % 2 else x), n / 10
            kept.append((replayed(*given), plain(*given)))
        assert cuda.host_count(b"graph launch") == before + 50
        for ours, theirs in kept:  # fresh results for each call
            assert [on_cpu(r).tolist() for r in ours] == [on_cpu(r).tolist() for r in theirs]
        with td.cuda.Stream():
            assert [r.tolist() for r in replayed(x, 1.0)] == [r.tolist() for r in plain(x, 1.0)]
        assert "one CUDA graph" in replayed.explain(x, 1.0)
        assert "one after the other" in plain.explain(x, 1.0)
        few = td.jit(lambda x: x + 1)
        few(x)
        assert "one after the other" in few.explain(x)  # one kernel
        mixed = td.jit(lambda x: many(x @ x.T, 1.0))
        mixed(x)
        assert "one after the other" in mixed.explain(x)  # a library call in it
    graphs = cuda.host_count(b"graph")
    del replayed, kept, ours, theirs
    gc.collect()
    assert cuda.host_count(b"graph") < graphs


@native
def test_a_refused_replay_raises(cuda):  # noqa: F811
    x = random(40, 30)
    with td.config.override(cuda_graphs=2):
        f = td.jit(many)
        want = [r.tolist() for r in f(x, 1.0)]
        table, refuses = (
            f._specializations[0].executable.launches,
            ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 701),
        )
        for place in (0, 2):
            good, table[place] = table[place], ctypes.cast(refuses, ctypes.c_void_p).value
            with pytest.raises(errors.CudaError, match="cuGraphLaunch: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
                f(x, 1.0)
            table[place] = good
        assert [r.tolist() for r in f(x, 1.0)] == want


# -- what is shown -----------------------------------------------------------------------------------------------------
@native
def test_the_source_without_cuda():
    f = td.jit(lambda x, w: td.layer_norm(td.gelu(x @ w), (16,)) + td.zeros(16))
    text = None
    for device in ("cpu", "meta", "cuda"):
        lowered = f.lower(td.ones((8, 16), device=device), td.ones((16, 16), device=device), device="cuda")
        text = text or lowered.cuda_source()
        assert lowered.cuda_source() == text
        assert {row.choice for row in lowered.kernels()} <= {
            "callback",
            "blas",
            "fused",
            "reduction",
            "constant",
        }
    for part in ("__global__", "td::gelu_erf", "td::rsqrt", "test_cuda_jit.py:", "td::matmul"):
        assert part in text
    with pytest.raises(errors.LoweringError, match="cuda_source"):
        lowered.llvm_ir()
    with pytest.raises(errors.LoweringError, match="llvm_ir"):
        f.lower(td.ones((8, 16)), td.ones((16, 16))).cuda_source()
    with pytest.raises(errors.ArgumentError, match="'tpu'"):
        f.lower(td.ones((8, 16)), td.ones((16, 16)), device="tpu")


def test_what_was_lowered_for_cuda_runs_there():
    f = td.jit(lambda x, device: td.exp(x) * device)
    compiled = f.lower(td.ones(4, device="cuda"), device=2.0).compile()  # the function's own parameter
    assert compiled(td.zeros(4, device="cuda"), 2.0).tolist() == [2.0] * 4
    g = td.jit(lambda x: td.exp(x) + td.ones(4) + td.arange(4) * 0)
    compiled = g.lower(td.ones(4), device="cuda").compile()
    assert compiled(td.zeros(4, device="cuda")).tolist() == [2.0] * 4


@native
@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_the_module_of_a_model_is_taken_by_nvrtc(architecture):
    pytest.importorskip("cupy", reason="NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")
    for loss, arguments in ((mlp, mlp_arguments), (block, block_arguments)):
        given_ = replace(arguments(), np.ndarray, td.asarray)
        source = td.jit(td.value_and_grad(loss)).lower(*given_, device="cuda").cuda_source()
        assert nvrtc_image(source, f"sm_{architecture}")[:4] == b"\x7fELF"

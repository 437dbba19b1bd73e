"""CUDA graphs of jitted functions: results, and the choice between graph and launches, on the driver's test double.

What calls and kernels cost there is set, so that either way is the faster one.
"""

import ctypes
import gc
import re
import threading

import pytest
import tandem as td
from cuda_jit_harness import many, native, on_cpu, random
from tandem import errors
from tandem.backends.cuda.launches import compile, graph_choice
from tandem.backends.cuda.launches.graphs import EXEC, LAUNCH_GRAPH, SET

pytestmark = [pytest.mark.usefixtures("cuda"), native]
COSTS = (b"launch", b"set", b"graph launch", b"kernel", b"graph kernel")
HOT = 4
AS_GRAPH = r"^its \d+ kernels are replayed as one CUDA graph"
PLAIN = r"^its \d+ kernels are launched one after the other"
US = r"[\d.]+ us a call, [\d.]+ us of the host"
TIMES = rf": {US} as a graph, {US} one after the other$"


@pytest.fixture
def costs(cuda, monkeypatch):
    """Set what calls of the driver and kernels take, in microseconds; the clock shows these times."""
    monkeypatch.setattr(graph_choice, "perf_counter", cuda.host_time)

    def put(*microseconds):
        for what, number in zip(COSTS, microseconds, strict=True):
            cuda.host_cost(what, 1000 * number)

    with td.config.override(hot_calls=HOT):
        yield put
    put(0, 0, 0, 0, 0)
    cuda.host_refuse_graphs(0)


def test_the_flag():
    assert td.config.flags.cuda_graphs == "auto"
    for value in (0, 3, "auto", "2"):
        with td.config.override(cuda_graphs=value):
            assert td.config.flags.cuda_graphs == value
    for value in (-1, 2.5, "often", None, True):
        with (
            pytest.raises(errors.ValueArgumentError, match="cuda_graphs"),
            td.config.override(cuda_graphs=value),
        ):
            pass


def launching(f, *args):
    return next(line for line in f.explain(*args).splitlines() if "kernel" in line)


def numbers(results):
    return [on_cpu(result).tolist() for result in results]


def test_replayed_graphs_give_the_same(cuda):
    x, y = random(40, 30), random(40, 30, seed=1)
    with td.config.override(cuda_graphs=0):
        plain = td.jit(many)
        plain(x, 1.0)
        assert re.search(f"{PLAIN}: cuda_graphs is 0$", launching(plain, x, 1.0))
    with td.config.override(cuda_graphs=2):
        replayed = td.jit(many)
        before = cuda.host_count(b"graph launch")
        kept = []
        for n in range(50):
            given = (y if n % 2 else x), n / 10
            kept.append((replayed(*given), plain(*given)))
        assert cuda.host_count(b"graph launch") == before + 50
        for ours, theirs in kept:  # fresh results for each call
            assert numbers(ours) == numbers(theirs)
        with td.cuda.Stream():
            assert numbers(replayed(x, 1.0)) == numbers(plain(x, 1.0))
        assert re.search(f"{AS_GRAPH}: cuda_graphs is 2$", launching(replayed, x, 1.0))
        few = td.jit(lambda x: x + 1)
        few(x)
        assert launching(few, x) == "its kernel is launched: cuda_graphs is 2"
        mixed = td.jit(lambda x: many(x @ x.T, 1.0))
        mixed(x)
        assert "td::matmul is among them, and a CUDA graph takes kernels only" in launching(mixed, x)
    graphs = cuda.host_count(b"graph")
    del replayed, kept, ours, theirs
    gc.collect()
    assert cuda.host_count(b"graph") < graphs


def test_a_replay_keeps_its_code():
    x = random(40, 30)
    with td.config.override(cuda_graphs=2):
        f = td.jit(many)
        want = numbers(f(x, 1.0))
    compile._compile_module.cache_clear()  # as when many other graphs have been compiled
    gc.collect()
    for _ in range(40):
        found = f(x, 1.0)
    assert numbers(found) == want


def test_a_refused_replay_raises(cuda):
    x = random(40, 30)
    with td.config.override(cuda_graphs=2):
        f = td.jit(many)
        want = numbers(f(x, 1.0))
        table, refuses = (
            f._specializations[0].executable.choice.submission.table,
            ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 701),
        )
        for place in (SET, LAUNCH_GRAPH):
            good, table[place] = table[place], ctypes.cast(refuses, ctypes.c_void_p).value
            with pytest.raises(errors.CudaError, match="cuGraphLaunch: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
                f(x, 1.0)
            table[place] = good
        assert table[EXEC]
        assert numbers(f(x, 1.0)) == want


def plainly(f):
    """The function, jitted, its kernels launched one after the other."""

    def call(*args):
        with td.config.override(cuda_graphs=0):
            return jitted(*args)

    jitted = td.jit(f)
    return call


def measured(f, *args):
    """Call a function until the ways have been measured; what explain says then."""
    for _ in range(HOT - 1):
        f(*args)
    assert re.search(f"{PLAIN}: a CUDA graph is tried after {HOT} calls$", launching(f, *args))
    f(*args)
    return launching(f, *args)


@pytest.mark.parametrize(
    ("given", "wins"),
    [
        ((100, 1, 10, 0, 0), AS_GRAPH),  # calls of the driver are dear
        ((10, 100, 10, 0, 0), PLAIN),  # addresses are dear
        ((1, 1, 1, 80, 50), AS_GRAPH),  # the device is busy, with gaps between kernels
        ((60, 1, 1, 80, 80), AS_GRAPH),  # it is as busy either way, and the host is not
        ((1, 60, 1, 80, 80), PLAIN),
    ],
)
def test_faster_of_graph_and_launches_is_chosen(cuda, costs, given, wins):
    x = random(8, 6)
    f = td.jit(many)
    costs(*given)
    found = measured(f, x, 1.0)
    costs(0, 0, 0, 0, 0)
    assert re.search(wins + TIMES, found), found
    f(x, 1.0)
    (record,) = f._specializations[0].records.values()
    launched = cuda.host_count(b"graph launch"), record.hits
    want = numbers(plainly(many)(x, 1.0))
    for _ in range(5):
        assert numbers(f(x, 1.0)) == want
    graphs = cuda.host_count(b"graph launch") - launched[0]
    assert (graphs, record.hits - launched[1]) == (5 if wins == AS_GRAPH else 0, 5)


def test_measuring_leaves_results_and_arguments(cuda, costs):
    x, kept = random(8, 6), []
    f, plain = td.jit(many), plainly(many)
    plain(x, 1.0)
    elements, blocks = x.tolist(), cuda.host_live_blocks()
    for n in range(HOT + 4):
        kept.append(f(x, n / 4))
    assert f._specializations[0].executable.settled
    assert x.tolist() == elements
    for n, results in enumerate(kept):
        assert numbers(results) == numbers(plain(x, n / 4))
    del kept, results
    assert cuda.host_live_blocks() == blocks


def test_kernels_that_fill_the_device_are_not_measured(cuda, costs):
    x = random(8, 6)
    f = td.jit(many)
    costs(1, 1, 1, 500, 1)
    before = cuda.host_count(b"graph launch")
    found = measured(f, x, 1.0)
    assert re.search(f"{PLAIN}: with {US} the gaps between them do not show$", found), found
    assert cuda.host_count(b"graph launch") == before


def test_without_a_graph_kernels_are_launched(cuda, costs):
    x = random(8, 6)
    plain = plainly(many)
    cuda.host_refuse_graphs(1)
    for options in ({}, {"cuda_graphs": 2}):
        with td.config.override(**options):
            f = td.jit(many)
            for _ in range(HOT + 2):
                assert numbers(f(x, 1.0)) == numbers(plain(x, 1.0))
            assert re.search(
                f"{PLAIN}: no CUDA graph could be made.*CUDA_ERROR_OUT_OF_MEMORY", launching(f, x, 1.0)
            )
            assert f._specializations[0].executable.settled


def test_captured_streams_are_left_in_peace(cuda, costs):
    x = random(8, 6)
    f, replayed = td.jit(many), td.jit(many)
    for _ in range(HOT - 1):
        f(x, 1.0)
    with td.config.override(cuda_graphs=2):
        want = numbers(replayed(x, 1.0))
    stream, graph, count = td.cuda.Stream(), ctypes.c_void_p(), ctypes.c_size_t()
    driver = stream.at.driver
    with stream:
        y = x + 0
        driver.cuStreamBeginCapture_v2(stream.handle, 2)  # relaxed: results are allocated meanwhile
        before = cuda.host_count(b"synchronize"), cuda.host_count(b"graph launch")
        f(y, 1.0)
        replayed(y, 1.0)
        assert (cuda.host_count(b"synchronize"), cuda.host_count(b"graph launch")) == before
        driver.cuStreamEndCapture(stream.handle, ctypes.addressof(graph))
    driver.cuGraphGetNodes(graph.value, None, ctypes.addressof(count))
    assert count.value == 2 * 4  # kernels, each a node
    driver.cuGraphDestroy(graph.value)
    assert "is tried after" in launching(f, x, 1.0)
    assert numbers(replayed(x, 1.0)) == want
    f(x, 1.0)
    assert "is tried after" not in launching(f, x, 1.0)


def test_threads_measure_once(cuda, costs):
    x = random(8, 6)
    f = td.jit(many)
    want = numbers(f(x, 1.0))
    wrong = []

    def work():
        with td.cuda.Stream():
            wrong.extend(1 for _ in range(20) if numbers(f(x, 1.0)) != want)

    threads = [threading.Thread(target=work) for _ in range(4)]
    graphs = cuda.host_count(b"graph")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert "is tried" not in launching(f, x, 1.0)
    assert cuda.host_count(b"graph") <= graphs + 1


def test_both_halves_of_derivative_are_reported(cuda, costs):
    x = random(8, 6)
    w = td.asarray(random(6, seed=1).cpu(), device="cuda", requires_grad=True)
    f = td.jit(lambda w, x: td.sum(td.softmax(td.softmax(x * w, axis=0), axis=1) * x))
    assert "forward" not in f.explain(w, x)
    for _ in range(HOT + 2):
        f(w, x).backward()
    for half in ("forward", "backward"):
        assert re.search(f"(?m)^{half}: its .* (launched|replayed)", f.explain(w, x)), f.explain(w, x)
    (td.sum(w.grad) * 0).item()

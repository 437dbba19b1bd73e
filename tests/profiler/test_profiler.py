"""The profiler: events, averages, exported files, and cleanup."""

import gc
import itertools
import json
import threading

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.errors import ArgumentError, ProfilerError, ValueArgumentError
from tandem.profiler import profile, record_function
from tandem.profiler.averages import SORTS
from tandem.registry.dispatch import observers
from tandem.registry.dispatch.state import state


def some_work(x):
    with record_function("outer"):
        y = td.softmax(td.exp(x) @ x, axis=-1)
    return td.sum(y * y)


@pytest.fixture
def matrix():
    return td.asarray(np.linspace(-1, 1, 64).reshape(8, 8).astype(np.float32))


def test_events_nest_and_times_add_up(matrix):
    with profile() as prof:
        some_work(matrix)
    events = prof.events()
    assert [e.name for e in events if e.parent is None] == ["outer", "td::mul.Tensor", "td::sum"]
    inside = [e.name for e in events if e.parent is not None and e.parent.name == "outer"]
    assert inside == ["td::exp", "td::matmul", "td::softmax"]
    for event in events:
        children = [e for e in events if e.parent is event]
        assert event.inside == sum(e.total for e in children) <= event.total
        assert all(event.start <= e.start and e.end <= event.end for e in children)
    assert sum(e.own for e in events) == sum(e.total for e in events if e.parent is None)


def test_results_are_those_without_a_profiler(matrix):
    with profile(record_shapes=True, with_stack=True, profile_memory=True):
        seen = some_work(matrix)
    np.testing.assert_allclose(seen.numpy(), some_work(matrix).numpy(), rtol=1e-6)


def test_gradients_are_recorded_and_seen(matrix):
    w = matrix.clone().requires_grad_()
    with profile() as prof:
        some_work(w).backward()
    plain = matrix.clone().requires_grad_()
    some_work(plain).backward()
    np.testing.assert_allclose(w.grad.numpy(), plain.grad.numpy(), rtol=1e-5, atol=1e-7)
    assert sum(e.name == "td::matmul" for e in prof.events()) == 3
    steps = [e for e in prof.events() if e.kind == "backward"]
    assert {"backward of td::matmul", "backward of td::exp"} <= {e.name for e in steps}
    inside = [
        e.name for e in prof.events() if e.parent is not None and e.parent.name == "backward of td::matmul"
    ]
    assert inside.count("td::matmul") == 2


def test_shapes_stack_and_memory(matrix):
    with profile(record_shapes=True, with_stack=True, profile_memory=True) as prof:
        kept = td.exp(matrix)
        view = kept[1:]
        del view
        gone = matrix @ matrix
        del gone
    first, second, third = prof.events()
    assert first.shapes == ((8, 8),) and first.dtypes == ("float32",)
    assert third.shapes == ((8, 8), (8, 8))
    assert "test_shapes_stack_and_memory" in first.stack[0] and __file__ in first.stack[0]
    assert (first.allocated, second.allocated, third.allocated) == (256, 0, 256)
    gc.collect()
    assert (prof.memory.live, prof.memory.peak) == (256, 512)
    del kept
    gc.collect()
    assert prof.memory.live == 0


def test_lists_of_tensors_count_as_inputs(matrix):
    with profile(record_shapes=True) as prof:
        td.concat([matrix, matrix], axis=0)
    assert prof.events()[0].shapes == ((8, 8), (8, 8))


def test_jitted_call_is_one_event(matrix):
    f = td.jit(lambda x: td.sum(td.exp(x) * 2))
    f(matrix)
    with profile() as prof:
        f(matrix)
        f(matrix)
    assert [e.name for e in prof.events()] == ["jit <lambda>"] * 2
    assert f.cache_info().specializations == 1


@pytest.mark.parametrize("sort_by", SORTS)
def test_table_is_sorted(matrix, sort_by):
    with profile(profile_memory=True) as prof:
        for _ in range(3):
            some_work(matrix)
    rows = prof.key_averages()
    key = SORTS[sort_by]
    expected = sorted(rows, key=key, reverse=sort_by != "name")
    lines = rows.table(sort_by=sort_by, row_limit=3).splitlines()
    shown = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert [key(next(r for r in rows if r.name == name)) for name in shown] == [key(r) for r in expected[:3]]
    assert f"{len(rows) - 3} more rows" in lines[-1]


def test_percentages_are_of_the_whole(matrix):
    with profile() as prof:
        some_work(matrix)
    rows = prof.key_averages()
    cells = [line.split("│") for line in rows.table().splitlines() if line.startswith("│")]
    assert abs(sum(float(cell[2]) for cell in cells) - 100) < 0.1 * len(cells)
    assert rows.self_ns == sum(e.total for e in prof.events() if e.parent is None)


def test_grouping(matrix):
    with profile(record_shapes=True, with_stack=True) as prof:
        td.exp(matrix)
        td.exp(matrix[0])
    assert [row.count for row in prof.key_averages() if row.name == "td::exp"] == [2]
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert [row.shapes for row in by_shape if row.name == "td::exp"] == [((8, 8),), ((8,),)]
    by_place = prof.key_averages(group_by_stack_n=1)
    assert len([row for row in by_place if row.name == "td::exp"]) == 2


def test_recursive_operator_is_counted_once_in_total(matrix):
    with td.Library("again", "DEF") as lib:
        lib.define("f(Tensor x, int depth) -> Tensor")
        lib.impl(
            "f", lambda x, depth: x if depth == 0 else td.ops.again.f(x, depth - 1) + 1, "CompositeImplicit"
        )
        with profile() as prof:
            td.ops.again.f(matrix, 3)
    row = next(row for row in prof.key_averages() if row.name == "again::f")
    assert row.count == 4 and row.total_ns == prof.events()[0].total


def test_chrome_trace(matrix, tmp_path):
    path = tmp_path / "trace.json"
    with profile(record_shapes=True, with_stack=True, profile_memory=True) as prof:
        some_work(matrix)
    prof.export_chrome_trace(path)
    trace = json.loads(path.read_text())["traceEvents"]
    spans = [row for row in trace if row["ph"] == "X"]
    assert len(spans) == len(prof.events())
    assert all(
        row["dur"] > 0 and row["ts"] >= 0 and {"pid", "tid", "cat", "name"} <= set(row) for row in spans
    )
    outer = next(row for row in spans if row["name"] == "outer")
    inner = next(row for row in spans if row["name"] == "td::matmul")
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1e-3
    assert any(row["ph"] == "C" and row["args"]["bytes"] > 0 for row in trace)
    assert inner["args"]["shapes"] == [[8, 8], [8, 8]]


def test_failures_end_their_events(matrix):
    with profile() as prof:
        with pytest.raises(ValueError):
            matrix @ td.zeros((3, 3))
        with pytest.raises(ZeroDivisionError), record_function("broken"):
            1 / 0  # noqa: B018
        td.exp(matrix)
    assert [(e.name, e.failed, e.parent) for e in prof.events() if e.name != "td::zeros"][-3:] == [
        ("td::matmul", True, None),
        ("broken", True, None),
        ("td::exp", False, None),
    ]


def test_profilers_do_not_nest_and_leave_no_trace(matrix):
    before = state.include, state.exclude
    with profile(), pytest.raises(ProfilerError, match="already"), profile():
        pass
    with pytest.raises(KeyError), profile():
        raise KeyError
    assert (state.include, state.exclude) == before
    with profile() as prof:
        pass
    td.exp(matrix)
    assert prof.events() == []


def test_other_threads_are_not_noted(matrix):
    with profile() as prof:
        worker = threading.Thread(target=some_work, args=(matrix,))
        worker.start()
        worker.join()
    assert prof.events() == []


def test_record_function_without_a_profiler():
    with record_function("nothing"):
        pass
    with pytest.raises(ArgumentError, match="name"), record_function(3):
        pass


def test_unknown_order(matrix):
    with profile() as prof:
        td.exp(matrix)
    with pytest.raises(ValueArgumentError, match="self_time"):
        prof.key_averages().table(sort_by="colour")


def test_synchronize():
    td.synchronize()
    td.synchronize("cpu")
    with pytest.raises(ValueError, match="nowhere"):
        td.synchronize("nowhere")
    with pytest.raises(ValueError, match="name"):
        td.synchronize(3)


def kernels_noted(prof):
    return [event for event in prof.events() if event.kind == "kernel"]


def test_kernels_of_jitted_calls_are_listed():
    @td.jit
    def step(x):
        y = td.tanh(x @ x)
        last = td.fori_loop(0, 50, lambda i, c: c * 0.5 + y[0], y[0])
        return td.argsort(last).sum() + (td.exp(y) * 2).sum()

    x = td.asarray(np.random.default_rng(0).random((64, 64), np.float32))
    expected = step(x).item()
    with td.profiler.profile() as prof:
        step(x)
    assert not kernels_noted(prof)
    for _ in range(2):
        with td.profiler.profile(with_kernels=True) as prof:
            assert step(x).item() == expected
    noted, (call,) = kernels_noted(prof), [event for event in prof.events() if event.kind == "jit"]
    if config.flags.native:
        assert [event.name for event in noted] == step.lower(x).kernels().steps
    else:
        assert {"interpreted: td::tanh", "interpreted: control::scan"} <= {event.name for event in noted}
    assert all(event.parent is call and event.total > 0 for event in noted)
    assert call.start <= noted[0].start
    assert all(one.end <= two.start for one, two in itertools.pairwise(noted))
    assert noted[-1].end <= call.end
    assert sum(event.total for event in noted) <= call.total
    assert {row.name for row in prof.key_averages()} >= {event.name for event in noted}


def test_kernels_of_gradients_are_listed():
    step = td.jit(lambda x, w: td.tanh(x @ w).sum())
    x = td.asarray(np.ones((8, 8), np.float32))
    w = td.asarray(np.ones((8, 8), np.float32), requires_grad=True)
    for _ in range(40):
        step(x, w).backward()
    gradient, w.grad = w.grad.tolist(), None
    step(x, w).backward()
    gradient, w.grad = w.grad.tolist(), None
    with td.profiler.profile(with_kernels=True) as prof:
        step(x, w).backward()
    assert w.grad.tolist() == gradient
    parents = {event.parent.kind for event in kernels_noted(prof)}
    assert parents == {"jit", "backward"}


def test_failing_jitted_call_ends_noting():
    def fail(x):
        raise KeyError("stop")

    step = td.jit(lambda x: td.pure_callback(fail, td.ShapeDtypeStruct((3,), td.float32), x))
    with td.profiler.profile(with_kernels=True) as prof:
        with pytest.raises(KeyError, match="stop"):
            step(td.asarray(np.ones(3, np.float32)))
        td.jit(lambda x: td.exp(x) * 2)(td.asarray(np.ones(3, np.float32)))
    assert kernels_noted(prof)
    assert observers.kernel_watch.note is None

"""Native steps of the backward pass: the gradients of Python's steps, and a fallback to Python for unusual nodes."""

import gc
import resource
import sys
import threading
import traceback

import numpy as np
import pytest
import tandem as td
from tandem import config, errors
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.glue.backward import Advance
from tandem.eager.autograd import engine, hooks
from tandem.eager.autograd.autograd_meta import AutogradMeta
from tandem.eager.autograd.node import Node
from tandem.operators.indexing.subscript import getitem

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


@pytest.fixture(autouse=True)
def hot(monkeypatch):
    native_layer.install()
    monkeypatch.setattr(hooks, "used", [False])  # one hook, and Python takes all steps from then on
    with config.override(hot_calls=1):
        yield


@pytest.fixture
def stepped(monkeypatch):
    """The operators of the nodes that Python has stepped."""
    seen, step = [], engine.Pass._step
    monkeypatch.setattr(engine.Pass, "_step", lambda run, node: (seen.append(node.name), step(run, node))[1])
    return seen


def leaves(dtype=np.float32):
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.2, 0.9, shape) for shape in ((4, 4), (4, 4), (4,))]
    return [td.asarray(array.astype(dtype), requires_grad=True) for array in arrays]


PROGRAMS = {
    "mul and add": lambda x, y, b: (x * y + b) * x + y,
    "sub and div": lambda x, y, b: (x - y) / (y + 1.5) - b,
    "unary": lambda x, y, b: td.exp(td.sin(x)) * td.tanh(y) + td.cos(b),
    "scalars": lambda x, y, b: (2.0 * x - 1) * (1.0 - y) + b * 0.5,
    "same twice": lambda x, y, b: x * x + (y + y) * b,
    "sums": lambda x, y, b: td.sum(x) * y + td.sum(y, axis=0) + td.sum(x * b, axis=1, keepdims=True),
    "means": lambda x, y, b: x - td.mean(x, axis=0) + td.max(y) * b,
    "products": lambda x, y, b: td.tanh(x @ y) @ b,
    "vectors": lambda x, y, b: (b @ x) * (x @ b) + (b @ b) * y,
    "views": lambda x, y, b: td.permute(x, (1, 0)).reshape((2, 8)) * y.reshape((2, 8)),
    "subscripts": lambda x, y, b: x[1:, ::2] * y[:3, 1, None] + b[-1] + x[None, 0, :2],
    "backwards": lambda x, y, b: x[::-1, 3:0:-1] * y[..., 1:] + b[1:],
    "choices": lambda x, y, b: td.where(x > 0.5, x, y) * td.relu(b - 0.4) + td.maximum(x, b),
    "broadcasting": lambda x, y, b: x[:1] * y[:, 1:2] + b,
    "joined": lambda x, y, b: td.concat([x[:2], y[2:]]) * b,
    "many": lambda x, y, b: sum(x * float(k) for k in range(20)) * b,
}


def gradients(program, dtype, **options):
    given = leaves(dtype)
    out = program(*given)
    out.backward(td.ones(out.shape, dtype=out.dtype), **options)
    return [None if x.grad is None else x.grad._array for x in given]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_gradients_are_those_of_python(name, dtype, monkeypatch, stepped):
    for options in ({}, {"retain_graph": True}, {"create_graph": True}):
        for _ in range(4):
            mine = gradients(PROGRAMS[name], dtype, **options)
        del stepped[:]
        gradients(PROGRAMS[name], dtype, **options)
        if "create_graph" not in options:
            assert {*stepped} <= {"concat"}
        with monkeypatch.context() as patch:
            patch.setattr(engine, "node_sources", [engine.next_node])
            theirs = gradients(PROGRAMS[name], dtype, **options)
        for one, two in zip(mine, theirs, strict=True):
            assert (one is None) == (two is None)
            if two is not None:
                assert one.dtype == two.dtype == dtype
                np.testing.assert_allclose(one, two, rtol=1e-6)


@pytest.mark.parametrize("name", ["unary", "sums", "products", "many"])
def test_levels_run_backward_natively(name, stepped):
    def loss(*given):
        return td.sum(PROGRAMS[name](*given))

    given = [x.detach() for x in leaves(np.float64)]
    for _ in range(4):
        found = td.grad(loss, argnums=(0, 1, 2))(*given)
    assert not stepped[len(stepped) // 2 :]
    want = gradients(lambda *args: loss(*args), np.float64)
    for one, two in zip(found, want, strict=True):
        np.testing.assert_allclose(one._array, np.zeros(one.shape) if two is None else two, rtol=1e-12)
    twice = td.grad(lambda x: td.sum(td.grad(loss)(x, *given[1:]) ** 2))(given[0])
    td.check_grads(lambda x: td.sum(td.grad(loss)(x, *given[1:]) ** 2), (given[0],), order=1)
    assert twice.shape == given[0].shape


# -- what is left to Python --------------------------------------------------------------------------------------------
def test_hooks_profiler_and_wanted_results_are_seen():
    x, y, _ = leaves()
    seen = []
    for _ in range(3):
        product = x * y
        handle = product.register_hook(lambda g: seen.append(g.shape))
        td.sum(td.tanh(product)).backward()
        handle.remove()
    assert len(seen) == 3
    middle = x * y
    (found,) = td.autograd.grad(td.sum(middle * 3.0), middle)
    np.testing.assert_array_equal(found._array, np.full((4, 4), 3.0))
    with td.profiler.profile() as profile:
        td.sum(x * y).backward()
    assert any("backward of" in event.name for event in profile.events())


def test_gradients_of_results_kept_as_residuals(stepped):
    x = td.asarray(np.float64(0.3), requires_grad=True)
    for _ in range(4):
        (slope,) = td.autograd.grad(td.tanh(x), x, create_graph=True)
        (curve,) = td.autograd.grad(slope, x)
    assert "tanh" in stepped
    value = np.tanh(0.3)
    np.testing.assert_allclose(curve._array, -2 * value * (1 - value**2))


def test_errors_are_those_of_python():
    x, y, _ = leaves()
    for _ in range(3):
        out = td.sum(x * y)
        out.backward()
        with pytest.raises(errors.AutogradError, match="a second time"):
            out.backward()
        z = y.detach().clone()
        out = td.sum(x * z)
        z.add_(1.0)
        with pytest.raises(errors.VersionError, match="written in place"):
            out.backward()
        out = td.exp(x)
        total = td.sum(out * 1.0)
        out.mul_(2.0)
        with pytest.raises(errors.VersionError, match="written in place"):
            total.backward()


def test_failing_rule_leaves_residuals(monkeypatch):
    x, y, _ = leaves()
    for _ in range(3):
        out = td.sum(x * y)
    active = out._meta.node.edges[0][0].active
    rule = active.rules[0]

    def fails(*values):
        raise RuntimeError("a rule fails")

    node = out._meta.node.edges[0][0]
    node.active = active._replace(rules=(rule._replace(fn=fails), *active.rules[1:]))
    with pytest.raises(RuntimeError, match="a rule fails"):
        out.backward()
    node.active = active
    assert x.grad is None
    assert len(node.residuals) == 2
    (other,) = td.autograd.grad(node_result(node), x)  # its own values are still there
    np.testing.assert_array_equal(other._array, y._array)


def node_result(node):
    found = td.ones((4, 4))
    found.requires_grad_()
    found._meta = AutogradMeta(node, 0)
    return td.sum(found)


def test_unusual_nodes_and_gradients():
    x, y, _ = leaves()
    for _ in range(3):
        a, b = td.split(x, 2) if hasattr(td, "split") else (x[:2], x[2:])
        td.sum(td.cumsum(a * b, 0)).backward()

    class Scaled(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return g * 10.0

    x.grad = None
    for _ in range(2):
        td.sum(Scaled.apply(x) * y).backward()
    np.testing.assert_allclose(x.grad._array, 20 * y._array, rtol=1e-6)


def test_a_gradient_given_is_not_shared():
    x, y, _ = leaves()
    given = td.ones((4, 4))
    for _ in range(3):
        x.grad = y.grad = None
        (x + y).backward(given)
        arrays = [given._array, x.grad._array, y.grad._array]
        assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def test_entries_are_called_with_what_a_pass_has():
    (advance,) = [one for one in engine.node_sources if isinstance(one, Advance)]
    gradients(PROGRAMS["mul and add"], np.float32)
    for args in ((), (1, 2, 3), (None, (), {}, {}, True, False)):
        with pytest.raises((TypeError, IndexError)):
            advance(*args)
    assert advance(None, [], {}, {}, True, False) is None


# -- long, many, at once -----------------------------------------------------------------------------------------------
def test_a_deep_history():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    out = x
    for _ in range(20_000):
        out = out + 1.0
    for _ in range(2):
        out.backward(td.ones(2), retain_graph=True)
    np.testing.assert_array_equal(x.grad._array, [2.0, 2.0])


def test_threads_run_one_history_at_once():
    x, y, _ = leaves(np.float64)
    gradients(PROGRAMS["unary"], np.float64)
    out = td.sum(PROGRAMS["unary"](x, y, td.ones(4, dtype=td.float64)))
    (want,) = td.autograd.grad(out, x, retain_graph=True)
    found, faults = [], []

    def work():
        try:
            for _ in range(300):
                found.append(td.autograd.grad(out, x, retain_graph=True)[0])
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert all(np.array_equal(one._array, want._array) for one in found)


def calls():
    given = leaves()

    def call(name):
        def run():
            for x in given:
                x.grad = None
            out = PROGRAMS[name](*given)
            out.backward(td.ones(out.shape))

        return run

    return given, {name: call(name) for name in ("mul and add", "unary", "sums", "products", "subscripts")}


def watched_counts(tensors):
    shared = [AutogradMeta, Node, td.Tensor, engine.next_node, td.float32]
    held = [*tensors, *(t._array for t in tensors), *(t._meta for t in tensors), *shared]
    return [sys.getrefcount(item) for item in held]


def assert_steady(before, after, slack):
    assert all(abs(a - b) <= slack for a, b in zip(after, before, strict=True)), [
        *zip(before, after, strict=True)
    ]


@pytest.mark.parametrize("name", list(calls()[1]))
def test_reference_counts_do_not_drift(name):
    tensors, found = calls()
    for _ in range(20):
        found[name]()
    gc.collect()
    before = watched_counts(tensors)
    for _ in range(2000):
        found[name]()
    gc.collect()
    assert_steady(before, watched_counts(tensors), 12)


def test_memory_does_not_grow():
    _, found = calls()

    def work(count):
        for _ in range(count):
            found["mul and add"]()

    work(2000)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(100_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="CPython itself crashes where it makes a function and has no memory"
)
@pytest.mark.parametrize("name", list(calls()[1]))
def test_each_allocation_may_fail(name):
    memory = pytest.importorskip("_testcapi")
    tensors, found = calls()

    def fail_each():
        failed = 0
        for k in range(150):
            try:
                memory.set_nomemory(k, k + 1)
                try:
                    found[name]()
                finally:
                    memory.remove_mem_hooks()
            except MemoryError as fault:
                traceback.clear_frames(fault.__traceback__)  # Python keeps some of them, and what is in them
                failed += 1
        return failed

    def settled():
        found[name]()
        gc.collect()
        return watched_counts(tensors)

    for _ in range(5):
        found[name]()
    fail_each()  # what Python and NumPy keep for themselves is there from now on
    before = settled()
    assert fail_each()
    assert_steady(
        before[:9], settled()[:9], 1
    )  # not the classes: CPython loses arguments of calls whose frames fail


def test_collection_in_the_midst_of_a_pass():
    """Finalizers that let go of gradients run between any two allocations."""
    x, y, b = leaves()

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            x.grad = y.grad = None

    before = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for _ in range(300):
            Cycle()
            td.sum(PROGRAMS["unary"](x, y, b)).backward()
    finally:
        gc.set_threshold(*before)


# -- subscripts --------------------------------------------------------------------------------------------------------
KEYS = [
    1,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, -1),
    slice(5, 2),
    (0, 1),
    (slice(None, None, 2), -2),
    (None, 1, ..., None),
    (..., slice(3, 0, -2)),
    (2, slice(1, 2, 5)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_subscripts_are_recorded_as_python_records_them(key):
    for source in (leaves()[0], leaves()[0] * 2.0):
        for _ in range(4):
            mine = source[key]
        theirs = getitem(source, key)
        assert mine._keys is theirs._keys
        one, two = mine._meta.node, theirs._meta.node
        assert one.op is two.op
        assert one.active is two.active
        assert one.edges == two.edges
        assert one.residuals == two.residuals
        assert one.versions == two.versions
        assert mine._meta.view.args[1] == theirs._meta.view.args[1]
        assert mine._meta.alias_set is theirs._meta.alias_set is source._meta.alias_set
        np.testing.assert_array_equal(mine._array, theirs._array)


def test_tensors_as_keys_and_writes_keep_their_histories():
    x = leaves()[0]
    at = td.asarray([2, 0])
    for _ in range(4):
        x.grad = None
        picked = x[at]
        assert picked.requires_grad
        z = x * 1.0
        z[1:, 0] = picked[0, :3] * 2.0
        td.sum(z * picked[1, 0]).backward()
        assert x.grad is not None
        with td.no_grad():
            assert not x[1:].requires_grad


@pytest.mark.parametrize("dtype", [td.float32, td.complex128, td.int8, td.bool, td.bfloat16], ids=str)
def test_putting_into_a_copy(dtype):
    put = td.ops.td.basic_put
    x = td.astype(td.asarray(np.arange(12).reshape(3, 4) % 5), dtype)
    for plan, shape in (
        (((0, 2, 1), (1, 3, 1)), (2, 3)),
        ((1, (3, 2, -2)), (2,)),
        ((2, 0), ()),
        ((None, 0, (0, 4, 1)), (1, 4)),
    ):
        value = td.astype(td.ones(shape), dtype)
        for source in (x, td.permute(td.permute(x, (1, 0)).contiguous(), (1, 0))):
            for _ in range(3):
                mine = put(source, value, plan)
            theirs = put.default(source, value, plan)
            np.testing.assert_array_equal(mine._array, theirs._array)
            assert mine.dtype is dtype
            assert not np.shares_memory(mine._array, source._array)
    assert put(td.zeros(4), 2, ((1, 2, 2),)).tolist() == [0.0, 2.0, 0.0, 2.0]
    with pytest.raises(errors.OutOfBoundsError):
        put(td.zeros(4), 2.0, ((1, 3, 2),))

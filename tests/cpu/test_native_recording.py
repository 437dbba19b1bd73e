"""Native recording creates the same graph nodes as recording in Python."""

import gc
import itertools
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from tandem import config, errors
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.compiler.structs import sizeof
from tandem.backends.cpu.fastpath.glue import layout
from tandem.backends.cpu.fastpath.runtime import rt_base, rt_record, rt_saved
from tandem.eager.autograd.autograd_meta import AutogradMeta
from tandem.eager.autograd.node import Node
from tandem.eager.tensor.storage import Hold
from tandem.eager.tensor.tensor import Tensor, wrap
from tandem.operators.declare.declaration import declared_operators
from tandem.operators.declare.derivatives import NotDifferentiable, Partials
from tandem.registry import dtypes as dt
from tandem.registry.dispatch.keys import GRAD_CPU_KEYS
from tandem.registry.function import functions
from tandem.registry.values import TensorSpec

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


@pytest.fixture(autouse=True)
def hot():
    native_layer.install()
    with config.override(hot_calls=1):
        yield


def stubs():
    native_layer.install()
    found = native_layer.stubs()
    return list(found.by_operator.values()) if found is not None else []


def elementwise():
    kinds = ("unary", "binary", "comparison", "ternary")
    found = [s for s in stubs() if getattr(s.operator.decl, "kind", "") in kinds]
    # One without a derivative is left to Python, unless its results are booleans.
    return [
        s
        for s in found
        if s.operator.decl.result == "bool" or not isinstance(s.operator.decl.derivative, NotDifferentiable)
    ]


def draw(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    return rng.uniform(0.1, 0.9, shape).astype(dtype.np)


def leaf(shape=(3, 4), dtype=dt.float32, seed=0, tracked=True):
    return td.asarray(draw(shape, dtype, seed), requires_grad=tracked)


class Spy:
    """Counts the calls that Python has recorded for an operator's native entry."""

    def __init__(self, stub):
        self.record, self.calls = stub.record, 0
        self.known = next(
            (k for k in self.record.kept if id(k) == self.record.get(rt_base.OperatorEntry.record)), None
        )

    def __enter__(self):
        def counted(*values):
            self.calls += 1
            return self.known(*values)

        self.counted = counted
        self.record.set(rt_base.OperatorEntry.record, id(counted))
        return self

    def __exit__(self, *fault):
        self.record.set(rt_base.OperatorEntry.record, id(self.known))


def recorded_natively(stub, *args, **kwargs):
    """The result of a call that neither the dispatcher nor the recorder has seen."""
    for _ in range(2):
        stub.function(*args, **kwargs)
    before = stub.calls
    with Spy(stub) as spy:
        out = stub.function(*args, **kwargs)
    assert stub.calls == before + 1, "the call was not answered natively"
    assert spy.calls == 0, "the call was recorded by Python"
    return out


def same_value(mine, theirs):
    if isinstance(theirs, Tensor):
        assert type(mine) is Tensor
        assert mine is theirs or (mine._meta is None and theirs._meta is None)
        np.testing.assert_allclose(mine._array, theirs._array, rtol=1e-2)
    else:
        assert type(mine) is type(theirs)
        assert mine == theirs or mine != mine


def same_version(mine, theirs, out):
    assert type(mine) is type(theirs)
    if type(theirs) is Hold:
        assert mine.version == theirs.version
        assert mine.storage is out._storage
    else:
        assert mine == theirs


def same_record(mine, theirs):
    """Compare the history of two results, field by field."""
    assert mine._keys is theirs._keys
    one, two = mine._meta, theirs._meta
    if two is None:
        assert one is None
        return
    assert type(one) is type(two) is AutogradMeta
    for name in ("requires_grad", "index", "cut_by", "grad", "view", "alias_set"):
        assert getattr(one, name) == getattr(two, name), name
    one, two = one.node, two.node
    if two is None:
        assert one is None
        return
    assert type(one) is type(two) is Node
    assert one.op is two.op
    assert one.active is two.active
    assert type(one.edges) is type(two.edges) is tuple
    assert [type(edge) for edge in one.edges] == [type(edge) for edge in two.edges]
    for edge, other in zip(one.edges, two.edges, strict=True):
        assert edge[0] is other[0]
        assert edge[1:] == other[1:]
        assert edge[3] is other[3]
    assert type(one.residuals) is type(two.residuals) is tuple
    for value, other in zip(one.residuals, two.residuals, strict=True):
        same_value(value, other)
    for version, other in zip(one.versions, two.versions, strict=True):
        same_version(version, other, mine)
    assert one.results is two.results is None
    assert one.reason == two.reason
    assert type(one.sequence) is int
    assert one.sequence < two.sequence
    assert len(one.values()) == len(two.values())


SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((), (2,)), ((2, 1), (1, 3)), ((), ()), ((0, 2), (2,))]


@pytest.mark.parametrize("stub", elementwise(), ids=lambda s: s.operator.name)
def test_elementwise_nodes_are_those_of_python(stub):
    arity, decl = len(stub.operator.schema.arguments), stub.operator.decl
    conditions = len(decl.conditions)
    for dtype in (dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.complex64):
        if dtype not in decl.dtypes or not native_layer.serves(stub.operator, dtype):
            continue
        for shapes in SHAPES:
            kinds = [dt.bool_] * conditions + [dtype] * (arity - conditions)
            for tracked in itertools.product((False, True), repeat=arity - conditions):
                flags = (False,) * conditions + tracked
                args = [
                    leaf(shape, kind, seed, flag)
                    for seed, (shape, kind, flag) in enumerate(zip(shapes * 2, kinds, flags, strict=False))
                ]
                same_record(recorded_natively(stub, *args), stub.operator(*args))


def test_scalars_and_mixed_dtypes():
    for name in ("add", "mul", "div", "pow", "maximum"):
        stub = stub_of(f"td::{name}.Tensor")
        for scalar in (2, 2.5, True):
            for args in ((leaf(), scalar), (scalar, leaf())):
                same_record(recorded_natively(stub, *args), stub.operator(*args))
        for args in (
            (leaf(dtype=dt.float64), leaf()),
            (leaf(), wrap(np.ones((3, 4), np.int32))),
            (leaf(dtype=dt.float16), leaf()),
        ):
            same_record(recorded_natively(stub, *args), stub.operator(*args))


def test_edges_of_results_lead_to_their_nodes():
    stub, x = stub_of("td::mul.Tensor"), leaf()
    inner = recorded_natively(stub, x, x)
    outer = recorded_natively(stub, inner, 2.0)
    assert outer._meta.node.edges[0][0] is inner._meta.node
    assert inner._meta.node.edges[0][0] is inner._meta.node.edges[1][0] is x._meta
    assert outer._meta.node.sequence > inner._meta.node.sequence


def test_versions_and_holds():
    mul, exp = stub_of("td::mul.Tensor"), stub_of("td::exp")
    x, y = leaf(), td.asarray(np.ones((3, 4), np.float32))
    y.add_(1.0)
    out = recorded_natively(mul, x, y)
    assert 1 in out._meta.node.versions
    y.add_(1.0)
    with pytest.raises(errors.VersionError, match="written in place"):
        out.sum().backward()
    out = recorded_natively(exp, x)
    assert out._storage.hold_count == 1
    (hold,) = out._meta.node.versions
    again = Hold(out._storage)
    assert out._storage.hold_count == 2
    del again
    assert out._storage.hold_count == 1
    storage = out._storage
    del out, hold
    gc.collect()
    assert storage.hold_count == 0


@pytest.mark.parametrize(
    "stub", [s for s in stubs() if s.patch_points[0].kind == "reduction"], ids=lambda s: s.operator.name
)
def test_nodes_of_reductions_are_those_of_python(stub):
    axes = [0, -1] if stub.operator.decl.fold.returns_index else [None, 0, -1, (0, 1), (), (1,)]
    for axis, keepdims in itertools.product(axes, (False, True)):
        x = leaf((3, 4))
        for _ in range(3):
            mine = stub.function(x, axis=axis, keepdims=keepdims)
        same_record(mine, stub.operator(x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5))]
)
def test_nodes_of_products_are_those_of_python(shapes):
    stub = stub_of("td::matmul")
    for tracked in itertools.product((False, True), repeat=2):
        args = [leaf(s, seed=i, tracked=t) for i, (s, t) in enumerate(zip(shapes, tracked, strict=True))]
        same_record(recorded_natively(stub, *args), stub.operator(*args))


CALLS = {
    "td::cast": [lambda x: (x, td.float64), lambda x: (x, td.int32), lambda x: (x, td.bool)],
    "td::astype": [lambda x: (x, td.float64)],
    "td::clone": [lambda x: (x,)],
    "td::contiguous": [lambda x: (x,), lambda x: (td.permute(x, (1, 0)),)],
    "td::cumsum": [lambda x: (x, 0), lambda x: (x, -1)],
    "td::cumprod": [lambda x: (x, 1)],
    "td::reshape": [lambda x: (x, (12,)), lambda x: (x, [4, 3])],
    "td::permute": [lambda x: (x, (1, 0))],
    "td::broadcast_to": [lambda x: (x, (2, 3, 4))],
    "td::basic_index": [lambda x: (x, ((0, 2, 1), 1))],
    "td::index": [lambda x: (x, (wrap(np.array([2, 0])),))],
    "td::concat": [lambda x: ([x, x],), lambda x: ((x, wrap(np.ones((3, 4), np.float32))), 1)],
}


def same_view(mine, theirs):
    """Both are views of one base: the rest of their records apart from that."""
    one, two = mine._meta, theirs._meta
    assert (one.view is None) == (two.view is None)
    if two.view is not None:
        assert one.view.derivative is two.view.derivative
        assert one.view.args == two.view.args
        assert [type(arg) for arg in one.view.args] == [type(arg) for arg in two.view.args]
        assert one.view.kwargs == two.view.kwargs
        assert one.alias_set is two.alias_set is one.view.base._meta.alias_set
        assert any(member is mine for member in one.alias_set.live())
        one.view = two.view
    same_record(mine, theirs)


@pytest.mark.parametrize("name", list(CALLS))
def test_nodes_of_other_entries_are_those_of_python(name):
    stub = stub_of(name)
    for make in CALLS[name]:
        args = make(leaf())
        for _ in range(3):
            mine = stub.function(*args)
        theirs = stub.operator(*args)
        if name == "td::concat":  # its edges are a tuple for the list
            assert mine._meta.node.edges == theirs._meta.node.edges
        elif theirs._meta is not None:
            same_view(mine, theirs)


VIEWS = {
    "td::reshape": (12,),
    "td::permute": (1, 0),
    "td::broadcast_to": (2, 3, 4),
    "td::basic_index": ((0, 2, 1), 1),
}


@pytest.mark.parametrize("name", list(VIEWS))
def test_native_views_join_alias_set(name):
    stub, x = stub_of(name), leaf()
    view = recorded_natively(stub, x, VIEWS[name])
    assert view._meta.view.base is x
    product = td.mul(x, 2.0)
    view = recorded_natively(stub, product, VIEWS[name])
    if name != "td::broadcast_to":
        view.mul_(3.0)
        product.sum().backward()
        want = np.full((3, 4), 6.0) if name != "td::basic_index" else np.full((3, 4), 2.0)
        if name == "td::basic_index":
            want[0:2, 1] = 6.0
        np.testing.assert_allclose(x.grad.numpy(), want)


def stub_of(name):
    declared_operators()
    return next(stub for stub in stubs() if stub.operator.name == name)


# -- what is left to Python --------------------------------------------------------------------------------------------
def test_unusual_records_are_left_to_python():
    stub, x = stub_of("td::mul.Tensor"), leaf()
    recorded_natively(stub, x, 2.0)

    class Meta(AutogradMeta):
        __slots__ = ()

    y = td.asarray(np.ones(3, np.float32), requires_grad=True)
    y._meta = Meta()
    assert stub.function(y, 2.0)._meta.node.edges[0][0] is y._meta
    y._meta = AutogradMeta(requires_grad=False)
    assert stub.function(y, 2.0)._meta is None
    y._meta = None
    assert stub.function(y, 2.0)._meta is None
    y._meta = AutogradMeta()
    y._meta.index = 7
    assert stub.function(y, 2.0)._meta.node.edges[0][1] == 7
    del y._meta.index
    for _ in range(3):
        with pytest.raises(AttributeError):
            stub.function(y, 2.0)


def test_recorded_classes_have_known_slots():
    assert layout.class_constants()
    spec = TensorSpec((1,), dt.float32)
    assert type(spec).__basicsize__ == tuple.__basicsize__


def test_integer_results_name_what_cut_the_history():
    stub, x = stub_of("td::cast"), leaf()
    for _ in range(3):
        out = stub.function(x, td.int64)
    assert out._meta.cut_by == "td::cast"
    assert not out.requires_grad


def test_masks_are_not_recorded():
    out = recorded_natively(stub_of("td::gt.Tensor"), leaf(), 0.5)
    assert out._meta is None


# -- memory ------------------------------------------------------------------------------------------------------------
def calls():
    x, y, m = leaf(), leaf(seed=1), leaf((4, 3), seed=2)
    plain = leaf(tracked=False)
    first = td.mul(x, y)
    return (x, y, m, plain, first), {
        "one": lambda: td.add(x, plain),
        "two": lambda: td.mul(x, y),
        "same twice": lambda: td.mul(x, x),
        "scalar": lambda: td.mul(x, 2.0),
        "of a result": lambda: td.mul(first, plain),
        "result saved": lambda: td.exp(x),
        "mask": lambda: td.gt(x, 0.0),
        "sum": lambda: td.sum(x, axis=1, keepdims=True),
        "max": lambda: td.max(x, axis=(0, 1)),
        "matmul": lambda: td.matmul(x, m),
        "cumprod": lambda: td.cumprod(x, 0),
        "cast": lambda: td.astype(x, td.float64),
        "to integers": lambda: td.astype(x, td.int32),
        "clone": lambda: td.clone(x),
        "reshape": lambda: td.reshape(x, (12,)),
    }


def watched_counts(tensors):
    shared = [
        np.dtype(np.float32),
        None,
        True,
        0,
        1,
        "cpu",
        "",
        (),
        GRAD_CPU_KEYS,
        Tensor,
        Node,
        AutogradMeta,
    ]
    shared += [Hold, TensorSpec, td.float32]
    held = [*tensors, *(t._array for t in tensors), *(t._meta for t in tensors), *shared]
    return [sys.getrefcount(item) for item in held]


@pytest.mark.parametrize("name", list(calls()[1]))
def test_reference_counts_do_not_drift(name):
    tensors, found = calls()
    for _ in range(60):
        found[name]()
    gc.collect()
    before = watched_counts(tensors)
    for _ in range(3000):
        found[name]()
    gc.collect()
    after = watched_counts(tensors)
    assert all(abs(a - b) <= 10 for a, b in zip(after, before, strict=True)), list(
        zip(before, after, strict=True)
    )


def fail_each_allocation(hooks, call):
    """Call with the k-th allocation failing, for each k; how many calls have failed."""
    for _ in range(5):
        call()
    failed = 0
    for k in range(60):
        try:
            hooks.set_nomemory(k, k + 1)
            try:
                call()
            finally:
                hooks.remove_mem_hooks()
        except MemoryError:
            failed += 1
    return failed


@pytest.mark.parametrize("name", [n for n in calls()[1] if n != "to integers"])
def test_each_allocation_may_fail(name):
    hooks = pytest.importorskip("_testcapi")
    tensors, found = calls()
    fail_each_allocation(hooks, found[name])  # what Python and NumPy keep for themselves is there from now on
    gc.collect()
    before = watched_counts(tensors)
    assert fail_each_allocation(hooks, found[name])
    gc.collect()
    after = watched_counts(tensors)
    assert all(abs(a - b) <= 2 for a, b in zip(after, before, strict=True)), list(
        zip(before, after, strict=True)
    )


def test_collection_in_the_midst_of_recording():
    """Finalizers that change the very tensors of the call run between any two of its allocations."""
    stub, x = stub_of("td::mul.Tensor"), leaf()
    recorded_natively(stub, x, x)
    kept = x._meta

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            x._meta = AutogradMeta() if x._meta is kept else kept

    before = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for _ in range(3000):
            Cycle()
            out = stub.function(x, x)
            (one, two) = out._meta.node.edges
            assert type(one[0]) is type(two[0]) is AutogradMeta
    finally:
        gc.set_threshold(*before)


def test_a_deep_history_is_freed_without_recursion():
    x = leaf((2,))
    out = x
    for _ in range(100_000):
        out = td.mul(out, 1.0)
    alive = weakref.ref(out)
    del out
    assert alive() is None


def test_threads_record_at_once():
    faults = []

    def work(seed):
        x = leaf((5,), dt.float64, seed)
        for _ in range(300):
            y = td.exp(x) * x + 1.0
            y.sum().backward()
            array = x._array
            want = np.exp(array) * (1 + array)
            if not np.allclose(x.grad._array, want):
                faults.append(seed)
            x.grad = None

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_replaced_autograd_kernel_is_called():
    stub, x = stub_of("td::hypot.Tensor"), leaf()
    recorded_natively(stub, x, x)
    seen = []

    def kernel(self, other):
        seen.append(1)
        with td.no_grad():
            return functions["td::hypot.Tensor"](self, other)

    with td.Library("td", "IMPL") as library:
        library.impl("hypot.Tensor", kernel, "AutogradCPU")
        for _ in range(4):
            assert stub.function(x, x)._meta is None
    assert len(seen) == 4
    recorded_natively(stub, x, x)


def test_a_replaced_declaration_is_followed():
    stub, x = stub_of("td::hypot.Tensor"), leaf()
    old = recorded_natively(stub, x, x)._meta.node.active
    op, decl = stub.operator, stub.operator.decl
    op.decl = decl._replace(derivative=Partials({"self": 3, "other": 4}))
    op.recompute()
    try:
        out = recorded_natively(stub, x, x)
        assert out._meta.node.active is not old
        out.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.full((3, 4), 7.0))
        op.decl = decl._replace(derivative=NotDifferentiable("for this test"))
        op.recompute()
        for _ in range(3):
            with pytest.raises(errors.NotDifferentiableError, match="for this test"):
                stub.function(x, x).sum().backward()
    finally:
        op.decl = decl
        op.recompute()
    same_record(recorded_natively(stub, x, x), stub.operator(x, x))


def test_sizes_of_records():
    assert rt_record.Recording.rules + 8 * (1 << rt_record.MOST) <= sizeof(rt_record.Recording)
    assert rt_saved.RuleSet.saver + 16 * rt_saved.MOST_SAVED <= sizeof(rt_saved.RuleSet)

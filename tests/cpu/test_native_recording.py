"""Native recording creates the same graph nodes as recording in Python."""

import gc
import itertools

import numpy as np
import pytest
import tandem as td
from recorded_nodes import leaf, recorded_natively, same_record, stub_of, stubs
from rotation import share_each_commit
from tandem import config, errors
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.glue import class_slots
from tandem.eager.autograd.autograd_meta import AutogradMeta
from tandem.eager.tensor.storage import Hold
from tandem.eager.tensor.tensor import wrap
from tandem.operators.declare.derivatives import NotDifferentiable
from tandem.registry import dtypes as dt
from tandem.registry.values import TensorSpec

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


@pytest.fixture(autouse=True)
def hot():
    native_layer.install()
    with config.override(hot_calls=1):
        yield


def elementwise():
    kinds = ("unary", "binary", "comparison", "ternary")
    found = [s for s in stubs() if getattr(s.operator.decl, "kind", "") in kinds]
    # One without a derivative is left to Python, unless its results are booleans.
    return [
        s
        for s in found
        if s.operator.decl.result == "bool" or not isinstance(s.operator.decl.derivative, NotDifferentiable)
    ]


SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((), (2,)), ((2, 1), (1, 3)), ((), ()), ((0, 2), (2,))]


@pytest.mark.parametrize("stub", share_each_commit(elementwise(), 3), ids=lambda s: s.operator.name)
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
    assert class_slots.class_constants()
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

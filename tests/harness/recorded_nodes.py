"""Calls that native code records, and comparisons of their graph nodes."""

import numpy as np
import tandem as td
from native_entries import stubs
from tandem.backends.cpu.fastpath.runtime import rt_base
from tandem.eager.autograd.autograd_meta import AutogradMeta
from tandem.eager.autograd.node import Node
from tandem.eager.tensor.storage import Hold
from tandem.eager.tensor.tensor import Tensor
from tandem.operators.declare.declaration import declared_operators
from tandem.registry import dtypes as dt


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


def stub_of(name):
    declared_operators()
    return next(stub for stub in stubs() if stub.operator.name == name)

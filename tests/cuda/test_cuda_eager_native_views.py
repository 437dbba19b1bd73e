"""Native eager calls on the GPU's test double: views, reductions, casts and writes."""

import sys

import numpy as np
import pytest
import tandem as td
from cuda_entries import answered, array_of, calls, entries_of, heat, in_use, needs_native, one_and_two
from tandem import errors
from tandem.backends.cuda.fastpath import eager


@pytest.fixture
def hot(cuda, request):
    with in_use(cuda, request):
        yield cuda


# -- views and reductions ----------------------------------------------------------------------------------------------
KEYS = [
    *(0, 3, -1, (1, 2), (-1, -2), slice(1, 3), slice(None, None, -2), (slice(None), 4), (slice(2, None), -1)),
    *(
        None,
        ...,
        (..., 2),
        (1, ..., None),
        (None, slice(1, 2), 3),
        (2, slice(5, 1, -2)),
        (),
        slice(2, 2),
        [0, 2],
    ),
]


@pytest.mark.parametrize("turned", [False, True])
def test_subscripts(hot, turned):
    a = np.arange(48, dtype=np.float32).reshape(6, 8)
    x = td.asarray(a, device="cuda")
    if turned:
        a, x = a.T, x.T
    for _ in range(6):
        for key in KEYS:
            found, want = x[key], a[key]
            assert (found.shape, found.tolist()) == (want.shape, want.tolist()), key
            if want.base is not None and want.size and key != [0, 2]:
                assert found.storage() is x.storage()
    for row in range(-len(a), len(a)):
        assert x[row].tolist() == a[row].tolist()
        assert x[row, 1:3].tolist() == a[row, 1:3].tolist()
    for key in (len(a), -len(a) - 1, (0, 99), (slice(1), -99), 10**30):
        with pytest.raises(IndexError):
            x[key]
    assert x[True].shape == (1, *a.shape)
    assert x[td.asarray(1)].tolist() == a[1].tolist()


def test_views_of_what_is_written(hot):
    x = td.zeros((3, 4), device="cuda")
    rows = [heat(lambda i=i: x[i]) for i in range(3)]
    rows[1].fill_(5.0)
    x.T[0].add_(1.0)
    assert x.tolist() == [[1.0, 1.0, 1.0, 1.0][:1] + [0.0] * 3, [6.0, 5.0, 5.0, 5.0], [1.0, 0.0, 0.0, 0.0]]
    assert rows[1].tolist() == x[1].tolist()
    version = x.storage().version
    x[2].add_(1.0)
    assert x.storage().version == version + 1


@needs_native
def test_views_are_answered(hot):
    x = td.asarray(array_of(td.float32), device="cuda")
    a = array_of(td.float32)
    assert answered("permute", td.permute, x, (1, 0)).tolist() == a.T.tolist()
    assert answered("permute", lambda: x.T).stride() == (1, 8)
    assert answered("reshape", x.reshape, (2, -1)).tolist() == a.reshape(2, -1).tolist()
    assert answered("reshape", x.reshape, [48]).shape == (48,)
    assert answered("broadcast_to", td.broadcast_to, x, (2, 6, 8)).stride() == (0, 8, 1)
    assert answered("basic_index", lambda: x[1, 2:]).tolist() == a[1, 2:].tolist()
    turned = x.T
    assert heat(turned.reshape, (48,)).tolist() == a.T.reshape(48).tolist()  # a copy each time
    assert turned.reshape((48,)).storage() is not x.storage()


@needs_native
def test_reductions_are_answered(hot):
    a = array_of(td.float32)
    x = td.asarray(a, device="cuda")
    for options in ({}, {"axis": 0}, {"axis": -1}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}):
        found = answered("sum", lambda options=options: td.sum(x, **options))
        want = a.sum(**options)
        assert (found.shape, found.tolist()) == (want.shape, want.tolist())
    assert answered("max", td.max, x, 1).tolist() == a.max(1).tolist()
    assert answered("sum", lambda: td.sum(x, dtype=td.float64)).dtype is td.float64
    assert answered("argmax", td.argmax, x, 0).tolist() == a.argmax(0).tolist()
    long = td.ones(100_000, device="cuda")
    assert answered("sum", td.sum, long).item() == 100_000.0  # two kernels
    assert heat(td.sum, x.T[1:], 0).tolist() == a.T[1:].sum(0).tolist()
    with pytest.raises(errors.TandemError):
        td.sum(x, 5)


@needs_native
def test_casts_and_copies_are_answered(hot):
    a = array_of(td.float32)
    x = td.asarray(a, device="cuda")
    assert answered("clone", x.clone).tolist() == a.tolist()
    assert answered("cast", td.ops.td.cast, x, td.int32).dtype is td.int32
    assert answered("clone", x.T.clone).tolist() == a.T.tolist()
    assert heat(x[0, 1:].clone).tolist() == a[0, 1:].tolist()  # not aligned
    assert heat(x.T.contiguous).stride() == (6, 1)
    copy = x.clone()
    copy.add_(1.0)
    assert x.tolist() == a.tolist()


def test_many_layouts(hot):
    """The tables grow, and are emptied when there are too many plans."""
    x = td.ones(700, device="cuda")
    hot.host_noop(1)
    for _ in range(2):
        for size in range(1, 600):
            part = x[:size]
            assert (part + part).shape == (size,)


def test_state_is_rebuilt_for_another_toolkit(hot):
    x = td.ones(3, device="cuda")
    heat(lambda: (x + x, x[1], x.sum()))
    handle = td.backends.cuda.runtime.toolkit.install(
        td.backends.cuda.runtime.toolkit.toolkit()._replace(name="another")
    )
    y = td.ones(3, device="cuda")
    assert heat(lambda: y + y).tolist() == [2.0] * 3
    handle.remove()
    assert (x + x).tolist() == [2.0] * 3
    assert x[1].item() == 1.0


@needs_native
@one_and_two
def test_writes_are_answered(hot):
    a = array_of(td.float32)
    x, y = td.asarray(a, device="cuda"), td.asarray(a, device="cuda")
    found = answered("add_", lambda: x.add_(y))
    assert found is x
    version = x.storage().version
    x *= 2.0
    x[1].add_(x[1])  # the same array
    x[1:, 1].add_(y[0, 2:7])
    assert x.storage().version == version + 3
    want = a * 10
    want *= 2
    want[1] += want[1]
    want[1:, 1] += a[0, 2:7]
    assert x.tolist() == want.tolist()
    before, references = calls("mul_"), sys.getrefcount(x)
    heat(lambda: x.mul_(1.0), times=2000)
    assert calls("mul_") > before + 1900
    assert sys.getrefcount(x) == references + 0
    heat(lambda: x[1:].add_(x[:-1]))  # overlaps: a copy is made each time
    row = td.ones(8, dtype=td.int8, device="cuda")
    heat(lambda: row.add_(1))
    with pytest.raises(errors.ScalarOverflowError):
        row.add_(1000)
    with pytest.raises(errors.TandemError):
        row.add_(x[0])  # float32 does not fit
    assert row.tolist() == [9] * 8


@needs_native
def test_where_nothing_is_recorded_histories_do_not_matter(hot):
    weight = td.ones(4, device="cuda").requires_grad_()
    x = td.ones(4, device="cuda")
    heat(lambda: (x * x, x.add_(0.0), x.sum(), x[1:]))
    with td.no_grad():
        made = answered("mul", lambda: weight * x)
        assert not made.requires_grad
        assert not answered("sum", lambda: weight.sum()).requires_grad
        assert not answered("basic_index", lambda: weight[1:]).requires_grad
        answered("sub_", lambda: weight.sub_(x))
    assert weight.requires_grad
    assert weight.tolist() == [-8.0] * 4
    loss = (weight * weight).sum()
    with td.no_grad():
        weight.sub_(x)
    with pytest.raises(errors.TandemError):
        loss.backward()  # what it has saved was written
    with pytest.raises(errors.TandemError):
        weight.sub_(x)  # a leaf that is recorded


def test_writes_in_place(hot):
    x = td.arange(12, device="cuda", dtype=td.float32).reshape((3, 4))
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    for _ in range(6):
        x.add_(1.0)
        a += 1
        x[1:].mul_(x[:2])  # the operand overlaps
        a[1:] *= a[:2].copy()
        x.T.sub_(x.T)
        a -= a
        assert x.tolist() == a.tolist()
    with pytest.raises(errors.ScalarOverflowError):
        heat(lambda: td.ones(2, dtype=td.int8, device="cuda").add_(1)).add_(1000)


@needs_native
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("mul", lambda x: x * x),
        ("mul", lambda x: x * 2),
        ("exp", td.exp),
        ("add_", lambda x: x.add_(1.0)),
        ("matmul", lambda x: x @ x),
        ("sum", lambda x: x.sum()),
        ("basic_index", lambda x: x[1:]),
    ],
)
def test_plan_learnt_by_two_threads_keeps_its_record(hot, monkeypatch, name, call):
    """Machine code holds the address of a plan's record: a second thread that learns the plan must not replace it."""
    learnt, real = [], eager.OperatorEntries.add

    def learn(self, plan, args):
        done = real(self, plan, args)
        learnt.append((self, plan, args, plan.record))
        return done

    monkeypatch.setattr(eager.OperatorEntries, "add", learn)
    heat(call, td.ones((4, 4), dtype=td.float32, device="cuda"))
    monkeypatch.undo()
    mine = [one for one in learnt if one[0] is entries_of(name)]
    assert mine
    for found, plan, args, record in mine:
        found.add(plan, args)  # as the other thread does, which found the plan unknown before
        assert plan.record is record

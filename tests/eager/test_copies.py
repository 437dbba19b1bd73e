"""Copies and pickles of tensors that share memory share it in the same way."""

import copy
import os
import pickle
import sys

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
WAYS = pytest.mark.parametrize(
    "again",
    [
        copy.deepcopy,
        lambda tree: pickle.loads(pickle.dumps(tree)),
        lambda tree: pickle.loads(pickle.dumps(tree, 2)),
    ],
    ids=["deepcopy", "pickle", "protocol 2"],
)
DTYPES = [td.float32, td.int8, td.complex64, td.bfloat16, td.bool_]
VIEWS = {
    "itself": lambda x: x,
    "row": lambda x: x[1],
    "element": lambda x: x[1, 2],
    "steps": lambda x: x[::-1, 1::2],
    "transpose": lambda x: x.T,
    "flat": lambda x: x.reshape(-1),
    "broadcast": lambda x: td.broadcast_to(x[0], (2, 4)),
    "empty": lambda x: x[:0],
    "detached": lambda x: x.detach(),
    "of a view": lambda x: x[1:][:, 1:],
    "new axis": lambda x: x[:, None],
}


def owners(dtype):
    """Tensors whose memory lies in different orders."""
    array = np.arange(12).reshape(3, 4).astype(dtype.np)
    yield td.asarray(array.copy())
    yield td.asarray(np.asfortranarray(array))
    yield (
        td.asarray(array) + td.zeros((), dtype=dtype) if dtype is not td.bool_ else td.asarray(array) | False
    )
    wide = np.zeros((3, 9), array.dtype)
    wide[:, 1::2] = array
    yield td.asarray(wide)[:, 1::2]


def sharing(tensors):
    return [[np.shares_memory(a._array, b._array) for b in tensors] for a in tensors]


def check_copies(tensors, copies):
    assert sharing(copies) == sharing(tensors)
    for before in tensors:
        for after in copies:
            assert not np.shares_memory(before._array, after._array)
    for before, after in zip(tensors, copies, strict=True):
        assert after.dtype is before.dtype and after.requires_grad == before.requires_grad
        assert after.shape == before.shape and after.tolist() == before.tolist()
        assert after.strides == before.strides or not before.size
        assert after._array.flags.writeable == before._array.flags.writeable


@WAYS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_share_as_their_originals(again, dtype):
    rng = np.random.default_rng(SEED)
    for owner in owners(dtype):
        views = [make(owner) for make in VIEWS.values()]
        if dtype is td.complex64:
            views += [td.real(owner), td.imag(owner)]
        chosen = [views[place] for place in rng.permutation(len(views))]
        check_copies(chosen, again(chosen))
        tree = {"one": (chosen[0], [chosen[1]]), "two": chosen[2]}
        made = again(tree)
        check_copies(chosen[:3], [made["one"][0], made["one"][1][0], made["two"]])


@WAYS
def test_writes_reach_copied_views(again):
    x = td.asarray(np.arange(6.0))
    y = x[1:3]
    for order in ((x, y), (y, x)):
        first, second = again(order)
        assert first.storage() is second.storage() is not x.storage()
        whole, part = (first, second) if order[0] is x else (second, first)
        version = part.storage().version
        whole[1] = 99.0
        assert part.tolist() == [99.0, 2.0] and part.storage().version == version + 1
        part[1] = -1.0
        assert whole.tolist() == [0.0, 99.0, -1.0, 3.0, 4.0, 5.0] and whole.storage_offset == 0
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@WAYS
def test_copied_leaves_record_gradients(again):
    x = td.asarray([1.0, 2.0, 3.0], requires_grad=True)
    detached = x.detach()
    leaf, plain = again((x, detached))
    assert leaf.requires_grad and not plain.requires_grad and leaf.storage() is plain.storage()
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [2.0, 4.0, 6.0] and x.grad is None
    y = leaf * 2
    plain[0] = 5.0
    assert y.tolist() == [2.0, 4.0, 6.0] and leaf.tolist() == [5.0, 2.0, 3.0]
    base = td.asarray([1.0, 2.0, 3.0])
    whole, part = again((base, base[1:]))
    weight = td.asarray(2.0, requires_grad=True)
    whole[1:] = weight * part.clone()
    whole.sum().backward()
    assert weight.grad.item() == 5.0 and part.tolist() == [4.0, 6.0]


def test_unshared_part_of_storage_is_stored_alone():
    x = td.zeros((100, 1000))
    row = x[0]
    assert len(pickle.dumps(row)) > 400_000
    del x
    assert len(pickle.dumps(row)) < 10_000
    assert copy.deepcopy(row).storage().nbytes == 4000
    assert copy.copy(td.zeros((100, 1000))[0]).storage().nbytes == 4000


@WAYS
def test_one_tensor_stays_one(again):
    x = td.asarray([1.0, 2.0])
    one, two, view = again([x, x, x[:1]])
    assert one is two and np.shares_memory(one._array, view._array)


@WAYS
def test_meta_tensors_share_their_storage(again):
    x = td.ones((3, 4), device="meta")
    whole, part = again((x, x[1:, ::2]))
    assert whole.storage() is part.storage() is not x.storage()
    assert (part.shape, part.stride(), part.storage_offset) == ((2, 2), (4, 2), 4)


def test_shared_parts_of_tensors_are_copied_once():
    values = td.asarray([1.0, 2.0])
    x = td.sparse_coo_tensor([[0, 1], [1, 0]], values, (2, 2))
    ints = td.quantize_per_tensor(values, 0.5, 0, td.int8)
    for tree in ((x._values, x), (x, x._values)):
        one, two = sorted(copy.deepcopy(tree), key=lambda t: isinstance(t, type(x)))
        assert two._values is one
    one, two = copy.deepcopy((ints._ints, ints))
    assert two._ints is one


PLAIN = {
    "rows": lambda: td.asarray(np.arange(6.0).reshape(2, 3)),
    "columns": lambda: td.asarray(np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    "view": lambda: td.asarray(np.arange(12.0).reshape(3, 4))[::2, 1:],
    "element": lambda: td.asarray(np.arange(3))[1],
    "was viewed": lambda: (lambda x: (x[0], x)[1])(td.asarray(np.arange(3.0))),
    "read-only": lambda: td.broadcast_to(td.asarray([1.0]), (2, 3)),
    "bfloat16": lambda: td.ones(3, dtype=td.bfloat16),
    "leaf": lambda: td.ones(3).requires_grad_(),
    "frozen": lambda: td.ones(3).requires_grad_().requires_grad_(False),
    "detached": lambda: td.ones(3).requires_grad_().detach(),
    "weak scalar": lambda: td.sqrt(4.0),
    "meta": lambda: td.ones((2, 3), device="meta"),
}


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_hot_copies_equal_the_first(make):
    def describe(x):
        facts = type(x), x.shape, x.dtype, x.requires_grad, x.is_leaf, x.grad, x.strides
        if x.device == "meta":
            return facts
        flags = x.flags
        memory = flags.c_contiguous, flags.f_contiguous, flags.writeable, flags["ALIGNED"]
        return *facts, *memory, x.detach().numpy().tobytes()

    def look():
        x, memo = make(), {}
        shallow, deep = copy.copy(x), copy.deepcopy(x, memo)
        assert memo[id(x)] is deep
        assert x.device == "meta" or not np.shares_memory(deep._array, x._array)
        assert x.__deepcopy__({id(x): 1}).shape == x.shape
        one, other = copy.deepcopy([x, x])
        assert one is other
        return describe(shallow), describe(deep), describe(x)

    with td.config.override(hot_composites=10**9):
        expected = look()
    with td.config.override(hot_composites=1):
        assert all(look() == expected for _ in range(4))


def test_copies_do_not_leak():
    x, y = td.asarray(np.arange(6.0)), td.asarray(np.arange(6.0))

    def run():
        for _ in range(2000):
            copy.copy(x), copy.deepcopy(x), x.flags, copy.deepcopy([y, y[1:]])

    run()
    before = [sys.getrefcount(one) for one in (x, x._array, y, y._array, td.Tensor.flags)]
    assert smallest_block_growth(run) < 100
    assert [sys.getrefcount(one) for one in (x, x._array, y, y._array, td.Tensor.flags)] == before

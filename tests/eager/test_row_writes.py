"""In-place writes at positions along an axis: native calls write what operators write, and nothing else."""

import sys

import numpy as np
import pytest
import tandem as td
import tandem.torch as torch
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.eager.tensor.inplace import write_rows
from tandem.errors import TandemError

NATIVE = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")
DTYPES = ["float32", "float64", "int32", "int64", "int16", "bool", "complex64", "float16"]
INDICES = ["int64", "int32", "uint8", "int16"]


@pytest.fixture(scope="module", autouse=True)
def hot_entry():
    """Call the entry until it is installed."""
    x, index = torch.zeros(2), torch.tensor([0])
    for _ in range(2 * config.flags.hot_composites):
        write_rows(x, 0, index, torch.zeros(1), False)


def make(shape, dtype, seed=0):
    numbers = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 50, shape)
    return td.asarray(numbers.astype(dtype))


CALLS = {
    "index_add": lambda x, axis, rows, element, source: ("index_add", (axis, rows, source)),
    "index_copy": lambda x, axis, rows, element, source: ("index_copy", (axis, rows, source)),
    "index_fill": lambda x, axis, rows, element, source: ("index_fill", (axis, rows, 1)),
    "scatter": lambda x, axis, rows, element, source: ("scatter", (axis, element, source)),
    "scatter_add": lambda x, axis, rows, element, source: ("scatter_add", (axis, element, source)),
    "scatter_number": lambda x, axis, rows, element, source: ("scatter", (axis, element, 1)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_writes_equal_the_functional_operators(name, dtype):
    for number, (shape, axis) in enumerate(
        (((5,), 0), ((4, 3), 0), ((4, 3), 1), ((2, 5, 3), -2), ((3, 0), 0))
    ):
        x = make(shape, dtype)
        size = shape[axis]
        picked = (*shape[: axis % len(shape)], 3, *shape[axis % len(shape) + 1 :])
        kind = INDICES[number % len(INDICES)]
        rows = td.asarray(np.array([size - 1, 0, size - 1], dtype=kind))
        element = td.asarray(np.random.default_rng(1).integers(0, size, picked).astype(kind))
        if "add" in name and dtype == "bool":
            continue
        operator, args = CALLS[name](x, axis, rows, element, make(picked, dtype, 2))
        expected = getattr(td, operator)(x, *args)
        assert getattr(x, f"{operator}_")(*args) is x
        np.testing.assert_array_equal(x, expected)


def test_views_versions_and_histories():
    whole = torch.zeros(3, 4)
    part, base = whole[1], whole.clone()
    part.index_add_(0, torch.tensor([1, 1]), torch.ones(2))
    assert whole.tolist() == [[0.0] * 4, [0.0, 2.0, 0.0, 0.0], [0.0] * 4] and base.sum() == 0
    whole.T.index_copy_(0, torch.tensor([3]), torch.ones(1, 3))
    assert whole[:, 3].tolist() == [1.0, 1.0, 1.0]
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    y.detach().index_add_(0, torch.tensor([0]), torch.ones(1))
    with pytest.raises(td.errors.VersionError):
        z.backward()
    y = x * 2
    y.scatter_add_(0, torch.tensor([0]), x[:1] * 3)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 2.0, 2.0]
    with pytest.raises(TandemError, match="leaf"):
        x.index_fill_(0, torch.tensor([0]), 0.0)
    with torch.no_grad():
        x.index_fill_(0, torch.tensor([0]), 7.0)
        x.index_add_(0, torch.tensor([1]), torch.ones(1), alpha=3)
    assert x.tolist() == [7.0, 4.0, 1.0]


def test_operands_that_share_memory():
    x = td.asarray([1.0, 2.0, 3.0, 4.0])
    expected = td.index_add(x.clone(), 0, td.asarray([3, 2]), x[2:].clone())
    x.index_add_(0, td.asarray([3, 2]), x[2:])
    assert x.tolist() == expected.tolist()
    k = td.asarray([2, 0, 1])
    expected = td.scatter(k.clone(), 0, k.clone(), td.asarray([5, 6, 7]))
    k.scatter_(0, k, td.asarray([5, 6, 7]))
    assert k.tolist() == expected.tolist()


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_and_put(accumulate):
    for shape in ((5,), (3, 2)):
        x, index = make(shape, "float64"), td.asarray([2, 0, 2])
        source = make((3, *shape[1:]), "float64", 3)
        expected = x.numpy().copy()
        if accumulate:
            np.add.at(expected, index.numpy(), source.numpy())
        else:
            expected[index.numpy()] = source.numpy()
        assert x.index_put_((index,), source, accumulate) is x
        np.testing.assert_array_equal(x, expected)
        flat = expected.reshape(-1)
        if accumulate:
            np.add.at(flat, [1, 1], [5.0, 6.0])
        else:
            flat[[1, 1]] = [5.0, 6.0]
        x.put_(td.asarray([1, 1]), td.asarray([5.0, 6.0], dtype="float64"), accumulate)
        np.testing.assert_array_equal(x, expected)


def test_wrong_calls_raise_and_write_nothing():
    x = torch.zeros(2, 3)
    before = x.tolist()
    for call in (
        lambda: x.index_add_(0, torch.tensor([0, 2]), torch.ones(2, 3)),
        lambda: x.index_add_(0, torch.tensor([0, -3]), torch.ones(2, 3)),
        lambda: x.index_add_(2, torch.tensor([0]), torch.ones(1, 3)),
        lambda: x.index_add_(0, torch.tensor([0]), torch.ones(2, 3)),
        lambda: x.index_add_(0, torch.tensor([0.5]), torch.ones(1, 3)),
        lambda: x.scatter_(1, torch.tensor([[0, 3]]), torch.ones(1, 2)),
        lambda: x.scatter_(1, torch.tensor([0, 1]), torch.ones(2)),
        lambda: x.scatter_(0, torch.tensor([0, 1]), 1.0),
        lambda: x.index_copy_(0, torch.tensor([0]), torch.ones(1, 3), 5),
        lambda: x.index_copy_(0, torch.tensor([0])),
        lambda: x.index_put_((torch.tensor([5]),), torch.ones(1, 3), True),
        lambda: torch.zeros(1).expand(3).index_add_(0, torch.tensor([0]), torch.ones(1)),
    ):
        with pytest.raises((TandemError, TypeError)):
            call()
        assert x.tolist() == before
    ones = torch.zeros(3, dtype=torch.int32)
    with pytest.raises(TandemError):
        ones.index_add_(0, torch.tensor([0]), torch.ones(1))


def test_calls_of_other_forms_raise_when_they_are_hot():
    i, square = torch.tensor([0, 1]), torch.tensor([[0, 1, 0]])
    mask = torch.tensor([True, False, True])
    for _ in range(config.flags.hot_calls + 10):
        for name in ("index_copy_", "index_add_", "scatter_", "scatter_add_"):
            getattr(torch.zeros(2), name)(0, i, torch.ones(2))
        torch.zeros(2).index_fill_(0, i, 1.0)
    for call in (
        lambda x: x.scatter_(0, i, torch.ones(2, 3)),
        lambda x: x.scatter_add_(0, i, torch.ones(2, 3)),
        lambda x: x.index_add_(0, square, torch.ones(1, 3)),
        lambda x: x.index_copy_(0, square, torch.ones(1, 3)),
        lambda x: x.index_fill_(0, torch.tensor([0]), torch.ones(1, 3)),
        lambda x: x[0].scatter_(0, i, torch.ones(2), alpha=2),
        lambda x: x[0].index_copy_(0, i, torch.ones(2), alpha=2),
        lambda x: x[0].index_fill_(0, mask, 1.0),
        lambda x: x[0].scatter_(0, mask, 1.0),
        lambda x: x.index_fill_(False, i, 1.0),
        lambda x: x.index_fill_(0.0, i, 1.0),
        lambda x: x[0].index_add_(0, i, torch.ones(2), alpha=None),
        lambda x: x[0].index_fill_(0, i, None),
        lambda x: x[0].index_fill_(0, torch.tensor([7]), 1.0),
    ):
        x = torch.zeros(2, 3)
        with pytest.raises(TandemError):
            call(x)
        assert x.tolist() == [[0.0] * 3] * 2


def test_keywords_and_traces():
    i, s = torch.tensor([0, 2]), torch.ones(2)
    for _ in range(config.flags.hot_calls + 10):
        assert torch.zeros(3).index_fill_(0, i, value=3.0).tolist() == [3.0, 0.0, 3.0]
        assert torch.zeros(3).index_fill_(dim=0, index=i, value=3.0).tolist() == [3.0, 0.0, 3.0]
        assert torch.zeros(3).scatter_(0, index=i, src=3.0).tolist() == [3.0, 0.0, 3.0]
        assert torch.zeros(3).scatter_(0, index=i, src=torch.ones(5)).tolist() == [1.0, 0.0, 1.0]
        assert torch.zeros(3).index_add_(dim=0, index=i, source=s, alpha=2).tolist() == [2.0, 0.0, 2.0]
    assert td.jit(lambda x: x.clone().put_(i, s))(torch.zeros(3)).tolist() == [1.0, 0.0, 1.0]
    rows = td.jit(td.vmap(lambda x: x.clone().put_(i, s)))(torch.zeros(2, 3))
    assert rows.tolist() == [[1.0, 0.0, 1.0]] * 2
    assert torch.zeros(2, 2).index_put_(((0, 1),), torch.ones(2)).tolist() == [[1.0, 1.0]] * 2


def test_levels_and_traces():
    def write(x, i):
        y = x * 2
        return y.index_add_(0, i, torch.ones(1))

    x, i = torch.ones(3, 4), torch.tensor([[0], [1], [3]])
    expected = np.full((3, 4), 2.0)
    expected[[0, 1, 2], [0, 1, 3]] += 1
    np.testing.assert_array_equal(td.vmap(write)(x, i), expected)
    np.testing.assert_array_equal(td.jit(td.vmap(write))(x, i), expected)
    np.testing.assert_array_equal(td.jit(write)(x[1], i[1]), expected[1])


@NATIVE
def test_no_drift_in_reference_counts():
    x, index, source = torch.zeros(2, 3), torch.tensor([1]), torch.ones(1, 3)
    before = [sys.getrefcount(one) for one in (x, index, source, True)]
    for _ in range(100_000):
        write_rows(x, 0, index, source, True)
    after = [sys.getrefcount(one) for one in (x, index, source, True)]
    assert all(abs(one - other) < 50 for one, other in zip(before, after, strict=True))
    assert x[1].tolist() == [100_000.0] * 3

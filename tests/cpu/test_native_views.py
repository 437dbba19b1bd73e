"""Views as NumPy and PyTorch write them: ``x.view``, ``x.squeeze()``, rows of an iteration, lengths, and copies."""

import copy

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from python_calls import python_calls
from tandem import config

SHAPES = [(-1,), (24,), (4, 6), ((2, -1),), ([3, 8],), (td.int8,), (np.uint64,), (td.int32,), (td.float64,)]
REFUSED = [(5,), (-1, -1), ((2, 2),), (td.bool_,), (object,), ("x",), (2.5,), (4, td.int8)]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1, hot_composites=1):
        td.ones(2) * 2  # installs the native layer
        yield


def outcome(function, *args):
    """What a call returns, with its memory, or the type of its exception with the text."""
    try:
        result = function(*args)
    except Exception as error:
        return type(error), str(error)
    return result.dtype, result.shape, result.strides, result._array.ctypes.data, result.tolist()


@pytest.mark.parametrize("args", SHAPES + REFUSED, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.complex64])
def test_view_is_what_python_returns(args, dtype):
    python = getattr(td.Tensor.view, "__wrapped__", td.Tensor.view)
    base = np.arange(24).astype(dtype)
    for array in (base, base.reshape(4, 6), base.reshape(4, 6).T, base.reshape(2, 12)[:, ::2], base[:0]):
        x = td.asarray(array)
        expected = outcome(python, x, *args)
        for _ in range(4):
            assert outcome(x.view, *args) == expected, array.shape


def test_view_of_a_dtype_shares_memory_and_has_no_history():
    x = td.asarray(np.arange(4.0))
    for _ in range(4):
        bits = x.view(td.int64)
        bits[2] = int(np.float64(7).view(np.int64))
        assert x[2] == 7
        x[2] = 2.0
    leaf = td.ones(4, dtype=td.float64).requires_grad_()
    for _ in range(4):
        assert not leaf.view(td.int64).requires_grad
        assert leaf.view(2, 2).requires_grad


@needs_native
@pytest.mark.parametrize("args", [(6, 4), ((6, 4),), (td.int16,), (np.int16,)], ids=str)
def test_hot_view_runs_no_python_code(args):
    x = td.ones(24)
    for _ in range(4):
        x.view(*args)
    assert python_calls(td.Tensor.view, x, *args) == []


def test_squeeze_without_axes_to_remove_is_the_tensor():
    x, y = td.ones((2, 3)), td.ones((2, 1, 3))
    for _ in range(4):
        assert x.squeeze() is x
        assert td.squeeze(x) is x
        assert y.squeeze() is not y
        assert y.squeeze().shape == y.squeeze(1).shape == (2, 3)
    assert td.jit(lambda x: x.squeeze() * 2)(x).shape == (2, 3)
    assert td.grad(lambda x: x.squeeze().sum())(x).shape == (2, 3)


@pytest.mark.parametrize("rows", [0, 1, 4, 300])
def test_rows_of_an_iteration_are_views(rows):
    x = td.zeros((rows, 2))
    for _ in range(3):
        for number, row in enumerate(x):
            row += number
    assert x[:, 1].tolist() == [3.0 * i for i in range(rows)]
    leaf = td.ones((rows, 2)).requires_grad_()
    total = sum(((i + 1) * row.sum() for i, row in enumerate(leaf)), start=td.zeros(()))
    if rows:
        total.backward()
        assert leaf.grad[:, 0].tolist() == [float(i + 1) for i in range(rows)]
    with pytest.raises(TypeError, match="0-d"):
        iter(td.asarray(1.0))


def test_iteration_in_transforms():
    x = td.asarray(np.arange(6.0).reshape(3, 2))
    assert td.jit(lambda x: [row * 2 for row in x])(x)[2].tolist() == [8.0, 10.0]
    assert td.vmap(lambda row: sum(row))(x).tolist() == [1.0, 5.0, 9.0]
    assert td.grad(lambda x: sum(row[0] for row in x))(x).tolist() == [[1.0, 0.0]] * 3
    a, b = td.asarray([1.0, 2.0])
    assert (a.item(), b.item()) == (1.0, 2.0)


def test_length_follows_classes_and_patches(monkeypatch):
    x = td.ones((3, 2))
    for _ in range(4):
        assert len(x) == 3
        with pytest.raises(TypeError, match="0-d"):
            len(td.asarray(1.0))

    class Named(td.Tensor):
        def __len__(self):
            return 7

    assert len(td.Tensor.__new__(Named)) == 7
    assert td.vmap(lambda row: row * len(row))(x).tolist() == [[2.0, 2.0]] * 3
    assert td.jit(lambda x: x.sum() * len(x))(x) == 18
    monkeypatch.setattr(td.Tensor, "__len__", lambda self: 5)
    assert len(x) == 5


def test_sizes_of_tensors_of_several_shapes():
    for _ in range(4):
        for shape in [(), (3,), (3, 2), (2, 3), (0, 3), (1, 1, 1, 2), (1, 1, 1, 1, 2)]:
            x = td.ones(shape)
            assert x.size == np.prod(shape, dtype=int)
            assert x.size() == shape


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies_have_their_own_memory(make):
    plain = td.asarray(np.arange(6.0).reshape(2, 3).T)
    leaf, view = td.ones(3).requires_grad_(), td.ones((2, 3))[1]
    for x in (plain, leaf, view):
        y = make(x)
        assert (y.tolist(), y.strides, y.requires_grad) == (x.tolist(), x.strides, x.requires_grad)
        assert not np.shares_memory(y._array, x._array)
    pair = copy.deepcopy([plain, plain])
    assert pair[0] is pair[1]

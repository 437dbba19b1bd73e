"""NumPy's functions of tensors return tensors, eagerly, in traces and under transforms."""

import copy
import pickle

import numpy as np
import pytest
import tandem as td
from python_calls import python_calls
from tandem import config
from tandem.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError

A = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
V = np.array([3.0, 1.0, 2.0])
MASK = A > 0


def run_both(function):
    """The result of a function on tensors, jitted and not, which must be tensors with the values that NumPy has."""
    wanted, tensors = function(A, V, MASK), (td.asarray(A), td.asarray(V), td.asarray(MASK))
    for run in (function, td.jit(function)):
        result = run(*tensors)
        assert type(result) is td.Tensor
        assert result.dtype.np == wanted.dtype
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-6)


FUNCTIONS = {
    "sum": lambda a, v, m: np.sum(a, axis=0, where=m, initial=1.0),
    "mean": lambda a, v, m: np.mean(a, axis=1, where=m, keepdims=True),
    "mean in float32": lambda a, v, m: np.mean(a, dtype=np.float32),
    "std": lambda a, v, m: np.std(a, axis=0, ddof=1),
    "var": lambda a, v, m: np.var(a, where=m, ddof=1),
    "max": lambda a, v, m: np.max(a, axis=1, where=m, initial=-1.0),
    "max of none": lambda a, v, m: np.max(a[:0], axis=0, initial=2.0),
    "all": lambda a, v, m: np.all(m, where=m),
    "concatenate": lambda a, v, m: np.concatenate([a, a], axis=1, dtype=np.float32),
    "reshape": lambda a, v, m: np.reshape(a, (3, 2), order="F"),
    "take": lambda a, v, m: np.take(v, [0, 7], mode="clip"),
    "clip": lambda a, v, m: np.clip(a, a_min=0, a_max=None),
    "sort": lambda a, v, m: np.sort(a, axis=None),
    "dot": lambda a, v, m: np.dot(a, [1.0, 2.0, 3.0]),
    "einsum": lambda a, v, m: np.einsum("ij,j->i", a, v, optimize=True),
    "norm": lambda a, v, m: np.linalg.norm(a, axis=0),
    "fft": lambda a, v, m: np.fft.fft(v),
    "add to where": lambda a, v, m: np.add(a, v, out=np.zeros_like(a), where=m),
    "add in float32": lambda a, v, m: np.add(a, 1, dtype=np.float32),
    "greater": lambda a, v, m: np.greater(a, v, dtype=bool),
    "add.reduce": lambda a, v, m: np.add.reduce(a, where=m, initial=1.0),
    "add.accumulate": lambda a, v, m: np.add.accumulate(a, axis=1),
    "multiply.outer": lambda a, v, m: np.multiply.outer(a, v),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_result_is_a_tensor_with_the_values_of_numpy(name):
    run_both(FUNCTIONS[name])


def test_functions_are_differentiated_and_batched():
    x = td.asarray(A)
    assert td.grad(lambda x: np.sum(np.square(x), where=MASK))(x).tolist() == (2 * A * MASK).tolist()
    assert td.vmap(lambda row: np.mean(row, axis=0))(x).tolist() == np.mean(A, 1).tolist()
    assert td.jit(np.sin)(x).tolist() == td.sin(x).tolist()
    assert td.jit(np.sum)(x).item() == A.sum()


def test_functions_without_an_operator_return_tensors():
    x = td.asarray(V)
    for result in (np.maximum.accumulate(x), np.pad(x, 1, mode="edge"), np.add.reduceat(x, [0, 2])):
        assert type(result) is td.Tensor
    assert np.maximum.accumulate(x).tolist() == np.maximum.accumulate(V).tolist()
    with pytest.raises(ConcretizationError) as caught:
        td.jit(np.maximum.accumulate)(x)
    assert "accumulate" in caught.value.__notes__[0]
    with pytest.raises(ArgumentError, match="gradients"):
        np.maximum.accumulate(td.asarray(V, requires_grad=True))


@pytest.mark.parametrize(
    "lengths, axis",
    [(2, 0), ((2, 2), (1, 0)), ((1, 2), None), ((2, 2), (1, 1)), (0, 1), ((), ())],
)
def test_sliding_windows_are_those_of_numpy(lengths, axis):
    windows = np.lib.stride_tricks.sliding_window_view
    wanted, result = windows(A, lengths, axis), td.jit(lambda x: windows(x, lengths, axis))(td.asarray(A))
    assert type(result) is td.Tensor and result.tolist() == wanted.tolist() and result.shape == wanted.shape


def test_sliding_windows_are_differentiated_and_checked():
    windows = td.lib.stride_tricks.sliding_window_view
    assert td.grad(lambda x: windows(x, 2).sum())(td.ones(4)).tolist() == [1, 2, 2, 1]
    with pytest.raises(ValueError, match="window of 5 elements does not fit an axis of length 4"):
        windows(td.ones(4), 5)
    with pytest.raises(ValueError, match="1 lengths of windows do not fit 2 axes"):
        windows(td.ones((2, 2)), 1)


def test_views_with_strides_in_bytes_stay_within_the_tensor():
    view, x = td.lib.stride_tricks.as_strided, td.asarray(V)
    given = ((2, 2), (V.itemsize, V.itemsize))
    assert view(x, *given).tolist() == np.lib.stride_tricks.as_strided(V, *given).tolist()
    assert view(x).tolist() == V.tolist()
    assert td.grad(lambda x: view(x, *given).sum())(x).tolist() == [1, 2, 1]
    with pytest.raises(IndexError, match="memory"):
        view(x, (4,))
    with pytest.raises(td.errors.UnsupportedError, match="whole elements"):
        view(x, (2,), (1,))
    with pytest.raises(td.errors.UnsupportedError, match="not contiguous"):
        view(td.ones((4, 4)).T, (2,))


def test_arrays_and_lists_are_converted_by_functions_written_in_python():
    x = td.asarray(V)
    for function in (np.broadcast_arrays, np.meshgrid):
        for other in (V, [1.0, 2.0, 3.0], [x[0], x[1], x[2]]):
            wanted = function(V, np.asarray([float(item) for item in other]))
            for one, array in zip(function(x, other), wanted, strict=True):
                assert type(one) is td.Tensor
                np.testing.assert_array_equal(one.numpy(), array)
    assert np.gradient(x, V).tolist() == np.gradient(V, V).tolist()
    numbers, nothing = np.broadcast_arrays(x, None)  # an array of objects: NumPy's result
    assert type(numbers) is td.Tensor and nothing.dtype == object


def test_functions_write_into_tensors():
    x, array = td.zeros((2, 3), dtype=td.float64), np.zeros((2, 3))
    for out in (x, array):
        assert np.add(td.asarray(A), 1.0, out=out) is out
        assert np.multiply(out, 2.0, out=out, where=td.asarray(MASK)) is out
        np.copyto(out, 9.0, where=A == 3)
        np.put(out, [0, 5], [7.0, 8.0])
        np.place(out, A == -2, [5.0])
        np.putmask(out, A == 4, [4.0])
        np.fill_diagonal(out[:, 1:], 6.0)
        np.add.at(out, ([0, 0], [0, 0]), 1.0)
    assert x.tolist() == array.tolist()
    for write, error in (
        (lambda: np.sum(x, axis=0, out=td.zeros(2)), ShapeError),
        (lambda: np.add(x, 1.0, out=td.zeros((2, 3), dtype=td.int64)), DTypeError),
        (lambda: np.add(x, 1.0, dtype=np.int64), DTypeError),
        (lambda: np.copyto(td.zeros(3, dtype=td.int64), x[0]), DTypeError),
    ):
        with pytest.raises(error):
            write()


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float32", "complex128"])
def test_dtypes_are_instances_of_numpy_dtype(name):
    dtype = td.zeros(1, dtype=name).dtype
    assert isinstance(dtype, np.dtype) and type(dtype) is td.DType
    assert np.dtype(dtype) == dtype == np.dtype(name) and np.isdtype(dtype, "bool") == (name == "bool")
    assert np.issubdtype(dtype, np.floating) == (name == "float32")
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is dtype
    assert np.zeros(2, dtype).dtype == np.dtype(name)


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (lambda x: np.sin(x), 3),
        (lambda x: np.add(x, 1), 3),
        (lambda x: np.add(x, x), 3),
        (lambda x: np.dot(x, x), 12),
    ],
)
def test_plain_calls_run_few_python_functions(call, most):
    x = td.asarray(V)
    if not config.flags.native:
        pytest.skip("native code is off")
    for _ in range(400):
        call(x)
    names = python_calls(call, x)
    assert len(names[1:]) <= most, names


def test_plain_ufunc_calls_return_what_other_calls_do():
    x = td.asarray(V)
    for ufunc, inputs in ((np.divmod, (x, 2)), (np.add, (x, True)), (np.power, (2, x)), (np.modf, (x,))):
        plain, other = ufunc(*inputs), ufunc(*inputs, subok=True)
        assert type(plain) is type(other)
        for one, two in zip(plain, other) if type(plain) is tuple else [(plain, other)]:
            assert one.dtype is two.dtype and one.tolist() == two.tolist()

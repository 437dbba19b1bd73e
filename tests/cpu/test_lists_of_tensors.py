"""Tensors of lists that hold tensors: the native entry of `asarray` and the Python path agree."""

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem.eager.tensor import construct

a, b = td.asarray(1.5), td.asarray(-2.0)
i, j, flag = td.asarray(3), td.asarray(4, dtype="int8"), td.asarray(True)
x, y = td.asarray([1.0, 2.0, 3.0]), td.asarray([4.0, 5.0, 6.0])
LISTS = {
    "numbers": [1, 2.5],
    "one": [a],
    "tensors": [a, b, a],
    "tuple": (a, b),
    "nested": [[a, b], [b, a], [a, a]],
    "with floats": [a, 1.0, b],
    "number first": [0.5, a],
    "with ints": [a, 1, True],
    "nested with floats": [[a, 0.0], [1, b]],
    "integers": [i, 7],
    "integers and floats": [i, 0.5],
    "bools": [flag, False],
    "bools and ints": [flag, 2],
    "too large": [j, 300],
    "dtypes": [a, i],
    "kinds of integers": [i, j],
    "vectors": [x, y],
    "nested vectors": [[x, y], [y, x]],
    "views": [x[::2], y[::2]],
    "matrices": [td.zeros((2, 3)), td.ones((2, 3))],
    "transposed": [td.ones((2, 3)).T, td.zeros((3, 2))],
    "empty vectors": [td.zeros(0), td.zeros(0)],
    "different shapes": [x, a],
    "vector and number": [x, 1.0],
    "ragged": [[a, b], [a]],
    "depths": [a, [b]],
    "elements": [x[0], y[2], x[1]],
    "complex": [td.asarray(1j), 2.0],
    "float and complex": [a, 1j],
    "half": [td.asarray(1.0, dtype="float16"), 0.1],
    "arrays": [a, np.float64(2.0)],
    "weak": [td.sqrt(2.0), a],
    "detached": [a.detach(), b],
}


def describe(fn):
    try:
        result = fn()
    except Exception as error:
        return type(error), None
    return result.dtype, result.shape, result.tolist()


@pytest.mark.parametrize("dtype", [None, "float32", "float64", "int64"])
@pytest.mark.parametrize("name", LISTS)
def test_entry_agrees_with_python(name, dtype):
    wanted = None if dtype is None else construct.as_dtype(dtype)
    expected = describe(lambda: construct._from_other(LISTS[name], wanted, None))
    for _ in range(3):
        assert describe(lambda: td.asarray(LISTS[name], dtype=dtype)) == expected


def test_result_owns_its_memory():
    first, row = td.asarray(1.0), td.asarray([1.0, 2.0])
    one, two = td.asarray([first, first]), td.asarray([row, row])
    first[...] = 9.0
    row[...] = 9.0
    assert one.tolist() == [1.0, 1.0] and two.tolist() == [[1.0, 2.0]] * 2


def test_gradients_flow_through_lists():
    leaf = td.asarray(2.0, requires_grad=True)
    for build in (td.asarray, tnp.array):
        leaf.grad = None
        (build([leaf, leaf * leaf, 1.0]) * td.asarray([1.0, 10.0, 100.0])).sum().backward()
        assert leaf.grad.item() == 41.0
    assert td.grad(lambda x: td.asarray([x, 3.0 * x]).sum())(a).item() == 4.0
    assert td.jit(lambda x: td.asarray([x, 1.0]))(a).tolist() == [1.5, 1.0]
    assert td.vmap(lambda x: td.asarray([x, 1.0]))(x).tolist() == [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]


def test_values_that_are_assigned():
    target = td.zeros(3)
    for _ in range(3):
        target[:2] = [a, 4]
        target[2] = b
    assert target.tolist() == [1.5, 4.0, -2.0]
    with pytest.raises((IndexError, TypeError, ValueError)):
        target[[a, b]]
    assert target[[td.asarray(2), td.asarray(0)]].tolist() == [-2.0, 1.5]


def test_lists_do_not_leak():
    import sys

    before = sys.getrefcount(a), sys.getrefcount(b)
    for _ in range(100_000):
        td.asarray([a, 1.0, b])
    assert (sys.getrefcount(a), sys.getrefcount(b)) == before

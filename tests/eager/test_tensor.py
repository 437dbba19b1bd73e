"""Tensor: construction, special methods, conversion, and what is generated from the declarations."""

import copy
import functools
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tandem as td
from helpers import assert_same
from tandem.eager.tensor import dunders

X = np.arange(12, dtype=np.float32).reshape(3, 4)


assert_close = functools.partial(assert_same, rtol=1e-6)


# -- construction ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, td.int64), (1.5, td.float32), (True, td.bool), (1j, td.complex64), ([1, 2], td.int64),
        ([1, 2.5], td.float32), ([[True]], td.bool), ([], td.float32), (np.float64(1), td.float64),
        ([np.float64(1)], td.float64), (np.int8([1]), td.int8), (np.array([1.0]), td.float64), (range(3), td.int64),
    ],
)  # fmt: skip
def test_dtype_of_what_is_given(value, dtype):
    assert td.asarray(value).dtype is dtype


def test_arrays_are_not_copied_and_share_both_ways():
    array = X.copy()
    x = td.asarray(array)
    array[0, 0] = 100
    assert x[0, 0].item() == 100
    x[1, 1] = -1
    assert array[1, 1] == -1
    assert td.asarray(array, copy=True).numpy() is not array
    assert td.asarray(x) is x
    with pytest.raises(ValueError, match="copy=False"):
        td.asarray(array, dtype=td.int32, copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        td.asarray([1.0], copy=False)


def test_other_sources():
    assert_close(td.asarray(X.astype(">f4")), X)
    assert_close(td.asarray(memoryview(X[0].copy())), X[0])
    assert_close(td.asarray([td.asarray(1.0), td.asarray(2.0)]), np.float32([1, 2]))
    assert td.asarray(range(2, 5)).tolist() == td.Tensor(range(2, 5)).tolist() == [2, 3, 4]
    assert td.asarray(range(3), dtype=td.int8).dtype is td.int8
    assert_close(td.asarray([[1, 2], [3, 4]], dtype="int8"), np.int8([[1, 2], [3, 4]]))

    class Exporter:
        def __dlpack__(self, **options):
            return X[0].copy().__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    assert_close(td.asarray(Exporter()), X[0])
    assert_close(td.asarray(np.from_dlpack(td.asarray(X))), X)


def test_to_and_astype():
    x = td.asarray(X)
    assert x.to("cpu") is x
    assert x.to(td.float32) is x
    assert x.to("cpu", td.float64).dtype is td.float64
    assert x.to(dtype="int32").dtype is td.int32
    assert x.to(td.float32, copy=True) is not x
    assert_close(x.astype(td.int8), X.astype(np.int8))


# -- what it says about itself -----------------------------------------------------------------------------------------
def test_attributes():
    x = td.asarray(X)
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes, x.device) == ((3, 4), 2, 12, 4, 48, "cpu")
    assert (x.stride(), x.storage_offset, x.is_contiguous()) == ((4, 1), 0, True)
    v = x[1:, ::2]
    assert (v.stride(), v.storage_offset, v.is_contiguous()) == ((4, 2), 4, False)
    assert v.storage() is x.storage()
    assert v.contiguous().is_contiguous()
    assert x.T.stride() == (1, 4)
    assert x[::-1].stride() == (-4, 1)
    assert x[::-1].storage_offset == 8
    assert td.zeros((2, 0)).storage_offset == 0


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (lambda: td.asarray([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: td.asarray([1, 2], dtype="int8"), "tensor([1, 2], dtype=int8)"),
        (lambda: td.asarray(True), "tensor(True)"),
        (lambda: td.asarray(1.5, dtype="bfloat16"), "tensor(1.5, dtype=bfloat16)"),
        (lambda: td.zeros((0, 2)), "tensor([], shape=(0, 2), dtype=float32)"),
        (lambda: td.asarray([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: td.asarray([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=mul)"),
        (lambda: td.asarray([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
    ],
)
def test_repr(tensor, text):
    assert repr(tensor()) == text


def test_str_and_format():
    assert str(td.asarray([[1.0, 2.0]])) == "[[1. 2.]]"
    assert f"{td.asarray(1.25):.1f}" == "1.2"
    assert f"{td.asarray([1, 2])}" == "[1 2]"


# -- special methods ---------------------------------------------------------------------------------------------------
ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_on_both_sides(name):
    forward, reflected = f"__{name}__", f"__r{name}__"
    x, y = X + 1, X[::-1] + 2
    assert_close(getattr(td.asarray(x), forward)(td.asarray(y)), getattr(x, forward)(y))
    assert_close(getattr(td.asarray(x), forward)(2), getattr(x, forward)(2))
    assert_close(getattr(td.asarray(x), reflected)(2), getattr(x, reflected)(2))


@pytest.mark.parametrize("name", ["and", "or", "xor", "lshift", "rshift"])
def test_integer_operators(name):
    x, y = np.int32([5, 6, 7]), np.int32([1, 2, 3])
    for one, two in ((x, y), (x, 2)):
        assert_close(
            getattr(td.asarray(x), f"__{name}__")(td.asarray(two) if two is y else two),
            getattr(one, f"__{name}__")(two),
        )
    assert_close(getattr(td.asarray(x), f"__r{name}__")(2), getattr(x, f"__r{name}__")(2))


def test_numpy_operands_give_tensors():
    x = td.asarray(X)
    for result, wanted in (
        (X + x, X + X), (np.float32(2) * x, X * 2), (x - X, X - X), (X @ x.T, X @ X.T), (np.exp(x), np.exp(X)),
        (np.add(X, x), X + X), (np.equal(X, x), np.equal(X, X)), (np.float32(3) ** x, np.float32(3) ** X),
    ):  # fmt: skip
        assert_close(result, wanted)
    array = X.copy()
    array += x
    assert type(array) is np.ndarray
    np.testing.assert_array_equal(array, X + X)
    assert type(np.add.reduce(x)) is td.Tensor
    assert type(np.frompyfunc(lambda v: v + 1, 1, 1)(x)) is np.ndarray


def test_comparison_and_unary():
    x = td.asarray(X)
    for name in dunders.COMPARISON:
        assert_close(getattr(x, f"__{name}__")(5), getattr(X, f"__{name}__")(5))
    assert_close(-x, -X)
    assert_close(+x, X)
    assert_close(abs(-x), X)
    assert_close(~td.asarray([True, False]), np.array([False, True]))
    assert_close(~td.asarray([1, 2]), ~np.array([1, 2]))


@pytest.mark.parametrize("operand", [None, "a", [1.0], object(), {}])
def test_unknown_operands(operand):
    x = td.asarray(X)
    with pytest.raises(TypeError, match="unsupported operand"):
        x + operand
    with pytest.raises(TypeError, match="unsupported operand"):
        operand - x
    with pytest.raises(TypeError):
        x += operand
    with pytest.raises(TypeError):
        _ = x < operand
    assert (x == operand) is False
    assert (x != operand) is True


def test_other_types_may_answer():
    class Other:
        def __radd__(self, x):
            return "radd"

        def __rmatmul__(self, x):
            return "rmatmul"

    assert td.asarray(X) + Other() == "radd"
    assert td.asarray(X) @ Other() == "rmatmul"


def test_augmented_assignment_writes_in_place():
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        array = X + 1
        x = td.asarray(array.copy())
        same_object, view = x, x[1]
        x = getattr(x, f"__i{name}__")(2)
        assert x is same_object
        assert_close(x, getattr(array, f"__{name}__")(np.float32(2)))
        assert_close(view, x.numpy()[1])


def test_python_protocols():
    x = td.asarray(X)
    assert len(x) == 3
    assert [float(row.sum()) for row in x] == [6.0, 22.0, 38.0]
    assert 5.0 in x
    assert 55 not in x
    assert (int(td.asarray(3.7)), float(td.asarray([2])), complex(td.asarray(1j))) == (3, 2.0, 1j)
    assert [10, 11, 12][td.asarray(1)] == 11
    assert bool(td.asarray(2.0))
    assert x.tolist() == X.tolist()
    assert x[1, 2].item() == x.item(1, 2) == 6.0
    assert {x: 1}[x] == 1
    assert x.T.shape == (4, 3)
    assert td.zeros((2, 3, 4)).mT.shape == (2, 4, 3)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    for x in (td.asarray(X), td.asarray(X)[:, ::2], td.asarray(1.5, dtype="bfloat16"), td.zeros((0, 3))):
        again = pickle.loads(pickle.dumps(x, protocol))
        assert_close(again, np.asarray(x))
    assert pickle.loads(pickle.dumps(td.asarray(X, requires_grad=True))).requires_grad
    assert pickle.loads(pickle.dumps(td.add)) is td.add
    with pytest.raises(TypeError, match="detach"):
        pickle.dumps(td.asarray(X, requires_grad=True) * 2)


def test_copy():
    x = td.asarray(X.copy())
    for made in (copy.copy(x), copy.deepcopy(x), x.clone()):
        made[0, 0] = 99
        assert x[0, 0].item() == 0
    holder = [x, x]
    one, two = copy.deepcopy(holder)
    assert one is two


def test_numpy_conversion():
    x = td.asarray(X)
    assert np.shares_memory(np.asarray(x), x.numpy())  # through the buffer protocol, which NumPy tries first
    assert np.array(x, copy=True) is not x.numpy()
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match=r"(without a|avoid) copy"):
        np.array(x, dtype=np.float64, copy=False)


def test_variadic_methods():
    x = td.asarray(X)
    assert x.reshape(2, 6).shape == x.reshape((2, 6)).shape == (2, 6)
    assert x.reshape(-1).shape == (12,)
    assert x.permute(1, 0).shape == x.permute((1, 0)).shape == (4, 3)
    assert x.sum(0).shape == (4,)
    assert x.sum((0, 1)).shape == ()


def test_at():
    x, array = td.asarray(X), X.copy()
    array[1] += 1
    assert_close(x.at[1].add(1.0), array)
    assert_close(x, X)
    assert_close(x.at[0, 0].set(7.0)[0, 0], np.float32(7))
    assert_close(x.at[:, 1].multiply(2.0)[:, 1], X[:, 1] * 2)
    assert_close(x.at[:, 1].divide(2.0)[:, 1], X[:, 1] / 2)
    assert_close(x.at[2].min(9.0)[2], np.minimum(X[2], 9))
    assert_close(x.at[2].max(9.0)[2], np.maximum(X[2], 9))
    assert_close(x.at[2].get(), X[2])
    assert_close(x.at[2].apply(td.sqrt)[2], np.sqrt(X[2]))
    assert_close(td.zeros(3).at[[0, 0]].add(1.0), np.float32([2, 0, 0]))


# -- what is generated -------------------------------------------------------------------------------------------------
def test_methods_and_functions_are_the_same_objects():
    assert td.Tensor.exp is td.exp
    assert td.Tensor.add is td.add
    assert td.subtract is td.sub
    assert td.permute_dims is td.permute
    assert all(hasattr(td.Tensor, f"__{name}__") for name in dunders.BINARY)
    assert all(hasattr(td.Tensor, f"__i{name}__") for name in set(dunders.BINARY) - {"matmul"})


def test_stubs_are_in_step():
    changed = "[path.name for path, text in type_stubs.files().items() if path.read_text() != text]"
    code = f"from tandem.eager.tensor import type_stubs; print({changed})"
    # in a process of its own, since other tests declare operators
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=True)
    assert run.stdout.strip() == "[]", "run python -m tandem.eager.tensor.type_stubs"


def test_import_is_light():
    code = "import sys, tandem; print(len({'scipy', 'networkx', 'llvmlite', 'rich', 'matplotlib'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=True)
    assert run.stdout.strip() == "0"


def test_parts_of_complex_elements_are_assigned():
    z = td.asarray(np.array([[1 + 2j, 3 + 4j]]))
    z.real = 5
    z.imag = td.asarray([1.0, 2.0])
    z.real += 1
    z[0].imag = [7, np.inf]
    assert z.tolist() == [[6 + 7j, complex(6, np.inf)]]
    for value in (z, np.ones((3, 2))):
        with pytest.raises((td.errors.DTypeError, td.errors.ShapeError)):
            z.real = value
    x = td.ones(2)
    x.real = [3, 4]
    assert x.tolist() == [3.0, 4.0]
    with pytest.raises(td.errors.DTypeError, match="no imaginary part"):
        x.imag = 0


def test_parts_are_assigned_under_jit_and_keep_gradients():
    def f(x):
        z = td.complex(x, x * 2)
        z.real = x * 3
        return (td.abs(z) ** 2).sum()

    x = td.asarray([1.0, -2.0])
    for function in (td.grad(f), td.jit(td.grad(f))):
        assert function(x).tolist() == [26.0, -52.0]
    leaf = x.clone().requires_grad_()
    f(leaf).backward()
    assert leaf.grad.tolist() == [26.0, -52.0]

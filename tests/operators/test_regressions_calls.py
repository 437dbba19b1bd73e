"""Regressions: unusual arguments of operators and of jitted functions."""

import contextlib
import enum

import numpy as np
import pytest
import tandem as td
from tandem import config, errors


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "any", "mean", "var", "logsumexp", "cumsum", "argmax"]
)
def test_scalar_only_call_returns_tensor(name):
    assert getattr(td, name)(2.0, axis=None).shape in ((), (1,))


def test_numbers_are_taken_by_whole_tensor_operators():
    assert td.flip(2).item() == 2
    assert td.full_like(2.5, 7).tolist() == 7.0
    assert td.random.key_data(td.random.key(2**63 + 5)).dtype is td.uint32


def test_a_number_is_not_written():
    for call in (lambda: td.ops.td.cos_(2.0), lambda: td.ops.td.add_(2, td.ones(2))):
        with pytest.raises(errors.ArgumentError, match="the operator writes into it"):
            call()


def test_tensordot_of_too_many_axes_raises():
    for axes in (2**64, -1, 3):
        with pytest.raises(errors.OutOfBoundsError, match="axes"):
            td.tensordot(td.ones((2, 2)), td.ones((2, 2)), axes)


def test_tensor_class_is_constructor_of_pytorch():
    x = td.Tensor(np.array([[1, 2]]))
    assert x.dtype is td.float32 and x.tolist() == [[1.0, 2.0]] and type(x) is td.Tensor
    assert td.Tensor(2, 3).shape == (2, 3) and td.Tensor().shape == (0,) and td.Tensor([2]).tolist() == [2.0]
    assert (td.Tensor(x).requires_grad_() * 2).sum().requires_grad
    source = np.ones(2, np.float32)
    td.Tensor(source)[0] = 5.0
    assert source[0] == 1
    for call in (lambda: td.Tensor([1.0], dtype=td.int8), lambda: td.jit(lambda x: td.Tensor(x))(x)):
        with pytest.raises(errors.ArgumentError, match=r"asarray|Tensor\(\.\.\.\)"):
            call()


def test_too_much_memory_names_the_operator():
    huge = td.broadcast_to(td.ones(()), (2**40, 2**10))
    with pytest.raises(errors.AllocationError, match="add"):
        td.ops.td.add(huge, 1)


def test_the_dispatch_table_of_no_name():
    with pytest.raises(errors.ArgumentError, match="name of an operator"):
        td.dispatch_table(2)


def test_default_numbers_are_constants_under_jit():
    @td.jit
    def scaled(x, power=2, training=False, *, axis=-1):
        return (x**power).sum(axis=axis) if not training else x

    x = td.asarray(np.arange(6.0).reshape(2, 3))
    for _ in range(40):
        np.testing.assert_array_equal(scaled(x).numpy(), (x.numpy() ** 2).sum(-1))
    np.testing.assert_array_equal(scaled(x, 3).numpy(), (x.numpy() ** 3).sum(-1))
    assert scaled.cache_info().specializations == 2
    assert td.jit(td.softmax)(x).shape == (2, 3)


def test_a_traced_integer_is_an_index():
    pick = td.jit(lambda x, i: (x[i], x.at[i, -1].set(9.0)))
    x = td.asarray(np.arange(6.0).reshape(2, 3))
    for i in (0, 1, -1):
        row, changed = pick(x, i)
        np.testing.assert_array_equal(row.numpy(), x.numpy()[i])
        assert changed[i, -1].item() == 9.0
    assert pick.cache_info().specializations == 1
    with pytest.raises(errors.OutOfBoundsError):
        pick(x, 2)


def test_integers_that_no_dtype_takes():
    x, flags = td.ones(2), td.asarray([True])
    calls = [
        lambda: x * 10**400,
        lambda: flags + 2**63,
        lambda: td.asarray([1], dtype=td.int8) + 10**5000,
        lambda: td.sum(2**64),
        lambda: td.full((2,), 10**400, dtype=td.float32),
        lambda: x.fill_(10**400),
        lambda: x.at[0].set(10**400),
    ]
    for call in calls:
        with pytest.raises(errors.ScalarOverflowError):
            call()
    assert x.tolist() == [1.0, 1.0]
    assert (td.ones(1, dtype=td.bfloat16) / 2**63).dtype is td.bfloat16
    assert td.flip(2**63).item() == 2**63


def test_item_rejects_invalid_index():
    x = td.ones(2)
    with pytest.raises(errors.OutOfBoundsError, match="item"):
        x.item(5)
    with pytest.raises(errors.ArgumentError, match="item"):
        x.item("a")


def test_contains_of_non_number_is_false():
    assert "a" not in td.ones(2)
    assert 1.0 in td.ones(2)


def test_numpy_functions_take_tensors():
    x = td.asarray([1.0, 2.0])
    assert np.sum(x) == 3.0
    assert np.mean(x, axis=0) == 1.5
    assert np.concatenate([x, x]).tolist() == [1.0, 2.0, 1.0, 2.0]
    with pytest.raises(errors.ArgumentError, match="detach"):
        np.frompyfunc(abs, 1, 1)(td.asarray([1.0], requires_grad=True))


def test_subclasses_of_numbers_are_numbers():
    class Level(enum.IntEnum):
        LOW = 2

    class Real(float):
        pass

    x = td.asarray([1.0, 2.0])
    assert (x + Level.LOW).tolist() == [3.0, 4.0]
    assert (Real(0.5) * x).tolist() == [0.5, 1.0]
    assert td.jit(lambda a, level: a * level)(x, Level.LOW).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("junk", [5, None, [1.0], np.float32(1)])
def test_native_code_checks_for_missing_array(junk):
    x, broken = td.ones(2), td.ones(2)
    broken._array = junk
    calls = [
        lambda: broken + x,
        lambda: x + broken,
        lambda: broken.sum(),
        lambda: td.exp(broken),
        lambda: broken[0],
        lambda: td.jit(lambda a: a + 1)(broken),
    ]
    with config.override(hot_calls=1):
        for call in calls * 4:
            with contextlib.suppress(Exception):
                call()
    assert (x + x).tolist() == [2.0, 2.0]


def test_the_standards_constants():
    assert (td.pi, td.e, td.inf) == (np.pi, np.e, np.inf)
    assert np.isnan(td.nan)
    assert td.ones(2)[:, td.newaxis].shape == (2, 1)


def test_a_traced_integer_is_a_power_of_integers():
    power = td.jit(lambda x, n: x**n)
    x = td.asarray(np.array([1, 2, 3], np.int32))
    for n in (2, 0, 3):
        assert power(x, n).tolist() == (x**n).tolist()
    with pytest.raises(errors.ValueArgumentError, match="negative power -1"):
        power(x, -1)
    assert power.cache_info().specializations == 1
    with pytest.raises(errors.ScalarOverflowError):
        power(x, 2**40)
    for _ in range(40):
        assert power(x, 2).tolist() == [1, 4, 9]
    with pytest.raises(errors.ValueArgumentError):
        power(x, -1)

"""``x.view(dtype)`` shares memory as in NumPy and PyTorch; ``bitcast_convert_type`` returns JAX's result."""

import numpy as np
import pytest
import tandem as td

X = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("dtype", [td.int32, "int32", np.int32, np.dtype(np.int32)], ids=str)
def test_view_of_another_dtype_shares_memory(dtype):
    x = td.asarray([1.0, -2.0])
    for view in (x.view(dtype), x.view(dtype=dtype)):
        assert view.dtype is td.int32
        assert view.tolist() == [1065353216, -1073741824]
        assert np.shares_memory(view.numpy(), x.numpy())
    view[0] = 0
    assert x.tolist() == [0.0, -2.0]
    assert x._version == view._version == 1


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float64", "complex128"])
def test_sizes_change_as_in_numpy(dtype):
    for array in (X, X[::2], X[:, :2], np.zeros((0, 4)), np.zeros((3, 0))):
        want = array.view(dtype)
        found = td.asarray(X)[::2] if array.base is X and array.shape == (2, 4) else td.asarray(array)
        assert np.array_equal(found.view(dtype).numpy(), want)
        assert found.view(dtype).shape == want.shape
        assert np.array_equal(td.jit(lambda x: x.view(dtype))(found).numpy(), want)
        assert np.array_equal(td.vmap(lambda x: x.view(dtype))(found).numpy(), want)


def test_views_that_need_a_copy_are_refused():
    x = td.asarray(X)
    for wrong in (x.T, x[:, ::2]):
        with pytest.raises(ValueError, match="needs a copy"):
            wrong.view(td.int32)
        assert wrong.view(td.int64).shape == wrong.shape
        assert np.array_equal(
            td.bitcast(wrong, td.int32).numpy(), np.ascontiguousarray(wrong.numpy()).view(np.int32)
        )
    with pytest.raises(ValueError, match="0-d"):
        td.asarray(1.0).view(td.int16)
    with pytest.raises(ValueError, match="whole number"):
        td.ones(3).view(td.float64)
    with pytest.raises(TypeError, match="bools"):
        td.zeros(3, dtype=td.uint8).view(td.bool)
    with pytest.raises(TypeError, match="not both"):
        x.view(12, dtype=td.int64)


def _write_both(x):
    y = x * 2
    bits = y.view(td.int32)
    bits[0] = 1065353216
    y[1] = 7.0
    return y, bits


@pytest.mark.parametrize("transform", [lambda f: f, td.jit, td.functionalize])
def test_writes_through_bits_reach_the_tensor(transform):
    y, bits = transform(_write_both)(td.asarray([5.0, -2.0]))
    assert y.tolist() == [1.0, 7.0]
    assert bits.tolist() == [1065353216, 1088421888]
    batched, _ = td.vmap(_write_both)(td.asarray([[5.0, -2.0]]))
    assert batched.tolist() == [[1.0, 7.0]]


def test_jitted_write_through_bits_of_an_argument():
    x = td.asarray([5.0, -2.0])

    @td.jit
    def clear_sign(x):
        bits = x.view(td.int32)
        bits &= 0x7FFFFFFF

    clear_sign(x)
    assert x.tolist() == [5.0, 2.0]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dtype", [td.float32, td.complex128], ids=str)
def test_view_of_the_same_dtype_is_compiled(shape, dtype):
    x = td.ones(shape, dtype=dtype)
    assert td.jit(lambda x: td.bitcast(x, dtype) + 1)(x).tolist() == (x + 1).tolist()


@pytest.mark.parametrize("select", [lambda x: x, lambda x: x[:, 1:3]], ids=["whole", "slice"])
@pytest.mark.parametrize("dtype", [td.int64, td.float32, td.uint8], ids=str)
def test_layouts_without_data_are_those_of_memory(select, dtype):
    whole, like = (td.zeros((3, 4, 2), dtype=td.int32, device=device) for device in ("meta", "cpu"))
    view, want = (td.bitcast(select(x), dtype) for x in (whole, like))
    assert (view.shape, view.stride(), view.dtype) == (want.shape, want.stride(), dtype)
    assert view.storage_offset == want.storage_offset
    assert view.storage() is whole.storage()
    assert td.bitcast(whole[:, :, ::2], td.uint8).storage() is not whole.storage()


def test_elements_between_two_positions_are_copied():
    x = td.asarray(np.arange(24, dtype=np.int8).reshape(2, 12))[:, :8]
    bits = td.bitcast(x, td.int64)
    assert np.array_equal(bits.numpy(), np.ascontiguousarray(x.numpy()).view(np.int64))
    assert bits.storage() is not x.storage()
    with pytest.raises(ValueError, match="needs a copy"):
        x.view(td.int64)
    assert td.bitcast(x, td.int32).storage() is x.storage()


def test_bits_have_no_gradient():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    assert not x.view(td.int32).view(td.float32).requires_grad
    slope = td.grad(lambda x: (x * x.view(td.int32).view(td.float32)).sum())
    assert slope(td.asarray([1.0, -2.0])).tolist() == [1.0, -2.0]


def test_shape_views_work_under_vmap():
    assert td.vmap(lambda x: x.view(2, 2))(td.asarray(X)).shape == (3, 2, 2)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_bitcast_convert_type_agrees_with_jax(dtype):
    lax = pytest.importorskip("jax.lax")
    array = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    want = np.asarray(lax.bitcast_convert_type(array, dtype))
    parts = td.jax.lax.bitcast_convert_type(td.asarray(array), dtype)
    assert np.array_equal(parts.numpy(), want)
    assert parts.shape == want.shape
    assert np.array_equal(td.jax.lax.bitcast_convert_type(parts, td.float32).numpy(), array)
    with pytest.raises(ValueError, match="make one"):
        td.jax.lax.bitcast_convert_type(td.zeros(3, dtype=td.int16), td.float32)

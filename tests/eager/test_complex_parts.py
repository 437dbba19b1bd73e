"""`z.real` and `z.imag` are views: a write into one is seen by the tensor, on every path."""

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath as native_layer
from tandem.errors import UnsupportedError

NUMBERS = (np.arange(12) + 1j * np.arange(12, 24)).reshape(3, 4)
both = pytest.mark.parametrize("dtype", ["complex64", "complex128"])


def write_parts(z):
    """Writes through views of views."""
    z.real[0] = 5
    z.T.imag[1, ::-1] *= 2
    z[1:, ::2].real[...] = 7
    z.imag += z.real
    z.imag[0, 0] = -1


@both
def test_writes_through_parts_are_those_of_numpy(dtype):
    array = NUMBERS.astype(dtype)
    z = td.asarray(array.copy())
    write_parts(array)
    write_parts(z)
    np.testing.assert_array_equal(z.numpy(), array)
    assert z.real.dtype is z.imag.dtype is getattr(td, array.real.dtype.name)
    assert (z.T.real.strides, z[1:].imag.shape) == (array.T.real.strides, (2, 4))
    assert z.real.storage() is z.storage()


@both
def test_parts_of_one_number_are_views(dtype):
    z = td.asarray(NUMBERS.astype(dtype))
    for _ in range(200):
        one = z[1, 1].imag
        one[...] = 3
        assert (one.shape, one.item(), z[1, 1].item()) == ((), 3, 5 + 3j)


def test_parts_of_read_only_memory_are_read_only():
    z = td.broadcast_to(td.asarray(1 + 2j), (3,))
    with pytest.raises(UnsupportedError, match="read-only"):
        z.real[0] = 1


@both
def test_jitted_and_functionalized_writes_are_the_eager_ones(dtype):
    def call(z):
        z = z.clone()
        write_parts(z)
        return z, z.real * z.imag

    z = td.asarray(NUMBERS.astype(dtype))
    expected = call(z)
    for function in (td.jit(call), td.functionalize(call), td.jit(td.functionalize(call))):
        for result, wanted in zip(function(z), expected, strict=True):
            np.testing.assert_array_equal(result.numpy(), wanted.numpy())


def test_jitted_write_into_an_argument():
    z, array = td.asarray(NUMBERS.copy()), NUMBERS.copy()
    td.jit(write_parts)(z)
    write_parts(array)
    np.testing.assert_array_equal(z.numpy(), array)


def replace_real(z):
    z = z * 2
    z.real[0] = 3.0
    return (z.real * z.real + 3 * z.imag).sum()


def add_to_imaginary(z):
    z = z * 2
    z.imag += z.real
    return (z.real * z.real + 3 * z.imag).sum()


def assign_imaginary(z):
    z = z * 2
    z.T.imag = 2 * z.real
    return (z.real * z.real + 3 * z.imag).sum()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (replace_real, [0 - 6j, 24 - 6j]),
        (add_to_imaginary, [14 - 6j, 30 - 6j]),
        (assign_imaginary, [20, 36]),
    ],
)
def test_gradients_of_writes(function, expected):
    z = td.asarray([1 + 2j, 3 - 4j])
    x = z.clone().requires_grad_()
    function(x).backward()
    for gradient in (x.grad, td.grad(function)(z), td.jit(td.grad(function))(z)):
        np.testing.assert_array_equal(gradient.numpy(), expected)


@pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on")
def test_jitted_parts_are_not_copied_first():
    """A part is computed where it is read."""
    function = td.jit(lambda z: z.real * z.real + z.imag * z.imag)
    z = td.asarray(NUMBERS)
    np.testing.assert_array_equal(function(z).numpy(), NUMBERS.real**2 + NUMBERS.imag**2)
    assert str(function.lower(z).kernels()).count("stages") == 1

"""Convolutions without a loop of their own: compositions of other operators, with the bits of eager calls."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import config, errors
from tandem.operators.nn.convolution_kernel import convolve


@pytest.mark.parametrize("seed", range(4))
def test_convolutions_without_a_loop_are_composed_of_operators(seed):
    rng = np.random.default_rng(seed)
    for dtype in (np.int8, np.uint64, np.complex64, np.complex128, np.float32, np.float16):
        rank, groups = int(rng.integers(1, 5)), int(rng.integers(1, 3))
        within, of_group = (int(n) for n in rng.integers(1, 3, 2))
        x = rng.integers(-9, 9, (2, groups * within, *rng.integers(4, 6, rank)))
        w = rng.integers(-9, 9, (groups * of_group, within, *rng.integers(1, 4, rank)))
        if dtype in (np.complex64, np.complex128):  # products of small integers are exact
            x, w = x + 1j * rng.integers(-9, 9, x.shape), w + 1j * rng.integers(-9, 9, w.shape)
        stride, spaces, dilation = (tuple(int(n) for n in rng.integers(1, 3, rank)) for _ in range(3))
        padding = tuple(int(n) for n in rng.integers(-1, 3, 2 * rank))
        how = stride, (*padding[:-2], 4, 4), spaces, dilation, groups
        arguments = td.asarray(x.astype(dtype)), td.asarray(w.astype(dtype))
        try:
            wanted = td.convolution(*arguments, *how)
        except errors.ShapeError:  # the kernel is longer than the padded input
            continue
        run = td.jit(lambda x, w, how=how: td.convolution(x, w, *how))
        found = run(*arguments)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
        assert not config.flags.native or "callback" not in str(run.lower(*arguments).kernels())


@needs_native
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_dilated_inputs_have_the_same_bits(dtype, stride):
    rng = np.random.default_rng(5)
    for groups, spaces, dilation in ((1, (2, 1), (1, 1)), (2, (3, 2), (1, 1)), (2, (2, 2), (1, 2))):
        x = td.asarray(rng.normal(size=(3, 2 * groups, 3, 4)).astype(dtype))
        w = td.asarray(rng.normal(size=(3 * groups, 2, 5, 4)).astype(dtype))  # more taps than results
        how = (stride, stride), (2, 0, 1, 1), spaces, dilation, groups
        run = td.jit(lambda x, w, how=how: td.convolution(x, w, *how))
        found, wanted = run(x, w), td.convolution(x, w, *how)
        assert found.numpy().tobytes() == wanted.numpy().tobytes()
        arrays = (np.asarray(a).astype(np.float64) for a in (x.numpy(), w.numpy()))
        np.testing.assert_allclose(
            found.numpy(),
            convolve(np, *arrays, *how),
            atol={np.float16: 2e-2, np.float32: 1e-5}.get(dtype, 1e-12),
        )
        assert "callback" not in str(run.lower(x, w).kernels())


@needs_native
def test_derivatives_of_transposed_convolutions_are_native():
    x, w = td.ones((2, 4, 8, 8)), td.ones((4, 3, 3, 3))
    slope = td.grad(lambda x, w: (td.conv_transpose2d(x, w, stride=2, padding=1) ** 2).sum(), (0, 1))
    rows = td.jit(slope).lower(x, w).kernels()
    assert [row.choice for row in rows if row.op == "td::convolution"] == ["native"] * 3


def test_complex_convolutions_have_the_same_bits_in_every_way():
    rng = np.random.default_rng(8)
    x, w = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in ((2, 4, 6, 5), (6, 2, 3, 2)))
    x, w = td.asarray(x), td.asarray(w)
    how = (2, 1), (1, 0, 0, 1), (1, 1), (1, 2), 2
    eager, compiled = td.convolution(x, w, *how), td.jit(lambda x, w: td.convolution(x, w, *how))(x, w)
    assert not config.flags.native or eager.numpy().tobytes() == compiled.numpy().tobytes()
    parts = [
        (td.real(x), td.real(w)),
        (td.imag(x), td.imag(w)),
        (td.real(x), td.imag(w)),
        (td.imag(x), td.real(w)),
    ]
    one, two, three, four = (td.convolution(*pair, *how).numpy() for pair in parts)
    np.testing.assert_allclose(eager.numpy(), one - two + 1j * (three + four), rtol=1e-12, atol=1e-12)

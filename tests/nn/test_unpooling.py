"""Positions of largest elements, unpooling, sampling grids and in-place activations, without PyTorch."""

import numpy as np
import pytest
import tandem as td
from tandem import nn
from tandem.errors import ShapeError, ValueArgumentError
from tandem.nn import functional as F

RNG = np.random.default_rng(0)


def test_positions_are_those_of_the_largest_elements():
    x = RNG.standard_normal((2, 6, 4)).astype(np.float32)
    values, indices = F.max_pool2d(td.asarray(x), 2, return_indices=True)
    flat = x.reshape(2, -1)
    windows = x.reshape(2, 3, 2, 2, 2).swapaxes(2, 3).reshape(2, 3, 2, 4)
    np.testing.assert_array_equal(values.numpy(), windows.max(-1))
    np.testing.assert_array_equal(
        np.take_along_axis(flat, indices.numpy().reshape(2, -1), 1), windows.max(-1).reshape(2, -1)
    )
    jitted = td.jit(lambda x: F.max_pool2d(x, 2, return_indices=True))(td.asarray(x))
    np.testing.assert_array_equal(jitted[1].numpy(), indices.numpy())
    assert F.max_pool1d(td.asarray([[[3, 1, 2, 5]]]), 2, return_indices=True)[1].tolist() == [[[0, 3]]]


def test_unpooling_puts_elements_back():
    x = td.asarray([[[1.0, 4.0, 3.0, 2.0, 0.0]]])
    values, indices = F.max_pool1d(x, 2, return_indices=True)
    assert nn.MaxUnpool1d(2)(values, indices).tolist() == [[[0.0, 4.0, 3.0, 0.0]]]
    assert F.max_unpool1d(values, indices, 2, output_size=(1, 1, 5)).tolist() == [[[0.0, 4.0, 3.0, 0.0, 0.0]]]
    with pytest.raises(ShapeError, match="not within a stride"):
        F.max_unpool1d(values, indices, 2, output_size=(7,))
    with pytest.raises(ShapeError, match="the indices"):
        F.max_unpool1d(values, indices[..., :1], 2)


def test_identity_grid_returns_the_image():
    image = td.asarray(RNG.standard_normal((2, 3, 4, 5)).astype(np.float32))
    theta = td.asarray(np.array([[[1.0, 0, 0], [0, 1, 0]]] * 2, np.float32))
    for align in (False, True):
        grid = F.affine_grid(theta, (2, 3, 4, 5), align)
        for mode in ("bilinear", "nearest", "bicubic"):
            got = F.grid_sample(image, grid, mode, align_corners=align)
            np.testing.assert_allclose(got.numpy(), image.numpy(), rtol=1e-4, atol=1e-5)
    shift = theta + td.asarray([[0.0, 0.0, 2 / 5], [0.0, 0.0, 0.0]])
    moved = F.grid_sample(image, F.affine_grid(shift, (2, 3, 4, 5)))
    np.testing.assert_allclose(moved[..., :4].numpy(), image[..., 1:].numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moved[..., 4].numpy(), 0, atol=1e-5)


def test_wrong_grids_are_refused():
    image = td.ones((1, 1, 2, 2))
    with pytest.raises(ValueArgumentError, match="mode must be one of"):
        F.grid_sample(image, td.ones((1, 1, 1, 2)), "cubic")
    with pytest.raises(ShapeError, match="does not fit"):
        F.grid_sample(image, td.ones((1, 1, 1, 3)))
    with pytest.raises(ShapeError, match=r"\(1, 2, 3\)"):
        F.affine_grid(td.ones((1, 2, 2)), (1, 1, 2, 2))


def test_random_slopes_are_between_their_bounds():
    x = td.full((1000,), -1.0)
    slopes = -nn.RReLU(0.2, 0.4)(x).numpy()
    assert slopes.min() >= 0.2 and slopes.max() <= 0.4 and abs(slopes.mean() - 0.3) < 0.01
    assert nn.RReLU(0.2, 0.4).eval()(x)[0].item() == pytest.approx(-0.3)


@pytest.mark.parametrize("name", ["relu_", "elu_", "celu_", "selu_", "leaky_relu_", "hardtanh_", "rrelu_"])
def test_functions_write_into_their_input(name):
    x = RNG.standard_normal(7).astype(np.float32)
    want = getattr(F, name[:-1])(td.asarray(x)).numpy()
    given = td.asarray(x.copy())
    assert getattr(F, name)(given) is given
    np.testing.assert_array_equal(given.numpy(), want)
    assert F.threshold_(td.asarray([1.0, 3.0]), 2.0, 9.0).tolist() == [9.0, 3.0]

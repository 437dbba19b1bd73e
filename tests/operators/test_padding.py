"""``td.pad`` and the functions of other libraries that pad by it; the modes themselves are rows of the table."""

import numpy as np
import pytest
import tandem as td
from tandem.operators.shape.padding import MODES

X = np.arange(1.0, 13.0).reshape(3, 4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "empty"])
def test_random_widths_agree_with_numpy(mode, seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=generator.integers(1, 5, 3))
    width = generator.integers(0, 12, (3, 2)).tolist()
    name = MODES[mode].option
    option = {name: generator.integers(1, 4, (3, 2)).tolist()} if name else {}
    given = {{"value": "constant_values"}.get(key, key): value for key, value in option.items()}
    for reflect in [{}, {"reflect_type": "odd"}] if mode in ("reflect", "symmetric") else [{}]:
        want = np.pad(x, width, mode, **given, **reflect)
        found = td.pad(td.asarray(x), width, mode, **option, **reflect)
        assert np.allclose(found.numpy(), want, rtol=1e-13, atol=1e-9)
        jitted = td.jit(lambda x: td.pad(x, width, mode, **option, **reflect))  # noqa: B023
        assert np.allclose(jitted(td.asarray(x)).numpy(), want, rtol=1e-13, atol=1e-9)


@pytest.mark.parametrize(
    "width",
    [1, (2,), (1, 2), [(1, 2)], [(1,), (2,)], [(1, 2), (0, 3)], np.array([1, 2]), {1: 2}, {-2: (1, 0)}],
)
def test_forms_of_width_are_those_of_numpy(width):
    numpy_width = width
    if isinstance(width, dict):
        numpy_width = [width.get(axis, width.get(axis - 2, 0)) for axis in range(2)]
        numpy_width = [(one, one) if isinstance(one, int) else one for one in numpy_width]
    assert np.array_equal(td.pad(td.asarray(X), width, "edge").numpy(), np.pad(X, numpy_width, "edge"))


def test_every_namespace_pads():
    x = td.asarray(X)
    want = np.pad(X, 1, mode="reflect")
    for result in (
        np.pad(x, 1, mode="reflect"),
        td.numpy.pad(x, 1, "reflect"),
        td.jax.numpy.pad(x, 1, "reflect"),
    ):
        assert isinstance(result, td.Tensor)
        assert np.array_equal(result.numpy(), want)


def test_value_may_be_traced():
    padded = td.jit(lambda x, v: td.pad(x, 1, value=v))(td.asarray(X), 2.5)
    assert np.array_equal(padded.numpy(), np.pad(X, 1, constant_values=2.5))
    ends = td.jit(lambda x, v: td.pad(x, 1, value=(v, 2 * v)))(td.asarray(X), td.asarray(2.5))
    assert np.array_equal(ends.numpy(), np.pad(X, 1, constant_values=(2.5, 5.0)))


def test_callable_modes_are_refused():
    with pytest.raises(TypeError, match=r"'mode' must be a str"):
        td.pad(td.asarray(X), 1, lambda vector, *_: vector)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_functional_pad_and_stft_agree_with_pytorch(mode):
    torch = pytest.importorskip("torch")
    images = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    want = torch.nn.functional.pad(torch.asarray(images), (1, 2, 3, 2), mode)
    assert np.array_equal(td.nn.functional.pad(td.asarray(images), (1, 2, 3, 2), mode).numpy(), want.numpy())
    signal, window = np.random.default_rng(1).normal(size=40), np.hanning(16)
    want = torch.stft(
        torch.asarray(signal), 16, window=torch.asarray(window), pad_mode=mode, return_complex=True
    )
    found = td.torch.stft(
        td.asarray(signal), 16, window=td.asarray(window), pad_mode=mode, return_complex=True
    )
    assert np.allclose(found.numpy(), want.numpy())


def test_too_short_axes_are_shape_errors():
    x = td.asarray(X)
    for call in (
        lambda: td.nn.functional.pad(x[None], (7, 7), "reflect"),
        lambda: td.nn.functional.pad(x[None], (7, 7), "circular"),
        lambda: td.torch.stft(x, 16, return_complex=True),
    ):
        with pytest.raises(td.errors.ShapeError, match="cannot pad an axis of 4"):
            call()

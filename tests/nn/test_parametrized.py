"""Computed weights: weight_norm, spectral_norm, parametrizations, and batch normalization that is fused."""

import copy
import pickle

import numpy as np
import pytest
import tandem as td
from tandem import nn
from tandem.errors import ArgumentError, ShapeError
from tandem.nn.utils import parametrizations, parametrize

RNG = np.random.default_rng(0)
W = RNG.standard_normal((3, 2)).astype(np.float32)
X = RNG.standard_normal((4, 2)).astype(np.float32)


def assert_close(ours, want, tolerance=1e-5):
    ours = ours.detach().numpy() if isinstance(ours, td.Tensor) else ours
    np.testing.assert_allclose(ours, want, rtol=tolerance, atol=tolerance)


def make():
    layer = nn.Linear(2, 3, bias=False)
    layer.load_state_dict({"weight": W})
    return layer


@pytest.mark.parametrize("normalize", [nn.utils.weight_norm, parametrizations.weight_norm])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_keeps_the_weight(normalize, dim):
    layer = normalize(make(), dim=dim)
    assert_close(layer.weight, W)
    assert_close(layer(td.asarray(X)), X @ W.T)
    g, v = layer.parameters()
    axis = None if dim is None else 1 - dim
    norms = np.sqrt((W**2).sum(axis, keepdims=dim is not None))
    assert_close(g, norms)
    with td.no_grad():
        g *= 2
        v *= 5
    assert_close(layer.weight, 2 * W)
    layer(td.asarray(X)).sum().backward()
    direction = W / norms
    assert_close(g.grad, (X.sum(0) * direction).sum(axis, keepdims=dim is not None))
    assert_close(td.jit(layer)(td.asarray(X)), 2 * X @ W.T)
    gradient = td.grad(lambda layer: layer(td.asarray(X)).sum())(layer)
    assert_close(
        next(iter(gradient.parameters())) if isinstance(gradient, nn.Module) else g.grad, g.grad.numpy()
    )


def test_weight_norm_is_removed():
    layer = nn.utils.weight_norm(make())
    assert list(layer.state_dict()) == ["weight_g", "weight_v"] and repr(layer).startswith("Linear(")
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert_close(other(td.asarray(X)), X @ W.T)
        assert type(other) is type(layer)
    with pytest.raises(AttributeError, match="computed"):
        layer.weight = td.ones((3, 2))
    nn.utils.remove_weight_norm(layer)
    assert type(layer) is nn.Linear and list(layer.state_dict()) == ["weight"]
    assert_close(layer.weight, W)
    with pytest.raises(ArgumentError, match="not normalized"):
        nn.utils.remove_weight_norm(layer)
    with pytest.raises(ArgumentError, match="no parameter 'bias'"):
        nn.utils.weight_norm(layer, "bias")


@pytest.mark.parametrize("normalize", [nn.utils.spectral_norm, parametrizations.spectral_norm])
def test_spectral_norm_divides_by_the_largest_singular_value(normalize):
    layer = normalize(make(), n_power_iterations=30)
    layer(td.asarray(X))
    want = W / np.linalg.svd(W)[1][0]
    assert_close(layer.eval()(td.asarray(X)), X @ want.T, 1e-4)
    assert_close(td.jit(layer)(td.asarray(X)), X @ want.T, 1e-4)
    before = [buffer.tolist() for buffer in layer.buffers()]
    layer(td.asarray(X))
    assert [buffer.tolist() for buffer in layer.buffers()] == before and len(before) == 2
    convolution = normalize(nn.ConvTranspose1d(2, 3, 4), n_power_iterations=50)
    convolution(td.ones((1, 2, 5)))
    matrix = convolution.weight.detach().numpy().swapaxes(0, 1).reshape(3, -1)
    assert np.linalg.svd(matrix)[1][0] == pytest.approx(1, abs=1e-3)


def test_two_passes_of_spectral_norm_are_differentiated():
    layer = nn.utils.spectral_norm(make())
    (layer(td.asarray(X)).sum() + layer(td.asarray(X)).sum()).backward()
    assert np.isfinite(layer.weight_orig.grad.numpy()).all()
    nn.utils.remove_spectral_norm(layer)
    assert list(layer.state_dict()) == ["weight"] and not layer._hooks


class Symmetric(nn.Module):
    def forward(self, x):
        return td.triu(x) + td.triu(x, 1).mT

    def right_inverse(self, x):
        return td.triu(x)


class Double(nn.Module):
    def forward(self, x):
        return 2 * x


def test_parametrizations_follow_each_other():
    layer = nn.Linear(3, 3)
    start = layer.weight.detach().numpy().copy()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    upper = np.triu(start)
    symmetric = upper + np.triu(start, 1).T
    assert_close(layer.weight, symmetric)
    assert_close(layer.parametrizations.weight.original, upper)
    assert parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(layer, "bias")
    layer.weight = td.ones((3, 3))
    assert layer.weight.tolist() == [[1.0] * 3] * 3
    parametrize.register_parametrization(layer, "weight", Double())
    assert layer.weight.tolist() == [[2.0] * 3] * 3 and type(layer).__name__ == "ParametrizedLinear"
    with pytest.raises(ArgumentError, match="right_inverse"):
        layer.weight = td.ones((3, 3))
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    parametrize.remove_parametrizations(layer, "weight")
    assert (
        layer.weight.tolist() == [[2.0] * 3] * 3 and layer.weight.requires_grad and type(layer) is nn.Linear
    )
    assert not parametrize.is_parametrized(layer)


def test_wrong_parametrizations_are_refused():
    class Row(nn.Module):
        def forward(self, x):
            return x[0]

    layer = nn.Linear(3, 3)
    with pytest.raises(ShapeError, match="unsafe=True"):
        parametrize.register_parametrization(layer, "weight", Row())
    with pytest.raises(ArgumentError, match="'other'"):
        parametrize.register_parametrization(layer, "other", Row())
    parametrizations.weight_norm(layer)
    with pytest.raises(ArgumentError, match="several tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    with pytest.raises(ArgumentError, match="no parametrization"):
        parametrize.remove_parametrizations(layer, "bias")


@pytest.mark.parametrize("names", [("weight_norm", "weight_norm"), ("spectral_norm", "spectral_norm")])
@pytest.mark.parametrize("module", ["utils", "utils.parametrizations"])
@pytest.mark.filterwarnings("ignore")
def test_computed_weights_agree_with_torch(names, module):
    torch = pytest.importorskip("torch")

    layers, results = [], []
    for library in (td, torch):
        functions = library.nn.utils if module == "utils" else library.nn.utils.parametrizations
        layers.append(getattr(functions, names[0])(library.nn.Conv2d(2, 3, 3)))
    ours, theirs = layers
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict()) and repr(ours) == repr(theirs)
    ours.load_state_dict({name: value.numpy() for name, value in theirs.state_dict().items()})
    x = RNG.standard_normal((1, 2, 5, 5)).astype(np.float32)
    for layer, convert in ((ours, td.asarray), (theirs, torch.tensor)):
        for _ in range(2):
            result = layer(convert(x))
        (result**2).sum().backward()
        results.append({"": result, **{name: p.grad for name, p in layer.named_parameters()}})
    for name, value in results[1].items():
        assert_close(results[0][name], value.detach().numpy(), 2e-4)


@pytest.mark.parametrize("is_transposed", [False, True])
def test_batch_normalization_is_fused(is_transposed):
    convolution = (nn.ConvTranspose2d if is_transposed else nn.Conv2d)(2, 3, 3)
    norm = nn.BatchNorm2d(3)
    x = td.asarray(RNG.standard_normal((4, 2, 5, 5)).astype(np.float32))
    norm(convolution(x))
    with pytest.raises(ArgumentError, match="evaluation"):
        nn.utils.fuse_conv_bn_eval(convolution, norm)
    convolution.eval(), norm.eval()
    fused = nn.utils.fuse_conv_bn_eval(convolution, norm, is_transposed)
    assert_close(fused(x), norm(convolution(x)).detach().numpy(), 1e-4)
    linear, norm = nn.Linear(2, 3, bias=False).eval(), nn.BatchNorm1d(3)
    norm(linear(td.asarray(X)))
    norm.eval()
    assert_close(
        nn.utils.fuse_linear_bn_eval(linear, norm)(td.asarray(X)),
        norm(linear(td.asarray(X))).detach().numpy(),
    )


def test_norm_of_all_gradients():
    x, y = td.asarray([3.0], requires_grad=True), td.asarray([4.0], requires_grad=True)
    assert nn.utils.get_total_norm([x, y]).item() == 5 and nn.utils.get_total_norm([]) == 0
    assert nn.utils.get_total_norm(x, float("inf")).item() == 3
    (x * 3 + y * 4).sum().backward()
    nn.utils.clip_grads_with_norm_([x, y], 1.0, 5.0)
    assert_close(x.grad, [0.6], 1e-4)
    x.grad = td.asarray([np.inf])
    with pytest.raises(ValueError, match="inf"):
        nn.utils.clip_grad_norm_([x, y], 1.0, error_if_nonfinite=True, foreach=True)

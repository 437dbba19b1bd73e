"""Layers and losses against NumPy, at random shapes; errors; initializers."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import nn
from tandem.errors import ArgumentError, ShapeError, ValueArgumentError
from tandem.nn import functional as F

SIZES = st.integers(1, 5)
LEADING = st.lists(st.integers(0, 3), max_size=2).map(tuple)


def draw(*shape):
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape).astype(np.float32)


def assert_close(got, want, tolerance=1e-5):
    got = got.detach().numpy() if isinstance(got, td.Tensor) else got
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@settings(deadline=None, max_examples=30)
@given(LEADING, SIZES, SIZES, st.booleans())
def test_linear(leading, inputs, outputs, has_bias):
    layer, x = nn.Linear(inputs, outputs, has_bias), draw(*leading, inputs)
    want = x @ layer.weight.detach().numpy().T
    assert_close(layer(td.asarray(x)), want + layer.bias.detach().numpy() if has_bias else want)


@settings(deadline=None, max_examples=30)
@given(LEADING, SIZES)
def test_normalization_over_the_last_axis(leading, size):
    x = draw(*leading, size)
    centered = x - x.mean(-1, keepdims=True)
    assert_close(
        nn.LayerNorm(size)(td.asarray(x)), centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
    )
    want = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-2)
    assert_close(nn.RMSNorm(size, eps=1e-2)(td.asarray(x)), want)


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 4), SIZES, st.lists(SIZES, max_size=1).map(tuple))
def test_batch_norm(count, channels, sizes):
    layer, x = nn.BatchNorm1d(channels), draw(count, channels, *sizes)
    axes, keep = (0, *range(2, x.ndim)), (1, channels, *(1,) * len(sizes))
    mean, var = x.mean(axes), x.var(axes)
    want = (x - mean.reshape(keep)) / np.sqrt(var.reshape(keep) + 1e-5)
    assert_close(layer(td.asarray(x)), want, 1e-4)
    assert_close(layer.running_mean, 0.1 * mean)
    assert_close(layer.running_var, 0.9 + 0.1 * x.var(axes, ddof=1))
    running = layer.running_mean.numpy().reshape(keep), layer.running_var.numpy().reshape(keep)
    assert_close(layer.eval()(td.asarray(x)), (x - running[0]) / np.sqrt(running[1] + 1e-5), 1e-4)


@settings(deadline=None, max_examples=15)
@given(SIZES, SIZES, SIZES, st.integers(1, 4))
def test_lstm_and_gru(batch, inputs, hidden, steps):
    x = draw(steps, batch, inputs)
    lstm, gru = nn.LSTM(inputs, hidden), nn.GRU(inputs, hidden)
    h = c = np.zeros((batch, hidden), np.float32)
    w, u, b, d = (p.detach().numpy() for p in lstm.parameters())
    for step in x:
        i, f, g, o = np.split(step @ w.T + b + h @ u.T + d, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    output, (h_n, c_n) = lstm(td.asarray(x))
    assert_close(output[-1], h)
    assert_close(h_n[0], h)
    assert_close(c_n[0], c)
    h = np.zeros((batch, hidden), np.float32)
    w, u, b, d = (p.detach().numpy() for p in gru.parameters())
    for step in x:
        parts = zip(np.split(step @ w.T + b, 3, -1), np.split(h @ u.T + d, 3, -1))
        (r_in, r_h), (z_in, z_h), (n_in, n_h) = parts
        z = sigmoid(z_in + z_h)
        h = (1 - z) * np.tanh(n_in + sigmoid(r_in + r_h) * n_h) + z * h
    assert_close(gru(td.asarray(x))[1][0], h)


@settings(deadline=None, max_examples=15)
@given(SIZES, SIZES, st.integers(1, 3))
def test_attention(batch, steps, heads):
    layer, x = nn.MultiheadAttention(4 * heads, heads, batch_first=True), draw(batch, steps, 4 * heads)
    joint = x @ layer.in_proj_weight.detach().numpy().T + layer.in_proj_bias.detach().numpy()
    q, k, v = (a.reshape(batch, steps, heads, 4).swapaxes(1, 2) for a in np.split(joint, 3, -1))
    weights = softmax(q @ k.swapaxes(-1, -2) / 2)
    want = (weights @ v).swapaxes(1, 2).reshape(x.shape) @ layer.out_proj.weight.detach().numpy().T
    output, mean = layer(*[td.asarray(x)] * 3)
    assert_close(output, want + layer.out_proj.bias.detach().numpy())
    assert_close(mean, weights.mean(1))


def test_heads_of_keys_serve_groups_of_queries():
    q, k, v = draw(2, 6, 3, 4), draw(2, 2, 5, 4), draw(2, 2, 5, 4) + 1
    got = F.scaled_dot_product_attention(*map(td.asarray, (q, k, v)), enable_gqa=True)
    k, v = (x.repeat(3, axis=1) for x in (k, v))
    assert_close(got, softmax(q @ k.swapaxes(-1, -2) / 2) @ v)


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_table_is_taken_from_a_tensor(kind):
    table = draw(5, 3)
    layer = kind.from_pretrained(td.asarray(table), padding_idx=1)
    assert not layer.weight.requires_grad and list(layer.state_dict()) == ["weight"]
    assert [name for name, _ in layer.named_parameters()] == ["weight"] and layer.padding_idx == 1
    assert kind.from_pretrained(td.asarray(table), freeze=False).weight.requires_grad
    index = np.array([[0, 4]])
    assert_close(layer(td.asarray(index)), table[index] if kind is nn.Embedding else table[index].mean(1))


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_cross_entropy(count, classes, is_weighted):
    rng = np.random.default_rng(count)
    x, target = draw(count, classes), rng.integers(0, classes, count)
    target[0] = target[0] if count == 1 else -100
    weight = rng.uniform(0.5, 2, classes).astype(np.float32) if is_weighted else None
    kept = target >= 0
    factors = np.ones(classes) if weight is None else weight
    losses = -(np.log(softmax(x)) * factors)[np.arange(count)[kept], target[kept]]
    got = F.cross_entropy(td.asarray(x), td.asarray(target), None if weight is None else td.asarray(weight))
    assert_close(got, losses.sum() / factors[target[kept]].sum())


def test_embedding_has_no_gradient_for_padding():
    layer = nn.Embedding(4, 2, padding_idx=-1)
    index = np.array([[0, 3], [3, 1]])
    assert_close(layer(td.asarray(index)), layer.weight.detach().numpy()[index])
    layer(td.asarray(index)).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    assert layer.weight[3].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["ReLU", "ReLU6", "LeakyReLU", "ELU", "SiLU", "Hardtanh"])
def test_activation_in_place_agrees(name):
    gradients = []
    for inplace in (False, True):
        x = td.asarray(draw(9), requires_grad=True)
        y = x * 2
        result = getattr(nn, name)(inplace=inplace)(y)
        assert (result is y) is inplace
        (result * result).sum().backward()
        gradients.append((result.tolist(), x.grad.tolist()))
    assert gradients[0] == gradients[1]


def test_dropout_keeps_the_mean():
    x = td.ones((100, 100))
    y = F.dropout(x, 0.25)
    assert set(np.unique(y.numpy()).round(4)) == {0.0, np.float32(1.3333)}
    assert abs(y.mean().item() - 1) < 0.05
    assert F.dropout(x, 0.5, training=False) is x and nn.Dropout().eval()(x) is x
    assert F.dropout(x, 1.0).sum().item() == 0
    z = x * 1
    assert F.dropout(z, 0.5, inplace=True) is z


CALLS = {
    "BatchNorm of one value": (lambda: nn.BatchNorm1d(2)(td.ones((1, 2))), ValueArgumentError, "one value"),
    "BatchNorm of other channels": (lambda: nn.BatchNorm2d(2)(td.ones((1, 3, 2, 2))), ShapeError, "size 2"),
    "batch_norm without statistics": (
        lambda: F.batch_norm(td.ones((2, 2)), None, None),
        ArgumentError,
        "running_mean",
    ),
    "LSTM of other features": (lambda: nn.LSTM(2, 3)(td.ones((1, 1, 3))), ShapeError, "size 2"),
    "LSTM of another state": (
        lambda: nn.GRU(2, 3)(td.ones((1, 1, 2)), td.ones((2, 1, 3))),
        ShapeError,
        r"not \(1, 1, 3\)",
    ),
    "attention of odd heads": (lambda: nn.MultiheadAttention(5, 2), ShapeError, "2 heads"),
    "causal attention without mask": (
        lambda: nn.MultiheadAttention(4, 2)(*[td.ones((1, 1, 4))] * 3, is_causal=True),
        ArgumentError,
        "attn_mask",
    ),
    "convolution of odd groups": (lambda: nn.Conv2d(3, 4, 1, groups=2), ShapeError, "2 groups"),
    "convolution of other padding": (
        lambda: nn.Conv2d(3, 4, 1, padding_mode="mirror"),
        ValueArgumentError,
        "one of zeros, reflect",
    ),
    "convolution to another size": (
        lambda: nn.ConvTranspose1d(2, 2, 3, stride=2)(td.ones((1, 2, 4)), output_size=(12,)),
        ShapeError,
        r"\[9\] up to the stride",
    ),
    "transposed convolution of other padding": (
        lambda: nn.ConvTranspose1d(2, 2, 3, padding_mode="reflect"),
        ValueArgumentError,
        "zeros",
    ),
    "convolution of other sizes": (lambda: nn.Conv2d(3, 4, (1, 2, 3)), ValueArgumentError, "2 of them"),
    "group_norm": (lambda: F.group_norm(td.ones((1, 3, 2)), 2), ShapeError, "multiple of 2"),
    "rms_norm": (lambda: F.rms_norm(td.ones((1, 3)), (2,)), ShapeError, "ends differently"),
    "adaptive pooling": (lambda: F.adaptive_avg_pool2d(td.ones((1, 3, 3)), 0), ShapeError, "positive"),
    "pad": (lambda: F.pad(td.ones(2), (1,)), ValueArgumentError, "two numbers"),
    "pad by reflection": (lambda: F.pad(td.ones(2), (2, 1), "reflect"), ShapeError, "2 elements"),
    "dropout2d": (lambda: F.dropout2d(td.ones((1, 2)), 1.5), ValueArgumentError, "between 0 and 1"),
    "cross_entropy": (lambda: F.cross_entropy(td.ones(()), td.asarray(0)), ShapeError, "classes"),
    "reduction": (
        lambda: F.nll_loss(td.ones((1, 2)), td.asarray([0]), reduction="max"),
        ValueArgumentError,
        "reduction",
    ),
    "gain": (lambda: nn.init.calculate_gain("step"), ValueArgumentError, "step"),
    "fan": (lambda: nn.init.xavier_normal_(td.ones(3)), ShapeError, "two axes"),
    "loss arguments": (lambda: nn.MSELoss(1, 2, 3, 4), TypeError, "MSELoss: too many positional"),
}


@pytest.mark.parametrize("case", CALLS)
def test_wrong_calls_are_explained(case):
    call, error, message = CALLS[case]
    with pytest.raises(error, match=message):
        call()


INITIALIZERS = {
    "uniform_": ({"a": -2.0, "b": 4.0}, 1.0, 6 / 12**0.5),
    "normal_": ({"mean": 1.0, "std": 2.0}, 1.0, 2.0),
    "trunc_normal_": ({"std": 1.0}, 0.0, 0.8796),
    "xavier_uniform_": ({}, 0.0, (2 / 300) ** 0.5),
    "xavier_normal_": ({"gain": 2.0}, 0.0, 2 * (2 / 300) ** 0.5),
    "kaiming_uniform_": ({"nonlinearity": "relu"}, 0.0, (2 / 100) ** 0.5),
    "kaiming_normal_": ({"mode": "fan_out"}, 0.0, (2 / 200) ** 0.5),
    "constant_": ({"val": 3.0}, 3.0, 0.0),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializer_has_its_moments(name):
    options, mean, std = INITIALIZERS[name]
    nn.manual_seed(0)
    x = nn.Parameter(td.empty((200, 100)))
    assert getattr(nn.init, name)(x, **options) is x and x.requires_grad and x.grad is None
    values = x.detach().numpy()
    assert abs(values.mean() - mean) < 0.05 * max(std, 1e-3) and abs(values.std() - std) <= 0.02 * std
    if name != "constant_":
        again = getattr(nn.init, name)(td.empty((200, 100)), **options, generator=td.Generator(0))
        assert_close(again, values, 0)


def test_orthogonal_and_identity_matrices():
    for shape in ((3, 5), (6, 2), (4, 2, 2)):
        matrix = nn.init.orthogonal_(td.empty(shape), gain=2.0).numpy().reshape(shape[0], -1)
        small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
        assert_close(small, 4 * np.eye(len(small)))
    assert_close(nn.init.eye_(td.empty((2, 3))), np.eye(2, 3))
    assert nn.init.zeros_(td.ones(2)).tolist() == [0, 0] and nn.init.ones_(td.zeros(1)).tolist() == [1]


def test_dirac_weight_keeps_channels():
    x = draw(2, 4, 5, 5)
    for groups, channels in ((1, 4), (2, 4), (2, 2)):
        layer = nn.Conv2d(4, channels, 3, padding=1, groups=groups, bias=False)
        nn.init.dirac_(layer.weight, groups)
        kept = [group * 4 // groups + at for group in range(groups) for at in range(channels // groups)]
        assert_close(layer(td.asarray(x)), x[:, kept])
    with pytest.raises(ShapeError, match="3 to 5 axes"):
        nn.init.dirac_(td.ones((2, 2)))


def test_sparse_matrix_has_a_share_of_zeros():
    values = nn.init.sparse_(td.empty((20, 30)), 0.25, std=2.0, generator=td.Generator(0)).numpy()
    assert (np.sum(values == 0, 0) == 5).all() and abs(values[values != 0].std() - 2) < 0.2
    with pytest.raises(ShapeError, match="a matrix"):
        nn.init.sparse_(td.ones(3), 0.5)


def test_parameters_become_a_vector():
    model = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (9,)
    nn.utils.vector_to_parameters(vector.detach() * 2, model.parameters())
    assert_close(nn.utils.parameters_to_vector(model.parameters()), 2 * vector.detach().numpy())
    with pytest.raises(ShapeError, match="9 elements"):
        nn.utils.vector_to_parameters(vector[:-1], model.parameters())


def test_clipping_without_gradients_does_nothing():
    model = nn.Linear(2, 3)
    assert nn.utils.clip_grad_norm_(model.parameters(), 1.0) == 0.0
    nn.utils.clip_grad_value_(model.parameters(), 1.0)


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize("wrong", [-1, 3])
def test_target_that_is_no_class(loss, wrong):
    x = td.asarray([[0.0, -1.0, -2.0]] * 2)
    with pytest.raises(IndexError, match=f"{wrong} in the target is not one of 3 classes"):
        loss(x, td.asarray([0, wrong]))
    assert np.isfinite(loss(x, td.asarray([0, wrong]), ignore_index=wrong).item())
    assert np.isnan(td.jit(loss)(x, td.asarray([0, wrong])).item())


@pytest.mark.parametrize(
    "name", ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"]
)
def test_dropout_of_everything_is_zero(name):
    x = td.asarray(np.ones((2, 3, 4, 4, 4)[: 5 if name.endswith("3d") else 4], np.float32))
    function = getattr(td.nn.functional, name)
    assert not function(x, 1.0).any() and function(x, 1.0, False) is x
    with pytest.raises(ValueError, match=r"between 0 and 1|no probability"):
        function(x, 1.5)

"""Layers, functions and losses against PyTorch: values, and gradients of inputs and parameters."""

import re

import numpy as np
import pytest
import tandem as td

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)


def draw(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def to_arrays(state):
    return {name: value.detach().numpy().copy() for name, value in state.items()}


def assert_close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def flatten(result):
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in flatten(item)]
    return [] if result is None else [result]


def assert_layers_agree(ours, theirs, *arrays, tolerance=1e-5, **options):
    """Load the state, compare results and all gradients; integers are not differentiated."""
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(to_arrays(theirs.state_dict()))
    mine = [td.asarray(a.copy(), requires_grad=a.dtype.kind == "f") for a in arrays]
    other = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    results, expected = (
        flatten(ours(*mine, **{k: as_ours(v) for k, v in options.items()})),
        flatten(theirs(*other, **{k: as_theirs(v) for k, v in options.items()})),
    )
    assert len(results) == len(expected)
    ours_loss = theirs_loss = 0.0
    for result, want in zip(results, expected):
        assert tuple(result.shape) == tuple(want.shape)
        assert_close(result, want, tolerance)
        ours_loss, theirs_loss = ours_loss + (result * result).sum(), theirs_loss + (want * want).sum()
    if not theirs_loss.requires_grad:
        return
    ours_loss.backward()
    theirs_loss.backward()
    pairs = [*zip(mine, other), *zip(ours.parameters(), theirs.parameters())]
    for one, two in pairs:
        assert (one.grad is None) == (two.grad is None)
        if two.grad is not None:
            assert_close(one.grad, two.grad, 10 * tolerance * max(1.0, two.grad.abs().max().item()))
    for (name, one), two in zip(ours.named_buffers(), theirs.buffers()):
        assert one.shape == tuple(two.shape), name
        assert_close(one, two, tolerance)


def as_ours(value):
    if isinstance(value, tuple):
        return tuple(as_ours(item) for item in value)
    return td.asarray(value) if isinstance(value, np.ndarray) else value


def as_theirs(value):
    if isinstance(value, tuple):
        return tuple(as_theirs(item) for item in value)
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


LAYERS = {
    "Linear": ("Linear", (3, 4), {}, [(2, 3)]),
    "Linear without bias": ("Linear", (3, 4), {"bias": False}, [(5, 2, 3)]),
    "Linear of a vector": ("Linear", (3, 4), {}, [(3,)]),
    "Conv1d": ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1}, [(2, 4, 9)]),
    "Conv2d": ("Conv2d", (2, 4, 3), {}, [(2, 2, 6, 5)]),
    "Conv2d with groups": (
        "Conv2d",
        (4, 6, (3, 2)),
        {"groups": 2, "dilation": (1, 2), "padding": "same"},
        [(1, 4, 6, 7)],
    ),
    "Conv2d of one example": ("Conv2d", (2, 3, 1), {"bias": False}, [(2, 4, 4)]),
    "Conv3d": ("Conv3d", (1, 2, 2), {}, [(1, 1, 3, 4, 3)]),
    **{
        f"Conv1d padded by {mode}": ("Conv1d", (2, 3, 4), {"padding": 2, "padding_mode": mode}, [(2, 2, 6)])
        for mode in ("zeros", "reflect", "replicate", "circular")
    },
    "Conv2d padded by reflection to the same size": (
        "Conv2d",
        (2, 3, (4, 3)),
        {"padding": "same", "padding_mode": "reflect", "dilation": (1, 2)},
        [(2, 2, 6, 7)],
    ),
    "ConvTranspose1d": ("ConvTranspose1d", (3, 2, 3), {"stride": 2}, [(2, 3, 4)]),
    "ConvTranspose2d": (
        "ConvTranspose2d",
        (4, 2, 3),
        {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
        [(2, 4, 3, 3)],
    ),
    "LayerNorm": ("LayerNorm", (5,), {}, [(2, 3, 5)]),
    "LayerNorm over two axes": ("LayerNorm", ((3, 5),), {"bias": False, "eps": 1e-3}, [(2, 3, 5)]),
    "LayerNorm without weight": ("LayerNorm", (5,), {"elementwise_affine": False}, [(2, 5)]),
    "RMSNorm": ("RMSNorm", (5,), {}, [(2, 3, 5)]),
    "RMSNorm with eps": ("RMSNorm", ((3, 5),), {"eps": 1e-2}, [(2, 3, 5)]),
    "GroupNorm": ("GroupNorm", (2, 6), {}, [(3, 6, 4)]),
    "BatchNorm1d": ("BatchNorm1d", (4,), {}, [(6, 4)]),
    "BatchNorm1d of sequences": ("BatchNorm1d", (4,), {"momentum": None}, [(6, 4, 3)]),
    "BatchNorm2d": ("BatchNorm2d", (3,), {"momentum": 0.3}, [(4, 3, 2, 5)]),
    "BatchNorm2d without statistics": ("BatchNorm2d", (3,), {"track_running_stats": False}, [(4, 3, 2, 5)]),
    "BatchNorm3d": ("BatchNorm3d", (2,), {"affine": False}, [(2, 2, 2, 2, 3)]),
    "BatchNorm1d without bias": ("BatchNorm1d", (4,), {"bias": False}, [(6, 4)]),
    "InstanceNorm1d": ("InstanceNorm1d", (4,), {"affine": True}, [(6, 4, 3)]),
    "InstanceNorm2d": ("InstanceNorm2d", (3,), {"track_running_stats": True}, [(2, 3, 4, 5)]),
    "InstanceNorm2d of one example": ("InstanceNorm2d", (3,), {}, [(3, 4, 5)]),
    "InstanceNorm3d": ("InstanceNorm3d", (2,), {"affine": True, "bias": False}, [(2, 2, 2, 2, 3)]),
    "ReLU": ("ReLU", (), {}, [(7,)]),
    "ReLU6": ("ReLU6", (), {}, [(7,)]),
    "LeakyReLU": ("LeakyReLU", (0.2,), {}, [(7,)]),
    "ELU": ("ELU", (0.5,), {}, [(7,)]),
    "GELU": ("GELU", (), {}, [(7,)]),
    "GELU by tanh": ("GELU", (), {"approximate": "tanh"}, [(7,)]),
    "SiLU": ("SiLU", (), {}, [(7,)]),
    "Sigmoid": ("Sigmoid", (), {}, [(7,)]),
    "LogSigmoid": ("LogSigmoid", (), {}, [(7,)]),
    "Tanh": ("Tanh", (), {}, [(7,)]),
    "Hardtanh": ("Hardtanh", (-0.5, 0.5), {}, [(7,)]),
    "Softplus": ("Softplus", (), {"beta": 2.0}, [(7,)]),
    "Softmax": ("Softmax", (), {"dim": 0}, [(4, 3)]),
    "LogSoftmax": ("LogSoftmax", (1,), {}, [(4, 3)]),
    "GLU": ("GLU", (), {}, [(4, 6)]),
    "MaxPool2d": ("MaxPool2d", (2,), {}, [(2, 3, 4, 6)]),
    "MaxPool1d": ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 3, 8)]),
    "AvgPool2d": ("AvgPool2d", (2, 1), {}, [(2, 3, 4, 6)]),
    "AdaptiveAvgPool2d": ("AdaptiveAvgPool2d", ((1, 2),), {}, [(2, 3, 4, 6)]),
    "AdaptiveAvgPool1d": ("AdaptiveAvgPool1d", (2,), {}, [(2, 3, 4)]),
    "Flatten": ("Flatten", (), {}, [(2, 3, 4)]),
    "Unflatten": ("Unflatten", (1, (2, 3)), {}, [(4, 6)]),
    "Identity": ("Identity", (3,), {}, [(4, 6)]),
    "Dropout of nothing": ("Dropout", (0.0,), {}, [(4, 6)]),
    "RNN": ("RNN", (3, 4), {"nonlinearity": "relu"}, [(5, 2, 3)]),
    "LSTM": ("LSTM", (3, 4), {}, [(5, 2, 3)]),
    "LSTM of layers": ("LSTM", (3, 4, 2), {"batch_first": True, "bidirectional": True}, [(2, 5, 3)]),
    "LSTM of one example": ("LSTM", (3, 4), {"bias": False}, [(5, 3)]),
    "GRU": ("GRU", (3, 4, 2), {}, [(5, 2, 3)]),
    "GRU of two directions": ("GRU", (3, 4), {"bidirectional": True, "batch_first": True}, [(2, 5, 3)]),
}


REPRS = [
    "Linear(2, 3, bias=False)",
    "Conv2d(2, 4, 3, stride=2, padding=1, dilation=2, groups=2, bias=False)",
    "Conv1d(2, 4, 3, padding='same', padding_mode='circular')",
    "ConvTranspose2d(2, 4, 3, output_padding=1, stride=2)",
    "BatchNorm2d(3)",
    "BatchNorm1d(3, momentum=None, affine=False)",
    "InstanceNorm2d(3, affine=True)",
    "LayerNorm((3, 2), bias=False)",
    "RMSNorm(4)",
    "GroupNorm(2, 4)",
    "ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])",
    "ModuleDict({'a': nn.ReLU(), 'b': nn.ModuleList([nn.Linear(1, 2)])})",
    "Sequential(nn.Linear(2, 3), nn.ReLU(True))",
]
REPRS = [re.sub(r"\b([A-Z]\w+)\(", r"nn.\1(", text.replace("nn.", "")) for text in REPRS]


@pytest.mark.parametrize("case", LAYERS)
def test_layer_agrees(case):
    name, args, kwargs, shapes = LAYERS[case]
    torch.manual_seed(0)
    ours, theirs = getattr(td.nn, name)(*args, **kwargs), getattr(torch.nn, name)(*args, **kwargs)
    assert_layers_agree(ours, theirs, *(draw(*shape) for shape in shapes))


def test_output_size_agrees():
    ours, theirs = (nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1) for nn in (td.nn, torch.nn))
    assert_layers_agree(ours, theirs, draw(1, 2, 4, 3), output_size=[8, 5])


@pytest.mark.parametrize("text", REPRS)
def test_repr_agrees(text):
    ours, theirs = (eval(text, {"nn": library}) for library in (td.nn, torch.nn))
    assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")


@pytest.mark.parametrize("name", ["BatchNorm1d", "Dropout"])
def test_layer_agrees_in_evaluation(name):
    ours, theirs = (
        getattr(td.nn, name)(4),
        getattr(torch.nn, name)(4) if name != "Dropout" else torch.nn.Dropout(),
    )
    if name == "Dropout":
        ours = td.nn.Dropout()
    else:
        theirs(torch.tensor(draw(6, 4)))
    assert_layers_agree(ours.eval(), theirs.eval(), draw(6, 4))


def test_embedding_agrees():
    theirs = torch.nn.Embedding(7, 3, padding_idx=2)
    assert_layers_agree(td.nn.Embedding(7, 3, padding_idx=2), theirs, np.array([[1, 2, 6], [2, 0, 1]]))


def test_recurrent_state_agrees():
    assert_layers_agree(td.nn.GRU(3, 4, 2), torch.nn.GRU(3, 4, 2), draw(5, 2, 3), draw(2, 2, 4))
    state = (draw(1, 2, 4), draw(1, 2, 4))
    assert_layers_agree(td.nn.LSTM(3, 4), torch.nn.LSTM(3, 4), draw(5, 2, 3), hx=state)


ATTENTION = {
    "more keys": (
        {"add_bias_kv": True, "add_zero_attn": True},
        {"attn_mask": np.triu(np.ones((5, 5), bool), 1)},
    ),
    "a key of zeros": ({"add_zero_attn": True}, {}),
    "plain": ({}, {}),
    "batch first": ({"batch_first": True}, {"average_attn_weights": False}),
    "without weights": ({}, {"need_weights": False}),
    "without bias": ({"bias": False}, {}),
    "mask": ({}, {"attn_mask": np.triu(np.ones((5, 5), bool), 1)}),
    "mask of floats": ({}, {"attn_mask": draw(5, 5), "need_weights": False}),
    "mask of heads": ({}, {"attn_mask": np.tri(5, dtype=np.float32)[None].repeat(4, 0)}),
    "padding": ({}, {"key_padding_mask": np.array([[False] * 4 + [True], [False] * 5])}),
    "padding and mask": (
        {},
        {
            "key_padding_mask": np.array([[False] * 4 + [True], [False] * 5]),
            "attn_mask": np.triu(np.ones((5, 5), bool), 1),
        },
    ),
}


@pytest.mark.parametrize("case", ATTENTION)
def test_attention_agrees(case):
    made, called = ATTENTION[case]
    ours, theirs = (nn.MultiheadAttention(8, 2, **made) for nn in (td.nn, torch.nn))
    shape = (2, 5, 8) if made.get("batch_first") else (5, 2, 8)
    assert_layers_agree(ours, theirs, *(draw(*shape) for _ in range(3)), **called)


def test_attention_to_itself_agrees():
    ours, theirs = (nn.MultiheadAttention(8, 4) for nn in (td.nn, torch.nn))
    ours.load_state_dict(to_arrays(theirs.state_dict()))
    x = draw(5, 8)
    mine, other = td.asarray(x), torch.tensor(x)
    for one, two in zip(ours(mine, mine, mine), theirs(other, other, other)):
        assert_close(one, two)


def test_attention_of_other_features_agrees():
    ours, theirs = (nn.MultiheadAttention(8, 2, kdim=3, vdim=5) for nn in (td.nn, torch.nn))
    assert_layers_agree(ours, theirs, draw(4, 2, 8), draw(6, 2, 3), draw(6, 2, 5))


# --- losses -------------------------------------------------------------------------------------------------
PROBABILITIES = RNG.dirichlet(np.ones(5), 4).astype(np.float32)
CLASSES = np.array([0, 4, -100, 2])
FACTORS = RNG.uniform(0.5, 2, 5).astype(np.float32)
UNIT = RNG.uniform(0.05, 0.95, (4, 5)).astype(np.float32)
LOSSES = {
    "cross_entropy": [
        (draw(4, 5), CLASSES, {}),
        (draw(5), np.array(3), {}),
        (draw(4, 5), CLASSES, {"weight": FACTORS}),
        (draw(4, 5), CLASSES, {"label_smoothing": 0.2}),
        (draw(4, 5), CLASSES, {"label_smoothing": 0.2, "weight": FACTORS}),
        (draw(4, 5), np.array([0, 4, 1, 2]), {"ignore_index": 4}),
        (draw(2, 5, 3), RNG.integers(0, 5, (2, 3)), {}),
        (draw(4, 5), PROBABILITIES, {"label_smoothing": 0.1, "weight": FACTORS}),
    ],
    "nll_loss": [(draw(4, 5), CLASSES, {}), (draw(2, 5, 3), RNG.integers(0, 5, (2, 3)), {"weight": FACTORS})],
    "mse_loss": [(draw(4, 5), draw(4, 5), {})],
    "l1_loss": [(draw(4, 5), draw(4, 5), {})],
    "smooth_l1_loss": [(draw(4, 5), draw(4, 5), {}), (draw(4, 5), draw(4, 5), {"beta": 0.5})],
    "huber_loss": [(draw(4, 5), draw(4, 5), {"delta": 0.7})],
    "binary_cross_entropy": [(UNIT, UNIT[::-1].copy(), {}), (UNIT, np.round(UNIT), {"weight": FACTORS})],
    "binary_cross_entropy_with_logits": [
        (draw(4, 5), UNIT, {}),
        (draw(4, 5) * 30, UNIT, {"pos_weight": FACTORS}),
    ],
    "kl_div": [(np.log(PROBABILITIES), PROBABILITIES[::-1].copy(), {})],
}


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("name", "case"), [(name, at) for name, cases in LOSSES.items() for at in range(len(cases))]
)
def test_loss_agrees(name, case, reduction):
    input, target, options = LOSSES[name][case]
    mine, other = td.asarray(input.copy(), requires_grad=True), torch.tensor(input, requires_grad=True)
    ours = getattr(td.nn.functional, name)(
        mine, td.asarray(target), reduction=reduction, **{k: as_ours(v) for k, v in options.items()}
    )
    theirs = getattr(torch.nn.functional, name)(
        other, torch.tensor(target), reduction=reduction, **{k: as_theirs(v) for k, v in options.items()}
    )
    assert_close(ours, theirs)
    ours.sum().backward()
    theirs.sum().backward()
    assert_close(mine.grad, other.grad)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("CrossEntropyLoss", {"weight": FACTORS, "reduction": "sum"}),
        ("BCEWithLogitsLoss", {"pos_weight": FACTORS}),
        ("MSELoss", {}),
        ("KLDivLoss", {"reduction": "batchmean"}),
    ],
)
def test_loss_module_agrees(name, options):
    input, target = draw(4, 5), np.array([0, 1, 2, 3]) if name == "CrossEntropyLoss" else PROBABILITIES
    ours = getattr(td.nn, name)(**{k: as_ours(v) for k, v in options.items()})
    theirs = getattr(torch.nn, name)(**{k: as_theirs(v) for k, v in options.items()})
    assert_close(
        ours(td.asarray(input), td.asarray(target)), theirs(torch.tensor(input), torch.tensor(target))
    )


def test_gaussian_nll_loss_agrees():
    arrays = draw(4, 5), draw(4, 5), UNIT
    ours = td.nn.functional.gaussian_nll_loss(*map(td.asarray, arrays), full=True)
    assert_close(ours, torch.nn.functional.gaussian_nll_loss(*map(torch.tensor, arrays), full=True))


FUNCTIONS = {
    "pad": ((2, 3, 4), [((1, 2),), ((1, 0, 0, 2), "constant", 3.0)]),
    "normalize": ((2, 3, 4), [(), (1.0, 2)]),
    "one_hot": (None, [(), (9,)]),
    "dropout": ((2, 3), [(0.5, False)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_agrees(name):
    shape, cases = FUNCTIONS[name]
    x = np.array([[1, 2], [6, 0]]) if shape is None else draw(*shape)
    for args in cases:
        ours = getattr(td.nn.functional, name)(td.asarray(x), *args)
        theirs = getattr(torch.nn.functional, name)(torch.tensor(x), *args)
        assert str(ours.dtype) == str(theirs.dtype).partition(".")[2]
        assert_close(ours, theirs)


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"attn_mask": np.tri(5, dtype=bool), "scale": 0.3}]
)
def test_scaled_dot_product_attention_agrees(options):
    arrays = [draw(2, 3, 5, 4) for _ in range(3)]
    ours = td.nn.functional.scaled_dot_product_attention(
        *map(td.asarray, arrays), **{k: as_ours(v) for k, v in options.items()}
    )
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, arrays), **{k: as_theirs(v) for k, v in options.items()}
    )
    assert_close(ours, theirs)


@pytest.mark.parametrize("name", ["linear", "conv2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"])
def test_gain_agrees(name):
    assert td.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)

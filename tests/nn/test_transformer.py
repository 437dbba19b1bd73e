"""Transformers against PyTorch, and against the formula of their parts."""

import numpy as np
import pytest
import tandem as td
from tandem import nn
from tandem.errors import ShapeError, ValueArgumentError

RNG = np.random.default_rng(0)
CAUSAL = np.triu(np.full((5, 5), -np.inf, np.float32), 1)
PADDING = np.array([[False] * 5, [False, False, False, True, True]])


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def assert_close(ours, want, tolerance=1e-5):
    ours = ours.detach().numpy() if isinstance(ours, td.Tensor) else ours
    np.testing.assert_allclose(ours, want, rtol=tolerance, atol=tolerance)


def normalize(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer_is_attention_and_two_linear_layers(norm_first):
    layer = nn.TransformerEncoderLayer(4, 1, 6, dropout=0.0, batch_first=True, norm_first=norm_first)
    x = draw(2, 3, 4)
    p = {name: value.numpy() for name, value in layer.state_dict().items()}

    def attend(x):
        q, k, v = np.split(x @ p["self_attn.in_proj_weight"].T + p["self_attn.in_proj_bias"], 3, -1)
        weights = np.exp(q @ k.swapaxes(-1, -2) / 2)
        result = weights / weights.sum(-1, keepdims=True) @ v
        return result @ p["self_attn.out_proj.weight"].T + p["self_attn.out_proj.bias"]

    def feed(x):
        hidden = np.maximum(x @ p["linear1.weight"].T + p["linear1.bias"], 0)
        return hidden @ p["linear2.weight"].T + p["linear2.bias"]

    want = x
    for part in (attend, feed):
        want = want + part(normalize(want)) if norm_first else normalize(want + part(want))
    assert_close(layer(td.asarray(x)), want, 1e-4)
    assert_close(td.jit(layer)(td.asarray(x)), want, 1e-4)


def test_causal_mask_hides_what_follows():
    model = nn.Transformer(4, 2, 1, 1, 8, dropout=0.0, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    assert_close(mask, CAUSAL)
    source, target = td.asarray(draw(1, 3, 4)), draw(1, 5, 4)
    changed = target.copy()
    changed[:, 3:] += 1
    one, two = (
        model(source, td.asarray(x), tgt_mask=mask, tgt_is_causal=True).detach().numpy()
        for x in (target, changed)
    )
    assert_close(one[:, :3], two[:, :3])
    assert np.abs(one[:, 3:] - two[:, 3:]).max() > 1e-3


def test_layers_of_a_stack_are_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    stack = nn.TransformerEncoder(layer, 3, nn.LayerNorm(4))
    assert len({id(p) for p in stack.parameters()}) == 3 * 12 + 2
    assert stack.layers[0].linear1.weight.tolist() == layer.linear1.weight.tolist()
    gradients = td.grad(lambda stack: (stack.eval()(td.ones((2, 1, 4))) ** 3).sum())(stack)
    assert gradients.layers[2].linear2.weight.shape == (4, 8)


def test_wrong_calls_are_explained():
    with pytest.raises(ValueArgumentError, match="relu or gelu, not 'tanh'"):
        nn.TransformerEncoderLayer(4, 2, activation="tanh")
    model = nn.Transformer(4, 2, 1, 1, 8)
    with pytest.raises(ShapeError, match="different batches"):
        model(td.ones((3, 1, 4)), td.ones((3, 2, 4)))
    with pytest.raises(ShapeError, match="4 features"):
        model(td.ones((3, 1, 4)), td.ones((3, 1, 5)))


MODELS = {
    "encoder layer": ("TransformerEncoderLayer", {}, 1, {}),
    "encoder layer with masks": (
        "TransformerEncoderLayer",
        {"activation": "gelu", "norm_first": True, "layer_norm_eps": 1e-3},
        1,
        {"src_mask": CAUSAL, "src_key_padding_mask": PADDING},
    ),
    "encoder layer without bias": (
        "TransformerEncoderLayer",
        {"bias": False, "batch_first": True},
        1,
        {"src_mask": CAUSAL, "is_causal": True},
    ),
    "decoder layer": ("TransformerDecoderLayer", {}, 2, {}),
    "decoder layer with masks": (
        "TransformerDecoderLayer",
        {"norm_first": True},
        2,
        {"tgt_mask": CAUSAL, "memory_mask": draw(5, 5), "memory_key_padding_mask": PADDING},
    ),
    "model": (
        "Transformer",
        {"num_encoder_layers": 2, "num_decoder_layers": 1},
        2,
        {"tgt_mask": CAUSAL, "src_key_padding_mask": PADDING, "tgt_key_padding_mask": PADDING},
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", MODELS)
def test_transformer_agrees_with_torch(case):
    torch = pytest.importorskip("torch")
    name, options, count, masks = MODELS[case]
    torch.manual_seed(0)
    options = {"dim_feedforward": 8, "dropout": 0.0, **options}
    ours, theirs = (getattr(library, name)(4, 2, **options) for library in (nn, torch.nn))
    assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    inputs = [draw(2, 5, 4) if options.get("batch_first") else draw(5, 2, 4) for _ in range(count)]
    results = []
    for module, convert in ((ours, td.asarray), (theirs, torch.tensor)):
        given = [convert(x).requires_grad_() for x in inputs]
        keywords = {
            key: convert(value) if isinstance(value, np.ndarray) else value for key, value in masks.items()
        }
        result = module(*given, **keywords)
        (result**3).sum().backward()
        results.append([result, *(x.grad for x in given), *(p.grad for p in module.parameters())])
    for one, two in zip(*results):
        assert_close(one, two.detach().numpy(), 1e-4)

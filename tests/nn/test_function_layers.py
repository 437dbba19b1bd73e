"""Layers without parameters against PyTorch: values, gradients, and what ``repr`` shows."""

import numpy as np
import pytest
import tandem as td

torch = pytest.importorskip("torch")

IMAGE, VECTORS = (2, 4, 7, 5), (3, 6)
LAYERS = [
    *(
        (f"{name}()", VECTORS)
        for name in "CELU SELU Mish Hardsigmoid Hardswish Softsign Tanhshrink PReLU".split()
    ),
    *((f"{name}(0.3)", VECTORS) for name in "Softshrink Hardshrink CELU LeakyReLU ELU".split()),
    ("Threshold(0.1, 20.0)", VECTORS),
    ("ReLU(True)", VECTORS),
    ("Softmin(dim=1)", VECTORS),
    ("LogSoftmax(dim=-1)", VECTORS),
    ("Softmax2d()", IMAGE),
    ("PReLU(4)", IMAGE),
    ("MaxPool2d(3, stride=2, padding=1, ceil_mode=True)", IMAGE),
    ("MaxPool2d(2, dilation=2)", IMAGE),
    ("AvgPool2d(3, 2, 1, ceil_mode=True)", IMAGE),
    ("AvgPool2d((3, 2), 2, 1, ceil_mode=True, count_include_pad=False)", IMAGE),
    ("AvgPool2d(2, divisor_override=3)", IMAGE),
    ("AdaptiveAvgPool2d((3, 2))", IMAGE),
    ("AdaptiveMaxPool2d((3, None))", IMAGE),
    ("LPPool2d(2, 3, stride=2)", IMAGE),
    ("Unfold((2, 3), padding=1, stride=2)", IMAGE),
    ("PixelShuffle(2)", IMAGE),
    ("ChannelShuffle(2)", IMAGE),
    ("LocalResponseNorm(3)", IMAGE),
    ("Upsample(scale_factor=2)", IMAGE),
    ("Upsample(scale_factor=1.5, mode='bilinear')", IMAGE),
    ("Upsample(size=(9, 4), mode='bilinear', align_corners=True)", IMAGE),
    ("Upsample(size=(11, 6), mode='bicubic')", IMAGE),
    ("ZeroPad2d((1, 2, 0, -1))", IMAGE),
    ("ConstantPad1d(2, 3.5)", VECTORS),
    ("ReflectionPad2d(2)", IMAGE),
    ("ReplicationPad2d((1, 0, 2, 3))", IMAGE),
    ("CircularPad2d(1)", IMAGE),
]
NO_REPR = (
    "Unfold",
    "PixelShuffle",
    "ChannelShuffle",
    "LocalResponseNorm",
    "LPPool",
    "Threshold",
    "Softshrink",
)


@pytest.mark.parametrize("text, shape", LAYERS, ids=lambda value: str(value))
def test_layer_agrees_with_torch(text, shape):
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    layers = [eval(f"nn.{text}", {"nn": module.nn}) for module in (td, torch)]
    x, y = td.asarray(data.copy()).requires_grad_(), torch.tensor(data).requires_grad_()
    result, expected = layers[0](x * 1), layers[1](y * 1)
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    (result * result).sum().backward()
    (expected * expected).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-4, atol=1e-4)
    if not text.startswith(NO_REPR):
        assert repr(layers[0]) == repr(layers[1])


LOSSES = {
    "cosine_embedding_loss": ("signs", {"margin": 0.1}),
    "margin_ranking_loss": ("signs of elements", {"margin": 0.5}),
    "triplet_margin_loss": ("vectors", {"swap": True}),
    "soft_margin_loss": (None, {}),
    "poisson_nll_loss": (None, {"full": True}),
    "pairwise_distance": (None, {"keepdim": True}),
    "cosine_similarity": (None, {}),
    "hinge_embedding_loss": (None, {}),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss_agrees_with_torch(name):
    third, options = LOSSES[name]
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(VECTORS).astype(np.float32) for _ in range(3)]
    if third is None:
        arrays.pop()
        arrays[1] = np.sign(arrays[1]) if "margin" in name or "hinge" in name else abs(arrays[1])
    elif third != "vectors":
        arrays[2] = np.sign(arrays[2] if "elements" in third else arrays[2][:, 0])
    ours = getattr(td.nn.functional, name)(*map(td.asarray, arrays), **options)
    theirs = getattr(torch.nn.functional, name)(*map(torch.tensor, arrays), **options)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_agrees_with_torch(mode):
    table = np.random.default_rng(2).standard_normal((7, 3)).astype(np.float32)
    index, offsets = np.array([1, 2, 4, 5, 4, 3, 0, 0]), np.array([0, 3, 3, 6])
    for args in ((index, table, offsets), (index.reshape(4, 2), table)):
        ours = td.nn.functional.embedding_bag(*map(td.asarray, args), mode=mode)
        theirs = torch.nn.functional.embedding_bag(*map(torch.tensor, args), mode=mode)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)

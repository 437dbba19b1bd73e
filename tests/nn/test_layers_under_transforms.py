"""Every kind of layer under jit, grad and vmap: the same results as a plain call."""

import numpy as np
import pytest
import tandem as td
from tandem import nn

IMAGE, VECTORS, SEQUENCE = (2, 4, 6, 6), (3, 4), (5, 2, 4)
LAYERS = [
    ("nn.Linear(4, 3)", VECTORS),
    ("nn.Bilinear(4, 4, 3)", VECTORS, VECTORS),
    ("nn.Conv2d(4, 2, 3, padding=1, padding_mode='circular')", IMAGE),
    ("nn.ConvTranspose2d(4, 2, 3, stride=2)", IMAGE),
    ("nn.BatchNorm2d(4).eval()", IMAGE),
    ("nn.InstanceNorm2d(4, affine=True)", IMAGE),
    ("nn.GroupNorm(2, 4)", IMAGE),
    ("nn.LayerNorm(4)", VECTORS),
    ("nn.RMSNorm(4)", VECTORS),
    ("nn.LocalResponseNorm(2)", IMAGE),
    ("nn.MaxPool2d(3, 2, 1, ceil_mode=True)", IMAGE),
    ("nn.AvgPool2d(2)", IMAGE),
    ("nn.AdaptiveAvgPool2d((4, 3))", IMAGE),
    ("nn.AdaptiveMaxPool2d(4)", IMAGE),
    ("nn.LPPool2d(2, 2)", IMAGE),
    ("nn.Upsample(scale_factor=2, mode='bilinear')", IMAGE),
    ("nn.UpsamplingNearest2d(size=9)", IMAGE),
    ("nn.Unfold(2)", IMAGE),
    ("nn.PixelShuffle(2)", IMAGE),
    ("nn.ReflectionPad2d(2)", IMAGE),
    ("nn.PReLU()", VECTORS),
    ("nn.RReLU().eval()", VECTORS),
    ("nn.Dropout(0.5).eval()", VECTORS),
    ("nn.GLU()", VECTORS),
    ("nn.Softmax2d()", IMAGE),
    ("nn.Sequential(nn.Flatten(), nn.Unflatten(1, (12, 12)))", IMAGE),
    ("nn.CosineSimilarity()", VECTORS, VECTORS),
    ("nn.RNN(4, 3, nonlinearity='relu')", SEQUENCE),
    ("nn.LSTM(4, 3, bidirectional=True, proj_size=2)", SEQUENCE),
    ("nn.GRU(4, 3, 2)", SEQUENCE),
    ("nn.LSTMCell(4, 3)", VECTORS),
    ("nn.MultiheadAttention(4, 2, add_bias_kv=True)", SEQUENCE, SEQUENCE, SEQUENCE),
    ("nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)", SEQUENCE),
    ("nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, norm_first=True)", SEQUENCE, SEQUENCE),
    ("nn.Transformer(4, 2, 1, 1, 8, dropout=0.0)", SEQUENCE, SEQUENCE),
    ("nn.utils.weight_norm(nn.Linear(4, 3))", VECTORS),
    ("nn.utils.spectral_norm(nn.Linear(4, 3)).eval()", VECTORS),
    ("nn.utils.parametrizations.spectral_norm(nn.Conv2d(4, 2, 3)).eval()", IMAGE),
    ("nn.TripletMarginLoss()", VECTORS, VECTORS, VECTORS),
    ("nn.HuberLoss()", VECTORS, VECTORS),
]


def draw(*shape):
    return td.asarray(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


def total(result):
    return sum((x**2).sum() for x in td.tree.leaves(result) if isinstance(x, td.Tensor))


def assert_close(one, two):
    for x, y in zip(td.tree.leaves(one), td.tree.leaves(two), strict=True):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case[0])
def test_layer_computes_the_same_under_transforms(case):
    text, *shapes = case
    nn.manual_seed(0)
    layer = eval(text).requires_grad_(False)
    inputs = [draw(*shape) * 0.5 for shape in shapes]
    assert_close(td.jit(layer)(*inputs), layer(*inputs))
    gradient = td.grad(lambda layer, x: total(layer(x, *inputs[1:])), argnums=(0, 1), allow_int=True)
    plain, jitted = gradient(layer, inputs[0]), td.jit(gradient)(layer, inputs[0])
    assert_close(plain, jitted)
    x = inputs[0].clone().requires_grad_()
    total(layer(x, *inputs[1:])).backward()
    assert_close(x.grad, plain[1])
    batch = [td.stack([one, one * 2]) for one in inputs]
    assert_close(td.tree.map(lambda y: y[0], td.vmap(layer)(*batch)), layer(*inputs))

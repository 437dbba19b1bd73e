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
    ("LPPool3d(2, 2)", (2, 1, 4, 4, 4)),
    ("UpsamplingNearest2d(scale_factor=2)", IMAGE),
    ("UpsamplingBilinear2d(size=(5, 4))", IMAGE),
    ("RReLU(0.1, 0.4).eval()", VECTORS),
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


POOLS = [
    ("max_pool1d", (2, 3, 9), (3, 2, 1)),
    ("max_pool2d", (2, 3, 7, 6), ((3, 2), 2, 1, 1, True)),
    ("max_pool2d", (3, 7, 6), (2, None, 0, 2)),
    ("max_pool3d", (1, 2, 5, 4, 4), (2,)),
    ("adaptive_max_pool1d", (2, 3, 7), (3,)),
    ("adaptive_max_pool2d", (2, 3, 7, 6), ((3, None),)),
    ("adaptive_max_pool3d", (1, 2, 5, 4, 4), (2,)),
]


@pytest.mark.parametrize("case", range(len(POOLS)))
def test_positions_of_largest_elements_agree(case):
    name, shape, args = POOLS[case]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    mine, other = td.asarray(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    ours = getattr(td.nn.functional, f"{name}_with_indices")(mine, *args)
    theirs = getattr(torch.nn.functional, f"{name}_with_indices")(other, *args)
    for one, two in zip(ours, theirs):
        np.testing.assert_array_equal(one.detach().numpy(), two.detach().numpy())
    (ours[0] ** 2).sum().backward()
    (theirs[0] ** 2).sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling_agrees(rank):
    shape = (2, 3, *(7, 6, 4)[:rank])
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    results = []
    for library, convert in ((td, td.asarray), (torch, torch.tensor)):
        pool = getattr(library.nn, f"MaxPool{rank}d")(2, return_indices=True)
        unpool = getattr(library.nn, f"MaxUnpool{rank}d")(2)
        tensor = convert(x).requires_grad_()
        values, indices = pool(tensor)
        back = unpool(values, indices, output_size=shape)
        (back**3).sum().backward()
        results.append(
            (repr(unpool), back.detach().numpy(), tensor.grad.numpy(), unpool(values, indices).shape)
        )
    assert results[0][0] == results[1][0] and results[0][3] == tuple(results[1][3])
    for one, two in zip(results[0][1:3], results[1][1:3]):
        np.testing.assert_allclose(one, two, rtol=1e-5)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "rank"), [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)]
)
def test_sampled_grids_agree(mode, rank, padding_mode, align_corners):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 3, *(4, 5, 3)[:rank])).astype(np.float32)
    grid = rng.uniform(-1.6, 1.6, (2, *(3, 2, 4)[:rank], rank)).astype(np.float32)
    results = []
    for library, convert in ((td, td.asarray), (torch, torch.tensor)):
        image, points = convert(x).requires_grad_(), convert(grid).requires_grad_()
        y = library.nn.functional.grid_sample(image, points, mode, padding_mode, align_corners)
        (y**2).sum().backward()
        results.append((y.detach().numpy(), image.grad.numpy(), points.grad.numpy()))
    for one, two in zip(*results):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 3, 2, 3, 4)])
def test_affine_grids_agree(size, align_corners):
    rank = len(size) - 2
    theta = np.random.default_rng(2).standard_normal((2, rank, rank + 1)).astype(np.float32)
    ours = td.nn.functional.affine_grid(td.asarray(theta), size, align_corners)
    theirs = torch.nn.functional.affine_grid(torch.tensor(theta), size, align_corners)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)

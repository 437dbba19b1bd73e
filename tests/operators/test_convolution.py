"""Convolution and pooling: PyTorch's values and gradients on random shapes, edge cases, dispatch keys."""

import itertools
import math
import re

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import config
from tandem.backends.cpu.codegen.shifted_tiles import find_counts, tile_vectors, write_shifted_tiles
from tandem.backends.cpu.native_kernels.convolutions import (
    block_depth,
    choose_mode,
    find,
    is_dense,
    parse_sizes,
)
from tandem.backends.cpu.native_kernels.rt_convolution import COLUMNS, ROWS, SCATTER, SHIFTED, WINDOWS
from tandem.backends.cpu.target import vector_target
from tandem.operators.nn.convolution_kernel import convolve


def draws(rng, *shapes):
    return [rng.normal(size=shape) for shape in shapes]


def close(one, two, tolerance=1e-10):
    np.testing.assert_allclose(np.asarray(one), np.asarray(two), rtol=tolerance, atol=tolerance)


def drawn_call(rng, rank, is_transposed):
    """Arrays and options of a convolution."""
    groups = int(rng.integers(1, 3))
    many, few = (int(n) * groups for n in rng.integers(1, 3, 2))
    kernel, stride, dilation = ([int(n) for n in rng.integers(1, 4, rank)] for _ in range(3))
    padding = [int(n) for n in rng.integers(0, 3, rank)]
    sizes = [int(n) for n in rng.integers(7, 9, rank)]
    weight = (many, few // groups, *kernel) if is_transposed else (few, many // groups, *kernel)
    arrays = draws(rng, (2, many, *sizes), weight, (few,))
    return arrays, {
        "stride": tuple(stride),
        "padding": tuple(padding),
        "dilation": tuple(dilation),
        "groups": groups,
    }


def gradients(theirs, torch, arrays, options, cotangent):
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    out = theirs(*leaves, **options)
    return out.detach().numpy(), torch.autograd.grad(out, leaves, torch.tensor(cotangent(out.shape)))


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d"])
@pytest.mark.parametrize("kind", ["", "_transpose"])
def test_is_the_convolution_of_pytorch(name, kind):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    name = name.replace("conv", f"conv{kind}")
    ours, theirs = getattr(td, name), getattr(torch.nn.functional, name)
    for _ in range(15):
        arrays, options = drawn_call(rng, int(name[-2]), bool(kind))
        try:
            wanted, slopes = gradients(theirs, torch, arrays, options, np.ones)
        except RuntimeError:  # nothing is left
            with pytest.raises(ValueError, match=r"longer|at least"):
                ours(*map(td.asarray, arrays), **options)
            continue
        found, back = td.vjp(lambda *a, options=options: ours(*a, **options), *map(td.asarray, arrays))
        close(found, wanted)
        for one, two in zip(back(td.ones_like(found)), slopes, strict=True):
            close(one, two)


@pytest.mark.parametrize("name", ["max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d"])
def test_is_the_pooling_of_pytorch(name):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    ours, theirs = getattr(td, name), getattr(torch.nn.functional, name)
    for kernel, stride, padding in itertools.product((1, 2, 3), (None, 1, 2), (0, 1)):
        if 2 * padding > kernel:
            continue
        (x,) = draws(rng, (2, 3, *(6, 5, 4)[: int(name[-2])]))
        options = {"kernel_size": kernel, "stride": stride, "padding": padding}
        wanted, slopes = gradients(theirs, torch, [x], options, np.ones)
        found, back = td.vjp(lambda x, options=options: ours(x, **options), td.asarray(x))
        close(found, wanted)
        close(back(td.ones_like(found))[0], slopes[0])


def test_same_padding():
    x, w = td.ones((1, 1, 7)), td.ones((1, 1, 4))
    assert td.conv1d(x, w, padding="same").tolist() == [[[3.0, 4.0, 4.0, 4.0, 4.0, 3.0, 2.0]]]
    assert td.conv1d(x, w, padding="same", stride=3).shape == (1, 1, 3)
    assert td.conv1d(x, w, padding=((1, 2),)).shape == td.conv1d(x, w, padding="same").shape
    assert td.max_pool2d(td.ones((1, 5, 5)), 2, padding="same").shape == (1, 3, 3)


@pytest.mark.parametrize("transform", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_derivatives_of_both_orders(transform):
    rng = np.random.default_rng(5)
    x, w, b = map(td.asarray, draws(rng, (2, 2, 4, 3), (4, 1, 2, 2), (4,)))

    def net(x, w, b):
        return td.max_pool2d(td.tanh(td.conv2d(x, w, b, 1, "same", (2, 1), 2)), 2, 1)

    td.check_grads(transform(net), (x, w, b), order=2)
    td.check_grads(transform(lambda x, w: td.conv_transpose2d(x, w, stride=2)), (x, w[:2]), order=2)


def test_batches_of_inputs_and_of_weights():
    rng = np.random.default_rng(6)
    xs, ws = map(td.asarray, draws(rng, (3, 2, 4, 6), (3, 2, 2, 3)))
    x, w = xs[0], ws[0]

    def f(x, w):
        return td.conv1d(x, w, groups=2, stride=2, padding=1)

    for axes, args in (((0, None), (xs, w)), ((None, 0), (x, ws)), ((0, 0), (xs, ws))):
        found = td.vmap(f, in_axes=axes)(*args)
        for i in range(3):
            one = [a if at is None else a[i] for a, at in zip(args, axes)]
            close(found[i], f(*one))
            slope = td.vmap(td.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1)), in_axes=axes)(*args)
            wanted = td.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1))(*one)
            for batch, single in zip(slope, wanted):
                close(batch[i], single)


def test_first_of_equal_elements_and_nan():
    x = td.asarray([[1.0, 1.0, 2.0, 2.0]])
    assert td.grad(lambda x: td.max_pool1d(x, 2).sum())(x).tolist() == [[1.0, 0.0, 1.0, 0.0]]
    x = td.asarray([[float("nan"), 1.0, 2.0, float("nan"), 3.0, 4.0]])
    assert np.isnan(td.max_pool1d(x, 2).numpy()).tolist() == [[True, True, False]]
    assert td.max_pool1d(td.asarray([[-5, -7]]), 2, 1, 1).tolist() == [[-5, -5, -7]]


def test_large_inputs_are_taken_in_blocks(monkeypatch):
    rng = np.random.default_rng(7)
    x, w = map(td.asarray, draws(rng, (5, 3, 6), (2, 3, 3)))
    f = td.value_and_grad(lambda x, w: (td.conv1d(x, w, padding=1) ** 2).sum(), (0, 1))
    whole = f(x, w)
    monkeypatch.setattr("tandem.operators.nn.convolution_kernel.BLOCK", 40)
    for one, two in zip(td.tree.leaves(whole), td.tree.leaves(f(x, w)), strict=True):
        close(one, two)


def test_layers_of_the_dispatcher():
    x, w, b = td.ones((1, 2, 5, 5)), td.ones((3, 2, 3, 3)), td.ones(3)
    with td.autocast("cpu"):
        assert td.conv2d(x, w, b).dtype is td.bfloat16
    assert td.conv2d(x.to("meta"), w.to("meta"), b.to("meta"), 2).shape == (1, 3, 2, 2)
    compiled = td.jit(td.conv2d).lower(x, w).compile()
    assert compiled.cost_analysis()["flops"] == 2 * 3 * 9 * 18
    half = td.conv2d(x.to(td.float16), w.to(td.float16))
    assert half.dtype is td.float16 and half[0, 0, 0, 0].item() == 18.0


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_weights_are_row_major(rank, groups):
    conv = getattr(td, f"conv{rank}d")
    x, weight = td.ones((2, 4, *(5,) * rank)), td.ones((6, 4 // groups, *(3,) * rank))
    gradient = td.grad(lambda w: conv(x, w, groups=groups).sum())
    for result in (gradient(weight), td.jit(gradient)(weight)):
        assert result.shape == weight.shape and result.is_contiguous()


def test_a_small_network_learns():
    rng = np.random.default_rng(8)
    images = rng.normal(size=(32, 1, 8, 8)).astype(np.float32)
    labels = td.asarray((images[:, 0, :4].mean((1, 2)) > images[:, 0, 4:].mean((1, 2))).astype(np.int64))
    shapes = (4, 1, 3, 3), (4,), (36, 2)
    weights = [td.asarray(0.3 * a.astype(np.float32)) for a in draws(rng, *shapes)]

    def loss(weights, x):
        w, b, out = weights
        hidden = td.relu(td.max_pool2d(td.conv2d(x, w, b), 2))
        return td.cross_entropy(td.reshape(hidden, (32, 36)) @ out, labels)

    step = td.jit(td.value_and_grad(loss))
    values = []
    for _ in range(60):
        value, slopes = step(weights, td.asarray(images))
        weights = [w - 0.3 * g for w, g in zip(weights, slopes)]
        values.append(value.item())
    assert values[-1] < 0.2 * values[0]


def random_convolutions(count):
    rng = np.random.default_rng(7)
    for trial in range(count):
        rank, groups, within = (int(rng.integers(1, high)) for high in (4, 3, 3))
        sizes, kernel, stride, dilation = (tuple(map(int, rng.integers(1, 5, rank))) for _ in range(4))
        input_dilation = tuple(map(int, rng.integers(1, 3, rank))) if trial % 2 else (1,) * rank
        padding = tuple(map(int, rng.integers(-1, 3, 2 * rank)))
        x = rng.standard_normal((int(rng.integers(1, 4)), within * groups, *sizes))
        w = rng.standard_normal((groups * int(rng.integers(1, 3)), within, *kernel))
        if trial % 3 == 0:  # other strides
            x, w = (
                np.swapaxes(np.swapaxes(x, 0, 1).copy(), 0, 1),
                np.swapaxes(np.swapaxes(w, 0, -1).copy(), 0, -1),
            )
        yield x, w, (stride, padding, input_dilation, dilation, groups)


def test_loops_compute_what_numpy_computes():
    done = 0
    for x, w, how in random_convolutions(400):
        try:
            found = td.convolution(td.asarray(x), td.asarray(w), *how)
        except td.errors.TandemError:
            continue  # the kernel is longer than the padded input
        if found.size:
            done += 1
            close(found, convolve(np, x, w, *how))
    assert done > 50


def larger_convolutions(count):
    """Large results of small kernels, also with strides, and small results of large kernels."""
    rng = np.random.default_rng(8)
    for trial in range(count):
        rank, groups, within = (int(rng.integers(1, 3)) for _ in range(3))
        sizes = tuple(map(int, rng.integers(36, 60, rank) if rank == 1 else rng.integers(6, 12, rank)))
        kernel = [int(rng.integers(1, 4)) if trial % 2 else n - int(rng.integers(0, 4)) for n in sizes]
        dilation = tuple(map(int, rng.integers(1, 3, rank))) if trial % 4 == 1 else (1,) * rank
        padding = tuple(map(int, rng.integers(-1, 3, 2 * rank)))
        x = rng.standard_normal((int(rng.integers(1, 4)), within * groups, *sizes))
        w = rng.standard_normal((groups * int(rng.integers(1, 20)), within, *kernel))
        if trial % 3 == 0:
            x, w = np.swapaxes(np.swapaxes(x, 0, -1).copy(), 0, -1), w[..., ::-1]
        stride = tuple(map(int, rng.integers(1, 4, rank))) if trial % 4 == 3 else (1,) * rank
        yield x, w, (stride, padding, (1,) * rank, dilation, groups)


@pytest.mark.parametrize("shape", [(2, 1, 0), (0, 1, 3), (2, 1, 0, 4)])
def test_inputs_without_elements_have_gradients(shape):
    rank = len(shape) - 2
    x, w = td.zeros(shape), td.ones((2, 1, *(1,) * rank))

    def loss(x, w):
        return (td.convolution(x, w, (1,) * rank, (1, 1) * rank, (1,) * rank, (1,) * rank, 1) + 1).sum()

    assert loss(x, w).item() > 0 or shape[0] == 0
    for transform in (td.grad(loss, argnums=(0, 1)), td.jit(td.grad(loss, argnums=(0, 1)))):
        dx, dw = transform(x, w)
        assert dx.shape == shape
        assert dw.tolist() == td.zeros(w.shape).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planes_are_multiplied_where_they_are(dtype):
    done = 0
    for x, w, how in larger_convolutions(120):
        x, w = x.astype(dtype), w.astype(dtype)
        try:
            found = td.convolution(td.asarray(x), td.asarray(w), *how)
        except td.errors.TandemError:
            continue
        done += 1
        close(found, convolve(np, x, w, *how), 2e-4 if dtype is np.float32 else 1e-10)
    assert done > 80


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [6, 64, 256])
def test_small_kernels_of_any_stride_multiply_shifted_planes(channels, stride):
    name = f"1,{channels},{channels},28x28,3x3,{28 // stride}x{28 // stride},{stride}x{stride},1x1,1x1,1x1"
    assert choose_mode(parse_sizes(name)) == SHIFTED


def geometry_of(x, w, stride, padding, dilation=1):
    sizes = [n + 2 * padding - (k - 1) * dilation for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    out = [(n - 1) // stride + 1 for n in sizes]
    axes = (x.shape[2:], w.shape[2:], out, *([n] * 2 for n in (stride, padding, 1, dilation)))
    return parse_sizes(",".join(["1", f"{x.shape[1]}", f"{len(w)}", *("x".join(map(str, a)) for a in axes)]))


@pytest.mark.parametrize(
    "shape, kernel, stride, padding, dense, blocks",
    [
        ((3, 64, 8, 8), (40, 3, 3), 1, 1, True, True),  # whole vectors of positions
        ((3, 130, 7, 7), (20, 3, 3), 1, 1, False, True),  # sums are kept beside the result
        ((3, 130, 10, 10), (64, 3, 3), 1, 1, True, True),
        ((2, 6, 14, 14), (16, 5, 5), 1, 0, False, False),
        ((2, 40, 15, 15), (28, 3, 3), 2, 1, True, True),
        ((2, 5, 32, 32), (24, 3, 3), 2, 1, False, False),
        ((3, 64, 8, 8), (23, 1, 1), 1, 0, False, False),  # planes are the input itself
        ((3, 64, 9, 9), (23, 1, 1), 1, 0, False, False),
        ((1, 64, 8, 24), (1, 1, 1), 2, 0, False, False),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planes_of_the_width_of_the_result(shape, kernel, stride, padding, dense, blocks, dtype):
    rng = np.random.default_rng(5)
    x = rng.standard_normal(shape).astype(dtype)
    w = rng.standard_normal((kernel[0], shape[1], *kernel[1:])).astype(dtype)
    sizes = geometry_of(x, w, stride, padding)
    assert (choose_mode(sizes), is_dense(sizes)) == (SHIFTED, dense)
    assert (block_depth(sizes) < math.prod(w.shape[1:])) == blocks
    how = ((stride,) * 2, (padding,) * 4, (1, 1), (1, 1), 1)
    found = td.convolution(td.asarray(x), td.asarray(w), *how)
    close(found, convolve(np, x, w, *how), 2e-4 if dtype is np.float32 else 1e-10)
    for one, two in ((x[:, ::-1].copy()[:, ::-1], w), (x, w.swapaxes(0, 1).copy().swapaxes(0, 1))):
        again = td.convolution(td.asarray(one), td.asarray(two), *how)  # strides do not matter
        assert again.numpy().tobytes() == found.numpy().tobytes()
    one = td.convolution(td.asarray(x[1 % len(x) :]), td.asarray(w), *how)
    assert one[0].numpy().tobytes() == found[1 % len(x)].numpy().tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 2])
def test_windows_of_large_kernels_are_read_in_place(rank, dtype):
    rng = np.random.default_rng(9)
    for trial in range(30):
        groups, within, of_group, count = (
            int(rng.integers(*ends)) for ends in ((1, 3), (1, 4), (12, 70), (1, 9))
        )
        kernel, stride, dilation = (
            tuple(map(int, rng.integers(*ends, rank))) for ends in ((16 // rank, 20 // rank), (1, 3), (1, 3))
        )
        sizes = [(k - 1) * d + 1 + int(rng.integers(0, 5)) for k, d in zip(kernel, dilation, strict=True)]
        padding = tuple(map(int, rng.integers(0, 2, 2 * rank)))
        x = rng.standard_normal((count, within * groups, *sizes)).astype(dtype)
        w = rng.standard_normal((groups * of_group, within, *kernel)).astype(dtype)
        if trial % 2:
            x, w = np.swapaxes(np.swapaxes(x, 0, 1).copy(), 0, 1), w[..., ::-1]
        found = td.convolution(td.asarray(x), td.asarray(w), stride, padding, (1,) * rank, dilation, groups)
        expected = convolve(np, x, w, stride, padding, (1,) * rank, dilation, groups)
        close(found, expected, 2e-4 if dtype is np.float32 else 1e-10)


def test_derivatives_by_kernels_read_windows_in_place():
    assert choose_mode(parse_sizes("1,32,64,16x16,16x16,3x3,1x1,1x1,1x1,1x1")) == WINDOWS
    assert choose_mode(parse_sizes("1,32,128,16x16,8x8,3x3,1x1,1x1,1x1,2x2")) == WINDOWS


@pytest.mark.parametrize("vectors", range(1, 9))
def test_tiles_with_code_are_those_of_all_positions(vectors):
    """The loops over the tiles of a height, largest first, as `shifted_tiles` writes them."""

    def run(pitch, counts):
        done, left, tiles = 0, pitch, []
        for count in counts:
            left %= count
            if count == vectors > 2 and left == 1 and pitch > vectors:
                left = vectors + 1
            whole, rest = divmod(pitch - left - done, count)
            assert rest == 0
            tiles += [count] * whole
            done = pitch - left
        assert done == pitch
        return tiles

    for pitch in range(1, 80):
        counts = find_counts(pitch, vectors)
        assert set(run(pitch, sorted(counts, reverse=True))) == counts
        assert run(pitch, range(vectors, 0, -1)) == run(pitch, sorted(counts, reverse=True))
        assert 1 not in counts or vectors < 3 or pitch == 1


@needs_native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_convolutions_of_other_sizes_add_tiles(dtype):
    """The first convolution of a height compiles its own tiles; each later one has all that it needs."""
    rng = np.random.default_rng(0)
    for width in (8, 16, 33, 40, 64, 70):
        x = rng.standard_normal((2, 3, 6, width)).astype(dtype)
        for channels in (1, 2, 5, 8, 14):
            w = rng.standard_normal((channels, 3, 3, 3)).astype(dtype)
            found = td.nn.functional.conv2d(td.asarray(x), td.asarray(w)).numpy()
            windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
            wanted = np.einsum("ncijab,ocab->noij", windows, w)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [td.float32, td.float64])
def test_tiles_of_shifted_planes_keep_their_sums_in_registers(dtype):
    """Every multiplication of a tile is one of vectors, whose sum is carried around the loop over the taps."""
    for height, vectors in tile_vectors().items():
        text = write_shifted_tiles(dtype, height)
        function = text.partition("@shifted_tiles(")[2].partition("\n}")[0]
        expected = sum(height * count for count in range(1, vectors + 1))
        lanes = vector_target().vector_bytes // dtype.itemsize
        assert len(re.findall(rf"phi <{lanes} x ", function)) == expected


@pytest.mark.parametrize(
    "sizes, kernel, how, wanted",
    [
        ((3,), (1,), ((2,), (0, 2), (1,), (1,)), [1.0, 3.0, 0.0]),  # as long as the input, but not the input
        ((3,), (1,), ((2**63 - 1,), (0, 0), (1,), (1,)), [1.0]),
        ((3,), (2,), ((2**62,), (1, 0), (1,), (1,)), [1.0]),
        ((1,), (1,), ((1,), (1, 1), (2**63 - 1,), (2**63 - 1,)), [0.0, 1.0, 0.0]),
        ((0, 6), (3, 1), ((1, 1), (5, 1, 5, 5), (3, 1), (2, 2)), [0.0] * 2 * 16),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_steps_beyond_the_input(sizes, kernel, how, wanted, dtype):
    x = td.asarray(np.arange(1, 1 + math.prod(sizes)).reshape(1, 1, *sizes).astype(dtype))
    w = td.ones((1, 1, *kernel), dtype=x.dtype)
    for run in (td.convolution, td.convolution, td.jit(lambda x, w: td.convolution(x, w, *how))):
        found = run(x, w, *how) if run is td.convolution else run(x, w)
        assert found.numpy().ravel().tolist() == wanted


def test_too_much_memory_for_repeated_elements():
    one = td.ones((), dtype=td.float64)
    x, w = td.broadcast_to(one, (1, 2**21, 2**21 - 1)), td.broadcast_to(one, (1, 2**21, 2**20))
    with pytest.raises(MemoryError):
        td.convolution(x, w, (1,), (0, 0), (1,), (1,))


@pytest.mark.skipif(not config.flags.native, reason="native code is off")
def test_convolutions_and_their_derivatives_are_native():
    x, w = td.asarray(np.ones((2, 3, 8, 8), np.float32)), td.asarray(np.ones((4, 3, 3, 3), np.float32))
    for stride in (1, 2):
        run = td.value_and_grad(
            lambda x, w, s=stride: (td.conv2d(x, w, stride=s, padding=1) ** 2).sum(), (0, 1)
        )
        assert "callback" not in str(td.jit(run).lower(x, w).kernels())
        eager, compiled = run(x, w), td.jit(run)(x, w)
        for one, two in zip(td.tree.leaves(eager)[1:], td.tree.leaves(compiled)[1:], strict=True):
            np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_convolutions_of_one_graph_have_the_bits_of_eager_ones(dtype):
    """The code of a graph's convolutions differs with their modes, and with products that have a vector."""
    rng = np.random.default_rng(0)
    cases = [
        ((2, 8, 5, 5), (1, 8, 3, 3), {"stride": 2}),
        ((2, 8, 5, 5), (8, 8, 3, 3), {"stride": 2}),
        ((2, 8, 3, 3), (8, 8, 3, 3), {}),
        ((1, 6, 3, 3), (1, 6, 3, 3), {}),
        ((2, 3, 9, 9), (5, 3, 3, 3), {"padding": 1}),
    ]
    tensors = [
        td.asarray(rng.standard_normal(shape).astype(dtype)) for one, two, _ in cases for shape in (one, two)
    ]
    pairs = [(2 * k, 2 * k + 1, how) for k, (_, _, how) in enumerate(cases)]

    def run(*given):
        return tuple(td.nn.functional.conv2d(given[i], given[j], **how) for i, j, how in pairs)

    for found, wanted in zip(td.jit(run)(*tensors), run(*tensors), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@needs_native
def test_each_symbol_names_one_loop():
    """A graph imports the code of its convolutions by symbol."""
    loops = [
        find(f"2,{mode},{detail}", (td.float32,) * 3)
        for mode in (COLUMNS, ROWS, SCATTER)
        for detail in (0, 1)
    ]
    tiled = (f"2,{SHIFTED},6,100", f"2,{SHIFTED},20,300", f"2,{WINDOWS},6", f"2,{WINDOWS},20")
    loops += [find(name, (td.float32,) * 3) for name in tiled]
    pairs = {(loop.symbol, loop.address) for loop in loops}
    assert len(pairs) == len({symbol for symbol, _ in pairs}) == 8

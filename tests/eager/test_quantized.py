"""Quantized tensors against NumPy's integers and, where PyTorch is installed, against PyTorch."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tandem as td
from tandem.eager.quantized.tensor import QuantizedTensor
from tandem.errors import (
    ArgumentError,
    DTypeError,
    NoKernelError,
    NotDifferentiableError,
    OutOfBoundsError,
    ShapeError,
    UnsupportedError,
    ValueArgumentError,
)

LIMITS = {td.int8: (-128, 127), td.uint8: (0, 255)}
BOTH = pytest.mark.parametrize("dtype", [td.int8, td.uint8], ids=str)


def reference(x, scale, zero, dtype):
    """The integers: float32's inverse of the scale, an exact product and sum, rounded once to float32."""
    inverse = np.float64(np.float32(1) / np.float32(scale))
    with np.errstate(all="ignore"):
        moved = (x.astype(np.float32).astype(np.float64) * inverse + zero).astype(np.float32)
    return np.clip(np.rint(moved), *LIMITS[dtype]).astype(dtype.np)


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 3


@BOTH
@pytest.mark.parametrize(("scale", "zero"), [(0.1, 0), (0.037, 12), (2.5, 100), (1e-6, 5), (1e6, 0)])
def test_integers_and_numbers(dtype, scale, zero):
    x = np.concatenate([drawn(0, 100), [0, -0.0, np.inf, -np.inf, 0.5 * scale, 1.5 * scale]]).astype(
        np.float32
    )
    q = td.quantize_per_tensor(td.asarray(x), scale, zero, dtype)
    want = reference(x, scale, zero, dtype)
    assert type(q) is QuantizedTensor
    assert (q.shape, q.dtype, q.device, q.q_scale(), q.q_zero_point()) == (x.shape, dtype, "cpu", scale, zero)
    assert np.array_equal(q.int_repr().numpy(), want)
    numbers = q.dequantize()
    assert numbers.dtype is td.float32
    assert np.array_equal(numbers.numpy(), (want.astype(np.float32) - np.float32(zero)) * np.float32(scale))


@BOTH
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_channels(dtype, axis):
    x = drawn(1, 4, 5, 3)
    count = x.shape[axis]
    scales, zeros = np.linspace(0.01, 0.2, count), np.arange(count)
    q = td.quantize_per_channel(td.asarray(x), scales, zeros, axis, dtype)
    shape = [1, 1, 1]
    shape[axis] = count
    want = reference(x, scales.reshape(shape), zeros.reshape(shape), dtype)
    assert np.array_equal(q.int_repr().numpy(), want)
    assert (q.qscheme, q.q_per_channel_axis()) == ("per_channel_affine", axis % 3)
    assert np.array_equal(q.q_per_channel_scales().numpy(), scales)
    assert np.array_equal(q.q_per_channel_zero_points().numpy(), zeros)
    back = q.permute(2, 0, 1)
    assert back.q_per_channel_axis() == [2, 0, 1].index(axis % 3)
    assert np.array_equal(back.dequantize().numpy(), q.dequantize().numpy().transpose(2, 0, 1))


def test_rounding_to_even_and_nan_to_zero_point():
    q = td.quantize_per_tensor(td.asarray([0.5, 1.5, 2.5, -0.5, float("nan")]), 1.0, 3)
    assert q.int_repr().tolist() == [4, 4, 6, 2, 3]


# -- integer products --------------------------------------------------------------------------------------------------
def integers(seed, dtype, *shape, extreme=False):
    low, high = LIMITS[dtype]
    rng = np.random.default_rng(seed)
    if extreme:
        return rng.choice([low, high], size=shape).astype(dtype.np)
    return rng.integers(low, high + 1, shape).astype(dtype.np)


@BOTH
@pytest.mark.parametrize("other", [td.int8, td.uint8], ids=str)
@pytest.mark.parametrize("inner", [1, 7, 255, 259, 1024, 1025, 5000])
def test_products_are_exact(dtype, other, inner):
    a, b = integers(2, dtype, 5, inner, extreme=True), integers(3, other, inner, 4, extreme=True)
    want = a.astype(np.int64) @ b.astype(np.int64)
    got = td.ops.quantized.int_mm(td.asarray(a), td.asarray(b))
    assert got.dtype is td.int32
    assert np.array_equal(got.numpy(), want)
    zeros = np.arange(4) * 30 - (0 if other is td.uint8 else 60)
    want = (a.astype(np.int64) - 17) @ (b.astype(np.int64) - zeros)
    assert np.array_equal(td.ops.quantized.int_mm(td.asarray(a), td.asarray(b), 17, zeros).numpy(), want)


def test_products_of_vectors_stacks_and_nothing():
    a, b = integers(4, td.int8, 2, 3, 700), integers(5, td.int8, 700, 4)
    mm = td.ops.quantized.int_mm
    assert np.array_equal(mm(td.asarray(a), td.asarray(b)).numpy(), a.astype(int) @ b.astype(int))
    assert mm(td.asarray(a[0, 0]), td.asarray(b[:, 0])).item() == a[0, 0].astype(int) @ b[:, 0].astype(int)
    assert mm(td.zeros((2, 0), dtype=td.int8), td.zeros((0, 3), dtype=td.int8)).tolist() == [[0] * 3] * 2


def test_sums_beyond_int32_wrap():
    n = 2**18
    a = np.full((1, n), -128, np.int8)
    got = td.ops.quantized.int_mm(td.asarray(a), td.asarray(a.T)).item()
    want = (128 * 128 * n + 2**31) % 2**32 - 2**31
    assert got == want


def requantized(sums, unit, scale, zero, dtype, bias=None):
    value = sums.astype(np.float32)
    if bias is not None:
        value = value + bias.astype(np.float32) / unit
    return np.clip(np.rint(value * (unit / np.float32(scale))) + zero, *LIMITS[dtype]).astype(dtype.np)


@BOTH
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_linear(dtype, channels, has_bias):
    x, w, bias = drawn(6, 7, 300), drawn(7, 5, 300) / 20, drawn(8, 5)
    zx, zero = (3, 2) if dtype is td.int8 else (120, 130)
    scales = np.linspace(0.004, 0.006, 5)
    qx = td.quantize_per_tensor(td.asarray(x), 0.08, zx, dtype)
    if channels:
        qw = td.quantize_per_channel(td.asarray(w), scales, [0, 1, -2, 3, 0], 0, td.int8)
        zw, sw = np.array([0, 1, -2, 3, 0]), scales
    else:
        qw = td.quantize_per_tensor(td.asarray(w), 0.005, -4)
        zw, sw = np.full(5, -4), np.full(5, 0.005)
    got = td.ops.quantized.linear(qx, qw, td.asarray(bias) if has_bias else None, 0.5, zero)
    sums = (qx.int_repr().numpy().astype(np.int64) - zx) @ (
        qw.int_repr().numpy().astype(np.int64) - zw[:, None]
    ).T
    unit = np.float32(0.08) * sw.astype(np.float32)
    want = requantized(sums, unit, 0.5, zero, dtype, bias if has_bias else None)
    assert (got.dtype, got.q_scale(), got.q_zero_point()) == (dtype, 0.5, zero)
    assert np.array_equal(got.int_repr().numpy(), want)
    real = x @ w.T + (bias if has_bias else 0)
    inside = np.abs(real) < 30
    assert np.abs(got.dequantize().numpy() - real)[inside].max() < 2.0


def test_matmul_relu_add():
    a, b = drawn(9, 4, 6), drawn(10, 6, 3)
    qa, qb = (td.quantize_per_tensor(td.asarray(x), 0.1, zero) for x, zero in ((a, 5), (b, -5)))
    sums = (qa.int_repr().numpy().astype(int) - 5) @ (qb.int_repr().numpy().astype(int) + 5)
    got = td.ops.quantized.matmul(qa, qb, 0.7, 1)
    assert np.array_equal(
        got.int_repr().numpy(), requantized(sums, np.float32(0.1) * np.float32(0.1), 0.7, 1, td.int8)
    )
    columns = td.quantize_per_channel(td.asarray(b), [0.1, 0.2, 0.3], [0, 1, 2], 1)
    assert td.ops.quantized.matmul(qa, columns, 0.7, 1).shape == (4, 3)
    assert td.relu(qa).int_repr().tolist() == np.maximum(qa.int_repr().numpy(), 5).tolist()
    total = td.ops.quantized.add(qa, td.quantize_per_tensor(td.asarray(a), 0.05, 0), 0.2, -3)
    real = qa.dequantize().numpy() + td.quantize_per_tensor(td.asarray(a), 0.05, 0).dequantize().numpy()
    assert np.array_equal(total.int_repr().numpy(), reference(real, 0.2, -3, td.int8))


# -- as tensors --------------------------------------------------------------------------------------------------------
def test_moves_copies_pickles_and_text():
    q = td.quantize_per_tensor(td.asarray([[0.0, 1.0], [2.0, 3.0]]), 0.5, 1)
    assert q.T.dequantize().tolist() == [[0.0, 2.0], [1.0, 3.0]]
    assert q.reshape(4)[1:3].dequantize().tolist() == [1.0, 2.0]
    assert q[1].int_repr().tolist() == [5, 7]
    for other in (copy.copy(q), copy.deepcopy(q), pickle.loads(pickle.dumps(q)), td.clone(q), q.detach()):
        assert (other.q_scale(), other.int_repr().tolist()) == (0.5, [[1, 3], [5, 7]])
    assert repr(q[0]) == "tensor([0., 1.], scale=0.5, zero_point=1, dtype=quantized int8)"
    assert q.nbytes == 4


def test_under_jit():
    x, w = (
        td.asarray(drawn(11, 4, 8)),
        td.quantize_per_channel(td.asarray(drawn(12, 3, 8)), [0.1] * 3, [0] * 3, 0),
    )

    def f(x, w):
        q = td.quantize_per_tensor(x, 0.1, 0)
        return td.relu(td.ops.quantized.linear(q, w, None, 0.3, 0))

    want, compiled = f(x, w), td.jit(f)
    got = compiled(x, w)
    assert type(got) is QuantizedTensor
    assert got.q_scale() == 0.3
    assert np.array_equal(got.int_repr().numpy(), want.int_repr().numpy())
    assert np.array_equal(compiled(x + 1, w).int_repr().numpy(), f(x + 1, w).int_repr().numpy())
    assert compiled.cache_info().specializations == 1


def test_operators_without_a_kernel_name_what_works():
    q = td.quantize_per_tensor(td.ones(3), 0.5, 0)
    with pytest.raises(
        NoKernelError, match=r"td::add(.|\n)*quantized int8\[3\](.|\n)*dequantize\(\)(.|\n)*quantized.add"
    ):
        q + q
    with pytest.raises(NoKernelError, match="td::exp"):
        td.exp(q)
    with pytest.raises(NoKernelError, match="dequantize"):
        q.add_(1)
    for read in (np.asarray, float, lambda x: x.numpy(), lambda x: x.tolist(), lambda x: x.requires_grad_()):
        with pytest.raises(UnsupportedError, match="dequantize"):
            read(td.quantize_per_tensor(td.asarray(1.0), 0.5, 0))
    assert td.dispatch_table("relu")["QuantizedCPU"].kind == "kernel"
    assert td.dispatch_table("exp")["QuantizedCPU"].kind == "fallback"


def test_no_gradient_is_said_aloud():
    w = td.ones(3).requires_grad_()
    q = td.relu(td.quantize_per_tensor(w * 2, 0.5, 0))
    with pytest.raises(NotDifferentiableError, match="rounding"):
        (q.dequantize() + w).sum().backward()
    assert q.detach().dequantize().requires_grad is False
    with pytest.raises(NotDifferentiableError, match="rounding has no useful derivative"):
        td.grad(lambda x: td.quantize_per_tensor(x, 0.5, 0).dequantize().sum())(td.ones(3))
    slope = td.grad(lambda x: (x * td.quantize_per_tensor(td.stop_gradient(x), 0.5, 0).dequantize()).sum())
    assert slope(td.ones(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: td.quantize_per_tensor(x, 0.0, 0), ValueArgumentError, "positive"),
        (lambda x: td.quantize_per_tensor(x, float("inf"), 0), ValueArgumentError, "finite"),
        (lambda x: td.quantize_per_tensor(x, float("nan"), 0), ValueArgumentError, "finite"),
        (lambda x: td.quantize_per_tensor(x, 0.1, 128), ValueArgumentError, "zero point 128"),
        (lambda x: td.quantize_per_tensor(x, 0.1, 0.5), DTypeError, "integer"),
        (lambda x: td.quantize_per_tensor(x, "a", 0), DTypeError, "scale"),
        (lambda x: td.quantize_per_tensor(x, 0.1, 0, td.int16), DTypeError, "int8 or uint8"),
        (lambda x: td.quantize_per_tensor(x.astype(td.int32), 0.1, 0), DTypeError, "floating-point"),
        (lambda x: td.quantize_per_channel(x, [0.1], [0], 0), ShapeError, "takes 2 scales"),
        (lambda x: td.quantize_per_channel(x, [0.1, 0.1], [0], 0), ShapeError, "zero_points"),
        (lambda x: td.quantize_per_channel(x, [0.1, -1.0], [0, 0], 0), ValueArgumentError, "positive"),
        (lambda x: td.quantize_per_channel(x, [0.1, 0.1], [0, 0.5], 0), DTypeError, "integers"),
        (lambda x: td.quantize_per_channel(x, [0.1, 0.1], [0, 0], 2), OutOfBoundsError, "axis 2"),
        (
            lambda x: td.ops.quantized.add(td.quantize_per_tensor(x, 0.1, 0), x, 0.1, 0),
            ArgumentError,
            "dense",
        ),
        (
            lambda x: td.ops.quantized.add(*[td.quantize_per_channel(x, [0.1] * 2, [0] * 2, 0)] * 2, 0.1, 0),
            UnsupportedError,
            "per channel",
        ),
        (
            lambda x: td.ops.quantized.linear(*[td.quantize_per_tensor(x, 0.1, 0)] * 2, td.ones(3), 0.1, 0),
            ShapeError,
            "bias",
        ),
        (lambda x: td.quantize_per_tensor(x, 0.1, 0).q_per_channel_scales(), UnsupportedError, "one scale"),
        (lambda x: td.ops.quantized.int_mm(x, x), DTypeError, "int8"),
    ],
    ids=range(18),
)
def test_bad_calls(call, error, match):
    with pytest.raises(error, match=match):
        call(td.ones((2, 2)))


# -- against PyTorch ---------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:torch.quantize:UserWarning")
@pytest.mark.parametrize("seed", range(6))
def test_pytorch_gives_the_same_integers(seed):
    torch = pytest.importorskip("torch")
    x = drawn(seed, 40, 30)
    for dtype, kind, zero in ((td.int8, torch.qint8, -3), (td.uint8, torch.quint8, 100)):
        want = torch.quantize_per_tensor(torch.from_numpy(x), 0.0173, zero, kind)
        got = td.quantize_per_tensor(td.asarray(x), 0.0173, zero, dtype)
        assert np.array_equal(got.int_repr().numpy(), want.int_repr().numpy())
        assert np.allclose(got.dequantize().numpy(), want.dequantize().numpy(), rtol=1e-6)
        scales, zeros = np.linspace(0.01, 0.1, 30), np.arange(30)
        want = torch.quantize_per_channel(
            torch.from_numpy(x), torch.tensor(scales), torch.tensor(zeros), 1, kind
        )
        got = td.quantize_per_channel(td.asarray(x), scales, zeros, 1, dtype)
        assert np.array_equal(got.int_repr().numpy(), want.int_repr().numpy())


@pytest.mark.filterwarnings("ignore:torch.quantize:UserWarning")
@pytest.mark.parametrize("channels", [False, True])
def test_pytorch_gives_the_same_linear_and_add(channels):
    torch = pytest.importorskip("torch")
    x, w, bias = np.abs(drawn(20, 16, 64)), drawn(21, 8, 64) / 10, drawn(22, 8)
    tx = torch.quantize_per_tensor(
        torch.from_numpy(x), 0.1, 0, torch.quint8
    )  # below 128: what its kernels add exactly
    qx = td.quantize_per_tensor(td.asarray(x), 0.1, 0, td.uint8)
    scales = np.linspace(0.005, 0.01, 8)
    if channels:
        tw = torch.quantize_per_channel(
            torch.from_numpy(w), torch.tensor(scales), torch.zeros(8, dtype=torch.int64), 0, torch.qint8
        )
        qw = td.quantize_per_channel(td.asarray(w), scales, np.zeros(8, int), 0)
    else:
        tw = torch.quantize_per_tensor(torch.from_numpy(w), 0.01, 0, torch.qint8)
        qw = td.quantize_per_tensor(td.asarray(w), 0.01, 0)
    packed = torch.ops.quantized.linear_prepack(tw, torch.from_numpy(bias))
    want = torch.ops.quantized.linear(tx, packed, 0.4, 60).int_repr().numpy().astype(int)
    got = td.ops.quantized.linear(qx, qw, td.asarray(bias), 0.4, 60).int_repr().numpy().astype(int)
    assert np.abs(got - want).max() <= 1
    assert (got != want).mean() < 0.02
    ty = torch.quantize_per_tensor(torch.from_numpy(drawn(23, 16, 64)), 0.07, 30, torch.quint8)
    qy = td.quantize_per_tensor(td.asarray(drawn(23, 16, 64)), 0.07, 30, td.uint8)
    want = torch.ops.quantized.add(tx, ty, 0.2, 10).int_repr().numpy().astype(int)
    got = td.ops.quantized.add(qx, qy, 0.2, 10).int_repr().numpy().astype(int)
    assert np.abs(got - want).max() <= 1
    assert (got != want).mean() < 0.02


def test_the_machinery_loads_at_first_use():
    code = """
import sys, tandem as td
parts = ("eager.sparse", "eager.quantized", "operators.sparse_quantized.sparse", "operators.sparse_quantized.quantized")
loaded = [m for m in sys.modules for part in parts if m.startswith("tandem." + part)]
assert not loaded and "scipy" not in sys.modules, loaded
assert {"sparse", "quantized"} <= set(dir(td.ops))
assert td.dispatch_table("quantized::linear")["QuantizedCPU"].kind == "kernel"
one = td.ones((1, 1), dtype=td.int8)
assert td.ops.quantized.int_mm(one, one).item() == 1
assert "scipy" not in sys.modules
assert td.ops.sparse.spmm.schema.name == "spmm"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr

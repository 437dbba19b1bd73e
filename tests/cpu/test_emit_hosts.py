"""Code emitted for processors with narrower vectors."""

import numpy as np
import pytest
from emit_harness import buffer, fused, grids, loop, reduce_loop, same, softmax
from tandem.backends.cpu import target
from tandem.backends.cpu.codegen import elementwise, vectors
from tandem.backends.cpu.codegen import fused as fused_module
from tandem.backends.cpu.codegen.folds import adjacent, eager, nested, unordered
from tandem.backends.cpu.codegen.functions import lookup
from tandem.errors import UnsupportedError
from tandem.lowering.fusion.loop_ir import FusedKernel, Stage, Store, load
from tandem.operators.scalar_ir import nodes as s
from tandem.operators.scalar_ir.expr import NODES
from tandem.operators.scalar_ir.numpy_evaluation import numpy_kernel
from tandem.registry import dtypes as dt

HOSTS = {
    "avx2": target.VectorTarget(32, True),
    "sse": target.VectorTarget(16, False),
    "avx512": target.VectorTarget(64, True, True),
}
NAMES = "add floordiv remainder pow exp log erf erfc erfinv tanh sin maximum rint abs".split()


@pytest.fixture(params=HOSTS)
def other(request, monkeypatch):
    if HOSTS[request.param].masks and not target.vector_target().masks:
        pytest.skip("this processor has no vectors of 64 bytes with masks")
    for module in (elementwise, adjacent, eager, nested, unordered, vectors, fused_module, lookup, target):
        monkeypatch.setattr(module, "vector_target", lambda: HOSTS[request.param])
    return HOSTS[request.param]


@pytest.mark.filterwarnings("ignore")
def test_nodes(other):
    for name in NAMES:
        arity = NODES[name].arity
        for dtype in (dt.float32, dt.float64, dt.int8, dt.int32, dt.int64):
            if dtype.kind in NODES[name].kinds:
                expr = s.apply(name, *[s.arg(i, dtype) for i in range(arity)])
                arrays = grids(dtype, arity)
                got, expected = loop(expr, [dtype] * arity)(*arrays), numpy_kernel(expr)(*arrays)
                assert same(np.abs(got), np.abs(expected), 8 if dtype.kind == "f" else 0).all(), (name, dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", dt.COMPLEX, ids=str)
def test_complex_nodes(other, dtype):
    bodies = {
        "product": lambda x, y: x * y,
        "quotient": lambda x, y: x / y,
        "conjugate": lambda x, y: s.apply("conj", x) - y,
        "selection": lambda x, y: s.select(s.apply("isfinite", x), x, 2.5 - 1j),
        "parts": lambda x, y: s.apply("complex", s.apply("imag", x), -s.apply("real", y)),
        "truth": lambda x, y: s.cast(x, dt.bool_) & (x != y),
        "casts": lambda x, y: s.cast(s.cast(x, dt.int32), dtype) + y,
        "size": lambda x, y: s.apply("hypot", s.apply("real", x), s.apply("imag", x)),
    }
    rng = np.random.default_rng(0)
    numbers = (rng.normal(size=(2, 2, 1500)) + 1j * rng.normal(size=(2, 2, 1500))).astype(dtype.np)
    numbers[..., ::5] = rng.choice([0, -0.0, np.inf, np.nan, 1j], (2, 2, 300))
    for name, body in bodies.items():
        result = {"truth": dt.bool_, "size": dt.float32 if dtype is dt.complex64 else dt.float64}.get(
            name, dtype
        )
        expr = s.instantiate(body, [dtype] * 2, result)
        run, reference = loop(expr, [dtype] * 2), numpy_kernel(expr, 2)
        for x, y in [
            numbers,
            numbers[..., 3:],
            numbers[..., :5],
            numbers[..., ::-3],
            (numbers[0], numbers[1, :, :1]),
        ]:
            got, expected = run(x, y), reference(x, y)
            for part in ("real", "imag"):
                ulps = 8 if name in ("size", "product") else 0  # NumPy fuses multiply-adds of some products
                pair = (getattr(values, part) for values in (got, expected))
                assert (same(*pair, ulps) | (name == "product")).all(), name
            np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", dt.COMPLEX, ids=str)
def test_complex_kernels(other, dtype):
    """Rows, tiles of a transposed operand, a constant row, and a partial last vector."""
    rng = np.random.default_rng(0)
    x, y, z = ((rng.normal(size=shape) + 1j).astype(dtype.np) for shape in ((70, 67), (67, 70), (70, 1)))
    out = np.empty_like(x)
    buffers = [
        buffer(name, dtype, strides, k)
        for k, (name, strides) in enumerate({"x": (67, 1), "y": (1, 70), "z": (1, 0), "out": (67, 1)}.items())
    ]
    body = load(buffers[0]) * load(buffers[1]) / load(buffers[2]) - 2j
    fused(FusedKernel("k", (), (70, 67), tuple(buffers), (Stage((0, 1), (Store("out", body),)),)))(
        [x, y, z, out]
    )
    np.testing.assert_allclose(out, x * y.T / z - 2j, rtol=1e-4)


def test_mixed_widths(other):
    expr = s.instantiate(
        lambda x, y: s.exp(x) + s.cast(s.exp(s.cast(y, dt.float32)), dt.float64), [dt.float64, dt.int8]
    )
    x, y = np.linspace(-1, 1, 37), np.arange(37, dtype=np.int8) - 20
    np.testing.assert_allclose(
        loop(expr, [dt.float64, dt.int8])(x, y), np.exp(x) + np.exp(np.float32(y)), rtol=1e-6
    )


def test_kernels(other):
    x = np.random.default_rng(0).standard_normal((5, 131)).astype(np.float32)
    out = np.empty_like(x)
    fused(softmax(5, 131, dt.float32))([x, out])
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    for axis in (0, 1):
        for op in ("sum", "argmax", "max"):
            got = reduce_loop(op, dt.float32, dt.int64 if op == "argmax" else dt.float32)(x, axis)
            np.testing.assert_allclose(got, getattr(np, op)(x, axis=axis), rtol=1e-4, atol=1e-5)


def test_float16_needs_its_instructions(other):
    expr = s.instantiate(s.add, [dt.float16] * 2)
    if other.f16c:
        assert loop(expr, [dt.float16] * 2)(np.float16([1]), np.float16([2])).tolist() == [3]
    else:
        with pytest.raises(UnsupportedError, match="F16C"):
            loop(expr, [dt.float16] * 2)

"""Code emitted for processors with narrower vectors."""

import numpy as np
import pytest
from emit_harness import fused, grids, loop, reduce_loop, same, softmax
from tandem.backends.cpu import target
from tandem.backends.cpu.codegen import adjacent_folds, eager_folds, elementwise, nested_folds, vectors
from tandem.backends.cpu.codegen import fused as fused_module
from tandem.errors import UnsupportedError
from tandem.operators.scalar_ir import nodes as s
from tandem.operators.scalar_ir.expr import NODES
from tandem.operators.scalar_ir.numpy_evaluation import numpy_kernel
from tandem.registry import dtypes as dt

HOSTS = {
    "avx2": target.VectorTarget(32, True),
    "sse": target.VectorTarget(16, False),
    "avx512": target.VectorTarget(64, True, True),
}
NAMES = ["add", "floordiv", "remainder", "pow", "exp", "log", "erf", "tanh", "sin", "maximum", "rint", "abs"]


@pytest.fixture(params=HOSTS)
def other(request, monkeypatch):
    folds = adjacent_folds, eager_folds, nested_folds
    for module in (elementwise, *folds, vectors, fused_module, target):
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
        for op in ("sum", "argmax"):
            got = reduce_loop(op, dt.float32, dt.int64 if op == "argmax" else dt.float32)(x, axis)
            np.testing.assert_allclose(got, getattr(np, op)(x, axis=axis), rtol=1e-4, atol=1e-5)


def test_float16_needs_its_instructions(other):
    expr = s.instantiate(s.add, [dt.float16] * 2)
    if other.f16c:
        assert loop(expr, [dt.float16] * 2)(np.float16([1]), np.float16([2])).tolist() == [3]
    else:
        with pytest.raises(UnsupportedError, match="F16C"):
            loop(expr, [dt.float16] * 2)

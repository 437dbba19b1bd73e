"""Code for processors with narrower vectors, and for a C library without vector functions."""

import numpy as np
import pytest
from emit_harness import fused, loop, reduce_loop
from tandem.backends.cpu.emit import elementwise, host, reduction, vectors
from tandem.backends.cpu.emit import fused as fused_module
from tandem.errors import UnsupportedError
from tandem.operators import scalar as s
from tandem.operators.expr import NODES
from tandem.operators.scalar_numpy import numpy_kernel
from tandem.registry import dtypes as dt
from test_emit_loops import softmax
from test_emit_nodes import grids, same

HOSTS = {
    "avx2": host.Host(32, True, (("b", 16), ("d", 32))),
    "sse": host.Host(16, False, (("b", 16),)),
    "no-libmvec": host.Host(64, True, (), True),
}
NAMES = ["add", "floordiv", "remainder", "pow", "exp", "log", "erf", "tanh", "sin", "maximum", "rint", "abs"]


@pytest.fixture(params=HOSTS)
def other(request, monkeypatch):
    for module in (elementwise, reduction, vectors, fused_module, host):
        monkeypatch.setattr(module, "host", lambda: HOSTS[request.param])
    host.vector_function.cache_clear()
    yield HOSTS[request.param]
    host.vector_function.cache_clear()


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

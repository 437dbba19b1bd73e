"""Jitted functions on a real GPU: operators, programs, models. Skipped without one.

The same things run on a double of the driver in ``test_cuda_jit*.py``.
"""

import cuda_jit_harness as common
import numpy as np
import pytest
import tandem as td
from optable import rows
from tandem import lazy
from tandem.backends.cuda.runtime import toolkit

WHY = "; ".join(toolkit.missing_requirements())
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(WHY), reason=f"no GPU that tandem can use: {WHY}")]


@pytest.mark.parametrize("name", common.CHECKED)
def test_every_row_agrees_with_its_reference(name):
    found = list(rows(common.OPS[name]))
    for first in range(0, len(found), 24):
        common.run_rows(common.OPS[name], found[first : first + 24])


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_programs_agree_with_eager(first):
    pytest.importorskip("hypothesis", reason="it draws the programs")
    common.check_programs(lazy.module("test_random_programs").drawn(20, 2000 + first))


@pytest.mark.parametrize(
    ("loss", "arguments"), [(common.mlp, common.mlp_arguments), (common.block, common.block_arguments)]
)
def test_models_agree_with_the_cpu(loss, arguments):
    common.check_model(loss, arguments)


def test_many_calls_keep_their_results():
    """Calls are queued faster than they run: memory that goes back to the pool is used in order."""
    x = common.random(1 << 16)
    f = td.jit(lambda x, s: td.tanh(x) * s)
    found = [f(x, float(s)) for s in range(200)]
    want = np.tanh(x.cpu().numpy())
    for s, y in enumerate(found):
        np.testing.assert_allclose(y.cpu().numpy(), want * s, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("graphs", [0, 2, "auto"])
def test_kernels_get_into_the_stream_either_way(graphs):
    """Calls keep their results, and their memory goes back; where the way was chosen, both times are told."""
    x = common.random(256, 192)
    with td.config.override(cuda_graphs=graphs):
        f = td.jit(common.many)
        found = [f(x, s / 100) for s in range(100)]
        shown = f.explain(x, 1.0)
    for s in (0, 31, 32, 99):
        for got, want in zip(found[s], common.many(x.cpu(), s / 100), strict=True):
            np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-6)
    assert ("as a graph" in shown or "do not show" in shown) == (graphs == "auto"), shown
    assert graphs == "auto" or ("one CUDA graph" in shown) == bool(graphs), shown
    (record,) = f._specializations[0].records.values()
    del found, got
    blocks, hits = td.cuda.memory_stats()["blocks"], record.hits
    for _ in range(10_000):
        f(x, 1.0)
    assert (td.cuda.memory_stats()["blocks"], record.hits) == (blocks, hits + 10_000)


def test_streams_of_torch_and_captures():
    """A stream that PyTorch captures gets the kernels, and its graph runs them again."""
    torch = pytest.importorskip("torch")
    x = common.random(64, 48)
    f = td.jit(common.many)
    for _ in range(40):
        f(x, 1.0)
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), td.cuda.Stream(handle=side.cuda_stream):
        y = x + 0
        f(y, 1.0)
        side.synchronize()
        graph.capture_begin(capture_error_mode="thread_local")
        found = f(y, 1.0)
        graph.capture_end()
        graph.replay()
        side.synchronize()
    for got, want in zip(found, common.many(x.cpu(), 1.0), strict=True):
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(1,), (1023,), (33, 65), (3, 129, 257)])
def test_sanitized(shape):
    """Kernels of each kind at odd sizes, for compute-sanitizer."""
    x = common.random(*shape)

    def f(x):
        y = td.gelu(x * 2 + 1)
        return (
            td.softmax(y, axis=-1),
            td.sum(y, axis=0),
            td.max(y),
            td.permute(y, tuple(range(y.ndim))[::-1]) + 1,
        )

    for got, want in zip(td.jit(f)(x), f(x.cpu()), strict=True):
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-4)

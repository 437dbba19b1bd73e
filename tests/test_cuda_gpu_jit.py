"""Jitted functions on a real GPU: operators, programs, models. Skipped where there is none.

The same things run on a double of the driver in ``test_cuda_jit*.py``.
"""

import cuda_jit_harness as common
import numpy as np
import pytest
import tandem as td
from optable import rows
from tandem.backends.cuda import toolkit
from test_random_programs import drawn

WHY = "; ".join(toolkit.missing())
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(WHY), reason=f"no GPU that tandem can use: {WHY}")]


@pytest.mark.parametrize("name", common.CHECKED)
def test_every_row_agrees_with_its_reference(name):
    found = list(rows(common.OPS[name]))
    for first in range(0, len(found), 24):
        common.run_rows(common.OPS[name], found[first : first + 24])


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_programs_agree_with_eager(first):
    common.check_programs(drawn(20, 2000 + first))


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

"""Kernels with 64-bit indices for arrays of over 2**31 elements, forced on small arrays."""

import os
import re
import zlib

import numpy as np
import pytest
import tandem as td
from cuda_host.build import missing_compiler
from cuda_host.programs import ARCHITECTURES, Program, compile_nvrtc, sampled_architecture
from cuda_kernel_cases import CASES, check_cases
from lowering_harness import graph_of
from tandem.backends.cuda.codegen import elementwise, row_part, schedule, tiles
from tandem.backends.cuda.codegen.kernel import module_source

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
MOST, CHUNK = 12, 12
SAMPLED = sorted(CASES, key=lambda name: zlib.crc32(f"{SEED} wide {name}".encode()))[:MOST]

LARGE = {
    "elementwise": (lambda x: x * 2 + 1, (3, 2**30)),
    "rows_beside_each_other": (lambda x: x[:, 1:] + 1, (2**16, 2**16)),
    "turned": (lambda x: td.permute(x, (1, 0)) + td.reshape(x, (2**16, 2**16)), (2**16, 2**16)),
    "softmax": (td.softmax, (2**17, 2**15)),
    "short_rows": (lambda x: td.sum(x, -1), (2**29, 8)),
    "columns": (lambda x: td.sum(x, 0), (2**18, 2**14)),
    "whole": (lambda x: (td.sum(x), td.argmax(x)), (2**32,)),
    "positions": (lambda x: td.argmax(x, 1), (2, 2**31 + 3)),
    "complex": (lambda x: td.sum(td.exp(x * 1j), 1), (2**17, 2**15)),
}
_NARROW = re.compile(r"(?<!\(long long\))\b(?:blockIdx|gridDim)\.\w \*|\*\s*\(?(?:blockIdx|gridDim)\.\w\b")


@pytest.fixture
def wide(monkeypatch):
    """All indices have 64 bits."""
    for module in (elementwise, row_part, tiles):
        monkeypatch.setattr(module, "INT_MAX", 0)


@pytest.mark.parametrize("name", LARGE)
def test_large_arrays(name):
    """No index is computed in 32 bits before it is widened."""
    function, shape = LARGE[name]
    whole = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape, (0,) * len(shape))
    text = module_source(Program(graph_of(function, whole), "n0").written())
    kernels = text[text.index('extern "C"') :]
    assert "long long" in kernels
    narrow = [line for line in kernels.splitlines() if _NARROW.search(line)]
    assert all("(workspace)[" in line for line in narrow), narrow  # which is small
    compile_nvrtc(text, sampled_architecture(text))


def distances(x, y):
    return td.sum(td.square(td.expand_dims(x, 1) - y), -1)


def test_more_rows_than_a_grid_has_blocks(monkeypatch):
    """2.5 * 10**9 distances of points with 2,048 coordinates: blocks take several."""
    whole = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (50000, 2048), (0, 0))
    (kernel,) = Program(graph_of(distances, whole, whole), "n0").written()
    assert 50000**2 / 8 < kernel.grid[0] < 2**31
    monkeypatch.setattr(schedule, "INT_MAX", 0)
    check_cases(["softmax_1001", "norm_768"])


def test_sampled_kernels(wide):
    check_cases(SAMPLED)


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(-(-len(CASES) // CHUNK)))
def test_every_kernel(wide, chunk):
    check_cases(list(CASES)[chunk * CHUNK : (chunk + 1) * CHUNK], architectures=ARCHITECTURES)

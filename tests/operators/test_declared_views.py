"""A view that is declared by its rule runs on every path; rules of tandem's own views agree with their kernels."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tandem as td
from optable import arrays_of, generator, samples_of, table, to_tensors
from tandem.operators.declare.view_spec import ViewLayout, extent, row_major_strides
from tandem.registry.dims import substitute, symbol
from tandem.registry.operator import find_operator
from tandem.registry.values import TensorSpec

PROGRAM = Path(__file__).resolve().parents[1] / "harness" / "declared" / "declared_views.py"
N, M = symbol("n"), symbol("m")
VIEWS = [op for op in table().values() if op.decl.view is not None]


def test_declared_view_runs_everywhere(tmp_path):
    environment = {**os.environ, "TANDEM_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr[-3000:]


@pytest.mark.parametrize("op", VIEWS, ids=lambda op: op.schema.name)
def test_rule_agrees_with_the_kernel(op):
    dtype = op.decl.dtypes[0]
    rng = generator(op, dtype)
    for sample in samples_of(op, dtype):
        args, kwargs = to_tensors(arrays_of(sample, dtype, rng))
        x, result = args[0], op(*args, **kwargs)
        base = ViewLayout(x.shape, x.stride(), x.storage_offset, x.dtype.itemsize)
        layout = op.decl.view(base, *args[1:], **kwargs)
        assert (layout is None) == (result.storage() is not x.storage())
        if layout is not None and result.size > 0:
            varying = [axis for axis, size in enumerate(result.shape) if size > 1]
            assert (tuple(layout.sizes), layout.offset) == (result.shape, result.storage_offset)
            assert [layout.strides[a] for a in varying] == [result.stride(a) for a in varying]


@pytest.mark.parametrize(
    ("name", "sizes", "arguments"),
    [
        ("permute", (N, 2, M), ((2, 0, 1),)),
        ("basic_index", (N, 2, M), (((1, N - 1, 1), None, 1, (M - 1, M, -1)),)),
        ("basic_index", (N, 2, 2 * M), (((N - 1, 0, 1), 0, (1, M, 2)),)),
        ("broadcast_to", (1, 2, M), ((5, N, 2, M),)),
        ("stop_gradient", (N, M), ()),
        ("checkpoint_name", (N, M), ("name",)),
        ("reshape", (N, 6, M), ((N, 2, -1),)),
        ("reshape", (N, 1, M), ((-1,),)),
        ("bitcast", (N, 2 * M), (td.int64,)),
        ("bitcast", (N, M), (td.int16,)),
        ("view_part", (N, M), (True,)),
    ],
)
def test_rules_compute_with_symbolic_sizes(name, sizes, arguments):
    op = find_operator(f"td::{name}")
    dtype = td.complex64 if name == "view_part" else td.float32

    def run(sizes, arguments):
        spec = op.decl.shape_rule(TensorSpec(sizes, dtype), *arguments)
        layout = op.decl.view(ViewLayout(sizes, row_major_strides(sizes), 8, dtype.itemsize), *arguments)
        assert tuple(layout.sizes) == spec.shape
        return layout, 0 in layout.sizes or extent(layout)

    symbolic = run(sizes, arguments)
    for n, m in ((3, 4), (9, 2), (2, 3)):
        numbers = {"n": n, "m": m}
        assert substitute(symbolic, numbers) == run(*substitute((sizes, arguments), numbers))


def test_every_view_declares_a_rule():
    assert [op.name for op in table().values() if op.decl.kind == "view" and op.decl.view is None] == []


def test_extent_covers_negative_strides():
    x = np.zeros((3, 4), np.int8)[::-1]
    assert extent(ViewLayout(x.shape, x.strides, 8)) == (0, 11)

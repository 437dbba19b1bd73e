"""A view that is declared by its rule runs on every path; rules of tandem's own views agree with their kernels."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from optable import arrays_of, generator, samples_of, table, to_tensors
from tandem.operators.declare.view_spec import ViewLayout, extent, row_major_strides
from tandem.registry.operator import find_operator

PROGRAM = Path(__file__).resolve().parents[1] / "harness" / "declared" / "declared_views.py"
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
        layout = op.decl.view(ViewLayout(x.shape, x.stride(), x.storage_offset), *args[1:], **kwargs)
        assert (layout is None) == (result.storage() is not x.storage())
        if layout is not None and result.size > 0:
            varying = [axis for axis, size in enumerate(result.shape) if size > 1]
            assert (tuple(layout.sizes), layout.offset) == (result.shape, result.storage_offset)
            assert [layout.strides[a] for a in varying] == [result.stride(a) for a in varying]


class Symbol:
    """A small symbolic integer: a polynomial's value at a hint, and its text; comparisons are decided by the hint."""

    def __init__(self, text, hint):
        self.text, self.hint = text, hint

    def _join(self, sign, other, swapped=False):
        one, two = (other, self) if swapped else (self, other)
        text = f"({getattr(one, 'text', one)} {sign} {getattr(two, 'text', two)})"
        left, right = (getattr(value, "hint", value) for value in (one, two))
        return Symbol(text, eval(f"{left} {sign} ({right})"))

    def __add__(self, other):
        return self._join("+", other)

    def __radd__(self, other):
        return self._join("+", other, True)

    def __sub__(self, other):
        return self._join("-", other)

    def __mul__(self, other):
        return self._join("*", other)

    def __rmul__(self, other):
        return self._join("*", other, True)

    def __neg__(self):
        return 0 + self._join("*", -1)

    def __eq__(self, other):
        return self.hint == getattr(other, "hint", other)

    __hash__ = None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("permute", ((2, 0, 1),)),
        ("basic_index", (((1, 2, 1), None, 1, (3, 2, -2)),)),
        ("broadcast_to", ((5, 3, 2, 4),)),
        ("stop_gradient", ()),
    ],
)
def test_rules_compute_with_symbolic_integers(name, arguments):
    rule = find_operator(f"td::{name}").decl.view
    sizes = (3, 2, 4)
    known = ViewLayout(sizes, row_major_strides(sizes), 7)
    symbols = ViewLayout(
        sizes, tuple(Symbol(f"s{k}", s) for k, s in enumerate(known.strides)), Symbol("o", 7)
    )
    got, want = rule(symbols, *arguments), rule(known, *arguments)
    space = {f"s{k}": s for k, s in enumerate(known.strides)} | {"o": 7}
    evaluate = lambda value: eval(value.text, space) if isinstance(value, Symbol) else value  # noqa: E731
    assert tuple(map(evaluate, got.strides)) == want.strides
    assert evaluate(got.offset) == want.offset
    assert tuple(got.sizes) == tuple(want.sizes)


def test_extent_covers_negative_strides():
    x = np.zeros((3, 4), np.int8)[::-1]
    assert extent(ViewLayout(x.shape, x.strides, 8)) == (0, 11)

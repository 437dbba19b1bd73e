"""vmap and jvp of every operator: compiled calls have the bits and layouts of calls as they are written."""

import itertools
import os
import warnings
import zlib

import numpy as np
import pytest
import tandem as td
from hot_loop_checks import fresh
from hot_transform_checks import facts, fill
from optable import depends_on_data, generator, make, replace, rows, table, to_tensors
from rotation import rotating
from tandem import config
from tandem.operators.declare.declaration import TensorSample
from tandem.registry.function import functions

pytestmark = [
    pytest.mark.skipif(not config.flags.native, reason="native code is off"),
    pytest.mark.usefixtures(fresh.__name__),
]
OPS = table()
BATCHABLE = [name for name, op in OPS.items() if op.decl.samples]
SIZE = 3


def chosen_rows(op):
    """The first row of one dtype, and the last of another; both change with the seed."""
    seed = int(os.environ.get("TANDEM_TEST_SEED", "0")) + zlib.crc32(op.name.encode())
    groups = [list(group) for _, group in itertools.groupby(rows(op), lambda row: row[0])]
    return groups[seed % len(groups)][0], groups[(seed + 1) % len(groups)][-1]


def as_template(op, dtype, sample):
    """The arguments of a call with ``("hole", number)`` in place of tensors, and their arrays."""
    rng, arrays = generator(op, dtype), []

    def take(draw):
        arrays.append(make(draw, dtype, rng))
        return ("hole", len(arrays) - 1)

    return replace((sample.args, dict(sample.kwargs)), TensorSample, take), arrays


def outcome(run, has_layout):
    """The facts about a result, or the error."""
    try:
        tree, entries = facts(run())
    except Exception as fault:
        return type(fault), str(fault)
    return tree, entries if has_layout else [(*one[:2], *one[3:]) for one in entries]


def check(op, name, run):
    """Compare a call as it is written with its compiled form; the first of three runs as it is written.

    The layout of a composite's result depends on whether earlier tests have made its own calls hot.
    """
    has_layout = op.decl.kind != "composite"
    with config.override(hot_loops=10**6):
        wanted = outcome(run, has_layout)
    with config.override(hot_loops=0):
        for _ in range(3):
            assert outcome(run, has_layout) == wanted, name


def check_vmap(op, dtype, sample):
    template, arrays = as_template(op, dtype, sample)
    if not arrays or depends_on_data(op, *fill(template, to_tensors(arrays))):
        return
    function = functions[op.name]

    def call(*values):
        args, kwargs = fill(template, values)
        return function(*args, **kwargs)

    for axis in (0, -1):
        batches = to_tensors([np.stack([x] * SIZE, axis if x.ndim else 0) for x in arrays])
        axes = tuple(axis if x.ndim else 0 for x in arrays)
        check(op, f"vmap {op.name} {dtype} {sample} {axis}", lambda: td.vmap(call, axes)(*batches))  # noqa: B023


def check_jvp(op, dtype, sample):
    template, arrays = as_template(op, dtype, sample)
    if not arrays:
        return
    function = functions[op.name]

    def call(*values):
        args, kwargs = fill(template, values)
        return function(*args, **kwargs)

    primals = to_tensors(arrays)
    tangents = [td.ones_like(x) if x.dtype.is_inexact else None for x in primals]
    check(op, f"jvp {op.name} {dtype} {sample}", lambda: td.jvp(call, primals, tangents))


@rotating
@pytest.mark.parametrize("name", BATCHABLE)
def test_compiled_calls_have_the_bits_of_calls_as_written(name):
    op = OPS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype, sample in chosen_rows(op):
            check_vmap(op, dtype, sample)
            check_jvp(op, dtype, sample)

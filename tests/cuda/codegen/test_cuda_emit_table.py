"""CUDA C of every operator of the table: compiled by NVRTC for one of four architectures, and run on the CPU.

Operators are traced, lowered and printed one by one; their kernels share translation units.
"""

import os
import zlib

import numpy as np
import pytest
import tandem as td
from cuda_host.build import missing_compiler
from cuda_host.programs import ARCHITECTURES, Program, check_batch
from lowering_harness import graph_of
from optable import arrays_of, check, generator, replace, rows, table, to_tensors
from tandem.errors import TandemError
from tandem.registry.function import functions

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
OPS = {name: op for name, op in table().items() if op.decl.kind != "random" and op.decl.samples}
SAMPLES, CHUNKS = 2, 100


class Hole:
    """Where a tensor goes."""

    def __init__(self, index):
        self.index = index


def as_function(op, args, kwargs):
    """(f, arrays): the call as a function of its tensors alone."""
    arrays = []
    holes = replace((args, kwargs), np.ndarray, lambda a: arrays.append(a) or Hole(len(arrays) - 1))

    def call(*values):
        args, kwargs = replace(holes, Hole, lambda hole: values[hole.index])
        return functions[op.name](*args, **kwargs)

    return call, arrays


class Row:
    """One operator on one sample: its program, and what it has to give."""

    def __init__(self, number, op, dtype, sample):
        self.op, self.what = op, f"{op.name} {dtype} {sample}"
        args, kwargs = arrays_of(sample, dtype, generator(op, dtype))
        call, self.arrays = as_function(op, args, kwargs)
        found = functions[op.name](*to_tensors(args), **to_tensors(kwargs))
        self.want = tuple(w._array for w in found) if isinstance(found, tuple) else found._array
        self.program = Program(graph_of(call, *self.arrays), f"n{number}")

    def check(self, module):
        got = tuple(td.asarray(a) for a in self.program.run(module, self.arrays))
        got = got if isinstance(self.want, tuple) else got[0]
        check(self.op, got, self.want, self.arrays, self.what)


def check_rows(chosen, architectures=None):
    found = []
    for number, (op, dtype, sample) in enumerate(chosen):
        try:
            row = Row(number, op, dtype, sample)
        except (TandemError, TypeError):
            continue  # it cannot be traced: its result's shape depends on data
        if row.program.written():
            found.append(row)
    known = {}
    for row in found:
        row.program.share(known)
    module = check_batch(list(known.values()), architectures)
    for row in found:
        row.check(module)


def sampled():
    """For every second operator one row, of one dtype; others for each seed."""
    for name, op in list(OPS.items())[SEED % 2 :: 2]:
        of_op = [(op, dtype, sample) for dtype, sample in rows(op)]
        if of_op:
            yield of_op[zlib.crc32(f"{SEED} {name}".encode()) % len(of_op)]


@pytest.mark.parametrize("chunk", range(SAMPLES))
def test_sampled_rows(chunk):
    check_rows(list(sampled())[chunk::SAMPLES])


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_row(chunk):
    """In the order of the table, so that rows whose kernels are the same but for their names meet."""
    every = [(op, dtype, sample) for op in OPS.values() for dtype, sample in rows(op)]
    size = -(-len(every) // CHUNKS)
    check_rows(every[chunk * size : (chunk + 1) * size], ARCHITECTURES)

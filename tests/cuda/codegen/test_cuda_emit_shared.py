"""Kernels stay within 48 KiB of shared memory, which only the assembler would reject."""

import functools
import operator
from unittest import mock

import numpy as np
import pytest
import tandem as td
from cuda_host.build import missing_compiler, run_program
from cuda_host.programs import Program, check_batch, compile_nvrtc, thread_program
from lowering_harness import close, eager, graph_of
from tandem.backends.cuda.codegen import tiles
from tandem.backends.cuda.codegen.kernel import module_source

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")


def values(*shape, dtype="float64"):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def turned(*arrays):
    return functools.reduce(operator.add, (td.permute(x, (1, 0)) for x in arrays))


def softmax_of_softmax(x):
    for _ in range(4):
        x = td.softmax(x * 3, 0)
    return x


def many(x):
    found = [f(x * k, 0) for k in (1.0, -2.0, 3.0) for f in (td.sum, td.argmax, td.argmin, td.max)]
    return (*found, td.sum(x * x, 0), td.min(x, 0))


TURNED = [(turned, [values(64, 65, dtype="complex128")] * 6), (turned, [values(40, 65)] * 7)]
REDUCED = [(softmax_of_softmax, [values(500, 33)]), (many, [values(600, 40)])]


def test_shared_memory_does():
    programs = [Program(graph_of(f, *args), f"n{n}") for n, (f, args) in enumerate(TURNED + REDUCED)]
    module = check_batch([k for one in programs for k in one.written()])
    for one, (f, args) in zip(programs, TURNED + REDUCED, strict=True):
        close(one.run(module, args), eager(f, *args))


def test_large_tiles_of_three_arrays_do_not_fit():
    args = [values(128, 128, dtype="float32")] * 3
    with mock.patch.object(tiles, "ENOUGH_TILES", 1):
        two, three = (Program(graph_of(turned, *args[:n]), f"n{n}") for n in (2, 3))
    assert "[64][65]" in two.written()[0].source
    assert "[32][33]" in three.written()[0].source
    compile_nvrtc(module_source([*two.written(), *three.written()]), 90)


def test_shared_memory_is_used_again_after_a_barrier():
    launches = [
        k for n, (f, args) in enumerate(REDUCED) for k in Program(graph_of(f, *args), f"n{n}").launches()
    ]
    assert any("shared_bytes" in kernel.source for kernel, _ in launches)
    assert "data race" not in run_program(thread_program(launches))

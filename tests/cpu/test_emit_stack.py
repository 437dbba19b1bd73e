"""Emitted functions use little stack, whatever the number of kernels, buffers and loops in a graph."""

import ctypes
import os
import re
import threading

import numpy as np
import pytest
import tandem as td
from optable import arrays_of, as_function, depends_on_data, generator, rows, table, to_tensors
from rotation import share_each_commit
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.codegen.blocks import reserve_stack
from tandem.backends.cpu.codegen.columns import COLUMNS
from tandem.backends.cpu.fastpath.compiler import engine
from tandem.backends.cpu.fastpath.glue.runtime import KINDS, runtime_ir
from tandem.registry import native_type

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
MOST = 2048  # bytes of a jitted function's frame
MOST_EAGER = 40 << 10  # of an eager entry or loop: blocks of operands, packed panels of a product
WIDTHS = {"ptr": 8, "i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}
ALLOCA = re.compile(r"= alloca (?:[<\[](\d+) x (\w+)[>\]]|(\w+))")


def frames(ir):
    """The bytes that each function of a module takes from the stack, by name."""
    found, name = {}, ""
    for line in ir.splitlines():
        if line.startswith("define"):
            name = re.search(r"@([\w.]+)", line)[1]
            found[name] = 0
        for count, element, single in ALLOCA.findall(line):
            found[name] += int(count or 1) * WIDTHS.get(element or single, 16)
    return found


def largest(ir):
    return max(frames(ir).values(), default=0)


def ir_of(f, *args):
    return td.jit(f).lower(*args).llvm_ir()


def test_frames_are_counted():
    ir = """define void @f() {
  %a = alloca [3 x i64], align 64
  %b = alloca i32
}
define i32 @g(ptr %x) {
  %t = alloca ptr
}"""
    assert frames(ir) == {"f": 28, "g": 8}


def argmaxes(x):
    return [td.argmax(x * (i + 1.5), axis=0) for i in range(16)]


def softmaxes(x):
    return [td.softmax(x * (i + 1.0)) for i in range(6)]


def transposed(x):
    return [td.exp(x.T * (i + 1.0)) + td.sin(x.T) for i in range(8)]


def long_chain(x):
    for i in range(300):
        x = td.sin(x) * (i + 1.0)
        x = x.sum(axis=0, keepdims=True) + x
    return x


def many_tables(x):
    return [x[i % 4 : i % 4 + 1].sum() + td.cumsum(x[i % 4]) for i in range(60)]


def many_loops(x):
    for i in range(40):
        x = td.fori_loop(0, 3, lambda k, c, i=i: c * i + k, x)
    return x


def wide_concat(x):
    return td.concat([x * (i + 1.0) for i in range(200)])


def mixed(x):
    return td.concat([td.logsumexp(x, axis=0), td.var(x, axis=0), td.argmin(x, axis=0).astype(td.float32)])


PROGRAMS = (argmaxes, softmaxes, transposed, long_chain, many_tables, many_loops, wide_concat, mixed)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shape", [(4, 4), (64, 5000), (4, 16000)])
def test_programs_take_little_of_the_stack(program, shape):
    if program is long_chain and shape[1] > 100:
        pytest.skip("the number of kernels counts, and not their size")
    assert largest(ir_of(program, td.zeros(shape))) <= MOST


@pytest.mark.parametrize("program", [argmaxes, softmaxes, transposed, many_loops, many_tables])
def test_programs_run_in_threads_with_small_stacks(program):
    x = td.asarray(np.random.default_rng(SEED).uniform(0, 1, (48, 5000)).astype(np.float32))
    expected, jitted, results = program(x), td.jit(program), []
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=lambda: results.append(jitted(x)))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    leaves = td.tree.leaves
    for got, wanted in zip(leaves(results[0]), leaves(expected), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def lowered_irs(op, chosen):
    """The code of an operator's rows that can be traced."""
    for dtype, sample in chosen:
        args, kwargs = to_tensors(arrays_of(sample, dtype, generator(op, dtype)))
        call, tensors = as_function(op, args, kwargs)
        if not tensors or depends_on_data(op, args, kwargs):
            continue
        lowered = td.jit(call).lower(*tensors)
        if lowered.compile().memory_analysis():  # empty where a call returns its arguments and emits no code
            yield dtype, lowered.llvm_ir()


@pytest.mark.parametrize("share", [24, pytest.param(1, marks=pytest.mark.full)])
def test_operators_take_little_of_the_stack(share):
    operators, seen = table(), 0
    jitted = [name for name, op in operators.items() if op.decl.kind != "random" and op.decl.samples]
    for number, name in enumerate(sorted(jitted)):
        op = operators[name]
        if (number + SEED) % share:
            continue
        every = list(rows(op))
        chosen = every if share == 1 else [every[(SEED + k) % len(every)] for k in range(min(2, len(every)))]
        for dtype, ir in lowered_irs(op, chosen):
            seen += 1
            assert largest(ir) <= MOST, f"{name} {dtype}: {frames(ir)}"
    assert seen > 10


@pytest.mark.parametrize("kind", share_each_commit(sorted(KINDS), 3))
def test_eager_entries_take_little_of_the_stack(kind):
    fastpath.install()
    ir = runtime_ir(kind, native_type.runtime.constants)
    assert largest(ir) <= MOST_EAGER, frames(ir)


def test_scratch_memory_is_counted():
    x = td.zeros((64, 5000))
    needed = td.jit(argmaxes).lower(x).compile().memory_analysis()["temp"]
    assert needed >= 16 * COLUMNS * (4 + 4), "the value and the index of a block of columns, for each argmax"


def test_steps_use_the_same_scratch_memory():
    def steps(count):
        def f(x):
            for _ in range(count):
                x = x @ x + td.argmax(x * 2, axis=0).astype(td.float32)
            return x

        return td.jit(f).lower(td.zeros((64, 64))).compile().memory_analysis()["temp"]

    assert steps(12) == steps(4)


def test_deep_graphs_lower_in_threads_with_small_stacks():
    def deep(x):
        for i in range(500):
            x = x * 1.0001 + i if i % 3 else x - x.mean()
        return x

    results = []
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=lambda: results.append(td.jit(deep)(td.zeros(5))))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert results


DESCENDING = """define void @descend(ptr %x, ptr %out) {{
  {stack}
  %a = load <1 x double>, ptr %x
  %sum = fadd <1 x double> %a, %a
  %high = getelementptr i8, ptr %pair, i64 8
  store <1 x double> %sum, ptr %high
  %product = fmul <1 x double> %a, splat (double 5.0)
  store <1 x double> %product, ptr %pair
  %both = load <2 x double>, ptr %pair
  store <2 x double> %both, ptr %out
  ret void
}}
"""


@pytest.mark.parametrize("passes", engine.Passes)
def test_vectors_stored_from_the_highest_address_down(passes):
    """LLVM 22 puts the merged vector where the highest part is stored, unless the lifetime is marked."""
    ir = DESCENDING.format(stack="\n".join(reserve_stack("%pair", "[16 x i8]")))
    code = engine.compile_ir(ir, ["descend"], passes=passes)
    x, out = np.array([3.0]), np.zeros(2)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(code["descend"])(x.ctypes.data, out.ctypes.data)
    assert out.tolist() == [15.0, 6.0]


def unmarked(ir):
    """The registers of byte arrays on the stack whose lifetime no instruction begins."""
    reserved = re.findall(r"(%[\w.]+) = alloca \[\d+ x i8\]", ir)
    return [r for r in reserved if f"@llvm.lifetime.start.p0(ptr {r})" not in ir]


def test_lifetimes_of_stack_memory_are_marked():
    def f(x):
        lowest = td.flip(td.clip(td.min(x, 1), -8.0, 8.0), 0)
        return td.fori_loop(0, 3, lambda i, c: td.cumsum(c * 2.0, 0), lowest), td.sum(td.sin(lowest))

    ir = ir_of(f, td.asarray(np.arange(8.0).reshape(2, 4)))
    assert "%cell" in ir and not unmarked(ir)
    fastpath.install()
    for kind in KINDS:
        assert not unmarked(runtime_ir(kind, native_type.runtime.constants))

"""Native functions under the Python interpreter of their language, compared with their machine code."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.fastpath.compiler.dsl import i64, load, native, ptr, stack, store
from tandem.backends.cpu.fastpath.compiler.interpret import Interpreter
from tandem.backends.cpu.fastpath.compiler.structs import Struct, array, at, sizeof
from tandem.backends.cpu.fastpath.glue import debug

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")


class Counter(Struct):
    """Counts calls."""

    calls: i64
    sizes: ptr = array(3)
    last: i64
    far: i64 = at(64)


@native
def count(counter: Counter, n: i64) -> i64:
    counter.calls += 1
    counter.last = n // 2 - (-7) % 4
    store(i64, counter.sizes, 8, 5)
    room = stack(16)
    store(i64, room, 8, counter.last)
    return load(i64, room, 8) + counter.calls + Counter.far


def test_struct_offsets_follow_its_declaration():
    assert (Counter.calls, Counter.sizes, Counter.last, Counter.far, sizeof(Counter)) == (0, 8, 32, 64, 72)
    with pytest.raises(AttributeError, match="no field"):
        _ = Counter.missing


def test_interpreted_function_reads_and_writes_structs():
    memory = np.zeros(9, np.int64)
    counter = Counter(memory.ctypes.data)
    assert Interpreter().call(count, counter, -9) == -4 + 3 + 1 + 64
    assert counter.calls == memory[0] == 1 and counter.last == -1 and memory[2] == 5


def hot_stub(name, *args):
    with td.config.override(hot_calls=2):
        for _ in range(6):
            getattr(td, name)(*args)
    return fastpath.stubs().by_operator[getattr(td, name).operator]


CALLS = {
    "add": (td.asarray([1.0, 2.0]), td.asarray([[3.0], [4.0]])),
    "sum": (td.asarray([[1.0, 2.0], [3.0, 4.0]]), 1),
    "reshape": (td.asarray([1.0, 2.0, 3.0, 4.0]), (2, 2)),
    "permute": (td.asarray([[1.0, 2.0]]), (1, 0)),
}


@pytest.mark.parametrize("name", CALLS)
def test_interpreted_entry_equals_machine_code(name):
    args = CALLS[name]
    stub = hot_stub(name, *args)
    before = stub.calls
    result = debug.run_entry(stub, *args)
    assert result.tolist() == getattr(td, name)(*args).tolist()
    assert stub.calls == before + 2  # the interpreted entry took the call too
    assert sys.getrefcount(result) == 2


def test_interpreted_entry_raises_what_its_fall_back_raises():
    stub = hot_stub("reshape", *CALLS["reshape"])
    with pytest.raises(td.errors.ShapeError, match="reshape"):
        debug.run_entry(stub, CALLS["reshape"][0], (3,))


def test_interpreted_lines_are_those_of_the_source():
    code = Interpreter().function(count).__code__
    assert code.co_filename == __file__ and code.co_firstlineno == count.__code__.co_firstlineno + 1


def test_entry_ir_names_the_entry():
    assert "define ptr @reshape(" in debug.entry_ir(fastpath.stubs().runtime, "reshape")

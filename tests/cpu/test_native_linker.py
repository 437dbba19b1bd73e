"""The linker of machine code: relocations, release of memory, unsupported objects."""

import ast
import ctypes
import gc
import os
import threading
from pathlib import Path

import pytest
from tandem.backends.cpu import fastpath, linker
from tandem.backends.cpu.fastpath.compiler import engine

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason="native code is off")

STATE = """
@count = internal global i64 40
@zeros = internal global [600 x i64] zeroinitializer
@table = internal constant [2 x ptr] [ptr @one, ptr @two]
define internal i64 @one() { ret i64 1 }
define internal i64 @two() { ret i64 2 }
define i64 @f(i64 %which) {
  %place = getelementptr [2 x ptr], ptr @table, i64 0, i64 %which
  %chosen = load volatile ptr, ptr %place
  %more = call i64 %chosen()
  %old = load i64, ptr @count
  %zero = load volatile i64, ptr getelementptr ([600 x i64], ptr @zeros, i64 0, i64 599)
  %sum = add i64 %old, %more
  %new = add i64 %sum, %zero
  store i64 %new, ptr @count
  ret i64 %new
}
"""
CALLS = """
declare i64 @strlen(ptr)
declare double @cos(double)
@text = private constant [6 x i8] c"hello\\00"
define i64 @f(i64 %x) {
  %length = call i64 @strlen(ptr @text)
  %sum = add i64 %length, %x
  ret i64 %sum
}
define double @g(double %x) {
  %y = call double @cos(double %x)
  ret double %y
}
"""
STARTER = """
declare i64 @getpid()
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @begin, ptr null }]
@started = internal global i64 0
define internal void @begin() {
  %pid = call i64 @getpid()
  store i64 %pid, ptr @started
  ret void
}
define i64 @f(i64 %x) {
  %y = load volatile i64, ptr @started
  ret i64 %y
}
"""


def integers(code, name="f"):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code[name])


def mappings():
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


def test_data_that_is_written_and_tables_of_addresses():
    code = engine.compile_ir(STATE, ["f"])
    f = integers(code)
    assert isinstance(code.memory, linker.Pages)
    assert [f(0), f(1), f(1)] == [41, 43, 45]


def test_functions_from_outside_and_constants():
    code = engine.compile_ir(CALLS, ["f", "g"])
    assert isinstance(code.memory, linker.Pages)
    assert integers(code)(10) == 15
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code["g"])(0.0) == 1.0


def test_a_given_address_goes_before_the_process():
    twice = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 2 * x)
    address = ctypes.cast(twice, ctypes.c_void_p).value
    ir = "declare i64 @toupper(i64)\ndefine i64 @f(i64 %x) {\n %y = call i64 @toupper(i64 %x)\n ret i64 %y\n}\n"
    assert integers(engine.compile_ir(ir, ["f"], {"toupper": address}))(97) == 194
    assert integers(engine.compile_ir(ir, ["f"]))(97) == 65


def test_initializers_are_left_to_the_other_linker():
    code = engine.compile_ir(STARTER, ["f"])
    assert not isinstance(code.memory, linker.Pages)
    assert integers(code)(0) in (0, os.getpid())


def test_memory_is_given_back():
    keep = [engine.compile_ir(f"define i64 @f(i64 %x) {{ ret i64 {n} }}", ["f"]) for n in range(50)]
    assert [integers(code)(0) for code in keep] == list(range(50))
    gc.collect()
    before = mappings()
    for n in range(50):
        engine.compile_ir(f"define i64 @f(i64 %x) {{ ret i64 {n} }}", ["f"])
    assert mappings() < before + 25, "one mapping that is kept for each would be 50"


def test_an_export_that_is_not_there():
    with pytest.raises(RuntimeError, match="does not define g"):
        engine.compile_ir("define i64 @f() { ret i64 1 }", ["g"])


def test_invalid_object_file_raises():
    with pytest.raises(linker.UnsupportedObjectError):
        linker.Object(b"MZ" + bytes(100))


def test_concurrent_compilations_share_first_code():
    together, found = threading.Barrier(4), []

    @engine.KeepFirst
    def code():
        together.wait()
        return engine.compile_ir("define i64 @seven() { ret i64 7 }", ["seven"])

    threads = [threading.Thread(target=lambda: found.append(code()["seven"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {code()["seven"]}
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(found[0])() == 7


def drops_code(function):
    """Whether a function that makes code, for good, has a cache that may drop a result which is in use."""
    cached = any(ast.unparse(one) == "functools.cache" for one in function.decorator_list)
    made = {
        ast.unparse(one.func).rpartition(".")[2] for one in ast.walk(function) if isinstance(one, ast.Call)
    }
    return cached and made & {"compile_ir", "build_once", "build"}


def test_caches_of_code_keep_the_first_result():
    folder = Path(engine.__file__).parents[2]
    trees = [ast.parse(path.read_text()) for path in folder.rglob("*.py")]
    functions = [one for tree in trees for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    assert [one.name for one in functions if drops_code(one)] == []

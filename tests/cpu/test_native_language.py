"""The native language: results of compiled functions, and errors for invalid ones."""

from __future__ import annotations

import ast
import ctypes
import inspect
import sys

import numpy as np
import pytest
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.compiler import dsl, engine, lang
from tandem.backends.cpu.fastpath.compiler.dsl import (
    alwaysinline,
    call_i32,
    extern,
    f32,
    f64,
    i8,
    i32,
    i64,
    load,
    native,
    ptr,
    stack,
    store,
    template,
    u8,
    unlikely,
    vector_range,
)
from tandem.backends.cpu.fastpath.compiler.interpret import Interpreter
from tandem.backends.cpu.fastpath.compiler.structs import Struct
from tandem.backends.cpu.native_kernels import emitted

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)

LIMIT: i64 = template(10)
WIDE: i64 = template(0)
T = float
strlen = extern("strlen", "i64(ptr)")


def run(function, *args, result=ctypes.c_int64, types=None, constants=None):
    code = engine.compile_ir(lang.emit({"f": function}, constants, types), ["f"])
    kinds = [ctypes.c_double if isinstance(a, float) else ctypes.c_int64 for a in args]
    return ctypes.CFUNCTYPE(result, *kinds)(code["f"])(*args)


@native
def collatz(n: i64) -> i64:
    steps: i64 = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@alwaysinline
def write_squares(x: f64, to: ptr, count: i64) -> None:
    for i in vector_range(count):
        store(f64, to, i * 8, (x + f64(i)) * (x + f64(i)))


@native
def sum_of_squares(x: f64) -> f64:
    squares, total = stack(64), 0.0
    write_squares(x, squares, 8)
    for i in range(8):
        total += load(f64, squares, i * 8)
    return total


@native
def primes_below(n: i64) -> i64:
    count: i64 = 0
    for k in range(2, n):
        prime = True
        for d in range(2, k):
            if k % d == 0:
                prime = False
                break
        if not prime:
            continue
        count += 1
    return count


@native
def nested_loops_with_one_variable(n: i64) -> i64:
    count: i64 = 0
    for _ in range(n):
        for _ in range(n + 1):
            count += 1
    return count


@native
def reassigned_loop_variable(n: i64) -> i64:
    total: i64 = 0
    for i in range(n):
        total += i
        i += 100
    for i in range(5, 5):
        total += 1000 * i
    return total * 1000 + i


@native
def variable_of_loop_without_iterations(n: i64) -> i64:
    for i in range(7, n):
        store(i64, stack(8), 0, i)
    return i


@native
def loop_over_narrow_variable(n: i64) -> i64:
    i: i32 = i32(n)
    for i in range(n):
        store(i64, stack(8), 0, i64(i))
    return i64(i)


@native
def short_circuit(n: i64) -> i64:
    return 1 if (n != 0 and 100 // n > 5) or n == -7 else 0


@native
def narrow(x: i64) -> i64:
    return i64(i8(x)) * 1000 + i64(u8(x))


@native
def constants_fold(x: i64) -> i64:
    if WIDE and x > LIMIT:
        return 2
    if x in (3, 5, LIMIT):
        return 1
    return 0


@native
def scratch(n: i64) -> i64:
    room = stack(64)
    for k in range(8):
        store(i64, room, k * 8, k * n)
    p: ptr = room + 24
    return load(i64, p, 0) + (room + 64 - room)


class Pair(Struct):
    first: i64
    second: i64


@native
def exchange(n: i64) -> i64:
    pair: Pair = stack(16)
    pair.first, pair.second = n, 1
    pair.first, pair.second = pair.second, pair.first
    return pair.first * 100 + pair.second


@native
def twice(x: i64) -> i64:
    return 2 * x


@native
def negative(x: i64) -> i32:
    return i32(-x)


@native
def indirect(x: i64) -> i64:
    return twice(x) if unlikely(x > 0) else twice(i64(call_i32(negative, x)))


@native
def half(x: f64) -> f64:
    return -(f64(f32(x)) / 2.0)


@native
def length(p: ptr) -> i64:
    return strlen(p)


@native
def biggest(p: ptr, n: i64) -> f64:
    total: T = load(T, p, 0)
    for k in range(n):
        value = load(T, p, k * 4)
        total = value if value > total else total
    return f64(total)


def test_loops_and_branches():
    assert run(collatz, 27) == 111
    assert run(primes_below, 100) == 25


def test_nested_loops_may_share_a_variable():
    assert (
        run(nested_loops_with_one_variable, 4) == Interpreter().call(nested_loops_with_one_variable, 4) == 20
    )


def test_assigning_the_loop_variable_leaves_the_count():
    # the variable keeps its last value, also after a loop without iterations
    assert run(reassigned_loop_variable, 4) == Interpreter().call(reassigned_loop_variable, 4) == 6103
    assert run(variable_of_loop_without_iterations, 5) == 0
    assert run(variable_of_loop_without_iterations, 9) == 8


def test_vector_loops_of_inlined_functions_become_vectors():
    assert run(sum_of_squares, 3.0, result=ctypes.c_double) == sum((3.0 + i) ** 2 for i in range(8))
    module = lang.emit({"f": sum_of_squares})
    assert "alwaysinline" in module and "llvm.loop.vectorize.enable" in module
    assert Interpreter().call(sum_of_squares, 3.0) == run(sum_of_squares, 3.0, result=ctypes.c_double)


def test_and_or_do_not_evaluate_what_is_decided():
    assert [run(short_circuit, n) for n in (0, 1, 10, 50, -7)] == [0, 1, 1, 0, 1]


def test_conversions_are_those_of_c():
    assert run(narrow, 300) == 44 * 1000 + 44
    assert run(narrow, 255) == -1 * 1000 + 255
    assert run(half, 3.0, result=ctypes.c_double) == -1.5


def test_compile_time_constants_choose_the_code():
    assert [run(constants_fold, x) for x in (3, 4, 10, 11)] == [1, 0, 1, 0]
    assert [run(constants_fold, x, constants={"WIDE": 1}) for x in (3, 11)] == [1, 2]
    assert run(constants_fold, 12, constants={"LIMIT": 12}) == 1


def test_memory_pointers_and_calls():
    assert run(scratch, 5) == 3 * 5 + 64
    assert run(indirect, 4) == 8
    assert run(indirect, -4) == 8
    text = ctypes.create_string_buffer(b"tandem")
    assert run(length, ctypes.addressof(text)) == 6


def test_fields_are_assigned_together():
    assert run(exchange, 7) == 107
    assert Interpreter().call(exchange, 7) == 107


def test_type_parameters():
    values = np.array([1.0, 7.5, -3.0, 2.0], np.float32)
    assert run(biggest, values.ctypes.data, 4, result=ctypes.c_double, types={"T": "f32"}) == 7.5


@native
def mixes(x: i64) -> i64:
    y: i32 = i32(x)
    return x + y


@native
def unpacks(x: i64) -> i64:
    y, z = twice(x)
    return y + z


@native  # noqa: RET503
def falls_off(x: i64) -> i64:
    if x > 0:
        return x


@native
def unknown(x: i64) -> i64:
    return no_such_function(x)  # noqa: F821


@native
def strange(x: i64) -> i64:
    return [x][0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (mixes, "i64 wanted, i32 found"),
        (unpacks, "only local names and fields"),
        (falls_off, "without a return"),
        (unknown, "unknown name"),
        (strange, "not in the subset"),
        (loop_over_narrow_variable, "loop variable i is i64"),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(lang.LangError, match=message):
        lang.emit({"f": function})


def test_missing_symbol_raises():
    missing = "declare i64 @tandem_no_such_symbol()\n"
    body = "define i64 @f() {\n %x = call i64 @tandem_no_such_symbol()\n ret i64 %x\n}\n"
    with pytest.raises(RuntimeError, match="tandem_no_such_symbol"):
        engine.compile_ir(missing + body, ["f"])


def test_bad_ir_raises_and_code_is_released():
    with pytest.raises(RuntimeError):
        engine.compile_ir("define i64 @f( {", ["f"])
    code = engine.compile_ir("define i64 @g(i64 %x) { ret i64 %x }", ["g"])
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code["g"])(5) == 5
    code.release()
    assert not code


@native
def swap(at: ptr, value: ptr) -> i64:
    return i64(dsl.exchange(at, value))


def test_exchange_returns_the_pointer_before():
    slot = ctypes.c_void_p(12)
    assert run(swap, ctypes.addressof(slot), 34) == 12
    assert slot.value == 34
    assert Interpreter().call(swap, ctypes.addressof(slot), 56) == 34
    assert slot.value == 56


@native
def first_above_ten(a: i64) -> i64:
    while True:
        a += 1
        if a > 10:
            return a

    return a


def test_statements_that_python_drops_are_parsed():
    assert run(first_above_ten, 5) == 11


def test_functions_are_parsed_as_in_their_files():
    """The lines of a function that have code are all of it."""
    assert emitted.LOOPS  # of modules that are imported with it
    modules = [module for name, module in sys.modules.items() if ".rt_" in name and "tandem" in name]
    functions = [
        f for module in modules for f in vars(module).values() if "__native__" in getattr(f, "__dict__", ())
    ]
    assert len(functions) > 100
    for function in functions:
        lines, first = inspect.getsourcelines(inspect.unwrap(function))
        whole = ast.parse("\n" * (first - 1) + "".join(lines)).body[0]
        assert ast.dump(dsl.parse_function(function), include_attributes=True) == ast.dump(
            whole, include_attributes=True
        )

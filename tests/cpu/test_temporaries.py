"""Results in the memory of operands to which only the interpreter's stack refers, and operands that others refer to."""

import ctypes
import functools
import operator
import signal
import sys
import weakref

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import config
from tandem.backends.cpu.fastpath.glue import operand_stack

pytestmark = needs_native

SIZE = 100_000


@pytest.fixture(autouse=True, scope="module")
def hot_operators():
    x = td.ones(3, dtype=td.float64)
    for _ in range(2 * config.flags.hot_calls + 300):
        (-x + x) * x - x / x, (x + 1) * 2 - x + 0.5, 2 / x, x**2, x - 2, x + x[:1]


A, B, C = (td.asarray(np.random.default_rng(seed).standard_normal(SIZE)) for seed in range(3))


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


def takes_memory(function):
    """Whether the result of a function is where its first intermediate result was; the pool reuses the last buffer."""
    for _ in range(3):  # the function is analysed at the second call
        result = function(A, B, C)
    del result
    product = A * B
    first = address(product)
    del product
    return address(function(A, B, C)) == first


def in_comprehension(a, b, c):
    (result,) = [a * b + c for _ in range(1)]
    return result


def in_blocks(a, b, c):
    with td.no_grad():
        try:
            for _ in range(1):
                if c is not None:
                    return a * b + c
        finally:
            len("")


def in_generator(a, b, c):
    def generate():
        yield
        yield a * b + c

    return [*generate()][1]


def in_class_body(a, b, c):
    class Body:
        result = a * b + c

    return Body.__dict__["result"]


def in_closure(a, b, c):
    def add():
        nonlocal c
        return (None, a * b + c)[1]

    return add()


PROGRAMS = {
    "sum": lambda a, b, c: a * b + c,
    "second": lambda a, b, c: c - a * b,
    "chain": lambda a, b, c: ((a * b + 1) * c - 2) / b,
    "two": lambda a, b, c: (a * b) * (b + c),
    "unary": lambda a, b, c: -(a * b),
    "reflected": lambda a, b, c: 2 / (a * b),
    "square": lambda a, b, c: (a * b) ** 2,
    "number": lambda a, b, c: a * b + 0.5,
    "broadcast": lambda a, b, c: a * b + c[:1],
    "deep": lambda a, b, c: (a, (b, [a * b + c]))[1][1][0],
    "or": lambda a, b, c: (None or a * b) + c,
    "choice": lambda a, b, c: (a * b if len("x") else b) + c,
    "comprehension": in_comprehension,
    "blocks": in_blocks,
    "generator": in_generator,
    "class": in_class_body,
    "closure": in_closure,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_take_the_memory_of_temporaries(name):
    program = PROGRAMS[name]
    assert takes_memory(program)
    wanted = program(*map(np.asarray, (A, B, C)))
    np.testing.assert_array_equal(np.asarray(program(A, B, C)), wanted)


def test_traced_functions_take_the_memory_of_temporaries():
    previous = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        assert takes_memory(lambda a, b, c: a * b + c)
    finally:
        sys.settrace(previous)


def exec_sum():
    space = {"a": A, "b": B, "c": C}
    exec("result = a * b + c", space)
    return space["result"]


def test_code_that_runs_once_is_not_analysed():
    known = len(operand_stack._known)
    for _ in range(5):
        np.testing.assert_array_equal(np.asarray(exec_sum()), np.asarray(A) * np.asarray(B) + np.asarray(C))
    assert len(operand_stack._known) == known or all(
        operands is None for _, operands in [*operand_stack._known.values()][known:]
    )


def test_the_table_of_functions_is_bounded(monkeypatch):
    monkeypatch.setattr(operand_stack, "_known", {})
    monkeypatch.setattr(operand_stack, "MOST_CODES", 8)
    for k in range(40):
        function = eval(f"lambda a, b, c: a * b + c + {k}")
        for _ in range(2):
            function(A, B, C)
    assert 0 < len(operand_stack._known) <= 8


# --- operands that others refer to ---------------------------------------------------------------------------------

KEPT = []


def product(keep):
    result = A * B
    KEPT.append(keep(result))
    return result


@pytest.mark.parametrize(
    "keep",
    [lambda x: x, weakref.ref, np.asarray, memoryview, lambda x: x[5:], lambda x: x.reshape(2, -1), np.from_dlpack,
     lambda x: weakref.ref(np.asarray(x)), lambda x: x.detach()],
    ids=["tensor", "weakref", "array", "memoryview", "slice", "reshape", "dlpack", "weak_array", "detach"],
)  # fmt: skip
def test_memory_that_others_refer_to_is_not_written(keep):
    wanted = np.asarray(A) * np.asarray(B)
    for _ in range(4):
        KEPT.clear()
        result = product(keep) + C
        (kept,) = KEPT
        if not isinstance(kept, weakref.ref):
            np.testing.assert_array_equal(np.asarray(kept).ravel(), wanted[-np.asarray(kept).size :])
        np.testing.assert_array_equal(np.asarray(result), wanted + np.asarray(C))


def test_variables_keep_their_values():
    def program(a, b, c):
        t = a * b
        u = t + c
        return t, u, t - c

    wanted = program(*map(np.asarray, (A, B, C)))
    for _ in range(4):
        for got, want in zip(program(A, B, C), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)


def borrowing_class(t):
    """A class whose addition is a C function that multiplies a tensor, to which only that function refers."""
    return type("Borrowing", (), {"__add__": staticmethod(functools.partial(operator.mul, t))})


@pytest.mark.parametrize("depth", range(4))
def test_c_functions_keep_operands_that_only_they_refer_to(depth):
    wanted = np.asarray(A) * np.asarray(B)
    for _ in range(4):
        borrowing = borrowing_class(A * B)()
        references = sys.getrefcount(type(borrowing).__add__.args[0])
        assert references == 2
        # what the stack held before remains above its top: the same addresses, at another operator
        [A, [B, [(A + B) * C, [C]]]][:depth]
        for _ in range(3):
            product = borrowing + C
            np.testing.assert_array_equal(np.asarray(product), wanted * np.asarray(C))
        np.testing.assert_array_equal(np.asarray(type(borrowing).__add__.args[0]), wanted)


def test_calls_from_c_keep_their_operands():
    add = ctypes.pythonapi.PyNumber_Add
    add.restype, add.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.py_object]
    wanted = np.asarray(A) * np.asarray(B)
    for _ in range(4):
        items = [A * B]
        add(items[0], C)
        assert next(map(operator.add, items, [C])).shape == C.shape
        functools.reduce(operator.add, items, C)
        sum(items, C)
        np.testing.assert_array_equal(np.asarray(items[0]), wanted)


def test_saved_operands_are_not_written():
    w = td.asarray(np.asarray(C), requires_grad=True)
    for _ in range(4):
        w.grad = None
        ((A * B) * w).sum().backward()
        np.testing.assert_array_equal(np.asarray(w.grad), np.asarray(A) * np.asarray(B))


def test_levels_of_transforms_see_their_tensors():
    def program(a):
        return ((a * B) + C) * a

    for _ in range(4):
        value, tangent = td.jvp(program, (A,), (C,))
        a, b, c = map(np.asarray, (A, B, C))
        np.testing.assert_allclose(np.asarray(value), (a * b + c) * a, rtol=1e-15)
        np.testing.assert_allclose(np.asarray(tangent), (b * a + b * a + c) * c, rtol=1e-12, atol=1e-12)


def test_failing_analysis_leaves_the_operator_alone(monkeypatch):
    def fail(code):
        raise ValueError("no analysis")

    monkeypatch.setattr(operand_stack, "read_operands", fail)
    for _ in range(4):
        result = A * B + C
    np.testing.assert_array_equal(np.asarray(result), np.asarray(A) * np.asarray(B) + np.asarray(C))


def test_references_do_not_grow():
    def program(a, b, c):
        return -(a * b + c) * 2

    x, y, z = (td.asarray(np.ones(SIZE)) for _ in range(3))
    counts = [sys.getrefcount(v) for v in (x, y, z, program.__code__, None)]
    for _ in range(500):
        program(x, y, z)
    after = [sys.getrefcount(v) for v in (x, y, z, program.__code__, None)]
    assert max(b - a for a, b in zip(counts, after, strict=True)) < 20


# --- slots of the evaluation stack ---------------------------------------------------------------------------------


class Probe:
    """An operand that notes whether the stack holds both operands where they are expected."""

    def __add__(self, other):
        return self._check(other)

    __mul__ = __sub__ = __truediv__ = __add__

    def __neg__(self):
        return self._check()

    def _check(self, *others):
        frame = sys._getframe(2)
        value = operand_stack.read_operands(frame.f_code).get(frame.f_lasti, 0)
        slots = operand_stack.InterpreterFrame(operand_stack.FrameObject(id(frame)).frame).slots
        slots += 8 * (value >> operand_stack.INDEX_SHIFT)
        held = [ctypes.c_void_p.from_address(slots + 8 * k).value for k in range(1 + len(others))]
        assert value & 3 == 1 + len(others)
        assert held == [id(self), *map(id, others)]
        return self


def test_slots_are_found_in_all_kinds_of_code():
    p = [Probe() for _ in range(3)]
    for program in PROGRAMS.values():
        if program not in (PROGRAMS["broadcast"], PROGRAMS["square"], PROGRAMS["reflected"]):
            program(*p)
    exec("p = [a * a + b for a in q for b in q]; r = {a: -a for a in q}", {"q": p})
    (lambda *args, k=1, **kw: (args[0] * args[1], [lambda: kw], kw["z"] + args[0]))(*p, z=p[0])


def test_unknown_instructions_have_no_operands():
    frame = sys._getframe()
    assert [operand_stack.find_operands(frame) for _ in range(3)] == [0, 0, 0]


class Stop(Exception):
    """Raised by a signal handler."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_exceptions_of_signal_handlers_arrive():
    """A handler may run when native code calls a Python function."""

    def stop(number, frame):
        raise Stop

    def chain():
        return (A * B) + C - B + A - C + B

    for _ in range(3):
        chain()
    before, arrived = signal.signal(signal.SIGALRM, stop), 0
    try:
        for k in range(30):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0001 * (k % 7))
                for _ in range(2000):
                    chain()
            except Stop:
                arrived += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert arrived == 30

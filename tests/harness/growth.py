"""Subprocess program: measure memory while new shapes, closures and structures are compiled and called.

``python growth.py KIND COUNT`` prints a line for each tenth of the rounds: number, resident KiB, traced KiB (0 in long
runs, which tracemalloc would make twice as long), objects, runs of LLVM's passes, KiB that the C heap has allocated (0
where the C library cannot say).
"""

import ctypes
import gc
import sys
import tracemalloc

import numpy as np
import tandem as td
from tandem.backends.cpu.fastpath.compiler import engine


def filled(*shape):
    return td.asarray(np.full(shape, 0.5, np.float32))


def f(x):
    return (td.exp(x) * 2 + 1).sum()


def tree(i):
    """A structure of containers that no other number has."""
    x = filled(3)
    return {f"k{i % 7}": [x] * (i % 3 + 1), f"n{i}": (x, {"a": x} if i % 2 else [x])}


def leaves_sum(tree):
    return sum(leaf.sum() for leaf in td.tree.leaves(tree))


LONGEST_TRACED = 10_000
JITTED = td.jit(f)
OF_TREES = td.jit(leaves_sum)
GRADIENT = td.jit(td.grad(f))


def shapes(i):
    x = filled(i // 100 + 1, i % 100 + 1)
    JITTED(x)
    GRADIENT(x)


def eager_shapes(i):
    x = filled(i // 100 + 1, i % 100 + 1)
    td.grad(f)(x)
    td.vmap(f)(x)


def closures(i):
    c = filled(3) * i
    td.jit(lambda x: (x * c).sum() + i)(filled(3))


def gradients(i):
    c = float(i)
    weight = td.asarray(np.ones(4, np.float32), requires_grad=True)
    td.jit(td.grad(lambda x: (x * c).sum()))(filled(4))
    td.jit(lambda x: (x * x * i).sum())(weight).backward()


def batches(i):
    td.jit(td.vmap(lambda x: td.sin(x) * i))(filled(2, 3))
    td.vmap(td.jit(lambda x: td.sin(x) * i))(filled(2, 3))


def functions(i):
    space = {"td": td}
    exec(f"def g{i}(x):\n    return td.tanh(x) * {i} + x.sum()", space)
    td.jit(space[f"g{i}"])(filled(5))
    td.grad(lambda x: space[f"g{i}"](x).sum())(filled(5))


def structures(i):
    OF_TREES(tree(i))
    td.grad(leaves_sum)(tree(i))
    td.vmap(leaves_sum)(tree(i))


def loops(i):
    td.jit(lambda x: td.fori_loop(0, 3, lambda k, c: c * i + k, x))(filled(3))
    td.fori_loop(0, 3, lambda k, c: c * i, filled(3))
    td.jit(lambda x: td.cond(x.sum() > i, lambda x: x + i, lambda x: x - i, x))(filled(3))


def operators(i):
    with td.Library(f"growth{i}", "DEF") as library:
        library.define("g(Tensor x) -> Tensor")
        library.impl("g", lambda x: x, "CPU")
        function = getattr(td.ops, f"growth{i}").g
        for _ in range(2):
            function(filled(2))


def scalars(i):
    x = filled(3)
    (x + i, x * float(i), td.full((2,), i), x[: i % 3], x.reshape(3, 1), x**i)
    JITTED(filled(2, 2))
    np.asarray(x)
    td.einsum("i,i->", x, x)


KINDS = (
    *(shapes, eager_shapes, closures, gradients, batches, functions, structures, loops, operators, scalars),
)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4


class HeapInfo(ctypes.Structure):
    """The result of glibc's ``mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    )


def allocated():
    """KiB in the blocks that the C heap has given out, whatever pages they keep resident."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return 0
    mallinfo.restype = HeapInfo
    info = mallinfo()
    return (info.uordblks + info.hblkhd) // 1024


def settle():
    """Free garbage, and rebuild the interpreter's table of interned strings.

    Each attribute name that NumPy makes and drops leaves a deleted entry in that table. The insertion that finds it
    full of them makes room for three times the live strings: a step of 500 KiB, at some round or other. Python 3.12
    keeps interned strings.
    """
    gc.collect()
    if sys.version_info[:2] != (3, 12):
        for i in range(100_000):
            sys.intern(f"string {i}")


class Runs:
    """Calls a function and counts the calls."""

    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self, *args):
        self.count += 1
        return self.function(*args)


if __name__ == "__main__":
    runs = engine._object = Runs(engine._object)
    chosen, count = sys.argv[1], int(sys.argv[2])
    rounds = KINDS if chosen == "mixed" else [next(kind for kind in KINDS if kind.__name__ == chosen)]
    if count <= LONGEST_TRACED:
        tracemalloc.start()
    for i in range(count):
        rounds[i % len(rounds)](i)
        if (i + 1) % (count // 10) == 0:
            settle()
            traced = tracemalloc.get_traced_memory()[0] // 1024
            print(i + 1, resident(), traced, len(gc.get_objects()), runs.count, allocated(), flush=True)

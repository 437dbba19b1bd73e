"""The native entries of operators, and calls whose allocations fail."""

import contextlib
import ctypes

import tandem as td
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.runtime import rt_base


def stubs():
    """The stubs of all operators with a native entry."""
    native_layer.install()
    known = native_layer.stubs()
    return list(known.by_operator.values()) if known is not None else []


@contextlib.contextmanager
def allocate_each_tensor():
    """Let each new tensor allocate its memory, instead of taking that of a destroyed one."""
    known = native_layer.stubs()
    address = (
        0 if known is None else known.runtime.process.get(rt_base.Globals.free_list) + rt_base.FreeList.limit
    )
    limit = ctypes.c_int64.from_address(address) if address else ctypes.c_int64()
    before, limit.value = limit.value, 0
    x = td.ones(2)
    taken = [x + 1 for _ in range(before)]
    try:
        yield
    finally:
        limit.value = before
        del taken


def fail_each_allocation(hooks, call):
    """Call with the k-th allocation failing, for each k; how many calls have failed."""
    with allocate_each_tensor():
        return _fail_each_allocation(hooks, call)


def _fail_each_allocation(hooks, call):
    for _ in range(5):
        call()
    failed = 0
    for k in range(60):
        try:
            hooks.set_nomemory(k, k + 1)
            try:
                call()
            finally:
                hooks.remove_mem_hooks()
        except MemoryError:
            failed += 1
    return failed

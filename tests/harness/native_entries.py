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
    """Let each new tensor and array allocate its memory, instead of taking that of a destroyed one."""
    known = native_layer.stubs()
    kept = (
        []
        if known is None
        else [
            (rt_base.Globals.free_list, rt_base.FreeList.limit),
            (rt_base.Globals.spare_arrays, rt_base.SpareArrays.limit),
        ]
    )
    limits = [ctypes.c_int64.from_address(known.runtime.process.get(owner) + field) for owner, field in kept]
    before = [limit.value for limit in limits]
    for limit in limits:
        limit.value = 0
    x = td.ones(2)
    taken = [x + 1 for _ in range(before[0] if before else 0)]
    try:
        yield
    finally:
        for limit, value in zip(limits, before, strict=True):
            limit.value = value
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

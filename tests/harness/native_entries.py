"""The native entries of operators, and calls whose allocations fail."""

from tandem.backends.cpu import fastpath as native_layer


def stubs():
    """The stubs of all operators with a native entry."""
    native_layer.install()
    known = native_layer.stubs()
    return list(known.by_operator.values()) if known is not None else []


def fail_each_allocation(hooks, call):
    """Call with the k-th allocation failing, for each k; how many calls have failed."""
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

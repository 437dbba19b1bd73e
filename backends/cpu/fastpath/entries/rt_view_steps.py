"""Recorded calls of composites of views: the same calls of view operators again, each with its own graph node.

The *program* of a view is a flat tuple: an operator's function, the tuple of its arguments after the tensor, and so on
for each view operator from the source to the result. The steps of a call are a tuple of programs, one for each result.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, native, ptr, stack, store, unlikely
from ..runtime import capi

MOST_ARGUMENTS = 7  # of a view operator, after the tensor


@native
def run_steps(source: ptr, steps: capi.PyVarObject, lists: i64) -> ptr:
    """Return the view of the source, or the tuple of its views; NULL with an exception set."""
    capi.incref(steps)  # Python code that runs meanwhile may replace them in their slot
    if lists == 0:
        result = run_program(source, capi.item(steps, 0))
        capi.decref(steps)
        return result
    views = capi.PyTuple_New(steps.size)
    for k in range(steps.size if likely(views != NULL) else 0):
        view = run_program(source, capi.item(steps, k))
        if unlikely(view == NULL):
            capi.decref(views)
            views = NULL
            break
        capi.set_item(views, k, view)
    capi.decref(steps)
    return views


@native
def run_program(source: ptr, program: capi.PyVarObject) -> ptr:
    """Return the view that a program computes; NULL with an exception set."""
    values = stack((MOST_ARGUMENTS + 1) * 8)
    x = capi.new_ref(source)
    for k in range(program.size // 2):
        given: capi.PyVarObject = capi.item(program, 2 * k + 1)
        store(ptr, values, 0, x)
        for index in range(given.size):
            store(ptr, values, 8 + 8 * index, capi.item(given, index))
        view = capi.PyObject_Vectorcall(capi.item(program, 2 * k), values, 1 + given.size, NULL)
        capi.decref(x)
        x = view
        if unlikely(x == NULL):
            break
    return x

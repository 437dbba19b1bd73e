"""Native runtime: build the result structure of a jitted function from its build program."""

from __future__ import annotations

from ..compiler.dsl import NULL, extern, i64, likely, load, native, ptr, store, unlikely
from ..glue.jit_layout import BuildCode, CallFrame
from ..glue.layout import PyList, PyTuple
from .rt_base import PyDict_SetItem, PyObject_Vectorcall, PyTuple_New, decref, incref, make_tensor

PyDict_Copy = extern("PyDict_Copy", "ptr(ptr)")
PyList_New = extern("PyList_New", "ptr(i64)")


@native
def build(frame: CallFrame, program: ptr, results: ptr) -> ptr:
    """Return one object of the result structure, a new reference; NULL with an exception set.

    Python twin: jit/outputs.py:OutputTree.build
    """
    at = load(ptr, program, 0)
    kind, what = load(i64, at, 0), load(i64, at, 8)
    store(ptr, program, 0, at + 16)
    if likely(kind == BuildCode.RESULT):
        array = load(ptr, results, what * 8)
        incref(array)
        return make_tensor(frame.globals_, array)
    if kind == BuildCode.HELD or kind == BuildCode.SAME:
        result = ptr(what)
        if kind == BuildCode.HELD:
            result = load(ptr, frame.held, what * 8)
        incref(result)
        return result
    if kind == BuildCode.DICT:
        return build_dict(frame, program, results, what)
    return build_sequence(frame, program, results, kind, what)


@native
def build_sequence(frame: ptr, program: ptr, results: ptr, kind: i64, count: i64) -> ptr:
    """Return a list, a tuple, or (BuildCode.CALL) the result of a callable applied to the items."""
    maker: ptr = NULL
    if kind == BuildCode.CALL:
        maker = load(ptr, load(ptr, program, 0), 0)
        store(ptr, program, 0, load(ptr, program, 0) + 8)
    made: PyList = PyList_New(count) if kind == BuildCode.LIST else PyTuple_New(count)
    if unlikely(made == NULL):
        return NULL
    items = made + PyTuple.items
    if kind == BuildCode.LIST:
        items = made.items
    for i in range(count):
        item = build(frame, program, results)
        if unlikely(item == NULL):
            decref(made)
            return NULL
        store(ptr, items, i * 8, item)
    if kind != BuildCode.CALL:
        return made
    result = PyObject_Vectorcall(maker, items, count, NULL)
    decref(made)
    return result


@native
def build_dict(frame: ptr, program: ptr, results: ptr, count: i64) -> ptr:
    """Return a filled copy of the program's dict of keys: unlike a new dict it need not grow."""
    made = PyDict_Copy(load(ptr, load(ptr, program, 0), 0))
    store(ptr, program, 0, load(ptr, program, 0) + 8)
    if unlikely(made == NULL):
        return NULL
    for _i in range(count):
        key = load(ptr, load(ptr, program, 0), 0)
        store(ptr, program, 0, load(ptr, program, 0) + 8)
        item = build(frame, program, results)
        if unlikely(item == NULL):
            decref(made)
            return NULL
        failed = PyDict_SetItem(made, key, item)
        decref(item)
        if unlikely(failed != 0):
            decref(made)
            return NULL
    return made

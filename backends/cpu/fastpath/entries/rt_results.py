"""Native entries: results of jitted functions that are views, copies or one object twice, and writes into arguments."""

from __future__ import annotations

from ..compiler.dsl import f64, i32, i64, likely, load, native, noinline, ptr, store, unlikely
from ..compiler.structs import sizeof
from ..glue import jit_layout
from ..runtime import capi, rt_memory, rt_outputs
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome


@native
def count_miss(spec: jit_layout.Specialization) -> ptr:
    """Return FALL_BACK for a call that Python must run after all; undo its hit."""
    spec.hits -= 1
    return Outcome.FALL_BACK


# Results ----------------------------------------------------------------------------------------------------------
@noinline
def share_result(frame: jit_layout.CallFrame, where: ptr) -> ptr:
    """Return the tensor of a result that occurs several times; the first time, it replaces the held array."""
    item = load(ptr, where, 0)
    if capi.type_of(item) == capi.PyArray_Type:
        item = base.make_tensor(frame.globals_, item)
        store(ptr, where, 0, item if likely(item != ptr(0)) else capi.new_ref(capi.Py_None))
    return item if unlikely(item == ptr(0)) else capi.new_ref(item)


@noinline
def make_view(frame: jit_layout.CallFrame, results: ptr, view: jit_layout.ResultView) -> ptr:
    """Return a tensor that is a view of a held array or a result, or a copy of one; NULL with an exception set.

    Python twin: backends/cpu/executable.py:view
    """
    first = frame.held if view.of_argument != 0 else results
    array: capi.Ndarray = load(ptr, first, view.source * 8)
    if capi.type_of(array) != capi.PyArray_Type:  # `share_result` has replaced it
        array = base.TensorObject(array).array
    made = rt_memory.array_over(
        base.Globals(frame.globals_).spare_arrays,
        view.descr,
        view.rank,
        view.dims,
        view.strides,
        array.data + view.offset,
        i32(capi.WRITEABLE),
        capi.new_ref(array),
    )
    if view.is_copy != 0 and made != ptr(0):
        copied = capi.PyArray_NewCopy(made, 0)
        capi.decref(made)
        made = copied
    return base.make_tensor(frame.globals_, made) if likely(made != ptr(0)) else made


@noinline
def make_number(kind: i64, where: ptr) -> ptr:
    """Return a Python number that was derived from the arguments; NULL with an exception set."""
    if kind == jit_layout.BuildCode.FLOAT:
        return capi.PyFloat_FromDouble(load(f64, where, 0))
    if kind == jit_layout.BuildCode.INT:
        return capi.PyLong_FromLongLong(load(i64, where, 0))
    return capi.new_ref(capi.Py_True if load(i64, where, 0) != 0 else capi.Py_False)


# Writes -----------------------------------------------------------------------------------------------------------
@native
def write_at(spec: jit_layout.Specialization, index: i64) -> ptr:
    return spec.write_table + index * sizeof(jit_layout.Write)


@noinline
def can_write(frame: jit_layout.CallFrame, spec: jit_layout.Specialization) -> bool:
    """Return whether each written argument is writable and shares its memory with no other array of the call.

    Python twin: jit/writes.py:check_writes
    """
    g = base.Globals(frame.globals_)
    if g.draw_watches != 0 or g.note != ptr(0):
        return False  # the argument may be the state of a random generator; a level may not let it draw
    for k in range(spec.writes):
        write: jit_layout.Write = write_at(spec, k)
        target: capi.Ndarray = load(ptr, frame.held, write.target * 8 + 8)
        if (target.flags & capi.WRITEABLE) == 0:
            return False
        for i in range(spec.tensors):
            held = load(i64, spec.tensor_table, i * 8)
            other = load(ptr, frame.held, held * 8)
            if capi.type_of(other) != capi.PyArray_Type:
                other = base.TensorObject(other).array
            if held != write.target and not rt_outputs.have_no_overlap(other, target):
                return False
    return True


@noinline
def write_back(frame: jit_layout.CallFrame, spec: jit_layout.Specialization) -> bool:
    """Copy the new contents of arguments into their memory; false with an exception set, and nothing written.

    Python twin: jit/writes.py:write_back
    """
    for k in range(spec.writes):
        write: jit_layout.Write = write_at(spec, k)
        where = frame.held + write.target * 8
        if not rt_outputs.bump_version(frame.globals_, load(ptr, where, 0), load(ptr, where, 8)):
            return False
    for k in range(spec.writes):
        write = write_at(spec, k)
        array: capi.Ndarray = load(ptr, frame.held, write.target * 8 + 8)
        contents = load(ptr, frame.buffers, write.source * 8) + write.offset
        if contents != array.data:
            capi.memcpy(array.data, contents, write.nbytes)
    return True


@noinline
def retry_failed_writes(spec: jit_layout.Specialization) -> ptr:
    """Return NULL for a failed call; Python runs one that writes again, and applies the writes before the failure."""
    if spec.writes == 0 or capi.PyErr_ExceptionMatches(load(ptr, capi.PyExc_Exception, 0)) == 0:
        return ptr(0)
    capi.PyErr_Clear()
    return count_miss(spec)

"""The native entry of operators whose CPU kernel is a Python function, which it calls without the dispatcher.

One entry serves every such operator of any namespace, another one those that declare an eager kernel, a function of
arrays (operators/declare/declaration.py:Declaration). They accept calls whose arguments the binder would pass unchanged
and whose key set is that of plain CPU tensors. The kernel may be replaced while it runs, so the call holds a reference.
"""

from __future__ import annotations

from ..... import lazy
from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, stack_of, store, unlikely
from ..compiler.structs import at
from ..runtime import capi, rt_entry, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

rt_arguments = lazy.Module(".backends.cpu.fastpath.runtime.rt_arguments")  # imported to compile an entry


class KernelEntry(base.OperatorEntry):
    """The entry of an operator with a Python kernel."""

    kernel: ptr = at(16)  # the function, or NULL
    least: i64 = at(24)  # arguments that must be given
    most: i64 = at(32)  # arguments that may be given by position
    count: i64 = at(48)  # arguments that the kernel takes
    kinds: ptr = at(56)  # per argument: its possible types, as bits
    defaults: ptr = at(64)  # per argument: its default or NULL
    keywords: ptr = at(72)  # names of the keyword-only arguments or NULL
    failed: ptr = at(104)  # the function that translates an exception; `last_names` is before it
    results: i64  # which results need no check
    check: ptr  # the function that checks others
    numpy: ptr  # the module, the first argument of functions of arrays
    arguments: ptr  # the names of all arguments, a tuple
    is_sampled: i64  # 1: Python runs some of the calls, which it counts by their kinds
    seen: i64  # calls, if it is


# `KernelEntry.results`: a number of tensors (0: None, 1: a tensor, else a tuple of so many); or one of these
ANY_RESULT, ASK_PYTHON = -1, -2

MOST_ARGUMENTS = 16
ALL_SAMPLED, SAMPLE_MASK = (
    256,
    63,
)  # the first calls of which Python counts each, later ones of which it counts a few
BOOLEAN, INTEGER, REAL, COMPLEX, TENSOR, STRING, NOTHING, ANYTHING, INTEGERS = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,  # but tensors, which the binder of such arguments ignores
    256,  # a tuple of them
)  # numbers: as their operand codes


@rt_entry.entry(records=False)
def kernel_call(entry: KernelEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of operators with a Python kernel.

    Python twin: registry/operator.py:Operator.__call__
    """
    g: base.Globals = entry.globals_
    kernel, values = entry.kernel, stack(MOST_ARGUMENTS * 8)
    if unlikely(kwnames != NULL):
        if not complete_arguments(entry, args, count, kwnames, values):
            return Outcome.FALL_BACK
        args, count = values, entry.count
    elif unlikely(count > entry.most):
        return Outcome.FALL_BACK
    if unlikely(not is_plain_call(entry, args, count, flags)):
        return Outcome.FALL_BACK
    entry.calls += 1
    capi.incref(kernel)
    if likely(count == entry.count):
        result = capi.PyObject_Vectorcall(kernel, args, entry.most, entry.keywords)
    else:
        result = call_with_defaults(entry, kernel, args, count)
    capi.decref(kernel)
    if unlikely(result == NULL):
        return translate_error(entry, args, count)
    wanted = entry.results
    if likely(wanted == ANY_RESULT or (wanted == 1 and capi.type_of(result) == g.tensor)):
        return result
    return check_result(entry, g, result, wanted)


@rt_entry.entry(records=False, converts=0)
def array_kernel_call(entry: KernelEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of operators with an eager kernel, a function of arrays.

    Python twin: backends/cpu/kernels/register.py:make_eager_kernel
    """
    return call_array_kernel(entry, args, count, kwnames, flags)


@native
def call_array_kernel(entry: KernelEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Call the eager kernel of an operator with the arrays of its arguments."""
    g: base.Globals = entry.globals_
    kernel, total, given = entry.kernel, entry.count, stack(MOST_ARGUMENTS * 8)
    if unlikely(kwnames != NULL):
        if not complete_arguments(entry, args, count, kwnames, given):
            return Outcome.FALL_BACK
        args, count = given, total
    elif unlikely(count > entry.most):
        return Outcome.FALL_BACK
    if unlikely(not is_plain_call(entry, args, count, flags) or is_counted(entry)):
        return Outcome.FALL_BACK
    values = stack(MOST_ARGUMENTS * 8 + 8)
    store(ptr, values, 0, entry.numpy)
    for i in range(total):
        x: base.TensorObject = load(ptr, args, i * 8) if i < count else load(ptr, entry.defaults, i * 8)
        store(ptr, values, i * 8 + 8, capi.new_ref(x.array if capi.type_of(x) == g.tensor else x))
    capi.incref(kernel)
    result = capi.PyObject_Vectorcall(kernel, values, entry.most + 1, entry.keywords)
    capi.decref(kernel)
    capi.release_all(values + 8, total)
    if unlikely(result == NULL):
        if capi.PyErr_ExceptionMatches(load(ptr, capi.PyExc_Exception, 0)) == 0:
            return NULL  # an interrupt
        capi.PyErr_Clear()  # Python raises the error that names the argument
        return Outcome.FALL_BACK
    if likely(capi.type_of(result) == g.array):
        entry.calls += 1
        return base.make_tensor(g, result)
    return wrap_each(entry, g, result)


@native
def is_counted(entry: KernelEntry) -> bool:
    """Return whether Python runs a call in order to count it."""
    if entry.is_sampled == 0:
        return False
    entry.seen += 1
    return entry.seen <= ALL_SAMPLED or (entry.seen & SAMPLE_MASK) == 0


@noinline
def wrap_each(entry: KernelEntry, g: base.Globals, result: capi.PyVarObject) -> ptr:
    """Return a tuple of tensors for a tuple of arrays, which is released; Python runs the call for other results."""
    if capi.type_of(result) != capi.PyTuple_Type:  # NotImplemented
        capi.decref(result)
        return Outcome.FALL_BACK
    tensors = capi.PyTuple_New(result.size)
    for i in range(result.size):
        if tensors != NULL:
            array = capi.item(result, i)
            if capi.type_of(array) != g.array:
                capi.decref(tensors)
                capi.decref(result)
                return Outcome.FALL_BACK
            tensor = base.make_tensor(g, capi.new_ref(array))
            if tensor == NULL:
                capi.decref(tensors)
                tensors = ptr(0)
            else:
                capi.set_item(tensors, i, tensor)
    capi.decref(result)
    entry.calls += 1
    return tensors


@noinline
def complete_arguments(
    entry: KernelEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, values: ptr
) -> bool:
    """Write all arguments of a call in the order of the schema; false if Python has to bind them."""
    named = kwnames.size if kwnames != NULL else i64(0)
    if count > entry.most:
        return False
    for i in range(entry.count):
        store(ptr, values, i * 8, load(ptr, args, i * 8) if i < count else ptr(0))
    for k in range(named):
        index = i64(-1)
        for i in range(entry.count):
            if rt_arguments.string_matches(capi.item(kwnames, k), capi.item(entry.arguments, i)):
                index = i
        if index < 0 or load(ptr, values, index * 8) != NULL:
            return False
        store(ptr, values, index * 8, load(ptr, args, (count + k) * 8))
    for i in range(entry.count):
        if load(ptr, values, i * 8) == NULL:
            if load(ptr, entry.defaults, i * 8) == NULL:
                return False
            store(ptr, values, i * 8, load(ptr, entry.defaults, i * 8))
    return True


@native
def is_plain_call(entry: KernelEntry, args: ptr, count: i64, flags: i64) -> bool:
    """Return whether the kernel can run a call: its arguments are plain."""
    return (
        entry.kernel != NULL
        and count >= entry.least
        and are_plain_arguments(entry.globals_, entry.kinds, args, count, flags)
    )


@noinline
def check_result(entry: KernelEntry, g: base.Globals, result: capi.PyVarObject, wanted: i64) -> ptr:
    """Check a result against the schema; returns NULL with an exception set if it does not match.

    Python twin: registry/contract.py:Contract.checked
    """
    if wanted == 0 and result == capi.Py_None:
        return result
    if wanted > 1 and capi.type_of(result) == capi.PyTuple_Type and result.size == wanted:
        plain: i64 = 0
        for i in range(wanted):
            if capi.type_of(capi.item(result, i)) == g.tensor:
                plain += 1
        if plain == wanted:
            return result
    results = capi.PyObject_Vectorcall(entry.check, stack_of(result), 1, NULL)
    capi.decref(result)
    return results


@native
def are_plain_arguments(g: base.Globals, kinds: ptr, args: ptr, count: i64, flags: i64) -> bool:
    """Return whether the arguments have the declared types, need no conversion, and all tensors are plain."""
    tensors: i64 = 0
    for i in range(count):
        x, allowed_kinds = load(ptr, args, i * 8), load(i64, kinds, i * 8)
        if likely(capi.type_of(x) == g.tensor):
            if unlikely((allowed_kinds & TENSOR) == 0 or rt_operands.plain_array(g, x, flags) == NULL):
                return False
            tensors += 1
        elif (kind_of(x) & allowed_kinds) == 0 and not is_allowed_object(x, allowed_kinds):
            return False
    return tensors != 0


@noinline
def is_allowed_object(x: capi.PyVarObject, allowed_kinds: i64) -> bool:
    """Return whether any object is allowed, or a tuple of Python integers is, and this is one."""
    if (allowed_kinds & ANYTHING) != 0:
        return True
    if (allowed_kinds & INTEGERS) == 0 or capi.type_of(x) != capi.PyTuple_Type:
        return False
    for i in range(x.size):
        if kind_of(capi.item(x, i)) != INTEGER:
            return False
    return True


@native
def kind_of(x: ptr) -> i64:
    code = rt_operands.scalar_code(x)
    if code != base.FOREIGN:
        return 1 << (code - base.WEAK_BOOL)
    if x == capi.Py_None:
        return NOTHING
    return STRING if capi.type_of(x) == capi.PyUnicode_Type else i64(0)


@noinline
def call_with_defaults(entry: KernelEntry, kernel: ptr, args: ptr, count: i64) -> ptr:
    """Call the kernel with defaults for missing arguments."""
    values = stack(MOST_ARGUMENTS * 8)
    for i in range(entry.count):
        value = load(ptr, args, i * 8) if i < count else load(ptr, entry.defaults, i * 8)
        store(ptr, values, i * 8, value)
    return capi.PyObject_Vectorcall(kernel, values, entry.most, entry.keywords)


@noinline
def translate_error(entry: KernelEntry, args: ptr, count: i64) -> ptr:
    """Replace a MemoryError or OverflowError by the exception that the dispatcher raises."""
    if (
        capi.PyErr_ExceptionMatches(load(ptr, capi.PyExc_MemoryError, 0)) == 0
        and capi.PyErr_ExceptionMatches(load(ptr, capi.PyExc_OverflowError, 0)) == 0
    ):
        return NULL
    fault, values = stack(24), stack(MOST_ARGUMENTS * 8 + 8)
    capi.PyErr_Fetch(fault, fault + 8, fault + 16)
    capi.PyErr_NormalizeException(fault, fault + 8, fault + 16)
    value, traceback = load(ptr, fault, 8), load(ptr, fault, 16)
    if traceback != NULL:
        capi.PyException_SetTraceback(value, traceback)
    store(ptr, values, 0, value)
    capi.memcpy(values + 8, args, count * 8)
    result = capi.PyObject_Vectorcall(entry.failed, values, count + 1, NULL)
    capi.release_all(fault, 3)
    return result

"""Native functions that return a ready result: each replaces one layer of a native entry.

They are unsafe anywhere else: the replaced layer's checks, computation and allocation are skipped.
"""

from ...backends.cpu.fastpath.compiler.dsl import extern_object, i32, i64, load, native, ptr, store
from ...backends.cpu.fastpath.entries import rt_guards
from ...backends.cpu.fastpath.glue import jit_layout
from ...backends.cpu.fastpath.runtime import capi, rt_entry
from ...backends.cpu.fastpath.runtime import rt_base as base

READY_ARRAY = extern_object("tandem_ready_array")
READY_TENSOR = extern_object("tandem_ready_tensor")
READY_TUPLE = extern_object("tandem_ready_tuple")
READY_VARIANT = extern_object("tandem_ready_variant")
STEP = 4  # bytes of a float32


@native
def flags(g: ptr) -> i64:
    """The thread is in its default state."""
    return base.PLAIN


@native
def code(g: ptr, x: ptr, flags: i64, where: ptr) -> i64:
    """The operand is a plain tensor of float32."""
    store(ptr, where, 0, load(ptr, x, base.TensorObject.array))
    return base.FLOAT32


@native
def variant(entry: ptr, key: i64) -> ptr:
    """The variant is known."""
    result: ptr = READY_VARIANT
    return result


@native
def shapes(variant: ptr, arrays: ptr, widest: ptr, rank: i64, strides: ptr) -> bool:
    """All operands are contiguous and of one shape."""
    for i in range(base.NARGS):
        store(i64, strides, i * 16, 0)
        store(i64, strides, i * 16 + 8, STEP)
    return True


@native
def array(g: ptr, descr: ptr, rank: i64, dims: ptr, nbytes: i64) -> ptr:
    """The result's memory is there already."""
    result: ptr = READY_ARRAY
    capi.incref(result)
    return result


@native
def tensor(g: ptr, array: ptr) -> ptr:
    """The result's object is there already."""
    result: ptr = READY_TENSOR
    capi.decref(array)
    capi.incref(result)
    return result


@native
def ready_edges(g: ptr, rules: ptr, values: ptr) -> ptr:
    """The edges of the node are there already."""
    return capi.new_ref(READY_TUPLE)


@native
def ready_saved(g: ptr, rules: ptr, values: ptr, tensor: ptr, array: ptr, where: ptr) -> i64:
    """The saved values and their versions are there already."""
    value: ptr = READY_TUPLE
    capi.incref(value)
    capi.incref(value)
    store(ptr, where, 0, value)
    store(ptr, where, 8, value)
    return rt_entry.DONE


@native
def unrecorded(entry: ptr, values: ptr, count: i64) -> ptr:
    """The result is not recorded."""
    return load(ptr, values, count * 8)


@native
def loop(pointers: ptr, sizes: ptr, strides: ptr) -> None:
    """Nothing is computed."""
    return


@native
def main(buffers: ptr, scalars: ptr) -> i32:
    """Nothing is computed."""
    return i32(0)


@native
def leaf(frame: ptr, x: ptr, wanted: ptr) -> bool:
    """The leaf is what the specialization wants; its data pointer still has to be passed on."""
    result = load(ptr, x, base.TensorObject.array)
    rt_guards.hold_reference(frame, x)
    rt_guards.hold_reference(frame, result)
    store(
        ptr,
        load(ptr, frame, jit_layout.CallFrame.buffers),
        load(i64, wanted, jit_layout.ArrayGuard.at) * 8,
        load(ptr, result, capi.Ndarray.data),
    )
    return True

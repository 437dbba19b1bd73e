"""Native functions that give a ready answer: each stands in for one layer of a native entry.

They are unsafe anywhere else: whatever they replace is not checked, computed or allocated.
"""

from ..backends.cpu.native.dsl import (
    extern_object,
    i32,
    i64,
    load_i64,
    load_ptr,
    native,
    ptr,
    store_i64,
    store_ptr,
)
from ..backends.cpu.native.jit_layout import A_AT, F_BUFFERS
from ..backends.cpu.native.layout import ND_DATA
from ..backends.cpu.native.rt_base import PLAIN, T_ARRAY, decref, incref
from ..backends.cpu.native.rt_elementwise import NARGS
from ..backends.cpu.native.rt_guards import hold
from ..backends.cpu.native.rt_operands import FLOAT32

READY_ARRAY = extern_object("tandem_ready_array")
READY_TENSOR = extern_object("tandem_ready_tensor")
READY_VARIANT = extern_object("tandem_ready_variant")
STEP = 4  # bytes of a float32


@native
def flags(g: ptr) -> i64:
    """The thread is in its default state."""
    return PLAIN


@native
def code(g: ptr, x: ptr, flags: i64, where: ptr) -> i64:
    """The operand is a plain tensor of float32."""
    store_ptr(where, 0, load_ptr(x, T_ARRAY))
    return FLOAT32


@native
def variant(desc: ptr, key: i64) -> ptr:
    """The variant is known."""
    found: ptr = READY_VARIANT
    return found


@native
def shapes(variant: ptr, arrays: ptr, widest: ptr, rank: i64, strides: ptr) -> bool:
    """All operands are contiguous and of one shape."""
    for i in range(NARGS):
        store_i64(strides, i * 16, 0)
        store_i64(strides, i * 16 + 8, STEP)
    return True


@native
def array(g: ptr, descr: ptr, rank: i64, dims: ptr, nbytes: i64) -> ptr:
    """The result's memory is there already."""
    found: ptr = READY_ARRAY
    incref(found)
    return found


@native
def tensor(g: ptr, array: ptr) -> ptr:
    """The result's object is there already."""
    found: ptr = READY_TENSOR
    decref(array)
    incref(found)
    return found


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
    found = load_ptr(x, T_ARRAY)
    hold(frame, x)
    hold(frame, found)
    store_ptr(load_ptr(frame, F_BUFFERS), load_i64(wanted, A_AT) * 8, load_ptr(found, ND_DATA))
    return True

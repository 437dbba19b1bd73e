"""Native runtime: structs of all entries, references, thread state, falling back to Python.

The structs are plain memory that `structs` fills:

* `Globals`, one in the process: the classes and constants that guards compare with, reached through each entry's data;
* `OperatorEntry`: the data of one operator's entry;
* `Variant`: one combination of operand types of an operator, with its loop.
"""

from __future__ import annotations

from .....registry import native_type
from ..compiler import dsl
from ..compiler.dsl import NULL, cstr, i64, likely, load, native, noinline, ptr, stack, template, unlikely
from ..compiler.structs import Struct, array
from . import capi


# `runtime` supplies the offsets of slots, and AT_REST.
class TensorObject(capi.PyObject):
    """The slots of a Tensor."""

    slot_prefix = "T_"

    array: ptr
    keys: ptr
    meta: ptr
    storage: ptr


class StorageObject(capi.PyObject):
    """The slots of a Storage."""

    slot_prefix = "S_"

    owner: ptr
    version: ptr
    hold_count: ptr


class LevelObject(capi.PyObject):
    """The slots of a `Level`."""

    slot_prefix = "L_"

    batch_size: ptr
    depth: ptr
    is_open: ptr
    forward: ptr
    run: ptr


class GuardsObject(capi.PyObject):
    """The slots of the dispatch state's `Guards`."""

    slot_prefix = "K_"

    flags: ptr


KNOWN_RANK = 4  # axes of a tensor whose attributes an entry remembers
SPARE_SLOTS = 64  # for arrays with memory of their own, and for views; a power of two
AT_REST: i64 = template(0)  # references to `Globals.active` while every state is the default


# Structs ------------------------------------------------------------------------------------------------------------
class FreeList(Struct):
    """Destroyed tensors whose memory new ones take; each refers to the next one by its slot for the array."""

    first: ptr
    count: i64
    limit: i64


class Pool(Struct):
    """The pool of result buffers."""

    spare: i64  # free bytes
    limit: i64
    hits: i64
    lists: ptr = array(256)  # free buffers by size step


class SpareArrays(Struct):
    """The arrays that are kept, in pairs of slots; each slot holds a reference or NULL."""

    limit: i64  # bytes of the memory of an array; 0: none is kept, nor taken
    owners: ptr = array(SPARE_SLOTS)  # arrays with memory of their own, contiguous
    views: ptr = array(SPARE_SLOTS)


class NumberList(Struct):
    """Destroyed tensors without axes, of a dtype, with their arrays; each refers to the next one by its storage."""

    first: ptr
    count: i64


class TensorClasses(Struct):
    """The classes and key sets of a backend's tensors; guards compare with them, and results are made of them."""

    tensor: ptr  # class Tensor
    array: ptr  # class of its array
    storage: ptr  # class Storage
    keys: ptr  # the key set of a plain tensor
    grad_keys: ptr  # the key set of a tensor that is recorded
    zero: ptr  # the int 0
    free_list: ptr  # FreeList; NULL: new tensors take new memory


class Globals(TensorClasses):
    """The process struct: the classes and constants that guards compare with."""

    active: ptr  # referenced by dispatch states that are not the default
    state: ptr  # the ContextVar of the dispatch state
    dtypes: ptr  # 256 bytes: NumPy's type numbers to codes
    pool: ptr
    spare_arrays: ptr
    spare_numbers: ptr  # `NumberList` structs (`rt_spare_numbers.py`)
    off: i64  # nonzero: every call goes to Python (the dispatch trace is on)
    bfloat16: i64  # NumPy's type number of bfloat16, assigned when ml_dtypes is imported
    types: ptr  # the DType objects by their codes
    descrs: ptr  # their NumPy descriptors
    node: ptr  # class Node
    meta: ptr  # class AutogradMeta
    hold: ptr  # class Hold
    spec: ptr  # class TensorSpec
    sequence: ptr  # the iterator that numbers nodes
    empty: ptr  # ()
    nothing: ptr  # ""
    one: ptr  # the int 1
    cpu: ptr  # "cpu"
    note: ptr  # while a level of a transform is open: the function called with new tensors; else NULL
    draw_watches: i64  # runs in any thread that note which states of random generators are written
    jit_clock: i64  # counts the calls of jitted functions that machine code answers
    number: ptr  # class Number
    weak_keys: ptr  # the key set of a weak scalar
    weak_references: i64  # the offset in a tensor of the list of weak references to it
    scalar_types: ptr  # NumPy's scalar types by the codes of their dtypes; NULL: none
    default_float: i64  # the code of the default dtype of floats
    find_operands: ptr  # the function that finds operands on the evaluation stack; NULL: none is looked for
    out_name: ptr  # "out"
    flags_name: ptr  # "flags"
    # CPython's functions in slots of Tensor, for what the entries of these names do not take
    get_buffer: ptr
    get_length: ptr
    get_truth: ptr
    get_int: ptr
    get_float: ptr
    get_iterator: ptr
    get_subscript: ptr
    get_item: ptr
    own_item: ptr  # the native function in that slot; NULL: CPython's is there
    methods: ptr  # the special methods that slots call (`glue/special_methods.py:METHODS`)
    dtype_objects: ptr  # hash table of the objects that name dtypes: addresses (NULL is free) and codes
    level: ptr  # class Level
    level_value: ptr  # class LevelTensor
    batched: ptr  # class BatchedTensor; NULL: no level of `vmap` has been opened
    level_keys: ptr  # the key set of values of levels on the CPU
    note_value: ptr  # while several levels are open: the function called with new values of levels; else NULL
    transpose: ptr  # the function `matrix_transpose`


class OperatorEntry(Struct):
    """The data of one operator's entry."""

    globals_: Globals
    fall_back: ptr  # called on a failed guard
    miss: ptr  # called on operand types without a variant
    variants: ptr  # hash table: its size - 1, then pointers (NULL is free)
    missed: i64  # the key of the last call whose operand types have no variant
    calls: i64  # calls answered natively
    names: ptr  # tuple of keyword names
    record: ptr  # function that records a call; stays valid, since a call may be running
    records: i64  # 0: the entry rejects calls that must be recorded
    recording: ptr  # Recording, to record a call without Python; or NULL
    write_out: ptr  # function that writes a result into the argument `out`; NULL: the body handles that name
    limit: i64  # the number of positional arguments of the schema
    last_names: ptr  # dict: the type of one more -> the name by which it may be given, in a tuple; or NULL
    function: ptr  # the operator's function, for calls on batches
    batching: i64  # `rt_batches.Kind`: how it runs at a level of `vmap`; 0: by Python
    forward: ptr  # runs calls at levels of `jvp`, or returns NotImplemented; NULL: the dispatcher does
    own_floats: (
        i64  # 1: the types float and complex need not name the default dtypes, and Python converts them
    )


class FunctionEntry(OperatorEntry):
    """The data of the entry of a function outside the registry."""

    targets: ptr  # the tuple of the operator functions that it may call
    known: ptr  # a dict of results
    error: ptr  # class ArgumentError
    last: ptr  # the result of the last call, which has a reference; or NULL
    last_rank: i64
    last_dims: ptr = array(KNOWN_RANK)  # the sizes that it was called with


class Variant(Struct):
    """One combination of operand types of an operator, with its loop."""

    key: i64  # the operands' codes
    loop: ptr  # NULL: Python runs the call
    descr: capi.Descr  # the result's
    itemsize: i64  # the result's
    sizes: ptr = array(3)  # per operand: bytes of an element
    scalar_codes: ptr = array(3)  # per operand: code of the dtype that a scalar is written as
    program: ptr  # of a fold by a ufunc: the call of the ufunc's loop
    release: i64  # elements from which on the loop runs without the GIL
    number: i64  # if all operands are numbers: the code of the resulting number; else 0


# Codes of operand types. The order of the dtypes is that of `structs.CODES`.
BOOL, INT8, INT16, INT32, INT64 = 0, 1, 2, 3, 4
UINT8, UINT16, UINT32, UINT64 = 5, 6, 7, 8
FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = 9, 10, 11, 12, 13, 14
WEAK_BOOL, WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX = 16, 17, 18, 19
CODE_BITS = 5
DTYPE_OBJECT_MASK, DTYPE_OBJECT_SHIFT = 511, 4  # the hash of an object's address in `Globals.dtype_objects`
FOREIGN = -1

NIN: i64 = template(2)  # number of operands; a compile-time constant of each instance of the entry
NARGS: i64 = template(3)  # operands and result
MAX_RANK = 32
RELEASE_ELEMENTS = 65536  # `Variant.release` of loops that do little for each element

# Thread flags
PLAIN, NO_GRAD, ELSEWHERE = 0, 1, 2
RECORD: i64 = 3  # not a thread's flag: PLAIN, in an entry that records

ARGS_MASK: i64 = 0x7FFFFFFFFFFFFFFF  # the top bit of a vectorcall's argument count is a flag


@native
def thread_flags(g: Globals) -> i64:
    """Return the dispatch state as flags for native entries: PLAIN, NO_GRAD or ELSEWHERE.

    Python twin: registry/dispatch/state.py:flags_of
    """
    if likely(((capi.PyObject(g.active).refcnt - AT_REST) | g.off) == 0):
        return PLAIN
    return flags_of_state(g)


@noinline
def flags_of_state(g: Globals) -> i64:
    """Return the flags of the current dispatch state, if any thread has one that is not the default."""
    where = stack(8)
    if g.off != 0:
        return ELSEWHERE
    if unlikely(capi.PyContextVar_Get(g.state, NULL, where) < 0):
        capi.PyErr_Clear()
        return ELSEWHERE
    guards: GuardsObject = load(ptr, where, 0)
    flags = guards.flags
    result = PLAIN if flags == g.zero else NO_GRAD if flags == g.one else ELSEWHERE
    capi.decref(guards)
    return result


@native
def fall_back(entry: OperatorEntry, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Let Python run this call."""
    return capi.PyObject_Vectorcall(entry.fall_back, args, nargsf & ARGS_MASK, kwnames)


@noinline
def retry_in_python(entry: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """On MemoryError, clear the error and retry in Python, which raises the proper exception; nothing was written."""
    if capi.PyErr_ExceptionMatches(load(ptr, capi.PyExc_MemoryError, 0)) == 0:
        return NULL
    capi.PyErr_Clear()
    return fall_back(entry, args, nargsf, kwnames)


@native
def make_tensor(g: Globals, array: ptr) -> ptr:
    """Return a plain tensor that owns the array reference; on failure NULL, an exception set, the array released.

    Python twin: eager/tensor/tensor.py:wrap
    """
    tensor = make_plain_tensor(g, array)
    if unlikely(tensor != NULL and g.note != NULL) and capi.PyObject(array).refcnt == 1:
        return report_tensor(g.note, dsl.stack_of(tensor), 1, tensor)  # to the open level of a transform
    return tensor


@native
def make_plain_tensor(classes: TensorClasses, array: ptr) -> ptr:
    """Return a tensor of a backend that owns the array reference; on failure NULL as `make_tensor`."""
    tensor: TensorObject = allocate_tensor(classes)
    if unlikely(tensor == NULL):
        capi.decref(array)
        return NULL
    tensor.array = array
    tensor.keys = capi.new_ref(classes.keys)
    tensor.meta = capi.new_ref(capi.Py_None)
    tensor.storage = capi.new_ref(capi.Py_None)
    return tensor


@native
def allocate_tensor(classes: TensorClasses) -> ptr:
    """Return a tensor whose slots must be filled before anything else is allocated; NULL with an exception set."""
    free: FreeList = classes.free_list
    if unlikely(free == NULL) or free.first == NULL:
        return capi.PyType_GenericAlloc(classes.tensor, 0)
    tensor: TensorObject = free.first
    free.first = tensor.array
    free.count -= 1
    tensor.refcnt = 1
    capi.PyObject_GC_Track(tensor)
    return tensor


@noinline
def report_tensor(listener: ptr, arguments: ptr, count: i64, tensor: ptr) -> ptr:
    """Call a Python function about a tensor, and return the tensor; on failure NULL, an exception set, it released."""
    if likely(capi.succeeds(listener, arguments, count)):
        return tensor
    capi.decref(tensor)
    return NULL


@native
def entry_data(self: ptr) -> ptr:
    return load(ptr, self, native_type.DATA)


@native
def call_miss(entry: OperatorEntry, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Operand types without a variant: Python runs the call, and may add a variant."""
    return capi.PyObject_Vectorcall(entry.miss, args, nargsf & ARGS_MASK, kwnames)


@native
def allowed_flags(entry: OperatorEntry, flags: i64) -> i64:
    """Return which tensors an entry accepts: also those that require gradients, if it can record or need not."""
    return RECORD if flags == PLAIN and entry.records != 0 else flags


@native
def has_history(g: Globals, x: TensorObject, flags: i64) -> bool:
    """Return whether a call on this tensor, which the entry has accepted, must be recorded."""
    return flags == RECORD and x.keys == g.grad_keys


@native
def find_variant(entry: OperatorEntry, key: i64) -> ptr:
    """Return the variant of a combination of operand codes, or NULL."""
    table = entry.variants
    mask = load(i64, table, 0)
    i = (key ^ (key >> 5)) & mask
    result: Variant = load(ptr, table, i * 8 + 8)
    while result != NULL and result.key != key:
        i = (i + 1) & mask
        result = load(ptr, table, i * 8 + 8)
    return result


@native
def shared_storage(classes: TensorClasses, source: TensorObject, owner: ptr) -> ptr:
    """Return the storage of a tensor, a new reference; NULL with an exception set.

    It is created if there is none, for the memory of an array or a buffer.

    Python twin: eager/tensor/tensor.py:storage_of
    """
    known = source.storage
    if likely(known != capi.Py_None):
        if unlikely(known == NULL or capi.type_of(known) != classes.storage):
            capi.PyErr_SetString(
                load(ptr, capi.PyExc_TypeError, 0), cstr("a tensor's _storage was replaced or deleted")
            )
            return NULL
        return capi.new_ref(known)
    made: StorageObject = capi.PyType_GenericAlloc(classes.storage, 0)
    if unlikely(made == NULL):
        return NULL
    root: capi.Ndarray = owner
    while (
        capi.type_of(root) == capi.PyArray_Type
        and root.base != NULL
        and capi.type_of(root.base) == capi.PyArray_Type
    ):
        root = root.base
    made.owner = capi.new_ref(root)
    made.version = capi.new_ref(classes.zero)
    if unlikely(source.storage != capi.Py_None):  # the allocation may have run Python code that created one
        capi.decref(made)
        return shared_storage(classes, source, owner)
    source.storage = capi.new_ref(made)
    capi.decref(capi.Py_None)
    return made


@native
def next_version(storage: StorageObject) -> ptr:
    """Return the version after a write, a new reference; NULL with an exception set."""
    return capi.PyLong_FromLongLong(capi.PyLong_AsLongLong(storage.version) + 1)


@native
def set_version(storage: StorageObject, version: ptr) -> None:
    """Set the version of a storage, which takes over the reference."""
    before = storage.version
    storage.version = version
    capi.decref(before)

"""Offsets of the structs of jitted functions and opcodes of their programs, for ``rt_jit`` and ``jit_structs``."""

from __future__ import annotations

from ..compiler.dsl import Opcodes, i64, ptr
from ..compiler.structs import Struct, at
from ..runtime.rt_base import OperatorEntry


class JitEntry(OperatorEntry):
    """The data of a jitted function's entry."""

    head: ptr = at(16)


class Specialization(Struct):
    """One specialization of a jitted function."""

    next: ptr  # the next specialization to try
    main: ptr  # the code
    args: i64  # number of all arguments
    keywords: i64  # number of those by keyword
    names: ptr  # array of the keywords' names
    guards: ptr  # guard program: arguments, then externals
    build: ptr  # build program
    externals: i64  # objects at the end of the guard program that are not arguments
    buffers: i64  # sizes of the frame: buffers, scalars, held
    scalars: i64
    held: i64
    outputs: i64  # number of results to allocate
    output_table: ptr  # an Output for each
    workspace: i64  # bytes of scratch memory (0: none)
    workspace_at: i64  # its index among the buffers
    hits: i64  # calls answered
    spare: ptr  # scratch memory kept for the next call
    derived: i64  # scalars derived at the end of the guard program
    inside: i64  # calls that are inside
    tables: ptr  # constants and callables; passed after the scratch memory
    device: ptr  # DeviceCalls, or NULL
    flags: i64  # NO_GRAD: traced inside no_grad, answers calls there; PLAIN: answers those and all others
    used: i64  # Globals.jit_clock at the last call
    writes: i64  # number of arguments that are written
    write_table: ptr  # a Write for each
    tensors: i64  # number of tensors and NumPy arrays among the arguments
    tensor_table: ptr  # the index of each among the held references


class Output(Struct):
    """A result to allocate."""

    descr: ptr
    rank: i64
    dims: ptr
    strides: ptr  # in bytes; NULL: C-contiguous
    nbytes: i64
    at: i64
    written: (
        i64  # 1 more than the index, among the held references, of the array that it is stored in; 0: none
    )


class Write(Struct):
    """New contents of an argument, which are copied into its memory after the code has run."""

    target: i64  # the index of the tensor among the held references; its array follows
    source: i64  # the slot of the contents' data pointer among the buffers
    offset: i64  # in bytes
    nbytes: i64


class ResultView(Struct):
    """A result that is a view of an array, or a copy of one."""

    source: i64  # the index of the array among the held references or the results
    of_argument: i64  # 1: among the held references
    is_copy: i64
    descr: ptr
    rank: i64
    dims: ptr
    strides: ptr
    offset: i64  # in bytes


class GuardCode(Opcodes):
    """Opcodes of a guard program; each takes the object at hand, and containers go on with their children."""

    TENSOR = 1
    FLOAT = 2
    INT = 3
    BOOL = 4
    SAME = 5
    STRING = 6
    TUPLE = 7
    LIST = 8
    DICT = 9
    ATTRIBUTES = 10
    OBJECT = 11  # the three guards of externals fetch their object first
    CELL = 12
    ITEM = 13
    EQUAL_INT = 14
    EQUAL_FLOAT = 15
    ARRAY_LIKE = 16  # and the guards that follow
    ARRAY = 16
    DEVICE = 17
    NUMPY_SCALAR = 18
    WEAK = 19  # a weak scalar; the guard of its number follows
    RECORDED_TENSOR = 20  # a tensor that requires gradients


CELL_CONTENT = 16
NUMPY_SCALAR_VALUE = 16


class ArrayGuard(Struct):
    """A guarded array."""

    rank: i64
    dims: ptr
    strides: ptr
    at: i64
    descr: ptr
    is_copied: i64  # 1: the array is not C-contiguous, and the code gets a copy that is
    low: i64  # the offset in bytes of the memory that the code gets; of an array that is read by its strides


class DeviceGuard(Struct):
    """A guarded tensor of a device: its class, key sets and layout are compared by identity.

    `*_at` are offsets of the slots that lead from the tensor to its array, from there to address, layout and buffer,
    from the buffer to its pool and to the set of other streams that work on it, and from a pool to its stream.
    """

    type: ptr
    keys: ptr
    grad_keys: ptr
    layout: ptr
    data_at: i64
    ptr_at: i64
    layout_at: i64
    buffer_at: i64
    pool_at: i64
    users_at: i64
    stream_at: i64
    at: i64


DEVICE_ALIGNED = 15  # bits of an address that code for a device wants to be zero


class DeviceCalls(Struct):
    """The functions and structs that calls of a device need."""

    device: ptr  # the backend's struct
    ready: ptr  # function: the struct of the thread's stream; NULL: Python must look
    result: ptr  # function: a result
    block: ptr  # function: a block of memory
    results: ptr  # the struct of each result
    scratch: ptr  # that of the scratch memory, or NULL
    launches: ptr  # queues the code's work on the stream; begins with the code


STREAM_HANDLE, STREAM_POOL = 0, 8  # in a stream's record: the driver's handle, and the pool of its memory


class BuildCode(Opcodes):
    """Opcodes of a build program, which builds the result's structure."""

    RESULT = 1
    HELD = 2
    SAME = 3
    TUPLE = 4
    LIST = 5
    DICT = 6
    CALL = 7
    SHARED = 8  # as RESULT, but the same tensor for each occurrence
    VIEW = 9
    FLOAT = 10  # the three numbers are read from the scalars
    INT = 11
    BOOL = 12


class DerivedCode(Opcodes):
    """Opcodes of derived scalars: operation, index of the result, both operands as (source, index or bits)."""

    ADD = 1
    SUBTRACT = 2
    MULTIPLY = 3
    DIVIDE = 4
    INTEGER = 8  # added to an operation on integers whose result is an integer


class ScalarSource(Opcodes):
    """Sources of the operands of a derived scalar."""

    FLOAT = 0
    INT = 1
    CONSTANT = 2


SMALL_INTEGER = 2**31  # beyond, Python computes


class CallFrame(Struct):
    """The frame of a jitted call."""

    globals_: ptr
    flags: i64
    program: ptr
    buffers: ptr
    scalars: ptr
    held: ptr
    count: i64
    device: ptr
    stream: ptr  # once it has been asked for


INLINE_WORDS = 384

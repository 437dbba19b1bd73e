"""Offsets of the structs of jitted functions and opcodes of their programs, for ``rt_jit`` and ``jit_structs``."""

from __future__ import annotations

# The record of a jitted function; the first two fields are those of an operator's record.
J_HEAD, J_SIZE = 16, 24

# The record of a specialization
S_NEXT, S_MAIN = 0, 8  # the next specialization to try; the code
S_ARGS, S_KEYWORDS, S_NAMES = 16, 24, 32  # all arguments; those by keyword; array of the keywords' names
S_GUARDS, S_BUILD = 40, 48  # guard program: arguments, then externals; build program
S_EXTERNALS = 56  # number of objects at the end of the guard program that are not arguments
S_BUFFERS, S_SCALARS, S_HELD = 64, 72, 80  # sizes of the frame
S_OUTPUTS, S_OUTPUT_TABLE = 88, 96  # results to allocate, O_* each
S_WORKSPACE, S_WORKSPACE_AT = 104, 112  # bytes of scratch memory (0: none), and its place among the buffers
S_HITS, S_SPARE = 120, 128  # calls answered; scratch memory kept for the next call
S_DERIVED, S_INSIDE = 136, 144  # scalars derived at the end of the guard program; calls that are inside
S_TABLES = 152  # the table of constants and callables, which goes behind the scratch memory
S_DEVICE = 160  # what calls of a device need, V_* (or NULL)
S_FLAGS = 168  # NO_GRAD: it was traced inside no_grad, and answers calls there; PLAIN: it answers those and all others
S_USED = 176  # G_JIT_CLOCK at the last call
S_SIZE_OF = 184

# A result to allocate
O_DESCR, O_RANK, O_DIMS, O_BYTES, O_AT, O_SIZE = 0, 8, 16, 24, 32, 40

# Guard words. Each takes the object at hand; containers go on with their children.
G_TENSOR_LEAF, G_ARRAY_LEAF, G_FLOAT_LEAF, G_INT_LEAF, G_BOOL_LEAF = 1, 2, 3, 4, 5
G_SAME, G_STRING, G_TUPLE, G_LIST, G_DICT, G_ATTRIBUTES = 6, 7, 8, 9, 10, 11
# External guards fetch their object first.
E_OBJECT, E_CELL, E_ITEM = 12, 13, 14
G_DEVICE_LEAF = 15
CELL_CONTENT = 16

# A guarded array
A_CODE, A_RANK, A_DIMS, A_STRIDES, A_AT, A_DESCR, A_SIZE = 0, 8, 16, 24, 32, 40, 48

# A guarded tensor of a device: its class, its key sets without and with history, and its layout, all by identity; where
# the slots lie that lead from the tensor to its array, from there to address, layout and buffer, from the buffer to its
# pool and to the set of other streams that work on it, and from a pool to its stream; and its place.
C_TYPE, C_KEYS, C_GRAD_KEYS, C_LAYOUT = 0, 8, 16, 24
C_DATA_AT, C_PTR_AT, C_LAYOUT_AT, C_BUFFER_AT, C_POOL_AT, C_USERS_AT, C_STREAM_AT = 32, 40, 48, 56, 64, 72, 80
C_AT, C_SIZE = 88, 96
DEVICE_ALIGNED = 15  # bits of an address that code for a device wants to be zero

# What calls of a device need: the backend's record of it, and the backend's functions: what gives the record of the
# thread's stream (NULL: Python has to look), a result, and a block of memory; the record of each result; that of the
# scratch memory (or NULL); and the table by which the code's work gets into the stream, which begins with the code.
V_DEVICE, V_READY, V_RESULT, V_BLOCK, V_RESULTS, V_SCRATCH, V_WAY, V_SIZE = 0, 8, 16, 24, 32, 40, 48, 56
STREAM_HANDLE, STREAM_POOL = 0, 8  # in a stream's record: the driver's handle, and the pool of its memory

# Build words
B_RESULT, B_HELD, B_SAME, B_TUPLE, B_LIST, B_DICT, B_CALL = 1, 2, 3, 4, 5, 6, 7

# Derived scalars: operation, place of the result, then both operands as (source, place or bits).
D_ADD, D_SUBTRACT, D_MULTIPLY, D_DIVIDE = 1, 2, 3, 4
D_INTEGER = 8  # added to an operation on integers whose result is an integer
FROM_FLOAT, FROM_INT, FROM_CONSTANT = 0, 1, 2
SMALL_INTEGER = 2**31  # beyond, Python computes

# The frame
F_GLOBALS, F_FLAGS, F_PROGRAM, F_BUFFERS, F_SCALARS = 0, 8, 16, 24, 32
F_HELD, F_COUNT, F_DEVICE, F_STREAM, F_SIZE = 40, 48, 56, 64, 72  # the stream once it has been asked for
INLINE_WORDS = 384

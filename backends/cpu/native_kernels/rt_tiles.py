"""Native runtime: the table of the addresses of the micro-kernels of convolutions, which `convolution_tiles` fills."""

from __future__ import annotations

from ..fastpath.compiler.dsl import extern_object, i64, load, native, ptr

VECTOR_BYTES: i64 = 64  # a multiple of the bytes of all vectors
SHIFTED: i64 = 0  # where the table has `codegen.shifted_tiles` of each height,
PACKS: i64 = 16  # what packs weights for it,
WINDOWS: i64 = 32  # and `codegen.window_tiles` of each number of vectors

table = extern_object("convolution_tiles")


@native
def find_tile(first: i64, number: i64) -> ptr:
    """Return the address of the micro-kernel of a height or of a number of vectors."""
    return load(ptr, table, (first + number) * 8)

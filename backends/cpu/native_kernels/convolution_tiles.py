"""The micro-kernels of convolutions, compiled when a convolution first needs one.

`rt_tiles` reads their addresses in a table, so that the code that calls them is compiled once.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

from .... import locks
from ....registry.dtypes import DType
from ..codegen.shifted_tiles import find_counts, tile_vectors, write_shifted_tiles
from ..codegen.small_product import tile_heights
from ..codegen.window_tiles import write_transpose, write_window_tiles
from ..fastpath.compiler import engine
from ..target import vector_target
from . import rt_shifted, rt_tiles

TABLE_WORDS = 64
_lock = locks.make_lock("convolution tiles")
_counts: dict[tuple[DType, int], frozenset[int]] = {}
"""The vectors of positions of the tiles in the table, by dtype and height."""


@engine.KeepFirst
def tile_table(dtype: DType) -> Any:
    """Return the table of the addresses of a dtype's micro-kernels, for as long as the process lives."""
    return (ctypes.c_void_p * TABLE_WORDS)()


def find_heights(channels: int) -> set[int]:
    """Return the heights of the tiles that compute so many channels of a group of the result."""
    result: set[int] = set()
    while channels > 0:
        height = rt_shifted.tile_height(channels, max(tile_vectors()))
        result.add(height)
        channels -= height
    return result


def find_widths(channels: int, dtype: DType) -> set[int]:
    """Return the numbers of vectors of the tiles that compute so many channels of a group of the result."""
    pitch = -(-channels * dtype.itemsize // rt_tiles.VECTOR_BYTES) * rt_tiles.VECTOR_BYTES
    most, rest = divmod(pitch // vector_target().vector_bytes, max(tile_heights()))
    return {max(tile_heights()) if most else rest, rest or max(tile_heights())}


def add_shifted_tiles(dtype: DType, channels: int, positions: int) -> bool:
    """Make the table have the micro-kernels that multiply shifted planes; return whether it does.

    Args:
        dtype: float32 or float64.
        channels: of a group of the result.
        positions: of a channel of the result.
    """
    pitch = -(-positions * dtype.itemsize // rt_tiles.VECTOR_BYTES) * rt_tiles.VECTOR_BYTES
    vectors = pitch // vector_target().vector_bytes
    return all(_add_height(dtype, height, vectors) for height in find_heights(channels))


def add_window_tiles(dtype: DType, channels: int) -> bool:
    """Make the table have the micro-kernels that multiply windows, for some channels of a group of the result."""
    return all(_add_window_tiles(dtype, vectors) for vectors in find_widths(channels, dtype))


def _add_height(dtype: DType, height: int, pitch: int) -> bool:
    """Add the tiles of a height for ``pitch`` vectors of positions; where the table has some, those for any number."""
    key, whole = (dtype, height), tile_vectors()[height]
    counts = frozenset(find_counts(pitch, whole))
    if key in _counts and not _counts[key] >= counts:
        counts = frozenset(range(1, whole + 1))
    if key in _counts and _counts[key] >= counts:
        return True
    code = _compile_shifted_tiles(dtype, height, counts)
    if code is None:
        return False
    with _lock:
        if key not in _counts or counts >= _counts[key]:
            table = tile_table(dtype)
            table[rt_tiles.SHIFTED + height] = code["shifted_tiles"]
            table[rt_tiles.PACKS + height] = code["pack_kernels"]
            _counts[key] = counts  # last: who finds them calls the code
    return _add_height(dtype, height, pitch)  # another thread may have added others


def _add_window_tiles(dtype: DType, vectors: int) -> bool:
    code = _compile_window_tiles(dtype, vectors)
    if code is not None:
        tile_table(dtype)[rt_tiles.WINDOWS + vectors] = code["window_tiles"]
    return code is not None


@engine.KeepFirst
def _compile_shifted_tiles(dtype: DType, height: int, counts: frozenset[int]) -> engine.Code | None:
    name = f"shifted tiles {height} by {sorted(counts)} of {dtype.name}"
    make = partial(write_shifted_tiles, dtype, height, counts)
    return engine.build_once(name, make, ["shifted_tiles", "pack_kernels"], passes=engine.Passes.CLEAN)


@engine.KeepFirst
def _compile_window_tiles(dtype: DType, vectors: int) -> engine.Code | None:
    name, make = f"window tiles {vectors} of {dtype.name}", partial(write_window_tiles, dtype, vectors)
    return engine.build_once(name, make, ["window_tiles"], passes=engine.Passes.CLEAN)


@engine.KeepFirst
def compile_transpose(dtype: DType) -> engine.Code | None:
    """Return the code that transposes a matrix of a dtype; None if it cannot be compiled."""
    name, make = f"transpose of {dtype.name}", partial(write_transpose, dtype)
    return engine.build_once(name, make, ["loop"], passes=engine.Passes.CLEAN)

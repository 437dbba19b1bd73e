"""Philox4x32-10: random bits as a pure function of a counter and a key.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, and their Random123 library,
whose known answers are in the tests. Each backend computes the same words, so a stream is the same everywhere.

A key is four words (k0, k1, c2, c3): Philox's key, and the upper half of its counter. The lower half
counts blocks of four words; its two highest bits are the use of the block, so that no two uses share a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import config, lazy

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule

native_random_bits = lazy.Module(".backends.cpu.kernels.random_bits")

BITS, SPLIT, FOLD, DRAW = 0, 1, 2, 3  # the use of a block
ROUNDS = 10
FACTORS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF
CHUNK = 1 << 14  # blocks at a time, which fit into the cache
PER_CALL = 1 << 11  # words that count as one more call
_drawn = [0]  # calls so far, up to those that make the words hot


def philox4x32(xp: ArrayModule, counter: Any, key: Array) -> Array:
    """Four random words for each counter.

    Args:
        xp: numpy or cupy.
        counter: uint64 array of shape ``(4, ...)`` that holds 32-bit words.
        key: uint64 array of shape ``(2, ...)`` that holds 32-bit words, and broadcasts.

    Returns:
        A uint64 array of shape ``(4, ...)`` that holds 32-bit words.
    """
    column = (2,) + (1,) * (counter.ndim - 1)
    factors = xp.asarray(FACTORS, xp.uint64).reshape(column)
    weyl = xp.asarray(WEYL, xp.uint64).reshape(column)
    mask, half = xp.uint64(MASK), xp.uint64(32)
    even, odd = counter[0::2], counter[1::2]
    for _ in range(ROUNDS):
        product = even * factors
        even = (product >> half)[::-1] ^ odd ^ key
        odd = (product & mask)[::-1]
        key = (key + weyl) & mask
    return xp.stack([even[0], odd[0], even[1], odd[1]])


def blocks(xp: ArrayModule, keys: Any, numbers: Any, use: int) -> Array:
    """The random blocks with given numbers.

    Args:
        xp: numpy or cupy.
        keys: uint32 array of shape ``(..., 4)``.
        numbers: uint64 array that broadcasts with ``keys[..., 0]``.
        use: ``BITS``, ``SPLIT`` or ``FOLD``.

    Returns:
        A uint32 array of the broadcast shape and one axis of 4 more.
    """
    words = keys.astype(xp.uint64)
    low = numbers & xp.uint64(MASK)
    high = ((numbers >> xp.uint64(32)) & xp.uint64(MASK >> 2)) | xp.uint64(use << 30)
    parts = xp.broadcast_arrays(low, high, words[..., 2], words[..., 3], words[..., 0], words[..., 1])
    result = philox4x32(xp, xp.stack(parts[:4]), xp.stack(parts[4:]))
    return xp.moveaxis(result, 0, -1).astype(xp.uint32)


def _is_hot(size: int) -> bool:
    """Whether enough has been drawn for native code to be worth its compilation."""
    if _drawn[0] < config.flags.hot_calls:
        _drawn[0] += 1 + size // PER_CALL
    return _drawn[0] >= config.flags.hot_calls


def random_words(xp: ArrayModule, keys: Any, count: int, use: int = BITS) -> Array:
    """The first ``count`` words of each key's stream: uint32 of shape ``(*keys.shape[:-1], count)``.

    Native twin: backends/cpu/random_bits.py:bits_function_ir
    """
    out = xp.empty((*keys.shape[:-1], count), xp.uint32)
    if xp is np and _is_hot(out.size) and config.flags.native and native_random_bits.fill(out, keys, use):
        return out
    for start in range(0, count, 4 * CHUNK):
        part = out[..., start : start + 4 * CHUNK]
        size = part.shape[-1]
        numbers = xp.arange(start // 4, start // 4 + (size + 3) // 4, dtype=xp.uint64)
        words = blocks(xp, keys[..., None, :], numbers, use)
        part[...] = words.reshape((*keys.shape[:-1], 4 * numbers.size))[..., :size]
    return out

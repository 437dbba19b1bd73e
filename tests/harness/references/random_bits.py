"""References for random numbers: Philox with Python's integers, one block at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Words = tuple[int, ...]


def philox(counter: Words, key: Words) -> Words:
    """Philox4x32-10 as its paper writes it down."""
    for _ in range(10):
        high, low = divmod(0xD2511F53 * counter[0], 2**32)
        other_high, other_low = divmod(0xCD9E8D57 * counter[2], 2**32)
        counter = (other_high ^ counter[1] ^ key[0], other_low, high ^ counter[3] ^ key[1], low)
        key = ((key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32)
    return counter


def _block(key: Words, number: int, use: int) -> Words:
    high, low = divmod(number % 2**62, 2**32)
    return philox((low, high + use * 2**30, key[2], key[3]), (key[0], key[1]))


def _words(key: Words, count: int, use: int = 0) -> list[int]:
    items = [word for number in range((count + 3) // 4) for word in _block(key, number, use)]
    return items[:count]


def _each(keys: Array, draw: Callable[[Words], Array]) -> Array:
    """``draw`` for each of several keys."""
    rows = [draw(tuple(int(word) for word in row)) for row in keys.reshape(-1, 4)]
    return np.stack(rows).reshape((*keys.shape[:-1], *rows[0].shape))


def random_key(seed: Any) -> Array:
    """The two halves of the seed, and two zeros."""
    numbers = [int(number) % 2**64 for number in np.ravel(np.asarray(seed, object))]
    rows = [[number % 2**32, number // 2**32, 0, 0] for number in numbers]
    return np.array(rows, np.uint32).reshape((*np.shape(seed), 4))


def _draw_bits(key: Words, shape: Any, bits: int) -> Array:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = math.prod(shape)
    words = _words(key, count * (bits // 32))
    if bits == 64:
        words = [low + 2**32 * high for low, high in zip(words[0::2], words[1::2])]
    return np.array(words, np.uint32 if bits == 32 else np.uint64).reshape(shape)


def random_bits(key: Array, shape: Any = (), *, bits: int = 32) -> Array:
    """The words of the stream in order."""
    return _each(key, lambda one: _draw_bits(one, shape, bits))


def random_split(key: Array, n: int = 2) -> Array:
    """One block per new key."""
    return _each(key, lambda one: np.array(_words(one, 4 * n, 1), np.uint32).reshape(n, 4))


def random_fold_in(key: Array, data: Any) -> Array:
    """The block whose number is the data."""
    keys = np.broadcast_to(key, (*np.broadcast_shapes(key.shape[:-1], np.shape(data)), 4))
    numbers = np.broadcast_to(np.asarray(data, object), keys.shape[:-1]).reshape(-1)
    rows = [_block(tuple(map(int, row)), int(n), 2) for row, n in zip(keys.reshape(-1, 4), numbers)]
    return np.array(rows, np.uint32).reshape(keys.shape)


def _uniform(key: Words, shape: Any, name: str) -> Array:
    if name == "float64":
        return (_draw_bits(key, shape, 64) >> np.uint64(11)) / 2.0**53
    kept = {"float32": 24, "float16": 11, "bfloat16": 8}[name]
    return (_draw_bits(key, shape, 32) >> np.uint32(32 - kept)) / 2.0**kept


def random_uniform(
    key: Array, shape: Any = (), dtype: Any = None, minval: Any = None, maxval: Any = None
) -> Array:
    """The high bits of a word as a fraction, stretched in float64."""
    low, high = 0 if minval is None else minval, 1 if maxval is None else maxval
    result = _each(key, lambda one: np.asarray(_uniform(one, shape, dtype.name if dtype else "float32")))
    return (result * (high - low) + low).astype(dtype.np if dtype else np.float32)


def _normal(key: Words, shape: Any, bits: int) -> Array:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    one, two = _draw_bits(key, (2, *shape), bits).astype(object)
    kept = 53 if bits == 64 else 24
    radius = np.sqrt(-2 * np.log(np.asarray((one + 0.5) / 2**bits, float)))
    return radius * np.cos(2 * np.pi * np.asarray(two // 2 ** (bits - kept) / 2**kept, float))


def random_normal(key: Array, shape: Any = (), dtype: Any = None) -> Array:
    """Box and Muller's transform in float64; both parts of complex numbers are made of one key."""
    bits = 64 if dtype is not None and dtype.name in ("float64", "complex128") else 32
    if dtype is not None and dtype.name.startswith("complex"):
        own = (shape,) if isinstance(shape, int) else tuple(shape)
        return _each(
            key, lambda one: np.tensordot((1, 1j), _normal(one, (2, *own), bits), 1) * 0.5**0.5
        ).astype(dtype.np)
    return _each(key, lambda one: np.asarray(_normal(one, shape, bits))).astype(
        dtype.np if dtype else np.float32
    )


def random_integers(key: Array, shape: Any, low: Any, high: Any, dtype: Any = None) -> Array:
    """A word of 64 bits modulo the number of values."""
    words = random_bits(key, shape, bits=64).astype(object)
    low, high = np.asarray(low, object), np.asarray(high, object)
    return np.asarray(words % (high - low) + low).astype(dtype.np if dtype else np.int64)


def random_order(key: Array, n: int) -> Array:
    """The order of n random words."""
    words = random_bits(key, (n,), bits=64)
    rows = words.reshape(math.prod(words.shape[:-1]), n)
    orders = [sorted(range(n), key=row.__getitem__) for row in rows]
    return np.array(orders, np.int64).reshape(words.shape)


def random_permutation(key: Array, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """The numbers, or the slices, in that order; or each row in one of its own."""
    if isinstance(x, int):
        return random_order(key, x)
    if not independent:
        return x.take(random_order(key, x.shape[axis]), axis)
    rows = np.moveaxis(x, axis, -1)
    keys = random_split(key, math.prod(rows.shape[:-1])).reshape((*rows.shape[:-1], 4))
    return np.moveaxis(np.take_along_axis(rows, random_order(keys, x.shape[axis]), -1), -1, axis)


def random_bernoulli(key: Array, p: Any, shape: Any = None) -> Array:
    """Whether a uniform number is below the probability."""
    return random_uniform(key, np.shape(p) if shape is None else shape) < p

""":class:`Key`, and the functions that make keys."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...errors import ArgumentError, DTypeError, ShapeError
from ...registry.dtypes import int64
from ...registry.schemas.binding import key_types
from ...registry.values import Device, as_device, converters
from ..creation.creation import full
from ..declare.shape_rules import check_shape, spec_of
from . import key_bits as raw
from .key_bits import check_key
from .uniform import integers

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Shape, Tensor, TensorLike


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Key:
    """A random key, or an array of keys.

    Made by :func:`tandem.random.key`, :func:`~tandem.random.split` and :func:`~tandem.random.fold_in`. It can be
    indexed and unpacked, but takes no part in arithmetic. In a tree it is a container of one leaf, its words, so that
    it goes through ``jit``, ``vmap`` and every other transform; the axes of several keys come first.

    Attributes:
        words: a uint32 tensor of shape ``(*shape, 4)``.

    >>> import tandem as td
    >>> keys = td.random.split(td.random.key(0), 3)
    >>> keys.shape, keys[0].shape, len(keys)
    ((3,), (), 3)
    """

    words: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of keys; () for one."""
        result: tuple[int, ...] = spec_of(self.words).shape[:-1]
        return result

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of keys."""
        return spec_of(self.words).size // 4

    @property
    def device(self) -> Device:
        """The device of the keys."""
        return as_device(spec_of(self.words).device)

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len() of one key; use td.random.split to make several")
        return self.shape[0]

    def __iter__(self) -> Iterator[Key]:
        if len(self.words.shape) < 2:
            len(self)  # which raises the error
        return map(Key, self.words)

    def __getitem__(self, index: Any) -> Key:
        items = index if type(index) is tuple else (index,)
        if not any(item is Ellipsis for item in items):
            items = (*items, Ellipsis)
        return Key(self.words[(*items, slice(None))])

    def reshape(self, *shape: int) -> Key:
        """The keys in another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return Key(self.words.reshape((*sizes, 4)))

    def to(self, device: str) -> Key:
        """The keys on another device."""
        return Key(self.words.to(device))

    def __repr__(self) -> str:
        return f"Key({self._shown()})"

    def _shown(self) -> str:
        try:
            return str(self.words.tolist())
        except Exception:  # traced, batched or without data
            return str(spec_of(self.words))


K = TypeVar("K", "Tensor", Key)
key_types[Key] = lambda key: key.words


def key(seed: TensorLike) -> Key:
    """A key from a seed.

    Args:
        seed: an int of at most 64 bits, or an integer tensor, for one key per element.

    Returns:
        A :class:`Key`.

    Raises:
        DTypeError: the seed is no integer.
        ValueArgumentError: it does not fit into 64 bits.

    >>> import tandem as td
    >>> td.random.key(42)
    Key([42, 0, 0, 0])
    """
    return Key(raw.key(seed))


def split(key: K, num: int | tuple[int, ...] = 2) -> K:
    """Several new keys from one, which should not be used again.

    Args:
        key: a key, or several.
        num: how many, or the shape of an array of them; the first ones do not depend on it.

    Returns:
        Keys of shape ``(*key.shape, num)`` or ``(*key.shape, *num)``; unpack or index it.

    Raises:
        DTypeError, ShapeError: that is no key, or ``num`` is negative.

    >>> import tandem as td
    >>> first, second = td.random.split(td.random.key(0))
    >>> first.shape, td.random.split(first, (2, 3)).shape
    ((), (2, 3))
    """
    if not isinstance(num, tuple):
        return _wrap_like(key, raw.split(_unwrap(key), num))
    shape: tuple[int, ...] = check_shape("random_split", num)
    words: Tensor = raw.split(key, math.prod(shape))
    return _wrap_like(key, words.reshape((*spec_of(words).shape[:-2], *shape, 4)))


def clone(key: K) -> K:
    """A copy of a key, to mark that it is reused on purpose.

    Args:
        key: a key, or several.

    Returns:
        An equal key; numbers drawn from it are the same ones.

    Raises:
        DTypeError, ShapeError: that is no key.

    >>> import tandem as td
    >>> td.random.clone(td.random.key(42))
    Key([42, 0, 0, 0])
    """
    return _wrap_like(key, _key_words("clone", key))


def fold_in(key: K, data: TensorLike) -> K:
    """A new key from a key and a number: one for each step, layer or process.

    Args:
        key: a key, or several.
        data: an int or an integer tensor, of which the lowest 62 bits count.

    Returns:
        A key; several if either argument is several.

    Raises:
        DTypeError, ShapeError: that is no key, or no integer.

    >>> import tandem as td
    >>> td.random.fold_in(td.random.key(0), 7).shape
    ()
    """
    words = _unwrap(key)
    if type(data) is int and -(2**63) <= data < 2**63 and getattr(words, "device", None) == "cpu":
        data = full((), data, dtype=int64)  # so that calls with other numbers are calls of the same kind
    return _wrap_like(key, raw.fold_in(words, data))


def _unwrap(key: Any) -> Any:
    """The words of a Key; other arguments are returned unchanged, for the operator to check."""
    return key.words if isinstance(key, Key) else key


def _wrap_like(key: K, words: Tensor) -> K:
    """Wrap words as a Key if ``key`` is a Key, else return the tensor."""
    return Key(words) if isinstance(key, Key) else words


def key_data(key: Tensor | Key) -> Tensor:
    """The words of a key.

    Args:
        key: a key, or several.

    Returns:
        A uint32 tensor of shape ``(*key.shape, 4)``.

    Raises:
        DTypeError, ShapeError: that is no key.

    >>> import tandem as td
    >>> td.random.key_data(td.random.key(42)).tolist()
    [42, 0, 0, 0]
    """
    return _key_words("key_data", key)


def _key_words(name: str, key: TensorLike | Key) -> Tensor:
    """The checked words of a key, which may be given as a key, a tensor or a NumPy array."""
    words: Any = key.words if isinstance(key, Key) else key
    if isinstance(words, np.ndarray):
        words = converters[np.ndarray](words)
    check_key(name, words)
    result: Tensor = words
    return result


def wrap_key_data(words: TensorLike) -> Key:
    """A key from its words, such as :func:`key_data` returns.

    Args:
        words: a uint32 tensor of shape ``(..., 4)``.

    Returns:
        A :class:`Key` of the shape of the leading axes.

    Raises:
        DTypeError, ShapeError: not the words of a key.

    >>> import tandem as td
    >>> td.random.wrap_key_data(td.random.key_data(td.random.key(42)))
    Key([42, 0, 0, 0])
    """
    if isinstance(words, Key):
        raise DTypeError("wrap_key_data: the argument is a Key already")
    return Key(_key_words("wrap_key_data", words))


def randint(
    key: Tensor | Key,
    shape: Shape,
    minval: Tensor | int,
    maxval: Tensor | int,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Uniform integers from ``minval`` to below ``maxval``: :func:`tandem.random.integers` with JAX's names.

    Args:
        key: a key, or several.
        shape: the shape of what is drawn for each key.
        minval: the least value: an int, or an integer tensor that broadcasts to the shape.
        maxval: one more than the greatest; likewise.
        dtype: an integer dtype; None: int64.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError, ValueArgumentError, ScalarOverflowError: as for ``integers``.

    >>> import tandem as td
    >>> x = td.random.randint(td.random.key(0), (100,), 1, 7)
    >>> int(x.min()), int(x.max())
    (1, 6)
    """
    return integers(key, shape, minval, maxval, dtype)


def check_one_key(name: str, key: Tensor) -> None:
    """Check that there is one key.

    Raises:
        ShapeError: there are several keys.
    """
    if len(check_key(name, key).shape) != 1:
        raise ShapeError(f"{name}: takes one key, not {spec_of(key)}; use td.vmap for several")

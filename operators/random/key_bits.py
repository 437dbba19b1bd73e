"""Keys as uint32 tensors, and their random bits, from which operators compute all other random numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import INTEGERS, int64, uint32, uint64
from ...registry.values import TensorSpec, describe
from ..creation.creation import allocate, full
from ..declare import batching
from ..declare.batching import Batched, BatchInfo, Dims, expand_rank, logical_shape
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.derivatives import NotDifferentiable
from ..declare.kinds import array_op
from ..declare.native_kernel import Decomposition
from ..declare.shape_rules import broadcast_shapes, check_shape, is_tensor, spec_of
from ..elementwise.bitwise import bitwise_and, bitwise_right_shift
from ..elementwise.casting import cast
from ..shape.joining import stack
from .philox import FOLD, SPLIT, blocks, random_words

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Tensor, TensorOrSpec

INTEGRAL = NotDifferentiable("random bits are integers, which do not depend on the key differentiably")


def check_key(name: str, key: TensorOrSpec) -> TensorSpec:
    """Check that a tensor is a key, or an array of keys, and return its spec.

    Raises:
        DTypeError, ShapeError: it is not a key.
    """
    if not is_tensor(key):
        raise DTypeError(
            f"{name}: a key is made by td.random.key(seed), or is a uint32 tensor of its words, not {describe(key)}"
        )
    spec = spec_of(key)
    if spec.dtype is not uint32:
        raise DTypeError(f"{name}: a key is a uint32 tensor made by td.random.key(seed), not {spec}")
    if spec.shape[-1:] != (4,):
        raise ShapeError(f"{name}: a key has 4 words along its last axis, unlike {spec}; see td.random.key")
    return spec


# -- key ---------------------------------------------------------------------------------------------------------------
def _key_shape_rule(seed: Any) -> TensorSpec:
    spec = spec_of(seed)
    if not spec.dtype.is_integer:
        raise DTypeError(f"random_key: a seed is an integer, not {spec}")
    if type(seed) is int and not -(2**63) <= seed < 2**64:
        raise ValueArgumentError(f"random_key: the seed {seed} does not fit into 64 bits")
    return TensorSpec((*spec.shape, 4), uint32, spec.device)


def _key_kernel(xp: ArrayModule, seed: Any) -> Array:
    number = xp.asarray(seed).astype(xp.uint64)
    zero = xp.zeros_like(number)
    words = [number & xp.uint64(0xFFFFFFFF), number >> xp.uint64(32), zero, zero]
    return xp.stack(words, -1).astype(xp.uint32)


def _make_key(seed: Tensor | int) -> Tensor:
    """The words of a seed, which is a tensor, a number that is known, or one that a trace knows the type of."""
    if type(seed) is int:
        words = [full((), seed >> at & 0xFFFFFFFF, dtype=uint32) for at in (0, 32)]
    else:
        number = cast(seed if is_tensor(seed) else full((), seed, dtype=int64), uint64)
        words = [cast(bitwise_and(number, 0xFFFFFFFF), uint32), cast(bitwise_right_shift(number, 32), uint32)]
    zero = full(words[0].shape, 0, dtype=uint32, device=words[0].device)
    return stack([*words, zero, zero], -1)


key = array_op(
    "random",
    "random_key(Tensor seed) -> Tensor",
    _key_shape_rule,
    _key_kernel,
    decomposition=Decomposition(_make_key),
    doc="""A key from a seed.

    Args:
        seed: an int of at most 64 bits, or an integer tensor, which gives one key for each element.

    Returns:
        A uint32 tensor of shape ``(4,)``, or ``(*seed.shape, 4)``.

    Raises:
        DTypeError: the seed is not an integer.
        ValueArgumentError: it does not fit into 64 bits.

    >>> td.ops.td.random_key(42).tolist()
    [42, 0, 0, 0]
    """,
    reference="references.random_bits.random_key",
    dtypes=INTEGERS,
    derivative=INTEGRAL,
    batching=batching.leading,
    samples=lambda dtype: [
        SampleInput((TensorSample((), 0, 100),)),
        SampleInput((TensorSample((3,), 0, 100),)),
        *(SampleInput((seed,)) for seed in (0, 42, -1, 2**63, 2**64 - 1)),
    ],
    errors=lambda: [
        ErrorInput((0.5,), TypeError, "integer"),
        ErrorInput((True,), TypeError, "integer"),
        ErrorInput((2**64,), ValueError, "64 bits"),
    ],
    method=False,
)


# -- bits --------------------------------------------------------------------------------------------------------------
def _bits_shape_rule(key: TensorSpec, shape: tuple[int, ...] = (), *, bits: int = 32) -> TensorSpec:
    spec = check_key("random_bits", key)
    if bits not in (32, 64):
        raise ValueArgumentError(f"random_bits: bits is 32 or 64, not {bits}")
    dtype = uint32 if bits == 32 else uint64
    return TensorSpec(spec.shape[:-1] + check_shape("random_bits", shape), dtype, spec.device)


def _bits_kernel(xp: ArrayModule, key: Array, shape: tuple[int, ...], *, bits: int) -> Array:
    count = math.prod(shape) * (bits // 32)
    words = allocate("random_bits", shape, lambda: random_words(xp, key, count))
    if bits == 64:
        words = words.astype(xp.uint64)
        words = words[..., 0::2] | words[..., 1::2] << xp.uint64(32)
    return words.reshape((*key.shape[:-1], *shape))


random_bits = array_op(
    "random",
    "random_bits(Tensor key, SymInt[] shape=[], *, int bits=32) -> Tensor",
    _bits_shape_rule,
    _bits_kernel,
    doc="""Random bits: the stream of Philox4x32-10, from which all random numbers are computed.

    Args:
        key: a key, or several: a uint32 tensor of shape ``(..., 4)``.
        shape: the shape of what is drawn for each key.
        bits: 32 or 64; of two words that make one of 64 bits the first is the lower half.

    Returns:
        A uint32 or uint64 tensor of shape ``(..., *shape)``.

    Raises:
        DTypeError, ShapeError: not a key, or not a shape.
        ValueArgumentError: another number of bits.

    >>> [hex(word) for word in td.random.bits(td.random.key(0), 2).tolist()]
    ['0x6627e8d5', '0xe169c58d']
    """,
    reference="references.random_bits.random_bits",
    dtypes=(uint32,),
    derivative=INTEGRAL,
    batching=batching.leading,
    samples="samples.random.bits_samples",
    errors="samples.random.bits_errors",
    method=False,
)


# -- new keys ----------------------------------------------------------------------------------------------------------
def _split_shape_rule(key: TensorSpec, n: int = 2) -> TensorSpec:
    spec = check_key("random_split", key)
    return TensorSpec((*spec.shape[:-1], *check_shape("random_split", (n,)), 4), uint32, spec.device)


def _split_kernel(xp: ArrayModule, key: Array, n: int) -> Array:
    words = allocate("random_split", (n, 4), lambda: random_words(xp, key, 4 * n, SPLIT))
    return words.reshape((*key.shape[:-1], n, 4))


split = array_op(
    "random",
    "random_split(Tensor key, int n=2) -> Tensor",
    _split_shape_rule,
    _split_kernel,
    doc="""Several new keys from one, which should not be used again.

    Args:
        key: a key, or several: a uint32 tensor of shape ``(..., 4)``.
        n: the number of keys; the first keys do not depend on it.

    Returns:
        A uint32 tensor of shape ``(..., n, 4)``; unpack or index it.

    Raises:
        DTypeError, ShapeError: not a key, or ``n`` is negative.

    >>> first, second = td.ops.td.random_split(td.random.key(0))
    >>> first.shape
    (4,)
    """,
    reference="references.random_bits.random_split",
    dtypes=(uint32,),
    derivative=INTEGRAL,
    batching=batching.leading,
    samples="samples.random.split_samples",
    errors="samples.random.split_errors",
    method=False,
)


def _fold_shape_rule(key: TensorSpec, data: TensorSpec) -> TensorSpec:
    spec, number = check_key("random_fold_in", key), spec_of(data)
    if not number.dtype.is_integer:
        raise DTypeError(f"random_fold_in: the data is an integer, not {number}")
    return TensorSpec(
        (*broadcast_shapes("random_fold_in", spec.shape[:-1], number.shape), 4), uint32, spec.device
    )


def _fold_kernel(xp: ArrayModule, key: Array, data: Array) -> Array:
    number = xp.asarray(data % 2**64 if isinstance(data, int) else data).astype(xp.uint64)
    return blocks(xp, key, number, FOLD)


def _fold_batched(info: BatchInfo, in_dims: Dims, key: Tensor, data: Tensor) -> Batched:
    lead = [len(shape) for shape in (logical_shape(key, in_dims[0])[:-1], logical_shape(data, in_dims[1]))]
    rank = max(lead)
    return info.call(expand_rank(key, in_dims[0], rank + 1), expand_rank(data, in_dims[1], rank)), 0


fold_in = array_op(
    "random",
    "random_fold_in(Tensor key, Tensor data) -> Tensor",
    _fold_shape_rule,
    _fold_kernel,
    doc="""A new key from a key and a number: one for each step, layer or process.

    Args:
        key: a key, or several: a uint32 tensor of shape ``(..., 4)``.
        data: an int or an integer tensor, of which the lowest 62 bits count.

    Returns:
        A key; several if either argument is several.

    Raises:
        DTypeError, ShapeError: not a key, or ``data`` is not an integer.

    >>> td.ops.td.random_fold_in(td.random.key(0), 7).shape
    (4,)
    """,
    reference="references.random_bits.random_fold_in",
    dtypes=(uint32,),
    derivative=INTEGRAL,
    batching=_fold_batched,
    samples="samples.random.fold_in_samples",
    errors="samples.random.fold_in_errors",
    method=False,
)

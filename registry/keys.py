"""Dispatch keys and key sets.

A key set is a plain ``int`` whose bit ``key`` says that the key is in it, so union, difference and "highest key" are
one machine instruction each (the representation of ``c10::DispatchKeySet``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from ..errors import ArgumentError, ValueArgumentError
from .text import shown


class DispatchKey(IntEnum):
    """The keys, lowest first: a call runs the kernel of the highest key in its key set.

    >>> import tandem as td
    >>> td.DispatchKey.AutogradCPU > td.DispatchKey["CPU"]
    True
    """

    CPU = 0
    CUDA = 1
    Meta = 2
    PrivateUse1 = 3
    PrivateUse2 = 4
    SparseCPU = 5
    SparseCUDA = 6
    SparseMeta = 7
    QuantizedCPU = 8
    QuantizedCUDA = 9
    QuantizedMeta = 10
    Tracer = 11
    Python = 12
    Functionalize = 13
    ADInplaceOrView = 14
    AutogradOther = 15
    AutogradCPU = 16
    AutogradCUDA = 17
    AutogradMeta = 18
    AutogradPrivateUse1 = 19
    Batched = 20
    Autocast = 21
    Level = 22
    Mode = 23
    Profiler = 24

    @classmethod
    def _missing_(cls, value: object) -> DispatchKey:
        raise ValueArgumentError(
            f"{shown(value)} is no dispatch key; the keys are 0 to {len(cls) - 1}, or by name "
            f"{', '.join(cls.__members__)}"
        )


KEY_COUNT = len(DispatchKey)


def keyset(*keys: DispatchKey) -> int:
    """The key set that holds the given keys."""
    bits = 0
    for key in keys:
        bits |= 1 << key
    return bits


def keys_of(bits: int) -> Iterator[DispatchKey]:
    """The keys of a key set, highest first."""
    return (key for key in reversed(DispatchKey) if bits >> key & 1)


def below(key: DispatchKey) -> int:
    """The key set of all keys lower than ``key``: what a layer redispatches to."""
    return (1 << key) - 1


K = DispatchKey
# PrivateUse1 and PrivateUse2 are for backends from outside; the first has an autograd key of its own.
DENSE = keyset(K.CPU, K.CUDA, K.Meta, K.PrivateUse1, K.PrivateUse2)
BACKENDS = DENSE | keyset(
    K.SparseCPU, K.SparseCUDA, K.SparseMeta, K.QuantizedCPU, K.QuantizedCUDA, K.QuantizedMeta
)
AUTOGRAD = keyset(K.AutogradOther, K.AutogradCPU, K.AutogradCUDA, K.AutogradMeta, K.AutogradPrivateUse1)
SPARSE = keyset(K.SparseCPU, K.SparseCUDA, K.SparseMeta)
QUANTIZED = keyset(K.QuantizedCPU, K.QuantizedCUDA, K.QuantizedMeta)
# Kernels of these keys are written with operators on the parts of their tensors (indices and values, integers and
# scales): autograd, levels, traces and casts meet the parts, and of the layers above only what observes sees the call.
COMPOSED = BACKENDS & ~DENSE
BESIDE_COMPOSED = BACKENDS | keyset(K.Python, K.Mode, K.Profiler)
# What a composite kernel may stand in for: every key that a body written with operators passes through unharmed.
COMPOSITE_EXPLICIT = BACKENDS
COMPOSITE_IMPLICIT = BACKENDS | AUTOGRAD | keyset(K.Tracer, K.Batched, K.Level)

# The groups are of one layout each; a kernel for one serves the group's keys that have none of their own.
GROUPS: dict[str, int] = {"Dense": DENSE, "Sparse": SPARSE, "Quantized": QUANTIZED}
ALIASES: dict[str, int] = {
    "Autograd": AUTOGRAD,
    "CompositeExplicit": COMPOSITE_EXPLICIT,
    "CompositeExplicitNonFunctional": BACKENDS & ~SPARSE,
    "CompositeImplicit": COMPOSITE_IMPLICIT,
    **GROUPS,
}
SYNONYMS = {  # PyTorch's names
    "CompositeExplicitAutograd": "CompositeExplicit",
    "CompositeExplicitAutogradNonFunctional": "CompositeExplicitNonFunctional",
    "CompositeImplicitAutograd": "CompositeImplicit",
}

BACKEND_OF_DEVICE: dict[str, DispatchKey] = {"cpu": K.CPU, "cuda": K.CUDA, "meta": K.Meta}
AUTOGRAD_OF_BACKEND: dict[DispatchKey, DispatchKey] = {
    K.CPU: K.AutogradCPU,
    K.SparseCPU: K.AutogradCPU,
    K.QuantizedCPU: K.AutogradCPU,
    K.CUDA: K.AutogradCUDA,
    K.SparseCUDA: K.AutogradCUDA,
    K.QuantizedCUDA: K.AutogradCUDA,
    K.Meta: K.AutogradMeta,
    K.SparseMeta: K.AutogradMeta,
    K.QuantizedMeta: K.AutogradMeta,
    K.PrivateUse1: K.AutogradPrivateUse1,
    K.PrivateUse2: K.AutogradOther,
}

# The backends whose own kernels keep a CompositeImplicit body out of an autograd key, as in PyTorch: sparse and
# quantized ones count for AutogradOther alone, although their tensors carry the autograd key of their device.
BEHIND: dict[DispatchKey, int] = {
    K.AutogradCPU: keyset(K.CPU),
    K.AutogradCUDA: keyset(K.CUDA),
    K.AutogradMeta: keyset(K.Meta),
    K.AutogradPrivateUse1: keyset(K.PrivateUse1),
    K.AutogradOther: keyset(K.PrivateUse2) | SPARSE | QUANTIZED,
}

# One object each, so that native guards compare a pointer.
CPU_KEYS: int = int(keyset(K.CPU))
GRAD_CPU_KEYS: int = int(keyset(K.CPU, K.AutogradCPU))
CUDA_KEYS: int = int(keyset(K.CUDA))
GRAD_CUDA_KEYS: int = int(keyset(K.CUDA, K.AutogradCUDA))
_PLAIN = {GRAD_CPU_KEYS: CPU_KEYS, GRAD_CUDA_KEYS: CUDA_KEYS}
_RECORDED = {plain: recorded for recorded, plain in _PLAIN.items()}


def autograd_keys(bits: int) -> int:
    """The autograd keys of the backends in a key set."""
    return keyset(*{AUTOGRAD_OF_BACKEND[key] for key in keys_of(bits & BACKENDS)})


def recorded(bits: int) -> int:
    """A key set with the autograd keys of its backends."""
    return _RECORDED.get(bits) or bits | autograd_keys(bits)


def unrecorded(bits: int) -> int:
    """A key set without autograd keys."""
    return _PLAIN.get(bits) or bits & ~AUTOGRAD


def parse_key(name: str | DispatchKey) -> DispatchKey | str:
    """A key, or the name of an alias key.

    Raises:
        ArgumentError: it is neither a key nor a string.
        ValueArgumentError: no key and no alias has that name.
    """
    if isinstance(name, DispatchKey):
        return name
    if not isinstance(name, str):
        raise ArgumentError(f"a dispatch key is a DispatchKey or a name, such as 'CPU', not {shown(name)}")
    name = SYNONYMS.get(name, name)
    if name in ALIASES:
        return name
    try:
        return DispatchKey[name]
    except KeyError:
        known = ", ".join([key.name for key in DispatchKey] + list(ALIASES))
        raise ValueArgumentError(f"unknown dispatch key {name!r}; the keys are {known}") from None


class DispatchKeySet:
    """A key set to read and print; the dispatcher itself works on the int.

    Args:
        keys: dispatch keys, names of keys and aliases, or key sets.

    Raises:
        ArgumentError: something is none of these.
        ValueArgumentError: no key has that name.

    >>> from tandem.registry.keys import DispatchKeySet
    >>> DispatchKeySet("CPU", "AutogradCPU")
    DispatchKeySet(AutogradCPU, CPU)
    >>> DispatchKeySet("CPU", "AutogradCPU").highest.name
    'AutogradCPU'
    """

    __slots__ = ("bits",)

    def __init__(self, *keys: str | DispatchKey | DispatchKeySet | int):
        self.bits = 0
        for key in keys:
            self.bits |= _bits(key)

    @property
    def highest(self) -> DispatchKey:
        """The key whose kernel runs.

        Raises:
            ValueArgumentError: the set is empty.
        """
        if not self.bits:
            raise ValueArgumentError("the key set is empty, so it has no highest key")
        return DispatchKey(self.bits.bit_length() - 1)

    def __iter__(self) -> Iterator[DispatchKey]:
        return keys_of(self.bits)

    def __contains__(self, key: str | DispatchKey) -> bool:
        return bool(self.bits & _bits(key))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return from_bits(self.bits | other.bits) if isinstance(other, DispatchKeySet) else NotImplemented

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return from_bits(self.bits & other.bits) if isinstance(other, DispatchKeySet) else NotImplemented

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return from_bits(self.bits & ~other.bits) if isinstance(other, DispatchKeySet) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


def from_bits(bits: int) -> DispatchKeySet:
    """The readable form of a key set."""
    readable = DispatchKeySet()
    readable.bits = bits
    return readable


def bits_of(keys: Iterable[str | DispatchKey | DispatchKeySet]) -> int:
    """The key set of names, keys and aliases together."""
    bits = 0
    for key in keys:
        bits |= _bits(key)
    return bits


def _bits(key: str | DispatchKey | DispatchKeySet | int) -> int:
    if isinstance(key, DispatchKeySet):
        return key.bits
    if type(key) is int and not 0 <= key < KEY_COUNT:
        DispatchKey._missing_(key)  # not by a call: Enum would print the number first, however long it is
    parsed = DispatchKey(key) if type(key) is int else parse_key(key)  # type: ignore[arg-type]
    return ALIASES[parsed] if isinstance(parsed, str) else 1 << parsed

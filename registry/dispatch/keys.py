"""Dispatch keys and key sets.

A key set is a plain ``int`` with one bit for each key (the representation of ``c10::DispatchKeySet``), so union,
difference and "highest key" are one machine instruction each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from ...errors import ArgumentError, ValueArgumentError
from ..formatting import short_repr


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
    AutocastCPU = 21
    AutocastCUDA = 22
    AutocastMeta = 23
    AutocastPrivateUse1 = 24
    Level = 25
    Mode = 26
    Profiler = 27
    WeakScalar = 28

    @classmethod
    def _missing_(cls, value: object) -> DispatchKey:
        raise ValueArgumentError(
            f"{short_repr(value)} is not a dispatch key; the keys are 0 to {len(cls) - 1}, or by name "
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
    """The key set of all keys lower than ``key``; a layer redispatches to these."""
    return (1 << key) - 1


K = DispatchKey
# PrivateUse1 and PrivateUse2 are reserved for external backends; only the first has its own autograd key.
DENSE = keyset(K.CPU, K.CUDA, K.Meta, K.PrivateUse1, K.PrivateUse2)
BACKENDS = DENSE | keyset(
    K.SparseCPU, K.SparseCUDA, K.SparseMeta, K.QuantizedCPU, K.QuantizedCUDA, K.QuantizedMeta
)
AUTOGRAD = keyset(K.AutogradOther, K.AutogradCPU, K.AutogradCUDA, K.AutogradMeta, K.AutogradPrivateUse1)
AUTOCAST = keyset(K.AutocastCPU, K.AutocastCUDA, K.AutocastMeta, K.AutocastPrivateUse1)
SPARSE = keyset(K.SparseCPU, K.SparseCUDA, K.SparseMeta)
QUANTIZED = keyset(K.QuantizedCPU, K.QuantizedCUDA, K.QuantizedMeta)
# Kernels of these keys call operators on the components of their tensors (indices and values, integers and scales).
# Autograd, levels, traces and casts see those calls; of the layers above only observers see the outer call.
COMPOSED = BACKENDS & ~DENSE
ALLOWED_WITH_COMPOSED = BACKENDS | keyset(K.Python, K.Mode, K.Profiler, K.WeakScalar)
NEEDS_NARROWING = COMPOSED | AUTOCAST
# The keys that a composite kernel serves: those that see the operators which the kernel's body calls.
COMPOSITE_EXPLICIT = BACKENDS
COMPOSITE_IMPLICIT = BACKENDS | AUTOGRAD | keyset(K.Tracer, K.Batched, K.Level)

# One group for each layout; a kernel for a group serves those of its keys that have no kernel.
GROUPS: dict[str, int] = {"Dense": DENSE, "Sparse": SPARSE, "Quantized": QUANTIZED}
ALIASES: dict[str, int] = {
    "Autograd": AUTOGRAD,
    "Autocast": AUTOCAST,
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

AUTOCAST_OF_BACKEND: dict[DispatchKey, DispatchKey] = {
    K.CPU: K.AutocastCPU,
    K.SparseCPU: K.AutocastCPU,
    K.QuantizedCPU: K.AutocastCPU,
    K.CUDA: K.AutocastCUDA,
    K.SparseCUDA: K.AutocastCUDA,
    K.QuantizedCUDA: K.AutocastCUDA,
    K.Meta: K.AutocastMeta,
    K.SparseMeta: K.AutocastMeta,
    K.QuantizedMeta: K.AutocastMeta,
    K.PrivateUse1: K.AutocastPrivateUse1,
    K.PrivateUse2: K.AutocastPrivateUse1,
}

# The backends whose kernels exclude a CompositeImplicit kernel from an autograd key, as in PyTorch: sparse and
# quantized backends count only for AutogradOther, although their tensors have the autograd key of their device.
BACKENDS_OF_AUTOGRAD: dict[DispatchKey, int] = {
    K.AutogradCPU: keyset(K.CPU),
    K.AutogradCUDA: keyset(K.CUDA),
    K.AutogradMeta: keyset(K.Meta),
    K.AutogradPrivateUse1: keyset(K.PrivateUse1),
    K.AutogradOther: keyset(K.PrivateUse2) | SPARSE | QUANTIZED,
}

# One object each, so that native guards compare a pointer.
CPU_KEYS: int = int(keyset(K.CPU))
GRAD_CPU_KEYS: int = int(keyset(K.CPU, K.AutogradCPU))
WEAK_KEYS: int = int(keyset(K.CPU, K.WeakScalar))
CUDA_KEYS: int = int(keyset(K.CUDA))
GRAD_CUDA_KEYS: int = int(keyset(K.CUDA, K.AutogradCUDA))
_WITHOUT_AUTOGRAD = {GRAD_CPU_KEYS: CPU_KEYS, GRAD_CUDA_KEYS: CUDA_KEYS}
_WITH_AUTOGRAD = {plain: full for full, plain in _WITHOUT_AUTOGRAD.items()}


def autograd_keys(bits: int) -> int:
    """The autograd keys of the backends in a key set."""
    return keyset(*{AUTOGRAD_OF_BACKEND[key] for key in keys_of(bits & BACKENDS)})


def autocast_keys(bits: int) -> int:
    """The autocast keys of the backends in a key set."""
    return keyset(*{AUTOCAST_OF_BACKEND[key] for key in keys_of(bits & BACKENDS)})


def with_autograd_keys(bits: int) -> int:
    """A key set with the autograd keys of its backends."""
    return _WITH_AUTOGRAD.get(bits) or bits | autograd_keys(bits)


def without_autograd_keys(bits: int) -> int:
    """A key set without autograd keys."""
    return _WITHOUT_AUTOGRAD.get(bits) or bits & ~AUTOGRAD


def parse_key(name: str | DispatchKey) -> DispatchKey | str:
    """Convert a name to a dispatch key, or to the name of an alias key.

    Raises:
        ArgumentError: the name is neither a key nor a string.
        ValueArgumentError: no key and no alias has that name.
    """
    if isinstance(name, DispatchKey):
        return name
    if not isinstance(name, str):
        raise ArgumentError(
            f"a dispatch key is a DispatchKey or a name, such as 'CPU', not {short_repr(name)}"
        )
    name = SYNONYMS.get(name, name)
    if name in ALIASES:
        return name
    try:
        return DispatchKey[name]
    except KeyError:
        known = ", ".join([key.name for key in DispatchKey] + list(ALIASES))
        raise ValueArgumentError(f"unknown dispatch key {name!r}; the keys are {known}") from None


class DispatchKeySet:
    """A set of dispatch keys, as passed to boxed kernels and taken by guards and ``redispatch``.

    ``|``, ``&`` and ``-`` also take a key: ``keyset - td.DispatchKey.Mode``. The dispatcher uses the int ``bits``.

    Args:
        keys: dispatch keys, names of keys and aliases, or key sets.

    Raises:
        ArgumentError: an argument is none of these.
        ValueArgumentError: no key has that name.

    >>> from tandem.registry.dispatch.keys import DispatchKeySet
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

    def __bool__(self) -> bool:
        return bool(self.bits)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __or__(self, other: Keys) -> DispatchKeySet:
        mask = _mask(other)
        return NotImplemented if mask is None else from_bits(self.bits | mask)

    def __and__(self, other: Keys) -> DispatchKeySet:
        mask = _mask(other)
        return NotImplemented if mask is None else from_bits(self.bits & mask)

    def __sub__(self, other: Keys) -> DispatchKeySet:
        mask = _mask(other)
        return NotImplemented if mask is None else from_bits(self.bits & ~mask)

    __ror__, __rand__ = __or__, __and__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


# What set operations take: another set, a key, or a mask of bits.
Keys = DispatchKeySet | DispatchKey | int


def _mask(keys: object) -> int | None:
    """The bits of the other operand of a set operation; None if it is not a key or key set."""
    if isinstance(keys, DispatchKeySet):
        return keys.bits
    if type(keys) is int:
        return keys
    return 1 << keys if isinstance(keys, DispatchKey) else None


def from_bits(bits: int) -> DispatchKeySet:
    """Convert the bits of a key set to a DispatchKeySet."""
    readable = DispatchKeySet()
    readable.bits = bits
    return readable


def bits_of(keys: Iterable[str | DispatchKey | DispatchKeySet]) -> int:
    """The union of names, keys, aliases and key sets, as bits."""
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

"""Records of jitted functions and their specializations, as :mod:`.rt_jit` reads them."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Sequence
from typing import Any

from ....registry.values import TensorSpec
from . import jit_layout as at
from .records import Record

_libc = ctypes.CDLL(None)
_libc.free.argtypes = (ctypes.c_void_p,)


def word_array(words: Sequence[int]) -> Record:
    """Words of 8 bytes, one after the other."""
    found = Record(8 * max(len(words), 1))
    for place, number in enumerate(words):
        found.set(8 * place, number)
    return found


def float_bits(number: float) -> int:
    """The bits of a double as an integer."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


class Program:
    """A guard or build program in the making: its words, and the objects that they point to."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.kept: list[Any] = []
        self.mortal: list[tuple[int, Any]] = []  # words that name an object which the program does not keep

    def add(self, *words: Any) -> None:
        """Append words; what is not an int is kept and appended as its address."""
        for item in words:
            if type(item) is int:
                self.words.append(item)
            elif isinstance(item, Record):
                self.kept.append(item)
                self.words.append(item.address)
            else:
                self.same(item)

    def same(self, value: Any) -> None:
        """Append the address of an object, which is kept alive."""
        self.kept.append(value)
        self.words.append(id(value))

    def weakly(self, value: Any) -> None:
        """Append the address of an object that may die; the word is cleared then, and nothing matches it any more."""
        self.mortal.append((len(self.words), value))
        self.words.append(id(value))

    def record(self) -> Record:
        """The program in memory."""
        found = word_array(self.words)
        found.kept += self.kept
        for place, value in self.mortal:
            found.kept.append(weakref.ref(value, _Clear(found.memory, place)))
        return found


class _Clear:
    """Zeroes one word."""

    def __init__(self, memory: Any, place: int):
        self.memory, self.place = memory, place

    def __call__(self, gone: Any) -> None:
        ctypes.c_int64.from_buffer(self.memory, 8 * self.place).value = 0


def array_guard(spec: TensorSpec, slot: int) -> Record:
    """What an array must be, and where its data pointer goes."""
    found = Record(at.A_SIZE)
    found.refer(at.A_DESCR, spec.dtype.np)
    found.set(at.A_RANK, len(spec.shape))
    found.point(at.A_DIMS, word_array(spec.shape))
    found.set(at.A_AT, slot)
    return found


def output_table(storages: Sequence[TensorSpec], first: int) -> Record:
    """The results to allocate; their data pointers go to the places from ``first`` on."""
    found = Record(at.O_SIZE * max(len(storages), 1))
    for number, spec in enumerate(storages):
        base = number * at.O_SIZE
        found.refer(base + at.O_DESCR, spec.dtype.np)
        found.set(base + at.O_RANK, len(spec.shape))
        found.point(base + at.O_DIMS, word_array(spec.shape))
        found.set(base + at.O_BYTES, spec.size * spec.dtype.itemsize)
        found.set(base + at.O_AT, first + number)
    return found


class SpecializationRecord(Record):
    """A specialization; frees its scratch memory with itself."""

    def __init__(self) -> None:
        super().__init__(at.S_SIZE_OF)

    @property
    def hits(self) -> int:
        """Calls answered."""
        return self.get(at.S_HITS)

    @property
    def busy(self) -> bool:
        """Whether a call is inside."""
        return self.get(at.S_INSIDE) != 0

    def __del__(self) -> None:
        _libc.free(self.get(at.S_SPARE))


class JitRecord(Record):
    """What the entry of one jitted function reads: the chain of its specializations.

    Args:
        process: the process record.
        slow: called when no specialization answers.
    """

    def __init__(self, process: Record, slow: Any):
        super().__init__(at.J_SIZE)
        self.point(0, process)
        self.refer(8, slow)
        self.chain: list[SpecializationRecord] = []
        self.retired: list[SpecializationRecord] = []

    def link(self, record: SpecializationRecord) -> None:
        """Put a specialization first in the chain."""
        record.set(at.S_NEXT, self.chain[0].address if self.chain else 0)
        self.chain.insert(0, record)
        self.set(at.J_HEAD, record.address)
        self.retired = [old for old in self.retired if old.busy]

    def unlink(self) -> None:
        """Empty the chain. Records stay in memory as long as a call is inside one."""
        self.set(at.J_HEAD, 0)
        for record in self.chain:  # a call inside one goes on to Python, not to a neighbour that may be freed
            record.set(at.S_NEXT, 0)
        self.retired = [old for old in (*self.retired, *self.chain) if old.busy]
        self.chain = []

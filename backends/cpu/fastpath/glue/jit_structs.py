"""Structs of jitted functions and their specializations, which :mod:`..entries.rt_jit` reads."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Sequence
from typing import Any

from .....registry.values import TensorSpec
from ..compiler.structs import sizeof
from . import jit_layout as at
from .structs import StructMemory

_libc = ctypes.CDLL(None)
_libc.free.argtypes = (ctypes.c_void_p,)


def make_int64_array(words: Sequence[int]) -> StructMemory:
    """Return an array of 64-bit integers."""
    result = StructMemory(8 * max(len(words), 1))
    for index, number in enumerate(words):
        result.set(8 * index, number)
    return result


def float_bits(number: float) -> int:
    """Return the bits of a double as an integer."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


class Program:
    """A guard or build program being built: its words, and the objects that they point to."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.kept: list[Any] = []
        self.mortal: list[
            tuple[int, Any]
        ] = []  # words that name an object which the program does not keep alive

    def add(self, *words: Any) -> None:
        """Append words; an object that is not an int is kept alive, and its address appended."""
        for item in words:
            if type(item) is int:
                self.words.append(item)
            elif isinstance(item, StructMemory):
                self.kept.append(item)
                self.words.append(item.address)
            else:
                self.same(item)

    def same(self, value: Any) -> None:
        """Append the address of an object, which is kept alive."""
        self.kept.append(value)
        self.words.append(id(value))

    def weakly(self, value: Any) -> None:
        """Append the address of an object that may be freed; the word is then cleared, and nothing matches it any more.

        An object without weak references is kept alive.
        """
        if type(value).__weakrefoffset__ == 0:
            self.same(value)
            return
        self.mortal.append((len(self.words), value))
        self.words.append(id(value))

    def record(self) -> StructMemory:
        """Return the program in memory."""
        result = make_int64_array(self.words)
        result.kept += self.kept
        for index, value in self.mortal:
            result.kept.append(weakref.ref(value, _Clear(result.memory, index)))
        return result


class _Clear:
    """A weak reference's callback that clears one word."""

    def __init__(self, memory: Any, index: int):
        self.memory, self.index = memory, index

    def __call__(self, gone: Any) -> None:
        ctypes.c_int64.from_buffer(self.memory, 8 * self.index).value = 0


def make_array_guard(spec: TensorSpec, slot: int) -> StructMemory:
    """Return the struct that describes a valid array, and the slot of its data pointer."""
    result = StructMemory(sizeof(at.ArrayGuard))
    result.refer(at.ArrayGuard.descr, spec.dtype.np)
    result.set(at.ArrayGuard.rank, len(spec.shape))
    result.point(at.ArrayGuard.dims, make_int64_array(spec.shape))
    result.set(at.ArrayGuard.at, slot)
    return result


def make_output_table(storages: Sequence[TensorSpec], first: int) -> StructMemory:
    """Return the structs of the results to allocate; their data pointers go to the slots from ``first`` on."""
    result = StructMemory(sizeof(at.Output) * max(len(storages), 1))
    for number, spec in enumerate(storages):
        base = number * sizeof(at.Output)
        result.refer(base + at.Output.descr, spec.dtype.np)
        result.set(base + at.Output.rank, len(spec.shape))
        result.point(base + at.Output.dims, make_int64_array(spec.shape))
        result.set(base + at.Output.nbytes, spec.size * spec.dtype.itemsize)
        result.set(base + at.Output.at, first + number)
    return result


class SpecializationStruct(StructMemory):
    """The struct of a specialization; frees its scratch memory with itself."""

    def __init__(self) -> None:
        super().__init__(sizeof(at.Specialization))

    @property
    def hits(self) -> int:
        """Calls run by the entry."""
        return self.get(at.Specialization.hits)

    @property
    def used(self) -> int:
        """The time of the last call, as G_JIT_CLOCK counts it."""
        return self.get(at.Specialization.used)

    @property
    def busy(self) -> bool:
        """Whether a call is running."""
        return self.get(at.Specialization.inside) != 0

    def __del__(self) -> None:
        if hasattr(self, "address"):  # an interrupt may have ended the construction of this object
            _libc.free(self.get(at.Specialization.spare))


class JitStruct(StructMemory):
    """The struct that the entry of one jitted function reads: the chain of its specializations.

    Args:
        process: the process struct.
        fall_back: called if no specialization matches.
    """

    def __init__(self, process: StructMemory, fall_back: Any):
        super().__init__(sizeof(at.JitEntry))
        self.point(0, process)
        self.refer(8, fall_back)
        self.chain: list[SpecializationStruct] = []
        self.retired: list[SpecializationStruct] = []

    def link(self, record: SpecializationStruct) -> None:
        """Insert a specialization at the head of the chain."""
        record.set(at.Specialization.next, self.chain[0].address if self.chain else 0)
        self.chain.insert(0, record)
        self.set(at.JitEntry.head, record.address)
        self.retired = [old for old in self.retired if old.busy]

    def remove(self, record: SpecializationStruct) -> None:
        """Remove one specialization from the chain, if it is there."""
        if record not in self.chain:
            return
        index = self.chain.index(record)
        following = record.get(at.Specialization.next)
        if index:
            self.chain[index - 1].set(at.Specialization.next, following)
        else:
            self.set(at.JitEntry.head, following)
        record.set(
            at.Specialization.next, 0
        )  # a call running in it continues in Python, not in a struct that may be freed
        del self.chain[index]
        self.retired = [old for old in (*self.retired, record) if old.busy]

    def unlink(self) -> None:
        """Empty the chain. Structs stay in memory while a call runs in one."""
        self.set(at.JitEntry.head, 0)
        for (
            record
        ) in self.chain:  # a call running in one continues in Python, not in a neighbour that may be freed
            record.set(at.Specialization.next, 0)
        self.retired = [old for old in (*self.retired, *self.chain) if old.busy]
        self.chain = []

"""Structs of jitted functions and their specializations, which :mod:`..entries.rt_jit` reads."""

from __future__ import annotations

import ctypes
import functools
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .....named_tuple import NamedTuple
from .....registry.operator import Operator
from .....registry.values import TensorSpec
from ..compiler.structs import sizeof
from . import jit_layout as at
from .structs import EntryStruct, StructMemory, find_last_names, find_writer

_libc = ctypes.CDLL(None)
_libc.free.argtypes = (ctypes.c_void_p,)


def make_int64_array(words: Sequence[int]) -> StructMemory:
    """Return an array of 64-bit integers."""
    result = StructMemory(8 * max(len(words), 1))
    ctypes.memmove(result.address, struct.pack(f"<{len(words)}q", *words), 8 * len(words))
    return result


def float_bits(number: float) -> int:
    """Return the bits of a double as an integer."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


class LayoutGuard(NamedTuple):
    """A word of a guard program: the address of a struct that describes a valid array. Its sizes may be symbolic.

    Attributes:
        make: makes the struct of a spec and a slot, whose sizes are ints.
        spec: the shape, dtype and device of a valid array.
        slot: the slot of its data pointer.
    """

    make: Callable[[TensorSpec, int], StructMemory]
    spec: TensorSpec
    slot: int


class Program:
    """A guard or build program being built: its words, and the objects that they point to."""

    def __init__(self) -> None:
        self.words: list[int | LayoutGuard | ViewOfArray] = []
        self.kept: list[Any] = []
        self.mortal: list[tuple[int, Any]] = []  # words that name an object which may be freed

    def add(self, *words: Any) -> None:
        """Append words; an object that is not an int is kept alive, and its address appended."""
        for item in words:
            if type(item) in (int, LayoutGuard, ViewOfArray):
                self.words.append(item)
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
        """Return the program in memory.

        Raises:
            UndecidedError: a guard has a symbolic size.
        """
        words: list[int] = []
        structs: list[StructMemory] = []
        for item in self.words:
            if isinstance(item, LayoutGuard):
                structs.append(item.make(item.spec, item.slot))
            elif isinstance(item, ViewOfArray):
                structs.append(item.make_struct())
            words.append(item if isinstance(item, int) else structs[-1].address)
        result = make_int64_array(words)
        result.kept += [*self.kept, *structs]
        for index, value in self.mortal:
            word = ctypes.c_int64.from_buffer(result.memory, 8 * index)
            result.kept.append(weakref.ref(value, functools.partial(_clear, word)))
        return result


def _clear(word: Any, gone: Any) -> None:
    word.value = 0


def make_array_guard(spec: TensorSpec, slot: int) -> StructMemory:
    """Return the struct that describes a valid array, and the slot of its data pointer."""
    dims = make_int64_array(spec.shape)
    return StructMemory(at.ArrayGuard, descr=spec.dtype.np, rank=len(spec.shape), dims=dims, at=slot)


def make_strided_array_guard(strides: tuple[int, ...], low: int, spec: TensorSpec, slot: int) -> StructMemory:
    """Return the struct that describes a valid array that is not C-contiguous.

    Args:
        strides: its strides in bytes; empty for any, where it is copied.
        low: the lowest offset of an element in bytes, where the memory starts that the code takes.
        spec, slot: as for other arrays.
    """
    result = make_array_guard(spec, slot)
    if strides:
        result.point(at.ArrayGuard.strides, make_int64_array(strides))
        result.set(at.ArrayGuard.low, low)
    else:
        result.set(at.ArrayGuard.is_copied, 1)
    return result


class ViewOfArray(NamedTuple):
    """A result that is a view of an array that the call holds, or a copy of one.

    Attributes:
        spec: the shape and dtype of the result.
        strides: in bytes.
        offset: in bytes.
        source: the index of the array among the held references, or among the results.
        of_argument: whether it is an argument's, among the held references.
        is_copy: whether the result is a copy.
    """

    spec: TensorSpec
    strides: tuple[int, ...]
    offset: int
    source: int
    of_argument: bool
    is_copy: bool

    def make_struct(self) -> StructMemory:
        """Return the struct that the build program refers to."""
        shape = self.spec.shape
        return StructMemory(
            at.ResultView,
            source=self.source,
            of_argument=int(self.of_argument),
            is_copy=int(self.is_copy),
            descr=self.spec.dtype.np,
            rank=len(shape),
            dims=make_int64_array(shape),
            strides=make_int64_array(self.strides),
            offset=self.offset,
        )


class WriteBack(NamedTuple):
    """New contents of an argument; the fields are those of the struct ``Write``."""

    target: int
    source: int
    offset: int
    nbytes: int


def make_write_table(writes: Sequence[WriteBack]) -> StructMemory:
    """Return the structs of the writes into arguments."""
    return make_int64_array([number for write in writes for number in write])


def make_output_table(
    storages: Sequence[TensorSpec],
    strides: Mapping[int, Sequence[int]],
    first: int,
    written: Mapping[int, int] = MappingProxyType({}),
) -> StructMemory:
    """Return the structs of the results to allocate.

    Args:
        storages: their shapes and dtypes.
        strides: the strides in bytes of results that are not C-contiguous, by their index.
        first: the slot of the first one's data pointer; the others follow.
        written: by the index of a result that is an argument's new contents, stored in its memory: the index of the
            argument's array among the held references.
    """
    result = StructMemory(sizeof(at.Output) * max(len(storages), 1))
    for number, spec in enumerate(storages):
        dims, nbytes = make_int64_array(spec.shape), spec.size * spec.dtype.itemsize
        fields = {"rank": len(spec.shape), "dims": dims, "nbytes": nbytes, "at": first + number}
        fields["written"] = written.get(number, -1) + 1
        for name, value in {"descr": spec.dtype.np, **fields}.items():
            result.store(number * sizeof(at.Output) + getattr(at.Output, name), value)
        if number in strides:
            result.store(number * sizeof(at.Output) + at.Output.strides, make_int64_array(strides[number]))
    return result


class SpecializationStruct(StructMemory):
    """The struct of a specialization; frees its scratch memory with itself."""

    def __init__(self) -> None:
        super().__init__(at.Specialization)

    @property
    def hits(self) -> int:
        """Calls run by the entry."""
        return self.get(at.Specialization.hits)

    @property
    def used(self) -> int:
        """The time of the last call, as `Globals.jit_clock` counts it."""
        return self.get(at.Specialization.used)

    @property
    def busy(self) -> bool:
        """Whether a call is running."""
        return self.get(at.Specialization.inside) != 0

    def __del__(self) -> None:
        if hasattr(self, "address"):  # an interrupt may have ended the construction of this object
            _libc.free(self.get(at.Specialization.spare))


class JitStruct(EntryStruct):
    """The struct that the entry of one jitted function reads: the chain of its specializations.

    Structs that leave the chain stay in memory while a call runs in them. Such a call continues in Python, not in the
    following struct, which may be freed.

    Args:
        process: the process struct.
        fall_back: called if no specialization matches.
        operator: the operator whose calls are compiled, if it is an operator's function.
    """

    def __init__(self, process: StructMemory, fall_back: Any, operator: Operator | None = None):
        fields = {"write_out": find_writer(operator), **find_last_names(operator)}
        super().__init__(at.JitEntry, process, fall_back, **fields)
        self.chain: list[SpecializationStruct] = []
        self.retired: list[SpecializationStruct] = []

    def link(self, record: SpecializationStruct) -> None:
        """Insert a specialization at the head of the chain."""
        self._set_chain([record, *self.chain])

    def remove(self, record: SpecializationStruct) -> None:
        """Remove one specialization from the chain, if it is there."""
        self._set_chain([one for one in self.chain if one is not record])

    def unlink(self) -> None:
        """Empty the chain."""
        self._set_chain([])

    def _set_chain(self, chain: list[SpecializationStruct]) -> None:
        gone = [record for record in self.chain if record not in chain]
        self.retired, self.chain = [*self.retired, *gone], chain
        head = 0
        for record in reversed(chain):
            record.set(at.Specialization.next, head)
            head = record.address
        self.set(at.JitEntry.head, head)
        for record in gone:
            record.set(at.Specialization.next, 0)
        self.retired = [old for old in self.retired if old.busy]

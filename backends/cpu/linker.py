"""A linker for x86-64 objects in this process: all sections that a module needs at run time share one mapping.

First code and constants, then a table of external addresses and a jump through it for each external function that is
called, then, on a new page, writable data. Unwind tables are left out: no exception is thrown through this code. LLVM's
own linker never frees the memory of a link, takes several mappings for each, and aborts the process when the system has
no more mappings.

Source: System V ABI, AMD64 supplement, section 4.4 (relocations).
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from ...named_tuple import NamedTuple

NEXT_MODULE = "\n; ---- linked with ----\n"
"""What separates the texts of modules that are compiled as one object."""
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_FAILED = ctypes.c_void_p(-1).value

_X86_64 = 62
_SYMBOLS, _RELOCATIONS, _ZEROS, _UNWIND = 2, 4, 8, 0x70000001  # section types
_STARTERS = (
    b".init",
    b".fini",
    b".preinit",
    b".ctors",
    b".dtors",
)  # functions to call at the start and at the end
_WRITTEN, _LOADED, _PER_THREAD = 1, 2, 0x400  # section flags
_ABSOLUTE, _RELATIVE, _CALL, _FROM_TABLE = 1, 2, 4, (9, 41, 42)  # relocation types
_FIRST_RESERVED = 0xFF00  # section indices from here on are reserved
_JUMP, _SLOT = b"\xff\x25", 8  # jmp [rip + offset]


class UnsupportedObjectError(Exception):
    """The object uses a feature that this linker does not support."""


class Pages:
    """Memory from the system, released when this object is freed."""

    def __init__(self, size: int) -> None:
        self.size = 0
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        result = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if result == _FAILED:
            raise MemoryError(f"no memory for {size} bytes of machine code")
        self.address: int = result
        self.size = size

    def fix(self, size: int) -> None:
        """Make the first bytes executable and read-only."""
        if size and _libc.mprotect(self.address, size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise MemoryError("the system does not allow executable memory, or has no mapping left for it")

    def __del__(
        self, unmap: Callable[..., int] = _libc.munmap, over: Callable[[], bool] = sys.is_finalizing
    ) -> None:
        if self.size and not over():  # code may still run during the interpreter's last steps
            unmap(self.address, self.size)


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Relocation(NamedTuple):
    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


class Object:
    """A parsed object file.

    Raises:
        UnsupportedObjectError: it is not a 64-bit ELF file.
    """

    def __init__(self, image: bytes) -> None:
        if image[:6] != b"\x7fELF\x02\x01":
            raise UnsupportedObjectError
        self.image = image
        (table,) = struct.unpack_from("<Q", image, 40)
        count, named = struct.unpack_from("<HH", image, 60)
        raw = memoryview(image)[table : table + 64 * count]
        self.sections = list(map(_Section._make, struct.iter_unpack("<IIQQQQIIQQ", raw)))
        self._titles = self.sections[named].offset
        symbols = next((s for s in self.sections if s.kind == _SYMBOLS), None)
        self._names = self.sections[symbols.link].offset if symbols is not None else 0
        content = self.content(symbols) if symbols is not None else b""
        self.symbols = list(
            struct.iter_unpack("<IBBHQQ", content)
        )  # name, kind, visibility, section, value, size

    def content(self, section: _Section) -> bytes:
        return self.image[section.offset : section.offset + section.size]

    def name(self, symbol: int) -> str:
        at = self._names + self.symbols[symbol][0]
        return self.image[at : self.image.index(0, at)].decode()

    def undefined(self) -> list[str]:
        """Return the names of its external symbols."""
        return [
            self.name(n) for n, (name, _, _, section, *_) in enumerate(self.symbols) if name and not section
        ]

    def loaded(self, written: bool) -> Iterator[int]:
        """Yield the indices of the sections that are needed at run time."""
        for number, section in enumerate(self.sections):
            if (
                section.flags & _LOADED
                and section.kind != _UNWIND
                and bool(section.flags & _WRITTEN) is written
            ):
                if section.flags & _PER_THREAD or self._starts(section) or section.align > mmap.PAGESIZE:
                    raise UnsupportedObjectError
                yield number

    def _starts(self, section: _Section) -> bool:
        return self.image.startswith(_STARTERS, self._titles + section.name)

    @cached_property
    def relocations(self) -> list[_Relocation]:
        """Return the relocations of the sections that are loaded."""
        symbols = {*self.loaded(False), *self.loaded(True)}
        return [
            _Relocation(section.info, offset, info & 0xFFFFFFFF, info >> 32, addend)
            for section in self.sections
            if section.kind == _RELOCATIONS and section.info in symbols
            for offset, info, addend in struct.iter_unpack("<QQq", self.content(section))
        ]


class _Layout:
    """Offsets of everything, from the start of the mapping."""

    def __init__(self, parts: Object) -> None:
        self.parts, self.size = parts, 0
        self.sections: dict[int, int] = {}
        self._add(parts.loaded(False))
        far = dict.fromkeys(r.symbol for r in parts.relocations if self._is_far(r))
        start = -(-self.size // _SLOT) * _SLOT
        self.slots = {symbol: start + _SLOT * number for number, symbol in enumerate(far)}
        start += _SLOT * len(far)
        self.jumps = {symbol: start + _SLOT * number for number, symbol in enumerate(far)}
        self.fixed = self.size = -(-(start + _SLOT * len(far)) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._add(parts.loaded(True))

    def _add(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            section = self.parts.sections[number]
            self.sections[number] = -(-self.size // max(section.align, 1)) * max(section.align, 1)
            self.size = self.sections[number] + section.size

    def _is_far(self, relocation: _Relocation) -> bool:
        """Return whether a relocation refers to its symbol through the table, directly or by a jump."""
        return relocation.kind in _FROM_TABLE or (
            relocation.kind == _CALL and not self.parts.symbols[relocation.symbol][3]
        )

    def defined(self, symbol: int) -> int | None:
        """Return the offset of a symbol that the object defines; None for an external one."""
        *_, section, value, _size = self.parts.symbols[symbol]
        if not section:
            return None
        if section >= _FIRST_RESERVED or section not in self.sections:
            raise UnsupportedObjectError
        return self.sections[section] + int(value)


def link(parts: Object, exports: Iterable[str], outside: Mapping[str, int]) -> tuple[Pages, dict[str, int]]:
    """Load an object.

    Args:
        parts: the object.
        exports: functions whose addresses are wanted.
        outside: the addresses of its external symbols.

    Returns:
        The memory, and the addresses by name.

    Raises:
        UnsupportedObjectError: the object uses a feature that this linker does not support.
        RuntimeError: an export is missing.
        MemoryError: there is no memory, or no executable memory.
    """
    if int.from_bytes(parts.image[18:20], "little") != _X86_64:
        raise UnsupportedObjectError
    layout = _Layout(parts)
    own = {
        parts.name(n): n for n, (_, kind, _, section, *_) in enumerate(parts.symbols) if kind >> 4 and section
    }
    missing = [name for name in exports if name not in own]
    if missing:
        raise RuntimeError(f"the module does not define {', '.join(missing)}")
    pages = Pages(max(layout.size, 1))
    ctypes.memmove(pages.address, bytes(_relocate(layout, pages.address, outside)), layout.size)
    pages.fix(layout.fixed)
    return pages, {name: pages.address + (layout.defined(own[name]) or 0) for name in exports}


def _relocate(layout: _Layout, base: int, outside: Mapping[str, int]) -> bytearray:
    """Return the content of the mapping for its address."""
    parts, content = layout.parts, bytearray(layout.size)
    for number, at in layout.sections.items():
        section = parts.sections[number]
        if section.kind != _ZEROS:
            content[at : at + section.size] = parts.content(section)

    def address(symbol: int) -> int:
        near = layout.defined(symbol)
        return outside[parts.name(symbol)] if near is None else base + near

    for symbol, slot in layout.slots.items():
        struct.pack_into("<Q", content, slot, address(symbol))
        jump = layout.jumps[symbol]
        struct.pack_into("<2si", content, jump, _JUMP, slot - (jump + 6))
    for index, offset, kind, symbol, addend in parts.relocations:
        at = layout.sections[index] + offset
        near = layout.defined(symbol)
        if kind in _FROM_TABLE:
            struct.pack_into("<i", content, at, layout.slots[symbol] + addend - at)
        elif kind == _CALL:
            target = layout.jumps[symbol] if near is None else near
            struct.pack_into("<i", content, at, target + addend - at)
        elif kind == _RELATIVE and near is not None:
            struct.pack_into("<i", content, at, near + addend - at)
        elif kind == _ABSOLUTE:
            struct.pack_into("<Q", content, at, (address(symbol) + addend) % 2**64)
        else:
            raise UnsupportedObjectError
    return content

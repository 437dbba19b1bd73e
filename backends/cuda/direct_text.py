"""Launches that emitted code makes of kernels that are no part of its module, and the text that stores their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from . import faults, texts
from .emit.kernel import CudaKernel


class Address(NamedTuple):
    """Where an operand or a result of the node lies: its number, results behind operands."""

    place: int


class Scratch(NamedTuple):
    """A place in the memory that the kernels of one node share: how many bytes lie before it."""

    offset: int


class Word(NamedTuple):
    """A number that is found when a graph is compiled for a device: ``make(index)``."""

    make: Callable[[int], int]


class Struct(NamedTuple):
    """A parameter of several words."""

    words: tuple[Any, ...]


class Launch(NamedTuple):
    """One kernel.

    Attributes:
        kernel: the kernel, with its grid, and the bytes of scratch memory of the node.
        params: for each parameter an int, an :class:`Address`, a :class:`Scratch`, a :class:`Word`, or a
            :class:`Struct` of these.
    """

    kernel: CudaKernel
    params: tuple[Any, ...]


FAULT = Word(lambda index: faults.place(index).ptr)


def text_launch(name: str, count: int, *params: Any, scratch: int = 0) -> Launch:
    """The launch of a kernel of :mod:`.texts` for ``count`` elements."""
    kernel = texts.kernel(name)
    grid = (kernel.blocks(count, texts.BLOCKS), 1, 1)
    return Launch(kernel._replace(grid=grid, temporaries=scratch), params)


def call_number(name: str, axis: int, sizes: tuple[int, ...]) -> Word:
    """The number by which a kernel notes an index that is out of bounds."""
    return Word(partial(faults.lasting_number, name=name, axis=axis, sizes=sizes))


class DirectWriter:
    """Stores the parameters of one launch, and says what has to be put back behind it.

    Args:
        address: gives the register with the address of an operand or result, or of scratch memory, and the word of a
            :class:`Word`.
        prefix: of its registers.
    """

    def __init__(self, address: Callable[[Any], str], prefix: str):
        self._address, self.prefix = address, prefix
        self.lines: list[str] = []
        self.after: list[str] = []

    def write(self, params: Sequence[Any]) -> None:
        """Store all parameters."""
        for place, param in enumerate(params):
            if not isinstance(param, Struct):
                self._store(param, f"%value{place}")
                continue
            block = f"{self.prefix}{place}"
            size = f"[{len(param.words)} x i64]"
            self.lines += [f"  {block} = alloca {size}", f"  store {size} zeroinitializer, ptr {block}"]
            for number, word in enumerate(param.words):
                if word != 0:
                    self.lines.append(f"  {block}_{number} = getelementptr i8, ptr {block}, i64 {8 * number}")
                    self._store(word, f"{block}_{number}")
            self.lines.append(f"  store ptr {block}, ptr %place{place}")
            self.after.append(f"  store ptr %value{place}, ptr %place{place}")

    def _store(self, word: Any, to: str) -> None:
        if isinstance(word, int):
            self.lines.append(f"  store i64 {word}, ptr {to}")
        else:
            register = self._address(word)
            self.lines.append(f"  store ptr {register}, ptr {to}")

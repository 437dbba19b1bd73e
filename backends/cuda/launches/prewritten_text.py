"""Launches of prewritten kernels with symbolic addresses, and the LLVM IR that stores their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....named_tuple import NamedTuple
from ....tracer.graph import Value
from ..codegen.kernel import CudaKernel
from ..kernels import sources
from ..runtime import faults


def are_tensors(*values: Any) -> bool:
    """Whether all arguments are tensors, and not weak values (Python numbers of a call)."""
    return all(isinstance(value, Value) and value.weak is None for value in values)


class Address(NamedTuple):
    """The address of an operand or a result of the node, by number; results follow operands."""

    number: int


class Scratch(NamedTuple):
    """An address in the scratch memory of the node, by its offset in bytes."""

    offset: int


class DeviceNumber(NamedTuple):
    """A number that depends on the device, computed by ``make(index)`` when a graph is compiled."""

    make: Callable[[int], int]


class Struct(NamedTuple):
    """A struct parameter of 8-byte words."""

    words: tuple[Any, ...]


class Launch(NamedTuple):
    """One kernel.

    Attributes:
        kernel: the kernel, with its grid, and the bytes of scratch memory of the node.
        params: for each parameter an int, an :class:`Address`, a :class:`Scratch`, a :class:`DeviceNumber`, or a
            :class:`Struct` of these.
    """

    kernel: CudaKernel
    params: tuple[Any, ...]


FAULT = DeviceNumber(lambda index: faults.fault_words(index).ptr)


def make_source_launch(name: str, count: int, *params: Any, scratch: int = 0) -> Launch:
    """The launch of a kernel of :mod:`tandem.backends.cuda.kernels.sources` for ``count`` elements."""
    kernel = sources.kernel(name)
    grid = (kernel.blocks(count, sources.BLOCKS), 1, 1)
    return Launch(kernel._replace(grid=grid, temporaries=scratch), params)


def fault_number(name: str, axis: int, sizes: tuple[int, ...]) -> DeviceNumber:
    """The number by which a kernel reports an index that is out of bounds."""
    return DeviceNumber(partial(faults.register_compiled_call, name=name, axis=axis, sizes=sizes))


class ParameterWriter:
    """Writes the instructions that store the parameters of one launch, and those that restore pointers afterwards.

    Args:
        address: returns the register with the value of an :class:`Address`, :class:`Scratch` or :class:`DeviceNumber`.
        prefix: of the registers.
    """

    def __init__(self, address: Callable[[Any], str], prefix: str):
        self._address, self.prefix = address, prefix
        self.lines: list[str] = []
        self.after: list[str] = []

    def write(self, params: Sequence[Any]) -> None:
        """Store all parameters."""
        for index, param in enumerate(params):
            if not isinstance(param, Struct):
                self._store(param, f"%value{index}")
                continue
            block = f"{self.prefix}{index}"
            size = f"[{len(param.words)} x i64]"
            self.lines += [f"  {block} = alloca {size}", f"  store {size} zeroinitializer, ptr {block}"]
            for number, word in enumerate(param.words):
                if word != 0:
                    self.lines.append(f"  {block}_{number} = getelementptr i8, ptr {block}, i64 {8 * number}")
                    self._store(word, f"{block}_{number}")
            self.lines.append(f"  store ptr {block}, ptr %parameter{index}")
            self.after.append(f"  store ptr %value{index}, ptr %parameter{index}")

    def _store(self, word: Any, to: str) -> None:
        if isinstance(word, int):
            self.lines.append(f"  store i64 {word}, ptr {to}")
        else:
            register = self._address(word)
            self.lines.append(f"  store ptr {register}, ptr {to}")

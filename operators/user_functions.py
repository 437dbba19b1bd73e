"""Kernels in other languages, as lowering and backends see them."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..registry.dtypes import DType
from ..registry.values import TensorSpec
from .c_signature import CSignature, Param
from .rules import broadcast_shapes

_serial = itertools.count()


class ScalarFunction(NamedTuple):
    """A function of one element of each argument, which is called from within emitted loops.

    Attributes:
        symbol: its name in emitted code.
        params: the types of its parameters.
        result: the type of its result.
        language: ``"C"`` or ``"LLVM"``.
        address: where it lies; 0 for one that is emitted with the loops.
        ir: the text of a module that defines it; empty for one that has an address.
    """

    symbol: str
    params: tuple[DType, ...]
    result: DType
    language: str
    address: int = 0
    ir: str = ""


class Passed(NamedTuple):
    """What one parameter of a buffer function gets.

    Attributes:
        param: the parameter.
        place: the argument's position, or -1.
        keyword: the keyword-only argument's name, or empty.
        result: the result's number, or -1.
    """

    param: Param
    place: int = -1
    keyword: str = ""
    result: int = -1

    def of(self, args: Any, kwargs: Any, results: Any) -> Any:
        """The argument or result that it is about."""
        if self.result >= 0:
            return results[self.result]
        return kwargs[self.keyword] if self.keyword else args[self.place]


class BufferFunction(NamedTuple):
    """A C function of data pointers and sizes, for whole tensors.

    Attributes:
        symbol: its name in emitted code.
        signature: the prototype.
        passed: what each parameter gets.
        address: where it lies.
    """

    symbol: str
    signature: CSignature
    passed: tuple[Passed, ...]
    address: int


@runtime_checkable
class UserKernel(Protocol):
    """A kernel that a backend can call without Python: what the CPU's slot of an operator may hold."""

    function: ScalarFunction | BufferFunction


def symbol(stem: str) -> str:
    """A name for emitted code that no other function of the process has."""
    return f"user_{stem}_{next(_serial)}"


def takes_number(dtype: DType, number: Any) -> bool:
    """Whether a parameter takes a Python number of that type."""
    if isinstance(number, bool):
        return dtype.kind == "b"
    return dtype.is_inexact if isinstance(number, float) else isinstance(number, int) and dtype.kind != "b"


def scalar_reason(function: ScalarFunction, given: Any, out: TensorSpec) -> str:
    """Why a scalar function cannot compute a call from within a loop; empty if it can.

    Args:
        function: the function.
        given: for each operand its spec, or a number.
        out: the spec of the result.
    """
    for place, (one, wanted) in enumerate(zip(given, function.params)):
        if not isinstance(one, TensorSpec):
            if not takes_number(wanted, one):
                return f"it takes {wanted.name} as argument {place}, not {one!r}"
        elif one.dtype is not wanted:
            return f"it takes {wanted.name} as argument {place}, not {one.dtype.name}"
    if out.dtype is not function.result:
        return f"it gives {function.result.name}, and the fake {out.dtype.name}"
    if broadcast_shapes("", *(one.shape for one in given if isinstance(one, TensorSpec))) != out.shape:
        return "the shape of its result is not that of its arguments"
    return ""

"""Kernels in other languages, as lowering and backends see them."""

from __future__ import annotations

import itertools
from typing import Any, Protocol, runtime_checkable

from ...named_tuple import NamedTuple
from ...registry.dtypes import DType
from ...registry.values import TensorSpec
from ..declare.shape_rules import broadcast_shapes
from .c_signature import CSignature, Param

_serial = itertools.count()


class ScalarFunction(NamedTuple):
    """A function of one element of each argument; emitted loops call it.

    Attributes:
        symbol: its name in emitted code.
        params: the types of its parameters.
        result: the type of its result.
        language: ``"C"`` or ``"LLVM"``.
        address: its address; 0 for a function that is emitted with the loops.
        ir: the text of an LLVM module that defines it; empty for a function with an address.
    """

    symbol: str
    params: tuple[DType, ...]
    result: DType
    language: str
    address: int = 0
    ir: str = ""


class ParameterBinding(NamedTuple):
    """The value that a parameter of a buffer function receives.

    Attributes:
        param: the parameter.
        number: the argument's position, or -1.
        keyword: the keyword-only argument's name, or empty.
        result: the result's number, or -1.
    """

    param: Param
    number: int = -1
    keyword: str = ""
    result: int = -1

    def of(self, args: Any, kwargs: Any, results: Any) -> Any:
        """The bound argument or result."""
        if self.result >= 0:
            return results[self.result]
        return kwargs[self.keyword] if self.keyword else args[self.number]


class BufferFunction(NamedTuple):
    """A C function of data pointers and sizes, for whole tensors.

    Attributes:
        symbol: its name in emitted code.
        signature: the prototype.
        passed: the binding of each parameter.
        address: its address.
    """

    symbol: str
    signature: CSignature
    passed: tuple[ParameterBinding, ...]
    address: int


@runtime_checkable
class UserKernel(Protocol):
    """A kernel that a backend can call without Python; it may be registered for the CPU."""

    function: ScalarFunction | BufferFunction


def make_symbol(stem: str) -> str:
    """A unique name for a function in emitted code."""
    return f"user_{stem}_{next(_serial)}"


def accepts_number(dtype: DType, number: Any) -> bool:
    """Whether a parameter of a dtype accepts a Python number."""
    if isinstance(number, bool):
        return dtype.kind == "b"
    return dtype.is_inexact if isinstance(number, float) else isinstance(number, int) and dtype.kind != "b"


def explain_mismatch(function: ScalarFunction, given: Any, out: TensorSpec) -> str:
    """The reason why a scalar function cannot compute a call; empty if it can.

    Args:
        function: the function.
        given: for each operand its spec, or a number.
        out: the spec of the result.
    """
    for index, (one, wanted) in enumerate(zip(given, function.params)):
        if not isinstance(one, TensorSpec):
            if not accepts_number(wanted, one):
                return f"it takes {wanted.name} as argument {index}, not {one!r}"
        elif one.dtype is not wanted:
            return f"it takes {wanted.name} as argument {index}, not {one.dtype.name}"
    if out.dtype is not function.result:
        return f"it returns {function.result.name}, but the fake returns {out.dtype.name}"
    if broadcast_shapes("", *(one.shape for one in given if isinstance(one, TensorSpec))) != out.shape:
        return "the shape of its result is not that of its arguments"
    return ""

"""Foreign functions: kernels in C, CUDA C and LLVM IR, as lowering and backends see them."""

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
    """The argument or result of the operator that is passed as one parameter of a foreign function.

    Attributes:
        param: the parameter.
        arg_index: the index of the positional argument, or -1.
        kwarg_name: the name of the keyword-only argument, or empty.
        result_index: the index of the result, or -1.
    """

    param: Param
    arg_index: int = -1
    kwarg_name: str = ""
    result_index: int = -1

    def select(self, args: Any, kwargs: Any, results: Any) -> Any:
        """Select the argument or result that is bound to the parameter."""
        if self.result_index >= 0:
            return results[self.result_index]
        return kwargs[self.kwarg_name] if self.kwarg_name else args[self.arg_index]


class BufferFunction(NamedTuple):
    """A C function of data pointers and sizes, for whole tensors.

    Attributes:
        symbol: its name in emitted code.
        signature: the prototype.
        bindings: the binding of each parameter.
        address: its address.
    """

    symbol: str
    signature: CSignature
    bindings: tuple[ParameterBinding, ...]
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


def explain_mismatch(function: ScalarFunction, operands: Any, out: TensorSpec) -> str:
    """Explain why the signature of a scalar function does not match a call; empty if it matches.

    Args:
        function: the function.
        operands: for each operand its spec, or a number.
        out: the spec of the result.
    """
    for index, (operand, dtype) in enumerate(zip(operands, function.params)):
        if not isinstance(operand, TensorSpec):
            if not accepts_number(dtype, operand):
                return f"it takes {dtype.name} as argument {index}, not {operand!r}"
        elif operand.dtype is not dtype:
            return f"it takes {dtype.name} as argument {index}, not {operand.dtype.name}"
    if out.dtype is not function.result:
        return f"it returns {function.result.name}, but the fake returns {out.dtype.name}"
    shapes = [operand.shape for operand in operands if isinstance(operand, TensorSpec)]
    if broadcast_shapes("", *shapes) != out.shape:
        return "the shape of its result is not that of its arguments"
    return ""

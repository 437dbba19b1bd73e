"""The scalar IR evaluated with NumPy's ufuncs: the kernel that runs everywhere, and the meaning of each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lazy
from ..registry import dtypes as dt
from ..registry.dtypes import DType
from .expr import NODES, Expr, constant_value, order
from .quiet import quietly

Array = Any
Ufunc = Callable[..., Array]


def _erf(x: Array) -> Array:
    return lazy.scipy_special().erf(x)


def _erfc(x: Array) -> Array:
    return lazy.scipy_special().erfc(x)


def _pow(a: Array, b: Array) -> Array:
    """NumPy's power, but defined for negative integer exponents: the truncated quotient 1 // a**-b."""
    if np.result_type(a, b).kind != "i" or not np.any(np.less(b, 0)):
        return np.power(a, b)
    positive = np.power(a, np.maximum(b, 0))
    odd = np.bitwise_and(b, 1) == 1
    unit = np.where(np.equal(a, 1), 1, np.where(np.equal(a, -1), np.where(odd, -1, 1), 0))
    return np.where(np.less(b, 0), unit, positive).astype(positive.dtype)


def _complex(real: Array, imag: Array) -> Array:
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return result


UFUNCS: dict[str, Ufunc] = {row.name: getattr(np, row.numpy) for row in NODES.values() if row.numpy != "-"}
"""The NumPy function of each node of ``expr.NODES``, and of ``select``."""
UFUNCS |= {
    "erf": _erf,
    "erfc": _erfc,
    "pow": _pow,
    "select": np.where,
    "complex": _complex,
    "real": lambda x: np.real(x).copy(),  # NumPy's are views
    "imag": lambda x: np.imag(x).copy(),
}


def convert(x: Array, dtype: DType) -> Array:
    """``x`` as ``dtype``, with the one result where NumPy's own depends on an element's place in the array."""
    x = np.asarray(x)
    if dtype is dt.uint32 and x.dtype.kind not in "biu":
        x = (x.real if x.dtype.kind == "c" else x).astype(np.int64)
    elif x.dtype.kind == "c" and dtype.kind not in "bc":
        x = x.real
    return x.astype(dtype.np)


Step = tuple[Ufunc, tuple[int, ...]]


class _Program:
    """An expression as a list of calls over numbered values: the operands, the constants, then each result."""

    def __init__(self, root: Expr, arity: int):
        self.constants: list[Any] = []
        self.steps: list[Step] = []
        places: dict[Expr, int] = {}
        nodes = order(root)
        for expr in nodes:
            if expr.op == "const":
                places[expr] = arity + len(self.constants)
                self.constants.append(constant_value(expr))
            elif expr.op == "arg":
                places[expr] = expr.payload
        for expr in nodes:
            if expr not in places:
                places[expr] = arity + len(self.constants) + len(self.steps)
                self.steps.append((_function(expr), tuple(places[a] for a in expr.args)))
        self.result = places[root]
        alone = len(self.steps) == 1 and self.steps[0][1] == tuple(range(arity))
        self.ufunc = self.steps[0][0] if alone else None

    def stretched(self, *arrays: Array) -> Array:
        return np.array(np.broadcast_to(self.run(*arrays), np.broadcast_shapes(*map(np.shape, arrays))))

    def run(self, *arrays: Array) -> Array:
        values = [*arrays, *self.constants]
        for function, places in self.steps:
            values.append(function(*[values[i] for i in places]))
        return values[self.result]


def _function(expr: Expr) -> Ufunc:
    if expr.op != "cast":
        return UFUNCS[expr.op]
    dtype = expr.dtype
    return lambda x: convert(x, dtype)


def numpy_kernel(root: Expr, arity: int | None = None) -> Callable[..., Array]:
    """A function of NumPy arrays that evaluates ``root`` and never warns.

    Args:
        root: the expression.
        arity: the number of operands; without it, what ``root`` uses.

    Returns:
        a function of ``arity`` arrays of the operands' dtypes; it broadcasts them and returns a new array of
        ``root.dtype``, 0-d for 0-d operands.

    >>> from tandem.operators import scalar as s
    >>> from tandem.registry import dtypes as dt
    >>> numpy_kernel(s.instantiate(lambda x, y: x // y, [dt.int8] * 2))(np.int8([7, 7]), np.int8([2, 0]))
    array([3, 0], dtype=int8)
    """
    used = {e.payload for e in order(root) if e.op == "arg"}
    arity = max(used, default=-1) + 1 if arity is None else arity
    program, dtype = _Program(root, arity), root.dtype.np
    if not program.steps or len(used) < arity:
        function = program.stretched  # an operand itself, or one left out: copied, or widened to its shape
    else:
        function = program.ufunc or program.run

    def kernel(*arrays: Array) -> Array:
        result = quietly(function, *arrays)
        return result if type(result) is np.ndarray and result.dtype is dtype else np.asarray(result, dtype)

    return kernel

"""Evaluate the scalar IR with NumPy's ufuncs: the kernel without native code, and the reference of each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lazy
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from ..declare.quiet import call_quietly
from .expr import NODES, Expr, constant_value, is_product, multiply_repeatedly, order

scipy_special = lazy.Module("scipy.special")

Array = np.ndarray[Any, np.dtype[Any]]
Ufunc = Callable[..., Array]


def _erf(x: Array) -> Array:
    result: Array = scipy_special.erf(x)
    return result


def _erfc(x: Array) -> Array:
    result: Array = scipy_special.erfc(x)
    return result


def _erfinv(x: Array) -> Array:
    """SciPy's erfinv in float64, whose result for -0.0 is 0.0."""
    result: Array = np.copysign(scipy_special.erfinv(x.astype(np.float64)), x).astype(x.dtype)
    return result


def _pow(a: Array, b: Array) -> Array:
    """NumPy's power; negative integer exponents return the truncated quotient ``1 / a**-b``."""
    if np.result_type(a, b).kind in "fc" and np.ndim(b) == 0:
        # NumPy chooses other functions for a scalar exponent
        power: Array = np.power(a, np.reshape(b, (1,))).reshape(np.shape(a))
        return power
    if np.result_type(a, b).kind != "i" or not np.any(np.less(b, 0)):
        return np.power(a, b)
    positive = np.power(a, np.maximum(b, 0))
    odd = np.bitwise_and(b, 1) == 1
    unit = np.where(np.equal(a, 1), 1, np.where(np.equal(a, -1), np.where(odd, -1, 1), 0))
    return np.where(np.less(b, 0), unit, positive).astype(positive.dtype)


_BY_EXPONENT: dict[float, Callable[[Array], Array]] = {
    0.0: np.ones_like,
    1.0: np.positive,
    2.0: np.square,
    -1.0: np.reciprocal,
    0.5: np.sqrt,
}


def _uniform_pow(a: Array, b: Array) -> Array:
    """The power with one exponent for all elements; see ``expr.uniform_power``."""
    if a.dtype.kind == "c":
        return _uniform_complex_pow(a, b)
    if a.dtype.kind != "f":
        return _pow(a, b)
    number = float(np.ravel(b)[0])
    if number in _BY_EXPONENT:
        return _BY_EXPONENT[number](a)
    if a.dtype.itemsize == 2 or not is_product(number):
        return _pow(a, b)
    product: Array = multiply_repeatedly(a.astype(np.float64), abs(int(number)))
    result: Array = product if number > 0 else 1 / product
    return result.astype(a.dtype)


def _uniform_complex_pow(a: Array, b: Array) -> Array:
    """The power of complex numbers with one real exponent."""
    number = float(np.real(np.ravel(b)[0]))
    if number in (0, 0.5):
        return _BY_EXPONENT[number](a)
    if not is_product(number):
        return _pow(a, b)
    product: Array = multiply_repeatedly(a, abs(int(number)))
    return product if number > 0 else 1 / product


def _log1p(x: Array) -> Array:
    """NumPy's function; that of complex numbers loses the digits of small ones."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    precise = 0.5 * np.log1p(x.real * (x.real + 2) + x.imag**2) + np.arctan2(x.imag, x.real + 1) * 1j
    return np.where((np.abs(x.real) < 0.5) & (np.abs(x.imag) < 0.5), precise, np.log1p(x))


def _expm1(x: Array) -> Array:
    """NumPy's function; that of complex numbers has NaN for the imaginary part of infinity."""
    result = np.expm1(x)
    return np.where(x.imag == 0, result.real + x.imag * 1j, result) if x.dtype.kind == "c" else result


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
    "portable_erfc": _erfc,
    "erfinv": _erfinv,
    "expm1": _expm1,
    "log1p": _log1p,
    "pow": _pow,
    "uniform_pow": _uniform_pow,
    "select": np.where,
    "complex": _complex,
    "real": lambda x: np.real(x).copy(),  # NumPy's are views
    "imag": lambda x: np.imag(x).copy(),
}


def cast_array(x: Array, dtype: DType) -> Array:
    """``x.astype(dtype)``, made deterministic where NumPy's result depends on an element's position in the array."""
    x = np.asarray(x)
    if dtype is dt.uint32 and x.dtype.kind not in "biu":
        x = (x.real if x.dtype.kind == "c" else x).astype(np.int64)
    elif x.dtype.kind == "c" and dtype.kind not in "bc":
        x = x.real
    return x.astype(dtype.np)


def ufunc_of(expr: Expr) -> Ufunc:
    """The NumPy function of a node other than ``arg`` and ``const``."""
    if expr.op != "cast":
        return UFUNCS[expr.op]
    dtype = expr.dtype
    return lambda x: cast_array(x, dtype)


Instruction = tuple[Ufunc, tuple[int, ...]]


class _Program:
    """An expression as a list of calls on numbered values: the operands, the constants, then each result."""

    def __init__(self, root: Expr, arity: int, find: Callable[[Expr], Ufunc]):
        self.constants: list[Any] = []
        self.instructions: list[Instruction] = []
        slots: dict[Expr, int] = {}
        nodes = order(root)
        for expr in nodes:
            if expr.op == "const":
                slots[expr] = arity + len(self.constants)
                self.constants.append(constant_value(expr))
            elif expr.op == "arg":
                slots[expr] = expr.payload
        for expr in nodes:
            if expr not in slots:
                slots[expr] = arity + len(self.constants) + len(self.instructions)
                self.instructions.append((find(expr), tuple(slots[a] for a in expr.args)))
        self.result = slots[root]
        is_single = len(self.instructions) == 1 and self.instructions[0][1] == tuple(range(arity))
        self.ufunc = self.instructions[0][0] if is_single else None

    def run_broadcast(self, *arrays: Array) -> Array:
        return np.array(np.broadcast_to(self.run(*arrays), np.broadcast_shapes(*map(np.shape, arrays))))

    def run(self, *arrays: Array) -> Array:
        values: list[Array] = [*arrays, *self.constants]
        for function, slots in self.instructions:
            values.append(function(*[values[i] for i in slots]))
        return values[self.result]


def numpy_kernel(
    root: Expr, arity: int | None = None, find: Callable[[Expr], Ufunc] = ufunc_of
) -> Callable[..., Array]:
    """A function of NumPy arrays that evaluates ``root`` without warnings.

    Args:
        root: the expression.
        arity: the number of operands; None: the number that ``root`` uses.
        find: returns the function of a node.

    Returns:
        A function of ``arity`` arrays of the operands' dtypes. It broadcasts them and returns a new array of
        ``root.dtype``, 0-d for 0-d operands.

    >>> from tandem.operators.scalar_ir import nodes as s
    >>> from tandem.registry import dtypes as dt
    >>> numpy_kernel(s.instantiate(lambda x, y: x // y, [dt.int8] * 2))(np.int8([7, 7]), np.int8([2, 0]))
    array([3, 0], dtype=int8)
    """
    used = {e.payload for e in order(root) if e.op == "arg"}
    arity = max(used, default=-1) + 1 if arity is None else arity
    program, dtype = _Program(root, arity, find), root.dtype.np
    if not program.instructions or len(used) < arity:
        function = program.run_broadcast  # the result is an operand, or has another shape: copy and broadcast
    else:
        function = program.ufunc or program.run

    def kernel(*arrays: Array) -> Array:
        result: Array = call_quietly(function, *arrays)
        return result if type(result) is np.ndarray and result.dtype is dtype else np.asarray(result, dtype)

    return kernel

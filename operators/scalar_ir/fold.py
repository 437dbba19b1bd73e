"""Folds: the declaration of a reduction or scan, from which each backend generates its code.

NumPy kernels, the loops of native eager calls, fused kernels in LLVM IR and CUDA C, and shape checks read a
:class:`Fold`; none of them knows folds by name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import DTypeError
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from .expr import Expr, Number, arg, cast, order

_SELECTING = frozenset("arg const cast select minimum maximum and or xor eq ne lt le gt ge isnan".split())
"""Nodes that return one of their operands, or a bool: combining with them never rounds."""


def accumulate_as_argument(source: DType, out: DType) -> DType:
    """Combine in the dtype of the elements."""
    return source


def accumulate_as_result(source: DType, out: DType) -> DType:
    """Combine in the dtype of the result."""
    return out


class Fold:
    """An associative and commutative combination of elements.

    Each element is converted to the accumulator's dtype and mapped by ``prepare``; the elements of a row are combined
    in any order; the combined value is mapped by ``finish`` and converted to the dtype of the result. float16 and
    bfloat16 are accumulated in float32 (:meth:`operand`).

    Args:
        name: the name of the fold in kernels and reports; folds with different bodies have different names.
        combine: the scalar body of two accumulators, which returns an accumulator.
        identity: a function from the accumulator's dtype to the Python number that combines with any value to that
            value.
        accumulator: a function from the dtypes of the elements and of the result to the accumulator's dtype; where it
            returns float16 or bfloat16, the accumulator is float32.
        prepare: the scalar body of one element; None: the element itself.
        finish: the scalar body of the combined value; None: the value itself.
        returns_index: whether the result is the index (int64) of the first element that equals the combined value;
            ``combine`` is then ``maximum`` or ``minimum``.
        needs_elements: whether a reduction of no elements is an error; otherwise it returns the identity.
        compensated: whether long sums of floats also accumulate their rounding errors (Neumaier); for ``a + b`` only.

    Raises:
        ValueError: the fold of an index combines by another node than ``maximum`` or ``minimum``, or has a ``finish``.

    >>> from tandem.registry import dtypes as dt
    >>> sumsq = Fold("sumsq", lambda a, b: a + b, lambda dtype: 0, prepare=lambda x: x * x)
    >>> sumsq.operand(arg(0, dt.float32), dt.float32)
    mul(arg(0):float32, arg(0):float32):float32
    """

    __slots__ = (
        *("name", "combine", "identity", "accumulator", "prepare", "finish"),
        *("returns_index", "needs_elements", "compensated"),
    )

    def __init__(
        self,
        name: str,
        combine: Callable[[Expr, Expr], Expr],
        identity: Callable[[DType], Number],
        accumulator: Callable[[DType, DType], DType] = accumulate_as_argument,
        *,
        prepare: Callable[[Expr], Expr] | None = None,
        finish: Callable[[Expr], Expr] | None = None,
        returns_index: bool = False,
        needs_elements: bool = False,
        compensated: bool = False,
    ):
        self.name, self.combine, self.identity, self.accumulator = name, combine, identity, accumulator
        self.prepare, self.finish = prepare, finish
        self.returns_index, self.needs_elements = returns_index, needs_elements
        self.compensated = compensated
        if self.returns_index and (
            self.finish is not None or self.node(dt.float32) not in ("maximum", "minimum")
        ):
            raise ValueError(
                f"{self.name}: an index is returned of the maximum or the minimum, without a finish"
            )

    def __repr__(self) -> str:
        return f"Fold({self.name!r})"

    def accumulation_dtype(self, source: DType, out: DType) -> DType:
        """The dtype in which elements of ``source`` are combined for a result of ``out``."""
        return self.operand(arg(0, source), out).dtype

    def operand(self, x: Expr, out: DType) -> Expr:
        """The value that an element contributes, in the dtype of the accumulator: float32 for float16 and bfloat16."""
        dtype = self.accumulator(x.dtype, out)
        value = cast(cast(x, dtype), dt.float32 if dtype in dt.HALVES else dtype)
        return value if self.prepare is None else self.prepare(value)

    def combined(self, dtype: DType) -> Expr:
        """``combine`` of ``arg(0)`` and ``arg(1)``, accumulators of ``dtype``.

        Raises:
            DTypeError: ``combine`` returns another dtype.
        """
        result = self.combine(arg(0, dtype), arg(1, dtype))
        if result.dtype is not dtype:
            raise DTypeError(
                f"{self.name}: combine returns {result.dtype.name} for accumulators of {dtype.name}"
            )
        return result

    def finished(self, value: Expr) -> Expr:
        """The result for a combined value, before its conversion to the dtype of the result."""
        return value if self.finish is None else self.finish(value)

    def result_dtype(self, dtype: DType) -> DType:
        """The dtype of :meth:`finished` for accumulators of ``dtype``, or int64 for an index."""
        return dt.int64 if self.returns_index else self.finished(arg(0, dtype)).dtype

    def node(self, dtype: DType) -> str:
        """The node of the scalar IR that ``combine`` consists of; empty if it is more than one node."""
        expr = self.combined(dtype)
        return expr.op if [a.op for a in expr.args] == ["arg", "arg"] else ""

    def describe(self, source: DType, out: DType) -> str:
        """A text that is equal only for folds of equal bodies, such as the key of a cache on disk."""
        operand = self.operand(arg(0, source), out)
        bodies = self.combined(operand.dtype), self.finished(arg(0, operand.dtype))
        identity = self.identity(operand.dtype)
        return (
            f"{self.name} of {operand!r} by {bodies!r} from {identity!r} as {out.name}, {self.compensated=}"
        )

    @property
    def is_plain(self) -> bool:
        """Whether elements are combined as they are, and the combined value is the result."""
        return self.prepare is None and self.finish is None

    def rounds(self, dtype: DType) -> bool:
        """Whether combining accumulators of ``dtype`` rounds, so that the bits of the result depend on the order."""
        return dtype.is_inexact and any(e.op not in _SELECTING for e in order(self.combined(dtype)))


def lowest(dtype: DType) -> Number:
    """The identity of ``maximum``."""
    return -np.inf if dtype.kind == "f" else False if dtype is dt.bool_ else int(np.iinfo(dtype.np).min)


def highest(dtype: DType) -> Number:
    """The identity of ``minimum``."""
    return np.inf if dtype.kind == "f" else True if dtype is dt.bool_ else int(np.iinfo(dtype.np).max)


EXTREMUM_IDENTITIES = {"maximum": lowest, "minimum": highest}
"""By operator, which has the name of its node: the function that returns its identity in a dtype."""

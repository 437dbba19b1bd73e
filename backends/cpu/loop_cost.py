"""Estimated run times of eager loops, in nanoseconds: they decide which kernels release the GIL.

An error of a small factor does no harm.
"""

from __future__ import annotations

from ...operators.scalar_ir.cost import cost
from ...operators.scalar_ir.expr import Expr, arg, order
from ...registry.dtypes import float32

RELEASE_NS = 30_000.0  # a kernel that takes longer releases the GIL
NS_PER_INSTRUCTION = 0.1  # a cheap operation on one element, vectorized
_LOAD_COST = cost(arg(0, float32)) - 1  # the cost of loading an operand


def estimate_element(body: Expr) -> float:
    """Return the time of one element of an eager loop."""
    operands = sum(e.op == "arg" for e in order(body))
    return NS_PER_INSTRUCTION * max(1, cost(body) - _LOAD_COST * operands)


def elements_per_time(time: float, each: float) -> int:
    """Return the number of elements computed in a given time."""
    return max(1, int(time / each))

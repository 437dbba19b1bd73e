"""Comparisons, classification of floats, and logic. All return bools, so none has a derivative.

A Python integer that does not fit the tensor's integer dtype raises, as in arithmetic: the scalar is first converted to
the tensor's dtype, in which the comparison is computed.
"""

from __future__ import annotations

from collections.abc import Callable

from ...registry.dtypes import ALL, REAL
from ..declare.kinds import binary, unary
from ..scalar_ir import nodes as s

Compare = Callable[[s.Expr, s.Expr], s.Expr]


def _order(compare: Compare) -> Compare:
    """The comparison with complex numbers in the order of their real parts, then of their imaginary parts.

    A number with a NaN is neither less nor greater than any other, as in NumPy.
    """
    strictly = {s.lt: s.lt, s.le: s.lt, s.gt: s.gt, s.ge: s.gt}[compare]

    def body(a: s.Expr, b: s.Expr) -> s.Expr:
        if a.dtype.kind != "c":
            return compare(a, b)
        (x, y), (v, w) = (s.real(a), s.imag(a)), (s.real(b), s.imag(b))
        is_ordered = s.logical_and(s.eq(y, y), s.eq(w, w))
        return s.logical_or(
            s.logical_and(strictly(x, v), is_ordered), s.logical_and(s.eq(x, v), compare(y, w))
        )

    return body


eq = binary(
    "eq",
    s.eq,
    doc="Whether two tensors are equal, elementwise; NaN is not equal to itself.",
    example="td.eq(td.asarray([1, 2]), 2) -> [False, True]",
    reference="numpy.equal",
    dtypes=ALL,
    result="bool",
    aliases=("equal",),
)
ne = binary(
    "ne",
    s.ne,
    doc="Whether two tensors differ, elementwise; NaN differs from itself.",
    example="td.ne(td.asarray([1, 2]), 2) -> [True, False]",
    reference="numpy.not_equal",
    dtypes=ALL,
    result="bool",
    aliases=("not_equal",),
)
lt = binary(
    "lt",
    _order(s.lt),
    doc="Whether `self` is less than `other`, elementwise; complex numbers by the real part, then the imaginary one.",
    example="td.lt(td.asarray([1, 2]), 2) -> [True, False]",
    reference="numpy.less",
    dtypes=ALL,
    result="bool",
    aliases=("less",),
)
le = binary(
    "le",
    _order(s.le),
    doc="Whether `self` is at most `other`, elementwise.",
    example="td.le(td.asarray([1, 3]), 2) -> [True, False]",
    reference="numpy.less_equal",
    dtypes=ALL,
    result="bool",
    aliases=("less_equal",),
)
gt = binary(
    "gt",
    _order(s.gt),
    doc="Whether `self` is greater than `other`, elementwise.",
    example="td.gt(td.asarray([1, 3]), 2) -> [False, True]",
    reference="numpy.greater",
    dtypes=ALL,
    result="bool",
    aliases=("greater",),
)
ge = binary(
    "ge",
    _order(s.ge),
    doc="Whether `self` is at least `other`, elementwise.",
    example="td.ge(td.asarray([1, 2]), 2) -> [False, True]",
    reference="numpy.greater_equal",
    dtypes=ALL,
    result="bool",
    aliases=("greater_equal",),
)

isnan = unary(
    "isnan",
    s.isnan,
    doc="Whether an element is NaN; False for integers.",
    example="td.isnan(td.asarray([1.0, float('nan')])) -> [False, True]",
    reference="numpy.isnan",
    dtypes=ALL,
    result="bool",
)
isinf = unary(
    "isinf",
    s.isinf,
    doc="Whether an element is infinite, of either sign; False for integers.",
    example="td.isinf(td.asarray([1.0, -float('inf')])) -> [False, True]",
    reference="numpy.isinf",
    dtypes=ALL,
    result="bool",
)
isfinite = unary(
    "isfinite",
    s.isfinite,
    doc="Whether an element is neither infinite nor NaN.",
    example="td.isfinite(td.asarray([1.0, float('inf')])) -> [True, False]",
    reference="numpy.isfinite",
    dtypes=ALL,
    result="bool",
)
signbit = unary(
    "signbit",
    s.signbit,
    doc="Whether the sign bit is set, including -0.0 and NaN.",
    example="td.signbit(td.asarray([-0.0, 0.0])) -> [True, False]",
    reference="numpy.signbit",
    dtypes=REAL,
    result="bool",
)

logical_and = binary(
    "logical_and",
    s.logical_and,
    doc="Whether both elements are true (not zero).",
    example="td.logical_and(td.asarray([0, 2]), True) -> [False, True]",
    reference="numpy.logical_and",
    dtypes=ALL,
    result="bool",
)
logical_or = binary(
    "logical_or",
    s.logical_or,
    doc="Whether either element is true (not zero).",
    example="td.logical_or(td.asarray([0, 2]), False) -> [False, True]",
    reference="numpy.logical_or",
    dtypes=ALL,
    result="bool",
)
logical_xor = binary(
    "logical_xor",
    s.logical_xor,
    doc="Whether exactly one of two elements is true (not zero).",
    example="td.logical_xor(td.asarray([0, 2]), True) -> [True, False]",
    reference="numpy.logical_xor",
    dtypes=ALL,
    result="bool",
)
logical_not = unary(
    "logical_not",
    s.logical_not,
    doc="Whether an element is false (zero).",
    example="td.logical_not(td.asarray([0, 2])) -> [True, False]",
    reference="numpy.logical_not",
    dtypes=ALL,
    result="bool",
)

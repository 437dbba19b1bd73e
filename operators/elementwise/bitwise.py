"""Operators on the bits of integers and bools.

A shift by at least the width, or by a negative number, shifts all bits out: the result is 0, or -1 for a negative
number shifted right.
"""

from __future__ import annotations

from ...registry.dtypes import INTEGERS, bool_
from ..declare.derivatives import NotDifferentiable
from ..declare.kinds import binary, unary
from ..scalar_ir import nodes as s

_BITS = (bool_, *INTEGERS)
_INTEGERS_ONLY = NotDifferentiable("it accepts only integers and bools")

bitwise_and = binary(
    "bitwise_and",
    s.bitwise_and,
    doc="The bits set in both elements.",
    example="td.bitwise_and(td.asarray([5, 6]), 3) -> [1, 2]",
    reference="numpy.bitwise_and",
    dtypes=_BITS,
    derivative=_INTEGERS_ONLY,
)
bitwise_or = binary(
    "bitwise_or",
    s.bitwise_or,
    doc="The bits set in either element.",
    example="td.bitwise_or(td.asarray([5, 6]), 3) -> [7, 7]",
    reference="numpy.bitwise_or",
    dtypes=_BITS,
    derivative=_INTEGERS_ONLY,
)
bitwise_xor = binary(
    "bitwise_xor",
    s.bitwise_xor,
    doc="The bits set in exactly one of two elements.",
    example="td.bitwise_xor(td.asarray([5, 6]), 3) -> [6, 5]",
    reference="numpy.bitwise_xor",
    dtypes=_BITS,
    derivative=_INTEGERS_ONLY,
)
bitwise_not = unary(
    "bitwise_not",
    s.invert,
    doc="The inverted bits of each element; the logical not of a bool.",
    example="td.bitwise_not(td.asarray([0, 5])) -> [-1, -6]",
    reference="numpy.bitwise_not",
    dtypes=_BITS,
    derivative=_INTEGERS_ONLY,
    aliases=("bitwise_invert", "invert"),
)
bitwise_left_shift = binary(
    "bitwise_left_shift",
    s.lshift,
    doc="The bits of `self` shifted left by `other`; bits shifted out are lost.",
    example="td.bitwise_left_shift(td.asarray([1, 5]), 2) -> [4, 20]",
    reference="numpy.left_shift",
    dtypes=INTEGERS,
    derivative=_INTEGERS_ONLY,
    aliases=("left_shift",),
)
bitwise_right_shift = binary(
    "bitwise_right_shift",
    s.rshift,
    doc="The bits of `self` shifted right by `other`; the sign is kept.",
    example="td.bitwise_right_shift(td.asarray([4, -5]), 1) -> [2, -3]",
    reference="numpy.right_shift",
    dtypes=INTEGERS,
    derivative=_INTEGERS_ONLY,
    aliases=("right_shift",),
)

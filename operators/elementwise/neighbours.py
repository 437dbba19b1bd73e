"""nextafter: the representable number next to another."""

from __future__ import annotations

from ...registry.dtypes import float32, float64
from ..declare.derivatives import NotDifferentiable
from ..declare.kinds import binary
from ..scalar_ir import nodes as s

nextafter = binary(
    "nextafter",
    s.nextafter,
    doc="The next representable number after `self` towards `other`; `other` if they are equal.",
    example="td.nextafter(td.asarray([1.0]), 2.0) -> [1.0000001192092896]",
    reference="numpy.nextafter",
    dtypes=(float32, float64),
    derivative=NotDifferentiable("nextafter steps between representable numbers"),
)

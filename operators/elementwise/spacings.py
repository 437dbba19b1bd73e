"""spacing: the distance to the next representable number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry.dtypes import float32, float64
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from .arithmetic import copysign
from .casting import stop_gradient
from .comparison import isfinite
from .neighbours import nextafter
from .selection import where

if TYPE_CHECKING:
    from ...registry.types import Tensor


@composite(
    "spacing(Tensor self) -> Tensor",
    doc=make_docstring(
        "The distance to the next representable number away from zero, with the sign of the element.",
        """Args:
    self: tensor of dtype float32 or float64, any shape.

Returns:
    A tensor of the same shape and dtype; NaN for infinities and NaNs.

Raises:
    DTypeError: the dtype is not supported.""",
        "td.spacing(td.asarray([1.0])) -> [1.1920928955078125e-07]",
    ),
    reference="numpy.spacing",
    samples="samples.elementwise.float_samples",
    errors=list,
    dtypes=(float32, float64),
    method=False,
    spellings={"x": "self"},
)
def spacing(self: Tensor) -> Tensor:
    x = stop_gradient(self)  # the derivative of steps is zero
    return where(isfinite(x), nextafter(x, copysign(float("inf"), x)) - x, float("nan"))

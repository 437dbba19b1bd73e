"""add, sub, div and round with PyTorch's options; ``alpha``, ``rounding_mode`` and ``decimals`` select them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ValueArgumentError
from ...registry.dtypes import FLOATS, NUMERIC, REAL
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import is_known, promoted_dtype
from .arithmetic import add, div, floor_divide, fmod, sub
from .number_parts import around
from .rounding import trunc

if TYPE_CHECKING:
    from ...registry.types import Number, Tensor

_ARGS = """Args:
    self, other: tensors of {dtypes} dtype; shapes that broadcast.
    {more}

Returns:
    A tensor of the broadcast shape and the promoted dtype.

Raises:
    DTypeError: the dtype is not supported, or the dtypes do not promote.
    ShapeError: the shapes do not broadcast."""
_ALPHA = _ARGS.format(dtypes="numeric", more="alpha: a factor of `other`.")


@composite(
    "add.alpha(Tensor self, Tensor other, *, Scalar alpha) -> Tensor",
    doc=make_docstring("`self + alpha * other`.", _ALPHA, "td.add(td.asarray([1.0]), 2.0, alpha=3) -> [7.0]"),
    reference=lambda x, y, alpha: x + x.dtype.type(alpha) * y,
    samples="samples.weighted_sums.alpha_samples",
    errors="samples.weighted_sums.alpha_errors",
    dtypes=NUMERIC,
    autocast="promote",
    inplace=True,
)
def add_alpha(self: Tensor, other: Tensor, *, alpha: Number) -> Tensor:
    return add(self, other if is_known(alpha, 1) else alpha * other)


@composite(
    "sub.alpha(Tensor self, Tensor other, *, Scalar alpha) -> Tensor",
    doc=make_docstring(
        "`self - alpha * other`.", _ALPHA, "td.sub(td.asarray([1.0]), 2.0, alpha=3) -> [-5.0]"
    ),
    reference=lambda x, y, alpha: x - x.dtype.type(alpha) * y,
    samples="samples.weighted_sums.alpha_samples",
    errors="samples.weighted_sums.alpha_errors",
    dtypes=NUMERIC,
    autocast="promote",
    inplace=True,
)
def sub_alpha(self: Tensor, other: Tensor, *, alpha: Number) -> Tensor:
    return sub(self, other if is_known(alpha, 1) else alpha * other)


@composite(
    "div.mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    doc=make_docstring(
        "Quotients that are rounded.",
        _ARGS.format(
            dtypes="real",
            more='rounding_mode: `"floor"`: down; `"trunc"`: towards zero; None: not rounded.',
        )
        + "\n    ValueArgumentError: another rounding mode.",
        'td.div(td.asarray([-7, 7]), 2, rounding_mode="trunc") -> [-3, 3]',
    ),
    reference="references.torch_functions.div_mode",
    samples="samples.weighted_sums.rounding_samples",
    errors="samples.weighted_sums.rounding_errors",
    dtypes=REAL,
    autocast="promote",
    inplace=True,
)
def div_mode(self: Tensor, other: Tensor, *, rounding_mode: str | None) -> Tensor:
    if rounding_mode is None:
        return div(self, other)
    if rounding_mode == "floor":
        return floor_divide(self, other)
    if rounding_mode != "trunc":
        raise ValueArgumentError(f'div: rounding_mode is "floor", "trunc" or None, not {rounding_mode!r}')
    if promoted_dtype("div", (self, other)).is_inexact:
        return trunc(div(self, other))
    return floor_divide(sub(self, fmod(self, other)), other)  # the remainder has the sign of `self`


@composite(
    "round.decimals(Tensor self, int decimals) -> Tensor",
    doc=make_docstring(
        "Each element rounded to a number of decimal digits, halves to the even digit.",
        """Args:
    self: a tensor of real floating dtype, any shape.
    decimals: the number of digits after the point; negative: of zeros before it.

Returns:
    A tensor of the same shape and dtype.""",
        "td.round(td.asarray([1.25, -3.75]), decimals=1) -> [1.2000000476837158, -3.799999952316284]",
    ),
    reference="numpy.round",
    samples="samples.weighted_sums.decimals_samples",
    dtypes=FLOATS,
    tolerance={"float16": 1e-2, "bfloat16": 8e-2},
    autocast="float32",
    inplace=True,
)
def round_decimals(self: Tensor, decimals: int) -> Tensor:
    return around(self, decimals)

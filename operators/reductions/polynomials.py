"""polyadd, polysub, polymul, polydiv, polyder and polyint: polynomials as vectors, the highest power first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import NUMERIC
from ..creation.creation import arange, full
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import is_tensor, promoted_dtype, result_dtype, spec_of
from ..elementwise.casting import cast
from ..shape.joining import concat
from ..shape.splitting import slice_axis
from ..shape.views import broadcast_to, reshape
from .signals import convolve

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ARGS = """Args:
    self, other: the coefficients, tensors of one axis; those of the highest power are first.

Returns:
    The coefficients of the {what}, of the promoted dtype; leading zeros remain, as in JAX.

Raises:
    ShapeError: a tensor has not one axis."""
_SLACK = {"float16": 2e-2, "bfloat16": 8e-2, "float32": 1e-5, "complex64": 1e-5}


def _check_coefficients(name: str, *polynomials: Tensor) -> None:
    for one in polynomials:
        if len(spec_of(one).shape) != 1:
            raise ShapeError(f"{name}: coefficients have one axis, not shape {spec_of(one).shape}")


def _pair_samples(*, least: int) -> list[SampleInput]:
    pairs = [(3, 5), (4, 2), (1, 1), *([(0, 2)] if not least else [])]
    return [SampleInput((TensorSample((one,)), TensorSample((two,)))) for one, two in pairs]


def _pair_errors() -> list[ErrorInput]:
    return [ErrorInput((TensorSample((2, 2)), TensorSample((2,))), ValueError, "one axis")]


def _align(name: str, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The coefficients with zeros in front, up to the same length."""
    _check_coefficients(name, self, other)
    size = max(spec_of(self).size, spec_of(other).size)
    one, two = (
        x
        if spec_of(x).size == size
        else concat([full((size - spec_of(x).size,), 0, dtype=spec_of(x).dtype, device=spec_of(x).device), x])
        for x in (self, other)
    )
    return one, two


@composite(
    "polyadd(Tensor self, Tensor other) -> Tensor",
    doc=make_docstring(
        "The sum of two polynomials.",
        _ARGS.format(what="sum"),
        "td.polyadd(td.asarray([1, 2]), td.asarray([3])) -> [1, 5]",
    ),
    reference="numpy.polyadd",
    samples=lambda dtype: _pair_samples(least=0),
    errors=_pair_errors,
    dtypes=NUMERIC,
    method=False,
    spellings={"a1": "self", "a2": "other"},
)
def polyadd(self: Tensor, other: Tensor) -> Tensor:
    one, two = _align("polyadd", self, other)
    return one + two


@composite(
    "polysub(Tensor self, Tensor other) -> Tensor",
    doc=make_docstring(
        "The difference of two polynomials.",
        _ARGS.format(what="difference"),
        "td.polysub(td.asarray([1, 2]), td.asarray([3])) -> [1, -1]",
    ),
    reference="numpy.polysub",
    samples=lambda dtype: _pair_samples(least=0),
    errors=_pair_errors,
    dtypes=NUMERIC,
    method=False,
    spellings={"a1": "self", "a2": "other"},
)
def polysub(self: Tensor, other: Tensor) -> Tensor:
    one, two = _align("polysub", self, other)
    return one - two


@composite(
    "polymul(Tensor self, Tensor other) -> Tensor",
    doc=make_docstring(
        "The product of two polynomials.",
        _ARGS.format(what="product"),
        "td.polymul(td.asarray([1, 2]), td.asarray([1, 3])) -> [1, 5, 6]",
    ),
    reference="numpy.convolve",
    samples=lambda dtype: _pair_samples(least=1),
    errors=_pair_errors,
    dtypes=NUMERIC,
    method=False,
    tolerance=_SLACK,
    autocast="lower",
    spellings={"a1": "self", "a2": "other"},
)
def polymul(self: Tensor, other: Tensor) -> Tensor:
    _check_coefficients("polymul", self, other)
    return convolve(self, other)


@composite(
    "polydiv(Tensor self, Tensor other) -> (Tensor quotient, Tensor remainder)",
    doc=make_docstring(
        "The quotient and the remainder of two polynomials.",
        """Args:
    self, other: the coefficients, tensors of one axis and at least one element; those of the highest power are first,
        and that of ``other`` is not 0.

Returns:
    ``(quotient, remainder)``, of floating dtype; the remainder is as long as ``self``, with zeros in front, as in JAX.

Raises:
    ShapeError: a tensor has not one axis, or no elements.

>>> [part.tolist() for part in td.polydiv(td.asarray([2.0, 5.0, 1.0]), td.asarray([1.0, 2.0]))]
[[2.0, 1.0], [0.0, 0.0, -1.0]]
""",
        "",
    ),
    reference="references.numpy_functions.polydiv",
    samples=lambda dtype: [
        SampleInput((TensorSample((one,)), TensorSample((two,), 1.0, 3.0)))
        for one, two in ((4, 2), (3, 3), (2, 4))
    ],
    errors=_pair_errors,
    dtypes=NUMERIC,
    method=False,
    tolerance=_SLACK,
    autocast="float32",
    spellings={"u": "self", "v": "other"},
)
def polydiv(self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    _check_coefficients("polydiv", self, other)
    size, length = spec_of(self).size, spec_of(other).size
    if not size or not length:
        raise ShapeError("polydiv: a polynomial has at least one coefficient")
    dtype = result_dtype("float", promoted_dtype("polydiv", (self, other)))
    rest, divisor = cast(self, dtype), cast(other, dtype)
    factors = [full((1,), 0, dtype=dtype, device=spec_of(self).device)] if size < length else []
    for step in range(size - length + 1):
        factors.append(slice_axis(rest, 0, step, step + 1) / slice_axis(divisor, 0, 0, 1))
        less = slice_axis(rest, 0, step, step + length) - factors[-1] * divisor
        # the leading coefficient is zero without a rounding error
        parts = [slice_axis(rest, 0, 0, step), slice_axis(less, 0, 0, 1) * 0, slice_axis(less, 0, 1, length)]
        rest = concat([*parts, slice_axis(rest, 0, step + length, size)])
    return concat(factors), rest


@composite(
    "polyder(Tensor self, int m=1) -> Tensor",
    doc=make_docstring(
        "The m-th derivative of a polynomial.",
        """Args:
    self: the coefficients, a tensor of one axis; that of the highest power is first.
    m: the order of the derivative.

Returns:
    The coefficients of the derivative, of the same dtype.

Raises:
    ShapeError: the tensor has not one axis.
    ValueArgumentError: ``m`` is negative.""",
        "td.polyder(td.asarray([1, 2, 3])) -> [2, 2]",
    ),
    reference="numpy.polyder",
    samples=lambda dtype: [SampleInput((TensorSample((4,)), m)) for m in (0, 1, 2, 5)],
    errors=lambda: [
        ErrorInput((TensorSample((2, 2)),), ValueError, "one axis"),
        ErrorInput((TensorSample((2,)), -1), ValueError, "negative"),
    ],
    dtypes=NUMERIC,
    method=False,
    tolerance=_SLACK,
    autocast="float32",
    spellings={"p": "self"},
)
def polyder(self: Tensor, m: int) -> Tensor:
    _check_coefficients("polyder", self)
    if m < 0:
        raise ValueArgumentError(f"polyder: m is not negative, and is {m}")
    spec, result = spec_of(self), self
    for step in range(min(m, spec.size)):
        rest = spec.size - step - 1
        powers = cast(arange(rest, 0, -1, device=spec.device), spec.dtype)
        result = slice_axis(result, 0, 0, rest) * powers
    return result


@composite(
    "polyint(Tensor self, int m=1, Tensor? k=None) -> Tensor",
    doc=make_docstring(
        "The m-th antiderivative of a polynomial.",
        """Args:
    self: the coefficients, a tensor of one axis; that of the highest power is first.
    m: the order of the antiderivative.
    k: the constants of integration: a number, or a tensor of ``m`` of them; None: 0.

Returns:
    The coefficients of the antiderivative, of floating dtype.

Raises:
    ShapeError: the tensor has not one axis, or the constants do not fit.
    ValueArgumentError: ``m`` is negative.""",
        "td.polyint(td.asarray([2.0, 2.0]), 1, 3) -> [1.0, 2.0, 3.0]",
    ),
    reference="numpy.polyint",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3,)), m)) for m in (0, 1, 3)),
        SampleInput((TensorSample((3,)), 2, TensorSample((2,)))),
        SampleInput((TensorSample((3,)), 1, 2)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2, 2)),), ValueError, "one axis"),
        ErrorInput((TensorSample((2,)), -1), ValueError, "negative"),
        ErrorInput((TensorSample((2,)), 2, TensorSample((3,))), ValueError, "constants"),
    ],
    dtypes=NUMERIC,
    method=False,
    tolerance=_SLACK,
    autocast="float32",
    spellings={"p": "self"},
    promotes=True,
)
def polyint(self: Tensor, m: int, k: Tensor | None) -> Tensor:
    _check_coefficients("polyint", self)
    if m < 0:
        raise ValueArgumentError(f"polyint: m is not negative, and is {m}")
    spec = spec_of(self)
    dtype = result_dtype("float", promoted_dtype("polyint", (self,) if k is None else (self, k)))
    if is_tensor(k) and spec_of(k).size not in (1, m):
        raise ShapeError(f"polyint: constants of shape {spec_of(k).shape} do not fit m={m}")
    constants = (
        broadcast_to(reshape(cast(k, dtype), (-1,)), (m,))
        if is_tensor(k)
        else full((m,), k or 0, dtype=dtype, device=spec.device)
    )
    result = cast(self, dtype)
    for step in range(m):
        powers = cast(arange(spec.size + step, 0, -1, device=spec.device), dtype)
        result = concat([result / powers, slice_axis(constants, 0, step, step + 1)])
    return result

"""isclose, allclose, array_equal and array_equiv."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import ALL, bool_
from ..creation.creation import full
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import broadcast_shapes, promoted_dtype, result_dtype, spec_of
from ..reductions.folds import all
from .arithmetic import abs, sub
from .casting import cast
from .comparison import eq, isfinite, isnan, le, logical_and, logical_or

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ARGS = """Args:
    self, other: tensors of any dtype; shapes that broadcast.
    rtol: the tolerance, relative to the magnitude of `other`.
    atol: the absolute tolerance.
    equal_nan: whether NaN is close to NaN.

Returns:
    {returns}

Raises:
    ShapeError: the shapes do not broadcast."""
_ERRORS = lambda: [ErrorInput((TensorSample((2,)), TensorSample((3,))), ValueError, "broadcast")]  # noqa: E731


def _promote(name: str, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    dtype = result_dtype("float", promoted_dtype(name, (self, other)))
    return cast(self, dtype), cast(other, dtype)


@composite(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    doc=make_docstring(
        "Whether abs(self - other) <= atol + rtol * abs(other), elementwise; infinities are close if equal.",
        _ARGS.format(returns="A bool tensor of the broadcast shape."),
        "td.isclose(td.asarray([1.0, 2.0]), td.asarray([1.0, 2.1])) -> [True, False]",
    ),
    reference="references.numpy_functions.isclose",
    samples="samples.elementwise.closeness_samples",
    errors=_ERRORS,
    dtypes=ALL,
)
def isclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    x, y = _promote("isclose", self, other)
    near = logical_and(le(abs(sub(x, y)), abs(y) * rtol + atol), isfinite(y))
    result = logical_or(near, eq(x, y))
    return logical_or(result, logical_and(isnan(x), isnan(y))) if equal_nan else result


@composite(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    doc=make_docstring(
        "Whether all elements are close, as in `isclose`.",
        _ARGS.format(returns="A 0-d bool tensor."),
        "td.allclose(td.asarray([1.0, 2.0]), 1.0) -> False",
    ),
    reference="references.numpy_functions.allclose",
    samples="samples.elementwise.closeness_samples",
    errors=_ERRORS,
    dtypes=ALL,
)
def allclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    return all(isclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan))


_EQUAL_ARGS = """Args:
    self, other: tensors of any dtype.{more}

Returns:
    A 0-d bool tensor."""


@composite(
    "array_equal(Tensor self, Tensor other, bool equal_nan=False) -> Tensor",
    doc=make_docstring(
        "Whether two tensors have the same shape and elements.",
        _EQUAL_ARGS.format(more="\n    equal_nan: whether NaN is equal to NaN."),
        "td.array_equal(td.asarray([1, 2]), td.asarray([1, 2])) -> True",
    ),
    reference="numpy.array_equal",
    samples="samples.elementwise.array_equal_samples",
    dtypes=ALL,
    method=False,
)
def array_equal(self: Tensor, other: Tensor, equal_nan: bool) -> Tensor:
    spec = spec_of(self)
    if spec.shape != spec_of(other).shape:
        return full((), False, dtype=bool_, device=spec.device)
    same = eq(self, other)
    return all(logical_or(same, logical_and(isnan(self), isnan(other))) if equal_nan else same)


@composite(
    "array_equiv(Tensor self, Tensor other) -> Tensor",
    doc=make_docstring(
        "Whether two tensors broadcast and have the same elements then.",
        _EQUAL_ARGS.format(more=""),
        "td.array_equiv(td.asarray([1, 1]), 1) -> True",
    ),
    reference="numpy.array_equiv",
    samples="samples.elementwise.array_equiv_samples",
    dtypes=ALL,
    method=False,
)
def array_equiv(self: Tensor, other: Tensor) -> Tensor:
    try:
        broadcast_shapes("array_equiv", spec_of(self).shape, spec_of(other).shape)
    except ShapeError:
        return full((), False, dtype=bool_, device=spec_of(self).device)
    return all(eq(self, other))

"""Declare transforms; normalization, axes and lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import ShapeError, ValueArgumentError
from ..operators.declare.declaration import ErrorInput, TensorSample
from ..operators.declare.kinds import composite
from ..operators.declare.shape_rules import normalize_axis, spec_of
from ..operators.elementwise.casting import astype
from ..operators.shape.rearrange import moveaxis
from ..registry.dtypes import COMPLEX, float32, float64, to_complex
from .sums import CLOSE, resize_last_axis

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Tensor

DTYPES = (float32, float64, *COMPLEX)
NORMS = ("backward", "ortho", "forward")

_ONE = """{doc}

    Args:
        self: a {taken} tensor of at least one axis.
        n: the number of points to transform, truncated or padded with zeros; None: {none}.
        axis: the axis of the points.
        norm: the transform that is scaled by 1/n: ``"backward"`` (the inverse) or ``"forward"``; ``"ortho"``: both, by
            1/sqrt(n).

    Returns:
        A {given} tensor.

    Raises:
        ShapeError: there is no point to transform.
        ValueArgumentError: another norm.
        OutOfBoundsError: there is no such axis.

    >>> {example}
    """
_MANY = """{doc}

    Args:
        self: a {taken} tensor.
        s: the number of points to transform along each of the axes; None: the sizes of the axes.
        axes: the axes{default}.
        norm: the transform that is scaled by 1/n: ``"backward"`` (the inverse) or ``"forward"``; ``"ortho"``: both, by
            1/sqrt(n).

    Returns:
        A {given} tensor.

    Raises:
        ShapeError: there is no point to transform, or ``s`` and ``axes`` differ in length.
        ValueArgumentError: another norm.
        OutOfBoundsError: there is no such axis.

    >>> {example}
    """


def normalization_factor(name: str, n: int, norm: str, inverse: bool) -> float:
    """The factor of a transform of ``n`` points.

    Raises:
        ValueArgumentError: an unknown norm.
        ShapeError: there is no point.
    """
    if norm not in NORMS:
        raise ValueArgumentError(f"{name}: norm is one of {', '.join(map(repr, NORMS))}, not {norm!r}")
    if n < 1:
        raise ShapeError(f"{name}: needs at least one point to transform, not {n}")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "backward") is inverse else 1.0


def apply_along_axis(name: str, x: Tensor, axis: int, run: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a function of the last axis along another axis."""
    at = normalize_axis(name, axis, len(spec_of(x).shape))
    if at == len(spec_of(x).shape) - 1:
        result: Tensor = run(x)
        return result
    return moveaxis(run(moveaxis(x, at, -1)), -1, at)


def as_complex(x: Tensor) -> Tensor:
    """The tensor as a complex tensor of the same precision, in the default one for integers."""
    dtype = spec_of(x).dtype
    return x if dtype.kind == "c" else astype(x, to_complex(dtype))


def scale(x: Tensor, by: float) -> Tensor:
    """The product with a number; for 1 the tensor itself."""
    return x if by == 1.0 else x * by


def set_length(x: Tensor, n: int | None) -> Tensor:
    """The tensor truncated or zero-padded to ``n`` points along its last axis."""
    return x if n is None or n < 1 else resize_last_axis(x, n)


def one_axis_transform(
    name: str, doc: str, example: str, *, given: str, real: bool = False, none: str = "as many as there are"
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    """Declare a transform along one axis."""
    taken = "real" if real else "real or complex"
    return composite(
        f"fft_{name}(Tensor self, int? n=None, int axis=-1, str norm='backward') -> Tensor",
        doc=_ONE.format(doc=doc, taken=taken, given=given, example=example, none=none),
        reference=f"numpy.fft.{name}",
        samples="samples.fft.one_samples",
        errors=lambda: [
            ErrorInput((TensorSample((3,)), 0), ValueError, "at least one point"),
            ErrorInput((TensorSample((3,)), 3, 1), IndexError, "out of bounds"),
            ErrorInput((TensorSample((3,)), 3, 0, "none"), ValueError, "norm"),
        ],
        dtypes=DTYPES[:2] if real else DTYPES,
        tolerance=CLOSE,
        method=False,
    )


def multi_axis_transform(
    name: str, doc: str, example: str, *, given: str, last: bool = False, real: bool = False
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    """Declare a transform along several axes: by default all, or the last two."""
    words = {
        "doc": doc,
        "taken": "real" if real else "real or complex",
        "given": given,
        "example": example,
        "default": "" if last else "; None: the last ones, as many as ``s`` has, or all",
    }
    return composite(
        f"fft_{name}(Tensor self, int[]? s=None, int[]? axes={'[-2, -1]' if last else 'None'}, str norm='backward')"
        " -> Tensor",
        doc=_MANY.format(**words),
        reference=f"numpy.fft.{name}",
        samples="samples.fft.pair_samples" if last else "samples.fft.many_samples",
        errors=lambda: [
            ErrorInput((TensorSample((3, 3)), (2,), (0, 1)), ValueError, "as many"),
            ErrorInput((TensorSample((3, 3)), (2, 2), (0, 2)), IndexError, "out of bounds"),
            ErrorInput((TensorSample((3, 3)), (3, 0), (0, 1)), ValueError, "at least one point"),
        ],
        dtypes=DTYPES[:2] if real else DTYPES,
        tolerance=CLOSE,
        method=False,
    )


def axes_and_sizes(
    name: str, x: Tensor, s: Sequence[int] | None, axes: Sequence[int] | None
) -> list[tuple[int, int | None]]:
    """The axes with the number of points along each.

    Raises:
        ShapeError: ``s`` and ``axes`` differ in length.
    """
    rank = len(spec_of(x).shape)
    if axes is None:
        axes = tuple(range(rank) if s is None else range(rank - len(s), rank))
    if s is not None and len(s) != len(axes):
        raise ShapeError(f"{name}: s {tuple(s)} needs as many sizes as there are axes, {tuple(axes)}")
    items = [normalize_axis(name, axis, rank) for axis in axes]
    return list(zip(items, s if s is not None else [None] * len(items)))

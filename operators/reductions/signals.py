"""interp, convolve, correlate, unwrap and gradient: functions of sampled signals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import NUMERIC, REAL
from ..declare.array_arguments import accept_arrays
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import (
    is_tensor,
    normalize_axes,
    normalize_axis,
    promoted_dtype,
    result_dtype,
    spec_of,
)
from ..elementwise.arithmetic import abs, remainder
from ..elementwise.casting import cast
from ..elementwise.comparison import eq, gt, logical_and, lt
from ..elementwise.complex_parts import conj
from ..elementwise.selection import clip, maximum, where
from ..indexing.slicing import basic_index
from ..indexing.take import take
from ..nn.convolution_layers import conv1d
from ..shape.joining import concat
from ..shape.rearrange import flip
from ..shape.splitting import diff, slice_axis
from ..shape.views import reshape
from .scans import cumsum
from .searching import searchsorted
from .sorting import argsort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...registry.types import Array, ArrayModule, Number, Tensor


# -- interp ------------------------------------------------------------------------------------------------------------
def _repeat_period(xp: Tensor, fp: Tensor, period: float) -> tuple[Tensor, Tensor]:
    """The points of one period in ascending order, with the last one in front and the first one behind."""
    folded = remainder(xp, period)
    order = argsort(folded)
    xp, fp, size = take(folded, order), take(fp, order), spec_of(fp).size
    last, first = ((size - 1, 1, 1),), ((0, 1, 1),)
    return (
        concat([basic_index(xp, last) - period, xp, basic_index(xp, first) + period]),
        concat([basic_index(fp, last), fp, basic_index(fp, first)]),
    )


@composite(
    "interp(Tensor self, Tensor xp, Tensor fp, Tensor? left=None, Tensor? right=None, float? period=None) -> Tensor",
    doc=make_docstring(
        "The values of a piecewise linear function.",
        """Args:
    self: where to evaluate: tensor of integer or real floating dtype, any shape.
    xp: the positions of the given values, an increasing tensor of one axis.
    fp: the values there.
    left, right: the result before the first and behind the last position; None: the first and the last value.
    period: the period of the function; positions need not increase then, and ``left`` and ``right`` have no effect.

Returns:
    A tensor of the shape of ``self``, of the promoted dtype, or the default float for integers.

Raises:
    ShapeError: there are no positions, or not one value for each.
    ValueArgumentError: the period is 0.""",
        "td.interp(td.asarray([0.5, 9.0]), td.asarray([0.0, 1.0]), td.asarray([2.0, 4.0])) -> [3.0, 4.0]",
    ),
    reference="references.numpy_functions.interp",
    samples="samples.reductions.interp_samples",
    errors="samples.reductions.interp_errors",
    dtypes=REAL,
    method=False,
    tolerance={"float16": 1e-2, "bfloat16": 8e-2, "float32": 2e-5, "float64": 1e-12},
    autocast="float32",
    spellings={"x": "self"},
)
def interp(
    self: Tensor, xp: Tensor, fp: Tensor, left: Tensor | None, right: Tensor | None, period: float | None
) -> Tensor:
    shape = spec_of(xp).shape
    if len(shape) != 1 or spec_of(fp).shape != shape or not shape[0]:
        raise ShapeError(
            f"interp: needs positions of one axis and a value for each, not shapes {shape} and {spec_of(fp).shape}"
        )
    if period == 0:
        raise ValueArgumentError("interp: the period is not 0")
    dtype = result_dtype("float", promoted_dtype("interp", (self, xp)))
    x, xp = (cast(one, dtype) for one in (self, xp))
    fp = cast(fp, result_dtype("float", promoted_dtype("interp", (x, fp))))
    if period is not None:
        size = math.fabs(period)
        x, (xp, fp) = remainder(x, size), _repeat_period(xp, fp, size)
    count = spec_of(xp).size
    behind = clip(searchsorted(xp, x, "right"), min(1, count - 1), count - 1)
    before = clip(behind - 1, 0, None)
    start, step = take(xp, before), take(xp, behind) - take(xp, before)
    flat = eq(step, 0)
    share = (x - start) / where(flat, 1, step)
    inside = where(flat, take(fp, behind), take(fp, before) + share * (take(fp, behind) - take(fp, before)))
    first, last = basic_index(xp, (0,)), basic_index(xp, (count - 1,))
    low = basic_index(fp, (0,)) if left is None else left
    high = basic_index(fp, (count - 1,)) if right is None else right
    return cast(where(lt(x, first), low, where(gt(x, last), high, inside)), fp.dtype)


# -- convolve and correlate --------------------------------------------------------------------------------------------
_ARGS = """Args:
    self, other: tensors of numeric dtype of one axis.
    mode: ``"full"``: wherever they overlap, ``"same"``: the middle of that, as long as the longer one, ``"valid"``:
        where they overlap completely.

Returns:
    A tensor of one axis and the promoted dtype.

Raises:
    ShapeError: a tensor has not one axis, or no elements.
    ValueArgumentError: another mode."""


def _check_signals(name: str, self: Tensor, other: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    if mode not in ("full", "same", "valid"):
        raise ValueArgumentError(f"{name}: mode is 'full', 'same' or 'valid', not {mode!r}")
    for one in (self, other):
        if len(spec_of(one).shape) != 1 or not spec_of(one).size:
            raise ShapeError(
                f"{name}: needs tensors of one axis with elements, not shape {spec_of(one).shape}"
            )
    dtype = promoted_dtype(name, (self, other))
    return cast(self, dtype), cast(other, dtype)


def _slide(signal: Tensor, kernel: Tensor, mode: str) -> Tensor:
    """The sums of products with the kernel, which is not longer, at each offset."""
    size = kernel.shape[0]
    padding = {"valid": (0, 0), "same": (size // 2, size - size // 2 - 1), "full": (size - 1, size - 1)}[mode]
    rows = conv1d(reshape(signal, (1, 1, signal.shape[0])), reshape(kernel, (1, 1, size)), padding=(padding,))
    return reshape(rows, (rows.shape[-1],))


def _convolve_arrays(np: ArrayModule, x: Array, y: Array, mode: str) -> Any:  # noqa: ANN401
    """``convolve`` of integers, whose sums are exact; NotImplemented for others, which are compiled."""
    return np.convolve(x, y, mode) if _are_integer_signals(x, y) else NotImplemented


def _correlate_arrays(np: ArrayModule, x: Array, y: Array, mode: str) -> Any:  # noqa: ANN401
    """``correlate``, as :func:`_convolve_arrays`."""
    return np.correlate(x, y, mode) if _are_integer_signals(x, y) else NotImplemented


def _are_integer_signals(x: Any, y: Any) -> bool:  # noqa: ANN401
    is_integer = hasattr(x, "dtype") and hasattr(y, "dtype") and x.dtype == y.dtype and x.dtype.kind in "iu"
    return is_integer and x.ndim == y.ndim == 1 and bool(x.size and y.size)


@composite(
    "convolve(Tensor self, Tensor other, str mode='full') -> Tensor",
    doc=make_docstring(
        "The convolution of two vectors.",
        _ARGS,
        "td.convolve(td.asarray([1, 2, 3]), td.asarray([0, 1])) -> [0, 1, 2, 3]",
    ),
    reference="numpy.convolve",
    eager_kernel=_convolve_arrays,
    samples=("samples.reductions.convolve_samples",),
    errors="samples.reductions.convolve_errors",
    dtypes=NUMERIC,
    method=False,
    tolerance={"float16": 2e-2, "bfloat16": 8e-2, "float32": 1e-5, "complex64": 1e-5},
    autocast="lower",
    spellings={"a": "self", "v": "other"},
)
def convolve(self: Tensor, other: Tensor, mode: str) -> Tensor:
    one, two = _check_signals("convolve", self, other, mode)
    if one.shape[0] < two.shape[0]:
        one, two = two, one
    return _slide(one, flip(two), mode)


@composite(
    "correlate(Tensor self, Tensor other, str mode='valid') -> Tensor",
    doc=make_docstring(
        "The correlation of two vectors; the second one is conjugated.",
        _ARGS,
        "td.correlate(td.asarray([1, 2, 3]), td.asarray([0, 1])) -> [2, 3]",
    ),
    reference="numpy.correlate",
    eager_kernel=_correlate_arrays,
    samples=("samples.reductions.convolve_samples",),
    errors="samples.reductions.convolve_errors",
    dtypes=NUMERIC,
    method=False,
    tolerance={"float16": 2e-2, "bfloat16": 8e-2, "float32": 1e-5, "complex64": 1e-5},
    autocast="lower",
    spellings={"a": "self", "v": "other"},
)
def correlate(self: Tensor, other: Tensor, mode: str) -> Tensor:
    one, two = _check_signals("correlate", self, other, mode)
    two = conj(two)
    if one.shape[0] >= two.shape[0]:
        return _slide(one, two, mode)
    return flip(_slide(two, one, mode))


# -- unwrap ------------------------------------------------------------------------------------------------------------
@composite(
    "unwrap(Tensor self, float? discont=None, int axis=-1, *, float period=6.283185307179586) -> Tensor",
    doc=make_docstring(
        "Angles without jumps: differences of neighbours of more than half a period become smaller ones.",
        """Args:
    self: tensor of integer or real floating dtype, of at least one axis.
    discont: the least difference that is changed; None, and less: half a period.
    axis: the axis along which neighbours are compared.
    period: the period.

Returns:
    A tensor of the same shape, of the same dtype, or the default float for integers.

Raises:
    OutOfBoundsError: there is no such axis.""",
        "td.unwrap(td.asarray([0.0, 3.0, 1.0]), period=4) -> [0.0, -1.0, -3.0]",
    ),
    reference="references.numpy_functions.unwrap",
    samples="samples.reductions.unwrap_samples",
    errors="samples.reductions.unwrap_errors",
    dtypes=REAL,
    method=False,
    tolerance={"float16": 2e-2, "bfloat16": 8e-2, "float32": 1e-5},
    autocast="float32",
    spellings={"p": "self"},
)
def unwrap(self: Tensor, discont: float | None, axis: int, *, period: float) -> Tensor:
    spec = spec_of(self)
    along, half = normalize_axis("unwrap", axis, len(spec.shape)), period / 2
    x = cast(self, result_dtype("float", spec.dtype))
    if not spec.shape[along]:
        return x
    steps = diff(x, axis=along)
    small = remainder(steps + half, period) - half
    small = where(logical_and(eq(small, -half), gt(steps, 0)), half, small)
    jumps = where(lt(abs(steps), half if discont is None else maximum(half, discont)), 0, small - steps)
    rest = slice_axis(x, along, 1, spec.shape[along]) + cumsum(jumps, along)
    return concat([slice_axis(x, along, 0, 1), rest], along)


# -- gradient ----------------------------------------------------------------------------------------------------------
@accept_arrays
def gradient(
    f: Tensor,
    *varargs: Tensor | Number,
    axis: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """The derivatives of sampled values, by central differences and by one-sided ones at the edges.

    Args:
        f: the values: tensor of numeric dtype, of at least one axis.
        varargs: the distance of the samples: nothing for 1, a number for all axes, or for each axis a number or the
            positions, a tensor of one axis.
        axis: an axis, several, or None for all.
        edge_order: the order of the differences at the edges, 1 or 2.

    Returns:
        A tensor of the shape of ``f`` and of floating dtype; for several axes a tuple of them.

    Raises:
        ShapeError: an axis is too short, or positions do not fit it.
        ValueArgumentError: the number of distances does not fit, or another ``edge_order``.
        OutOfBoundsError: there is no such axis.

    >>> import tandem as td
    >>> td.gradient(td.asarray([1.0, 2.0, 4.0, 7.0])).tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    spec = spec_of(f)
    axes = (axis,) if isinstance(axis, int) else axis
    several = normalize_axes("gradient", axes, len(spec.shape)) if axes is None else axes
    along = [normalize_axis("gradient", one, len(spec.shape)) for one in several]
    if edge_order not in (1, 2):
        raise ValueArgumentError(f"gradient: edge_order is 1 or 2, not {edge_order!r}")
    steps = varargs * len(along) if len(varargs) == 1 else varargs or (1.0,) * len(along)
    if len(steps) != len(along):
        raise ValueArgumentError(f"gradient: {len(varargs)} distances do not fit {len(along)} axes")
    values = cast(f, result_dtype("float", spec.dtype))
    result = [_differentiate(values, step, at, edge_order) for step, at in zip(steps, along)]
    return result[0] if len(result) == 1 else tuple(result)


def _differentiate(f: Tensor, step: Tensor | Number, axis: int, edge_order: int) -> Tensor:
    """The derivative along one axis."""
    size = f.shape[axis]
    if size <= edge_order:
        raise ShapeError(f"gradient: axis {axis} needs {edge_order + 1} samples at least, not {size}")
    parts = [slice_axis(f, axis, at, at + size - 2) for at in range(3)] if size > 2 else []
    if not is_tensor(step) or not spec_of(step).shape:
        inner = [(parts[2] - parts[0]) / (2 * step)] if parts else []
        widths: list[Any] = [step, step, step, step]
    else:
        if spec_of(step).shape != (size,):
            raise ShapeError(
                f"gradient: positions of shape {spec_of(step).shape} do not fit an axis of {size}"
            )
        dx = reshape(diff(cast(step, f.dtype)), [size - 1 if at == axis else 1 for at in range(len(f.shape))])
        left, right = (slice_axis(dx, axis, at, at + size - 2) for at in range(2))
        inner = [_weigh(parts, _central(left, right))] if parts else []
        widths = [
            slice_axis(dx, axis, at, at + 1) for at in (0, min(1, size - 2), max(size - 3, 0), size - 2)
        ]
    ends = [[slice_axis(f, axis, at, at + 1) for at in group] for group in _edge_samples(size, edge_order)]
    if edge_order == 1:
        first, last = (ends[0][1] - ends[0][0]) / widths[0], (ends[1][1] - ends[1][0]) / widths[3]
    else:
        first = -_weigh(ends[0][::-1], _one_sided(widths[1], widths[0]))
        last = _weigh(ends[1], _one_sided(widths[2], widths[3]))
    return concat([first, *inner, last], axis)


def _edge_samples(size: int, edge_order: int) -> tuple[range, range]:
    return range(edge_order + 1), range(size - edge_order - 1, size)


def _central(left: Tensor, right: Tensor) -> list[Tensor]:
    """The weights of three samples for the derivative at the middle one."""
    both = left + right
    return [-right / (left * both), (right - left) / (left * right), left / (right * both)]


def _one_sided(left: Tensor, right: Tensor) -> list[Tensor]:
    """The weights of three samples for the derivative at the last one."""
    both = left + right
    return [right / (left * both), -both / (left * right), (right * 2 + left) / (right * both)]


def _weigh(samples: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    one, two, three = (sample * weight for sample, weight in zip(samples, weights))
    return one + two + three

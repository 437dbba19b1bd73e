"""``pad``, with the modes of NumPy: a constant, copies or reflections of elements, ramps, and statistics.

Axes are padded one after the other, so that the padding of an axis covers the corners of those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, ShapeError, ValueArgumentError
from ...named_tuple import NamedTuple
from ...registry.dtypes import ALL, complex128, float64
from ...registry.values import TensorBase, converters, describe
from ..creation.creation import arange, full
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from ..elementwise.casting import cast
from ..elementwise.rounding import floor, round
from ..indexing.slicing import basic_put
from ..indexing.take import take
from ..reductions.folds import max, min
from ..reductions.quantiles import median
from ..reductions.statistics import mean
from .joining import concat
from .rearrange import flip
from .splitting import slice_axis
from .views import broadcast_to, reshape

if TYPE_CHECKING:
    from ...registry.types import Number, Tensor


class _Side(NamedTuple):
    """One end of an axis that is padded.

    Attributes:
        axis: the axis.
        added: the number of elements to add.
        at_end: whether it is the end, or the start.
    """

    axis: int
    added: int
    at_end: bool

    def slice(self, x: Tensor, length: int, skip: int = 0) -> Tensor:
        """The ``length`` elements next to this end, without ``skip`` elements at it."""
        size = spec_of(x).shape[self.axis]
        start = size - skip - length if self.at_end else skip
        return slice_axis(x, self.axis, start, start + length)

    def fill(self, x: Tensor, value: Tensor | Number) -> Tensor:
        """Elements to add, of one value: a number, or a tensor with length 1 along the axis."""
        spec = spec_of(x)
        shape = (*spec.shape[: self.axis], self.added, *spec.shape[self.axis + 1 :])
        if isinstance(value, TensorBase):
            return broadcast_to(cast(value, spec.dtype), shape)
        return full(shape, value, dtype=spec.dtype, device=spec.device)

    def join(self, x: Tensor, added: Tensor) -> Tensor:
        """The tensor with elements added."""
        return concat([x, added] if self.at_end else [added, x], self.axis)


# -- arguments ---------------------------------------------------------------------------------------------------------
def _is_sequence(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _to_pairs(name: str, given: Any, rank: int) -> list[tuple[Any, Any]]:  # noqa: ANN401
    """The values for both ends of each axis, from one value, ``(before, after)``, or one of these for each axis."""
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if not _is_sequence(given):
        return [(given, given)] * rank
    rows = list(given) if any(map(_is_sequence, given)) else [given]
    if all(_is_sequence(row) and len(row) in (1, 2) for row in rows) and len(rows) in (1, rank):
        pairs = [(row[0], row[-1]) for row in rows]
        return pairs * rank if len(pairs) == 1 else pairs
    raise ValueArgumentError(f"pad: {name} {given!r} is not one value, (before, after), or {rank} of these")


def _pad_widths(width: Any, rank: int) -> list[tuple[int, int]]:  # noqa: ANN401
    """The padding before and after each axis; a dict has that of some axes."""
    if isinstance(width, dict):
        pairs: list[tuple[Any, Any]] = [(0, 0)] * rank
        for axis, one in width.items():
            (pairs[normalize_axis("pad", axis, rank)],) = _to_pairs("width", one, 1)
    else:
        try:
            pairs = _to_pairs("width", width, rank)
        except ValueArgumentError:
            pairs = [(-1, -1)]
    if all(isinstance(n, (int, np.integer)) and n >= 0 for pair in pairs for n in pair):
        return [(int(before), int(after)) for before, after in pairs]
    raise ValueArgumentError(
        f"pad: width {width!r} is neither a non-negative int, nor (before, after), nor {rank} such pairs"
    )


# -- modes -------------------------------------------------------------------------------------------------------------
def _copy_elements(mode: str, x: Tensor, side: _Side, _: object) -> Tensor:
    """Copies of elements, at the positions from which NumPy copies."""
    size = spec_of(x).shape[side.axis]
    widths = (0, side.added) if side.at_end else (side.added, 0)
    positions = np.pad(np.arange(size), widths, mode=mode)  # type: ignore[call-overload]
    added = positions[size:] if side.at_end else positions[: side.added]
    return take(x, _to_tensor(added, x), side.axis)


def _to_tensor(positions: Any, x: Tensor) -> Tensor:  # noqa: ANN401
    return converters[np.ndarray](positions).to_device(spec_of(x).device)


def _reflect_odd(mode: str, x: Tensor, side: _Side, _: object) -> Tensor:
    """Reflections of elements at the edge in value as well: ``2 * edge - element``."""
    skip = int(mode == "reflect")
    size = spec_of(x).shape[side.axis]
    if size == skip:  # a single element has no other one to reflect
        return side.fill(x, x)
    parts: list[Tensor] = []
    missing = side.added
    while missing:
        length = spec_of(x).shape[side.axis] - skip
        length = length if length < missing else missing
        edge = side.slice(x, 1)
        part = edge + edge - flip(side.slice(x, length, skip), side.axis)
        parts.append(part)
        x = side.join(x, part)
        missing -= length
    return concat(parts if side.at_end else parts[::-1], side.axis)


def _ramp(x: Tensor, side: _Side, end: Tensor | Number) -> Tensor:
    """Values from ``end``, at the outside, to the edge, at equal distances."""
    spec = spec_of(x)
    wide = complex128 if spec.dtype.kind == "c" else float64
    edge = cast(side.slice(x, 1), wide)
    column = [side.added if axis == side.axis else 1 for axis in range(len(spec.shape))]
    steps = reshape(cast(arange(side.added, device=spec.device), wide), column)
    ramp = end + steps * ((edge - end) / side.added)
    ramp = flip(ramp, side.axis) if side.at_end else ramp
    return cast(ramp if spec.dtype.is_inexact else floor(ramp), spec.dtype)


def _statistic(name: str, function: Callable[..., Tensor]) -> Callable[[Tensor, _Side, Any], Tensor]:
    """A mode that pads with a statistic of the elements, or of the ``length`` elements next to the end."""

    def pad_side(x: Tensor, side: _Side, length: Any) -> Tensor:  # noqa: ANN401
        spec = spec_of(x)
        size = spec.shape[side.axis]
        if length is None:
            length = size
        elif not (isinstance(length, (int, np.integer)) and length > 0):
            raise ValueArgumentError(f"pad: stat_length is a positive int, not {describe(length)}")
        part = x if length >= size else side.slice(x, int(length))
        value = function(part, side.axis, keepdims=True)
        return side.fill(x, value if spec.dtype.is_inexact or not value.dtype.is_inexact else round(value))

    pad_side.__name__ = name
    return pad_side


def _fill_constant(x: Tensor, side: _Side, value: Tensor | Number | None) -> Tensor:
    return side.fill(x, 0 if value is None else value)


class _Mode(NamedTuple):
    """A mode of padding.

    Attributes:
        pad: computes the elements of one side: ``pad(x, side, option)``.
        option: the argument with a value for each end of each axis; empty if the mode has none.
        default: that of the option.
        extends: whether it needs elements along the axis.
    """

    pad: Callable[[Tensor, _Side, Any], Tensor]
    option: str = ""
    default: object = None
    extends: bool = True


MODES = {
    "constant": _Mode(_fill_constant, "value", 0, False),
    "empty": _Mode(_fill_constant, extends=False),
    "edge": _Mode(lambda x, side, _: side.fill(x, side.slice(x, 1))),
    "linear_ramp": _Mode(_ramp, "end_values", 0),
    "maximum": _Mode(_statistic("maximum", max), "stat_length"),
    "mean": _Mode(_statistic("mean", mean), "stat_length"),
    "median": _Mode(_statistic("median", median), "stat_length"),
    "minimum": _Mode(_statistic("minimum", min), "stat_length"),
    **{mode: _Mode(partial(_copy_elements, mode)) for mode in ("reflect", "symmetric", "wrap")},
}
_ODD = {mode: _Mode(partial(_reflect_odd, mode)) for mode in ("reflect", "symmetric")}


def _find_mode(mode: object, reflect_type: str | None) -> _Mode:
    if not isinstance(mode, str):
        raise ArgumentError(f"pad: mode is a str, not {describe(mode)}; join the parts with td.concat")
    if mode not in MODES:
        raise ValueArgumentError(f"pad: mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    if reflect_type not in (None, "even", "odd") or (reflect_type is not None and mode not in _ODD):
        raise ValueArgumentError(
            f"pad: reflect_type is 'even' or 'odd', of the modes {', '.join(map(repr, _ODD))}; "
            f"not {reflect_type!r} of {mode!r}"
        )
    return _ODD[mode] if reflect_type == "odd" else MODES[mode]


def _option_of(mode: str, parameters: _Mode, given: dict[str, object], rank: int) -> list[tuple[Any, Any]]:
    """The option of a mode for both ends of each axis."""
    for name, value in given.items():
        if value is not None and name != parameters.option:
            takers = [repr(one) for one, other in MODES.items() if other.option == name]
            raise ValueArgumentError(
                f"pad: {name} is an argument of mode {', '.join(takers)}, not of {mode!r}"
            )
    value = given.get(parameters.option)
    return _to_pairs(parameters.option, parameters.default if value is None else value, rank)


def _pad_with_number(self: Tensor, widths: Sequence[tuple[int, int]], value: Number) -> Tensor:
    spec = spec_of(self)
    shape = [before + size + after for size, (before, after) in zip(spec.shape, widths)]
    padded = full(shape, value, dtype=spec.dtype, device=spec.device)
    plan = tuple((before, size, 1) if size else (0, 0, 1) for size, (before, _) in zip(spec.shape, widths))
    return basic_put(padded, self, plan)


@composite(
    "pad(Tensor self, Any width, str mode='constant', *, Any value=None, Any stat_length=None, Any end_values=None,"
    " str? reflect_type=None) -> Tensor",
    doc=make_docstring(
        "The tensor padded: with a constant, copies or reflections of elements, ramps, or statistics.",
        """Args:
    self: any tensor.
    width: the padding: an int, ``(before, after)`` for all axes, or such a pair for each axis; or a dict of these by
        axis.
    mode: what the padding consists of:

        - ``"constant"``: ``value``; ``"empty"``: unspecified values;
        - ``"edge"``: the nearest element; ``"wrap"``: the elements from the other end on;
        - ``"reflect"``, ``"symmetric"``: the elements in reverse order, without or with the nearest one;
        - ``"linear_ramp"``: values from ``end_values`` to the nearest element;
        - ``"maximum"``, ``"mean"``, ``"median"``, ``"minimum"``: that of the axis, or of the nearest ``stat_length``
          elements.
    value: the constant: a number, or in the forms of ``width`` one for each end; 0 by default. NumPy's name is
        ``constant_values``.
    stat_length: the number of elements of a statistic, in the forms of ``width``; None: all.
    end_values: the outermost values of ramps, in the forms of ``width``; 0 by default.
    reflect_type: ``"odd"``: reflections of x are ``2 * edge - x``; ``"even"``, the default: x.

Returns:
    A new tensor.

Raises:
    ValueArgumentError: the widths do not fit the axes, there is no such mode, or an argument is one of another mode.
    ShapeError: a mode needs elements, and an axis has none.""",
        "td.pad(td.asarray([1, 2, 3]), (1, 2), 'reflect') -> [2, 1, 2, 3, 2, 1]",
    ),
    reference="references.basic.pad",
    samples="samples.shape.pad_samples",
    errors="samples.shape.pad_errors",
    dtypes=ALL,
    tolerance={"float16": 1e-2, "bfloat16": 6e-2},  # of repeated reflections, each rounded
    spellings={"constant_values": "value"},
)
def pad(
    self: Tensor,
    width: int | Sequence[int | Sequence[int]] | dict[int, int | Sequence[int]],
    mode: str,
    *,
    value: complex | Tensor | Sequence[object] | None,
    stat_length: int | Sequence[object] | None,
    end_values: complex | Tensor | Sequence[object] | None,
    reflect_type: str | None,
) -> Tensor:
    shape = spec_of(self).shape
    parameters = _find_mode(mode, reflect_type)
    given: dict[str, object] = {"value": value, "stat_length": stat_length, "end_values": end_values}
    widths, option = _pad_widths(width, len(shape)), _option_of(mode, parameters, given, len(shape))
    numbers = [end for pair in option for end in pair]
    if not parameters.extends and all(number is numbers[0] for number in numbers):
        number = numbers[0] if numbers else 0
        if not isinstance(number, TensorBase):
            return _pad_with_number(self, widths, 0 if number is None else number)
    for axis, (counts, ends) in enumerate(zip(widths, option)):
        if parameters.extends and not shape[axis] and any(counts):
            raise ShapeError(f"pad: mode {mode!r} needs elements, and axis {axis} of shape {shape} has none")
        sides = [_Side(axis, count, bool(at_end)) for at_end, count in enumerate(counts)]
        added = [parameters.pad(self, side, end) for side, end in zip(sides, ends) if side.added]
        for side, part in zip([side for side in sides if side.added], added):
            self = side.join(self, part)
    return self


def pad_or_cut(self: Tensor, config: Sequence[tuple[int, int, int]], value: Number | Tensor = 0) -> Tensor:
    """Pad before, after and between the elements of each axis; a negative number at an end removes elements.

    Args:
        self: any tensor.
        config: for each of the first axes, the numbers of elements before, after and between two elements.
        value: the new elements.
    """
    for axis, (_, _, between) in enumerate(config):
        before, size, after = self.shape[:axis], self.shape[axis], self.shape[axis + 1 :]
        if between and size:
            single = reshape(self, (*before, size, 1, *after))
            wide = pad(single, {axis + 1: (0, between)}, value=value)
            joined = reshape(wide, (*before, size * (between + 1), *after))
            self = slice_axis(joined, axis, 0, size * (between + 1) - between)
    if any(low > 0 or high > 0 for low, high, _ in config):
        widths = {
            a: (low if low > 0 else 0, high if high > 0 else 0) for a, (low, high, _) in enumerate(config)
        }
        self = pad(self, widths, value=value)
    for axis, (low, high, _) in enumerate(config):
        if low < 0 or high < 0:
            size = self.shape[axis]
            self = self[
                (slice(None),) * axis + (slice(-low if low < 0 else 0, size + high if high < 0 else size),)
            ]
    return self

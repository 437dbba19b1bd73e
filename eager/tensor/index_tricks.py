"""Objects that are indexed to make slices, grids and joined tensors: s_, index_exp, mgrid, ogrid, r_ and c_."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...errors import ArgumentError
from ...operators.creation.creation import arange, linspace
from ...operators.shape.grids import meshgrid
from ...operators.shape.joining import concat, stack
from ...operators.shape.views import reshape
from ...registry.dtypes import float64
from .construct import asarray

if TYPE_CHECKING:
    from collections.abc import Callable

    from .tensor import Tensor

    Convert = Callable[[object], Tensor]


class IndexExpression:
    """An object whose items are the keys that they are indexed with.

    >>> import tandem as td
    >>> td.s_[1:3, ...], td.index_exp[2]
    ((slice(1, 3, None), Ellipsis), (2,))
    """

    def __init__(self, as_tuple: bool):
        self.as_tuple = as_tuple

    def __getitem__(self, key: object) -> object:
        """The key, as a tuple for ``index_exp``."""
        return (key,) if self.as_tuple and not isinstance(key, tuple) else key


def _expand(key: slice, convert: Convert) -> Tensor:
    """The numbers of a slice; an imaginary step is the number of values from the start to the stop."""
    start, stop, step = key.start or 0, key.stop, 1 if key.step is None else key.step
    if stop is None:
        raise ArgumentError("a slice of a grid needs a stop")
    if isinstance(step, complex):
        values: Tensor = linspace(start, stop, int(math.fabs(step.imag)), dtype=float64)
        return values
    numbers: Tensor = arange(start, stop, step, dtype=convert([start, stop, step]).dtype)
    return numbers


class Grid:
    """An object whose items are coordinates of grids: ``td.mgrid[0:2, 0:3]``; all of them, or open ones.

    Args:
        is_open: whether each coordinate has the length 1 along the other axes.
        convert: makes a tensor of Python numbers, and so decides the dtype.

    >>> import tandem as td
    >>> td.mgrid[0:2, 0:2].tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    >>> [x.tolist() for x in td.ogrid[0:2, 0:2]]
    [[[0], [1]], [[0, 1]]]
    """

    def __init__(self, is_open: bool, convert: Convert = asarray):
        self.is_open, self.convert = is_open, convert

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Tensor | tuple[Tensor, ...]:
        """The coordinates of the grid of some slices.

        Raises:
            ArgumentError: a slice has no stop.
        """
        if isinstance(key, slice):
            return _expand(key, self.convert)
        rows = [_expand(one, self.convert) for one in key]
        if not self.is_open:
            dtypes = stack([reshape(row, (-1,))[:0].sum() for row in rows]).dtype
            return stack(meshgrid(*[row.astype(dtypes) for row in rows], indexing="ij"))
        return tuple(
            reshape(row, tuple(-1 if at == axis else 1 for at in range(len(rows))))
            for axis, row in enumerate(rows)
        )


class Joiner:
    """An object whose items are the tensors, numbers and slices of a key joined: along the first axis, or as columns.

    Args:
        as_columns: whether vectors become columns, which are joined along the last axis.
        convert: makes a tensor of numbers and lists, and so decides the dtype.

    >>> import tandem as td
    >>> td.r_[td.asarray([1, 2]), 5, 0:2].tolist()
    [1, 2, 5, 0, 1]
    >>> td.c_[td.asarray([1, 2]), td.asarray([3, 4])].tolist()
    [[1, 3], [2, 4]]
    """

    def __init__(self, as_columns: bool, convert: Convert = asarray):
        self.as_columns, self.convert = as_columns, convert

    def __getitem__(self, key: object) -> Tensor:
        """The joined tensor.

        Raises:
            ArgumentError: a string, NumPy's directives.
        """
        parts = []
        for item in key if isinstance(key, tuple) else (key,):
            if isinstance(item, str):
                raise ArgumentError(f"directives such as {item!r} are not supported; use concat or stack")
            part = _expand(item, self.convert) if isinstance(item, slice) else self.convert(item)
            if self.as_columns:
                part = reshape(part, (-1, 1)) if len(part.shape) < 2 else part
            elif not part.shape:
                part = reshape(part, (1,))
            parts.append(part)
        return concat(parts, -1 if self.as_columns else 0)


s_, index_exp = IndexExpression(False), IndexExpression(True)
mgrid, ogrid = Grid(False), Grid(True)
r_, c_ = Joiner(False), Joiner(True)

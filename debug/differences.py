"""Calls whose meaning differs between NumPy, PyTorch and JAX: one table, for ``strict_names`` and for the guide.

``python -m tandem.debug.differences`` prints the table of ``docs/other_libraries.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..named_tuple import NamedTuple
from ..registry.dtypes import float64
from ..registry.values import TensorBase

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs


class Difference(NamedTuple):
    """Calls of one name whose meaning differs.

    Attributes:
        names: the functions and methods, separated by spaces.
        calls: such calls, as the guide shows them.
        numpy: what they mean in NumPy, JAX and tandem.
        torch: what they mean in PyTorch.
        write: calls that mean one thing.
        is_ambiguous: whether a call of these arguments is one of them.
    """

    names: str
    calls: str
    numpy: str
    torch: str
    write: str
    is_ambiguous: Callable[[Args, Kwargs], bool]


def _lacks(*names: str) -> Callable[[Args, Kwargs], bool]:
    """Calls without any of these keywords."""
    return lambda args, kwargs: not kwargs.keys() & {*names}


def _has_positional(count: int) -> Callable[[Args, Kwargs], bool]:
    """Calls with at least so many positional arguments, the tensor included."""
    return lambda args, kwargs: len(args) >= count


def _is_swap(args: Args, kwargs: Kwargs) -> bool:
    is_matrix = bool(args) and len(getattr(args[0], "shape", ())) == 2
    return is_matrix and len(args) == 3 and all(isinstance(axis, int) for axis in args[1:])


def _is_cross_by_rows(args: Args, kwargs: Kwargs) -> bool:
    shape: Any = getattr(args[0], "shape", ()) if args else ()
    return not kwargs.keys() & {"axis", "dim"} and 3 in shape[:-1]


def _shares_memory(args: Args, kwargs: Kwargs) -> bool:
    return bool(args) and isinstance(args[0], (TensorBase, np.ndarray)) and "copy" not in kwargs


def _has_floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_floats, value))
    return isinstance(value, float)


def _is_unsigned(value: object) -> bool:
    return isinstance(value, TensorBase) and bool(getattr(value, "dtype", float64).kind == "u")


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "split",
        "`split(x, 2)`, `split(x, [2, 3])`",
        "2 parts; cut before indices 2 and 3",
        "parts of size 2; parts of sizes 2 and 3",
        "`td.split(x, sections=2)`, `td.array_split(x, 2)`; `td.split(x, 2, dim=0)`",
        lambda args, kwargs: len(args) >= 2 and "dim" not in kwargs,
    ),
    Difference(
        "std var",
        "`std(x)`, `std(x, axis=0)`",
        "divided by N",
        "divided by N - 1",
        "`td.std(x, correction=0)`; `td.std(x, correction=1)`, `td.std(x, dim=0)`",
        _lacks("correction", "ddof", "unbiased", "dim", "keepdim"),
    ),
    Difference(
        "max min",
        "`max(x, 1)`",
        "values along axis 1",
        "values and indices; with a tensor, the larger of two",
        "`td.max(x, axis=1)`; `td.max(x, dim=1)`, `td.maximum(x, y)`",
        _has_positional(2),
    ),
    Difference(
        "median nanmedian",
        "`median(x)`, `median(x, 1)`",
        "the mean of two in the middle",
        "the lower of the two; along an axis with indices",
        "`td.median(x, axis=None)`, `td.median(x, axis=1)`; `td.median(x, dim=1)`",
        _lacks("axis", "dim"),
    ),
    Difference(
        "sort",
        "`sort(x)`, `sort(x, 1)`",
        "values; NumPy's method sorts in place",
        "values and indices",
        "`td.sort(x, axis=-1)`; `td.sort(x, dim=-1)`",
        _lacks("axis", "dim"),
    ),
    Difference(
        "transpose",
        "`x.transpose(0, 1)` of a matrix",
        "the order of all axes",
        "two axes exchanged",
        "`x.permute(1, 0, 2)`; `x.swapaxes(0, 1)`",
        _is_swap,
    ),
    Difference(
        "repeat",
        "`x.repeat(2)`",
        "each element twice",
        "the tensor tiled",
        "`td.repeat(x, 2, axis=0)`, `td.repeat_interleave(x, 2)`; `td.tile(x, 2)`",
        _lacks("axis", "dim"),
    ),
    Difference(
        "nonzero",
        "`nonzero(x)`",
        "one tensor of indices for each axis",
        "one matrix, a row for each element",
        "`x.nonzero(as_tuple=True)`; `td.torch.nonzero(x)`",
        _lacks("size", "as_tuple"),
    ),
    Difference(
        "equal",
        "`equal(x, y)`",
        "compares elements",
        "one bool for all",
        "`td.eq(x, y)`; `td.array_equal(x, y)`",
        lambda args, kwargs: True,
    ),
    Difference(
        "meshgrid",
        "`meshgrid(x, y)`",
        "`x` along the second axis",
        "`x` along the first axis",
        '`td.meshgrid(x, y, indexing="xy")`; `td.meshgrid(x, y, indexing="ij")`',
        _lacks("indexing"),
    ),
    Difference(
        "cross",
        "`cross(x, y)` of shape (3, 3)",
        "along the last axis",
        "along the first axis of length 3",
        "`td.cross(x, y, axis=-1)`",
        _is_cross_by_rows,
    ),
    Difference(
        "tensor",
        "`tensor(array)`",
        "shares the memory of an array in tandem",
        "copies",
        "`td.asarray(array)`; `td.tensor(array, copy=True)`",
        _shares_memory,
    ),
)

# Only with strict_names(dtypes=True): float64 in NumPy; in tandem, PyTorch and JAX float32 by default.
DEFAULT_DTYPES: tuple[Difference, ...] = (
    Difference(
        "zeros ones empty eye linspace",
        "`zeros(3)`, `linspace(0, 1, 5)`",
        "float64 in NumPy, float32 in JAX and tandem",
        "the default dtype, float32",
        "`td.zeros(3, dtype=td.float32)`; `td.numpy.zeros(3)`; `td.set_default_dtype`",
        _lacks("dtype"),
    ),
    Difference(
        "full arange asarray tensor",
        "`asarray([1.0])`, `full(3, 0.5)`",
        "float64 in NumPy, float32 in JAX and tandem",
        "the default dtype, float32",
        "`td.asarray([1.0], dtype=td.float32)`; `td.numpy.asarray([1.0])`",
        lambda args, kwargs: "dtype" not in kwargs and any(map(_has_floats, args)),
    ),
    Difference(
        "sum prod cumsum cumprod nansum",
        "`sum(x)` of uint8",
        "uint64",
        "int64",
        "`td.sum(x, dtype=td.int64)`",
        lambda args, kwargs: "dtype" not in kwargs and any(map(_is_unsigned, args[:1])),
    ),
)


def format_table() -> str:
    """The table of the guide, in Markdown."""
    head = "| call | NumPy, JAX, `tandem` | PyTorch, `tandem.torch` | one meaning only |\n| --- | --- | --- | --- |\n"
    return head + "".join(
        f"| {row.calls} | {row.numpy} | {row.torch} | {row.write} |\n"
        for row in (*DIFFERENCES, *DEFAULT_DTYPES)
    )


if __name__ == "__main__":
    sys.stdout.write(format_table())

"""Sorting along an axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import lazy
from ..registry.dtypes import DEFAULT_INT, REAL, DType, bool_, is_half
from ..registry.values import TensorSpec
from .batching import Batched, BatchInfo, Dims
from .declare import Bad, Draw, Sample
from .derivatives import NotDifferentiable
from .kinds import LAYOUTS, composite, library
from .picking import take_along_axis
from .rules import compute_dtype, normalize_axis, spec_of

references = lazy.Functions("operators.references_arrays")

_ORDERED = (bool_, *REAL)
_TEXT = """

    Args:
        self: a real tensor of at least one axis; NaN comes last.
        axis: the axis to sort along.
        descending: whether the largest comes first.
        stable: whether equal elements keep their order; they always do.

    Returns:
        A new tensor of the same shape{dtype}.

    Raises:
        OutOfBoundsError: there is no such axis.
        DTypeError: complex numbers have no order.
"""


def _meta(self: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> TensorSpec:
    spec = spec_of(self)
    compute_dtype("argsort", "same", _ORDERED, (spec,))
    normalize_axis("argsort", axis, len(spec.shape))
    return TensorSpec(spec.shape, DEFAULT_INT, spec.device)


def _kernel(xp: Any, self: Any, *, axis: int, descending: bool, stable: bool) -> Any:
    values = self.astype(xp.float32) if is_half(self.dtype) else self
    if not descending:
        return xp.argsort(values, axis, kind="stable")
    # equal elements keep their order where the reversed tensor is sorted upwards and the result read backwards
    found = xp.flip(xp.argsort(xp.flip(values, axis), axis, kind="stable"), axis)
    return self.shape[axis] - 1 - found


def _batched(info: BatchInfo, in_dims: Dims, self: Any, *, axis: int, **options: Any) -> Batched:
    return info.call(self, axis=normalize_axis(info.name, axis, len(self.shape) - 1) + 1, **options), 0


def _samples(dtype: DType) -> Iterable[Sample]:
    for layout in LAYOUTS:
        yield Sample((Draw((3, 4), layout=layout, distinct=True),))
    yield Sample((Draw((3, 4), distinct=True),), {"axis": 0, "descending": True})
    yield Sample((Draw((0, 2)),))
    yield Sample((Draw((9,), values=(1, 0, 1, 0, 1, 1, 0, 0, 1)),), {"descending": True})
    yield Sample(
        (Draw((5,), values=(2, float("nan"), 1, float("inf"), 0)),) if dtype.is_inexact else (Draw((1,)),)
    )


def _errors() -> Iterable[Bad]:
    yield Bad((Draw(()),), IndexError, "out of bounds")
    yield Bad((Draw((3,)),), IndexError, "out of bounds", {"axis": 1})


argsort: Any = library(
    "gather",
    "argsort(Tensor self, *, int axis=-1, bool descending=False, bool stable=True) -> Tensor",
    _meta,
    _kernel,
    doc="The positions of the elements in sorted order along an axis."
    + _TEXT.format(dtype=", int64")
    + "\n    >>> td.argsort(td.asarray([3, 1, 2])).tolist()\n    [1, 2, 0]\n",
    reference=references.argsort,
    dtypes=_ORDERED,
    derivative=NotDifferentiable("argsort gives integers"),
    batching=_batched,
    samples=_samples,
    errors=_errors,
)


@composite(
    "sort(Tensor self, *, int axis=-1, bool descending=False, bool stable=True) -> Tensor",
    doc="The elements in sorted order along an axis."
    + _TEXT.format(dtype=" and dtype")
    + "\n    >>> td.sort(td.asarray([3, 1, 2])).tolist()\n    [1, 2, 3]\n",
    reference=references.sort,
    samples=_samples,
    errors=_errors,
    dtypes=_ORDERED,
)
def sort(self: Any, *, axis: int, descending: bool, stable: bool) -> Any:
    return take_along_axis(self, argsort(self, axis=axis, descending=descending, stable=stable), axis)

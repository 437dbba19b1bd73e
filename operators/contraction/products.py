"""dot, inner, vdot, matvec and vecmat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import NUMERIC
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import spec_of
from ..elementwise.arithmetic import mul
from ..elementwise.complex_parts import conj
from ..shape.rearrange import expand_dims, flatten, squeeze
from .matmul import matmul, tensordot

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ARGS = """Args:
    self, other: tensors of numeric dtype{shapes}.

Returns:
    A tensor of the promoted dtype.

Raises:
    ShapeError: the lengths of the summed axes differ{more}."""


def _doc(summary: str, example: str, shapes: str = "", more: str = "") -> str:
    return make_docstring(summary, _ARGS.format(shapes=shapes, more=more), example)


@composite(
    "dot(Tensor self, Tensor other) -> Tensor",
    doc=_doc(
        "The sum over the last axis of `self` and the second last (or only) one of `other`.",
        "td.dot(td.asarray([1, 2]), td.asarray([3, 4])) -> 11",
    ),
    reference="numpy.dot",
    samples="samples.contraction.dot_samples",
    errors="samples.contraction.dot_errors",
    dtypes=NUMERIC,
    autocast="lower",
)
def dot(self: Tensor, other: Tensor) -> Tensor:
    ranks = len(spec_of(self).shape), len(spec_of(other).shape)
    if 0 in ranks:
        return mul(self, other)
    if ranks[1] <= 2:
        return matmul(self, other)
    return tensordot(self, other, ((-1,), (-2,)))


@composite(
    "inner(Tensor self, Tensor other) -> Tensor",
    doc=_doc(
        "The sum of products over the last axes.", "td.inner(td.asarray([1, 2]), td.asarray([3, 4])) -> 11"
    ),
    reference="numpy.inner",
    samples="samples.contraction.inner_samples",
    errors="samples.contraction.dot_errors",
    dtypes=NUMERIC,
    autocast="lower",
)
def inner(self: Tensor, other: Tensor) -> Tensor:
    if not spec_of(self).shape or not spec_of(other).shape:
        return mul(self, other)
    return tensordot(self, other, ((-1,), (-1,)))


@composite(
    "vdot(Tensor self, Tensor other) -> Tensor",
    doc=_doc(
        "The sum of the products of all elements, those of `self` conjugated.",
        "td.vdot(td.asarray([1, 2]), td.asarray([3, 4])) -> 11",
        shapes=", of the same number of elements; they are flattened",
    ),
    reference="numpy.vdot",
    samples="samples.contraction.vdot_samples",
    errors="samples.contraction.dot_errors",
    dtypes=NUMERIC,
    autocast="lower",
    promotes=True,
)
def vdot(self: Tensor, other: Tensor) -> Tensor:
    one = flatten(self)
    return matmul(conj(one) if spec_of(one).dtype.is_complex else one, flatten(other))


def _check_ranks(name: str, self: Tensor, other: Tensor, least: tuple[int, int]) -> None:
    shapes = spec_of(self).shape, spec_of(other).shape
    if any(len(shape) < rank for shape, rank in zip(shapes, least)):
        raise ShapeError(f"{name}: needs {least[0]} and {least[1]} axes at least, not shapes {shapes}")


@composite(
    "matvec(Tensor self, Tensor other) -> Tensor",
    doc=_doc(
        "The products of matrices and vectors.",
        "td.matvec(td.asarray([[1, 2], [3, 4]]), td.asarray([1, 1])) -> [3, 7]",
        shapes=": stacks of matrices (..., m, n) and of vectors (..., n)",
        more=", or there are too few axes",
    ),
    reference="numpy.matvec",
    samples="samples.contraction.matvec_samples",
    errors="samples.contraction.matvec_errors",
    dtypes=NUMERIC,
    method=False,
    autocast="lower",
)
def matvec(self: Tensor, other: Tensor) -> Tensor:
    _check_ranks("matvec", self, other, (2, 1))
    return squeeze(matmul(self, expand_dims(other, -1)), -1)


@composite(
    "vecmat(Tensor self, Tensor other) -> Tensor",
    doc=_doc(
        "The products of conjugated vectors and matrices.",
        "td.vecmat(td.asarray([1, 1]), td.asarray([[1, 2], [3, 4]])) -> [4, 6]",
        shapes=": stacks of vectors (..., m) and of matrices (..., m, n)",
        more=", or there are too few axes",
    ),
    reference="numpy.vecmat",
    samples="samples.contraction.vecmat_samples",
    errors="samples.contraction.vecmat_errors",
    dtypes=NUMERIC,
    method=False,
    autocast="lower",
)
def vecmat(self: Tensor, other: Tensor) -> Tensor:
    _check_ranks("vecmat", self, other, (1, 2))
    return squeeze(matmul(expand_dims(conj(self), -2), other), -2)

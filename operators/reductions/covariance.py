"""ptp, average, cov and corrcoef."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import NUMERIC, REAL
from ..contraction.matmul import matmul
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, promoted_dtype, result_dtype, spec_of
from ..elementwise.casting import cast
from ..elementwise.complex_parts import conj, real
from ..elementwise.exponential import sqrt
from ..shape.diagonals import diagonal
from ..shape.joining import concat
from ..shape.rearrange import expand_dims, matrix_transpose, squeeze
from ..shape.views import broadcast_to, reshape
from .folds import max, min, sum
from .statistics import mean

if TYPE_CHECKING:
    from ...registry.types import Tensor


@composite(
    "ptp(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc=make_docstring(
        "The largest element less the smallest one ('peak to peak').",
        """Args:
    self: tensor of integer or real floating dtype, any shape.
    axis: an axis, several, or None for all.
    keepdims: whether reduced axes remain, with length 1.

Returns:
    A tensor of the reduced shape.

Raises:
    OutOfBoundsError: an axis is out of bounds.
    ShapeError: there are no elements.""",
        "td.ptp(td.asarray([[1, 2], [3, 9]]), 0) -> [2, 7]",
    ),
    reference="numpy.ptp",
    samples="samples.kinds.reduction_samples",
    errors="samples.kinds.reduction_errors",
    dtypes=REAL,
    method=False,
)
def ptp(self: Tensor, axis: tuple[int, ...] | None, *, keepdims: bool) -> Tensor:
    return max(self, axis, keepdims=keepdims) - min(self, axis, keepdims=keepdims)


@composite(
    "average(Tensor self, int[]? axis=None, Tensor? weights=None, *, bool keepdims=False) -> Tensor",
    doc=make_docstring(
        "The weighted mean of the elements over axes.",
        """Args:
    self: tensor of numeric dtype, any shape.
    axis: an axis, several, or None for all.
    weights: a tensor of the same shape, or one weight for each position along one axis; None: equal weights.
    keepdims: whether reduced axes remain, with length 1.

Returns:
    A tensor of the reduced shape, of floating dtype.

Raises:
    ShapeError: the shape of the weights does not fit.
    OutOfBoundsError: an axis is out of bounds.""",
        "td.average(td.asarray([1.0, 2.0]), 0, td.asarray([3.0, 1.0])) -> 1.25",
    ),
    reference="numpy.average",
    samples="samples.reductions.average_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), 0, TensorSample((3,))), ValueError, "weights"),
        ErrorInput((TensorSample((2, 3)), 2), IndexError, "out of bounds"),
    ],
    dtypes=NUMERIC,
    method=False,
    autocast="float32",
)
def average(self: Tensor, axis: tuple[int, ...] | None, weights: Tensor | None, *, keepdims: bool) -> Tensor:
    if weights is None:
        return mean(self, axis, keepdims=keepdims)
    shape, weight_shape = spec_of(self).shape, spec_of(weights).shape
    if weight_shape != shape:
        at = normalize_axis("average", axis[0], len(shape)) if axis and len(axis) == 1 else -1
        if at < 0 or weight_shape != (shape[at],):
            raise ShapeError(
                f"average: weights of shape {weight_shape} fit neither shape {shape} nor one axis of it"
            )
        weights = reshape(weights, (1,) * at + weight_shape + (1,) * (len(shape) - at - 1))
    dtype = result_dtype("float", promoted_dtype("average", (self, weights)))
    wide = broadcast_to(cast(weights, dtype), shape)
    total = sum(wide * cast(self, dtype), axis, keepdims=keepdims)
    return total / sum(wide, axis, keepdims=keepdims)


# -- covariance --------------------------------------------------------------------------------------------------------
_ARGS = """Args:
    self: a tensor of one or two axes: one row for each variable, one column for each observation.
    other: more variables and observations, in the same form.
    rowvar: whether rows are variables; false: columns are.{more}

Returns:
    A matrix with one row and column for each variable, or a 0-d tensor for one variable.

Raises:
    ShapeError: a tensor has more than two axes."""


def _variables(name: str, self: Tensor, other: Tensor | None, rowvar: bool) -> Tensor:
    """The variables as rows, as floats."""
    tensors = [self] if other is None else [self, other]
    dtype = result_dtype("float", promoted_dtype(name, tensors))
    rows = []
    for one in tensors:
        rank = len(spec_of(one).shape)
        if rank > 2:
            raise ShapeError(f"{name}: the variables have {rank} axes; at most 2 are possible")
        matrix = cast(one, dtype)
        for _ in range(2 - rank):
            matrix = expand_dims(matrix, 0)
        rows.append(matrix_transpose(matrix) if not rowvar and matrix.shape[0] != 1 else matrix)
    return concat(rows, 0)


@composite(
    "cov(Tensor self, Tensor? other=None, bool rowvar=True, bool bias=False, int? ddof=None, *, Tensor? fweights=None, "
    "Tensor? aweights=None) -> Tensor",
    doc=make_docstring(
        "The covariance matrix of variables.",
        _ARGS.format(
            more="""
    bias: whether to divide by the number of observations instead of one less.
    ddof: the number to subtract from the number of observations instead.
    fweights: how often each observation occurs, integers.
    aweights: the weight of each observation."""
        ),
        "td.cov(td.asarray([[0.0, 2.0], [0.0, 4.0]])) -> [[2.0, 4.0], [4.0, 8.0]]",
    ),
    reference="numpy.cov",
    samples="samples.reductions.weighted_covariance_samples",
    errors=lambda: [ErrorInput((TensorSample((2, 2, 2)),), ValueError, "axes")],
    dtypes=NUMERIC,
    tolerance={"float32": 1e-5, "complex64": 1e-5, "float16": 8e-3, "bfloat16": 4e-2},
    spellings={"correction": "ddof"},
    autocast="float32",
)
def cov(
    self: Tensor,
    other: Tensor | None,
    rowvar: bool,
    bias: bool,
    ddof: int | None,
    *,
    fweights: Tensor | None,
    aweights: Tensor | None,
) -> Tensor:
    x = _variables("cov", self, other, rowvar)
    correction = (0 if bias else 1) if ddof is None else ddof
    given = [cast(one, real(x).dtype) for one in (fweights, aweights) if one is not None]
    if not given:
        centred = x - mean(x, -1, keepdims=True)
        product = matmul(centred, conj(matrix_transpose(centred))) / (x.shape[1] - correction)
        return squeeze(product) if product.shape == (1, 1) else product
    weights = given[0] if len(given) == 1 else given[0] * given[1]
    total = sum(weights)
    centred = x - sum(x * weights, -1, keepdims=True) / total
    if aweights is None or not correction:
        factor = total - correction
    else:
        factor = total - correction * sum(weights * cast(aweights, weights.dtype)) / total
    product = matmul(centred * weights, conj(matrix_transpose(centred))) / factor
    return squeeze(product) if product.shape == (1, 1) else product


@composite(
    "corrcoef(Tensor self, Tensor? other=None, bool rowvar=True) -> Tensor",
    doc=make_docstring(
        "The correlation coefficients of variables.",
        _ARGS.format(more=""),
        "td.corrcoef(td.asarray([[0.0, 1.0], [0.0, -1.0]])).astype(td.int8) -> [[1, -1], [-1, 1]]",
    ),
    reference="numpy.corrcoef",
    samples="samples.reductions.covariance_samples",
    errors=lambda: [ErrorInput((TensorSample((2, 2, 2)),), ValueError, "axes")],
    dtypes=NUMERIC,
    tolerance={"float32": 1e-5, "complex64": 1e-5, "float16": 1e-2, "bfloat16": 8e-2, "float64": 1e-12},
    autocast="float32",
)
def corrcoef(self: Tensor, other: Tensor | None, rowvar: bool) -> Tensor:
    matrix = cov(self, other, rowvar)
    if not matrix.shape:
        return matrix / matrix
    deviation = sqrt(real(diagonal(matrix)))
    return matrix / expand_dims(deviation, 1) / deviation

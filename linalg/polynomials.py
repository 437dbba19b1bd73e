"""poly, polyfit and roots: functions of polynomials that need linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ShapeError, UnsupportedError, ValueArgumentError
from ..operators.contraction.matmul import matmul, outer
from ..operators.creation.creation import eye, full
from ..operators.creation.grids import vander
from ..operators.declare.array_arguments import accept_arrays
from ..operators.declare.shape_rules import promoted_dtype, result_dtype, spec_of
from ..operators.elementwise.casting import cast
from ..operators.elementwise.complex_parts import real
from ..operators.elementwise.exponential import sqrt
from ..operators.indexing.positions import flatnonzero
from ..operators.indexing.slicing import basic_index
from ..operators.reductions.folds import sum
from ..operators.shape.joining import concat
from ..operators.shape.rearrange import expand_dims, matrix_transpose
from ..operators.shape.splitting import slice_axis
from .eigen import eigvals
from .solving import inv
from .tensors import lstsq

if TYPE_CHECKING:
    from ..registry.types import Tensor


@accept_arrays
def poly(seq_of_zeros: Tensor) -> Tensor:
    """The polynomial with some zeros, or the characteristic polynomial of a matrix.

    Args:
        seq_of_zeros: a tensor of one axis, or a square matrix.

    Returns:
        The coefficients, that of the highest power first; complex for complex zeros.

    Raises:
        ShapeError: neither a vector nor a square matrix.

    >>> import tandem as td
    >>> td.poly(td.asarray([1.0, 2.0])).tolist()
    [1.0, -3.0, 2.0]
    """
    spec = spec_of(seq_of_zeros)
    if len(spec.shape) not in (1, 2) or len(set(spec.shape)) > 1:
        raise ShapeError(f"poly: needs a vector or a square matrix, not shape {spec.shape}")
    dtype = result_dtype("float", spec.dtype)
    zeros = cast(seq_of_zeros, dtype)
    if len(spec.shape) == 2:
        zeros = eigvals(zeros)
    result = full((1,), 1, dtype=zeros.dtype, device=spec.device)
    none = full((1,), 0, dtype=zeros.dtype, device=spec.device)
    for at in range(zeros.shape[0]):
        result = concat([result, none]) - concat([none, result]) * basic_index(zeros, (at,))
    return real(result) if len(spec.shape) == 2 and dtype.kind != "c" else result


@accept_arrays
def roots(p: Tensor, *, strip_zeros: bool = True) -> Tensor:
    """The zeros of a polynomial.

    Args:
        p: the coefficients, a tensor of one axis, that of the highest power first.
        strip_zeros: whether coefficients that are zero at the ends are cut off first. A trace requires False, because
            shapes must not depend on data; the first coefficient must not be zero then.

    Returns:
        A complex tensor of one axis.

    Raises:
        ShapeError: the tensor has not one axis.
        UnsupportedError: the tensor is traced and ``strip_zeros`` is True.

    >>> import tandem as td
    >>> sorted(round(z.real, 4) for z in td.roots(td.asarray([1.0, -3.0, 2.0])).tolist())
    [1.0, 2.0]
    """
    if len(spec_of(p).shape) != 1:
        raise ShapeError(f"roots: coefficients have one axis, not shape {spec_of(p).shape}")
    values, trailing = cast(p, result_dtype("float", spec_of(p).dtype)), 0
    if strip_zeros:
        try:
            kept = flatnonzero(values).tolist()
        except UnsupportedError:
            raise UnsupportedError(
                "roots: the result has a data-dependent shape, as zeros at the ends of the coefficients are cut off. "
                "Pass strip_zeros=False, or call roots outside of jit"
            ) from None
        start, stop = (kept[0], kept[-1] + 1) if kept else (0, 0)
        trailing = values.shape[0] - stop if kept else 0
        values = slice_axis(values, 0, start, stop)
    spec = spec_of(values)
    complex_dtype = promoted_dtype("roots", (values, 1j))
    rest = full((trailing,), 0, dtype=complex_dtype, device=spec.device)
    if spec.size < 2:
        return rest
    row = -slice_axis(values, 0, 1, spec.size) / basic_index(values, (0,))
    below = eye(spec.size - 2, spec.size - 1, dtype=spec.dtype, device=spec.device)
    companion = concat([expand_dims(row, 0), below]) if spec.size > 2 else expand_dims(row, 0)
    return concat([eigvals(companion), rest])


@accept_arrays
def polyfit(
    x: Tensor,
    y: Tensor,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Tensor | None = None,
    cov: bool | str = False,
) -> Tensor | tuple[Tensor | float, ...]:
    """The polynomial of some degree that fits points best, by least squares.

    Args:
        x: the positions, a tensor of one axis.
        y: the values there, ``(M,)`` or ``(M, K)``.
        deg: the degree.
        rcond: the share of the largest singular value that counts as 0; None: the precision times the length.
        full: whether to return what `linalg.lstsq` returns, and ``rcond``.
        w: weights of the residuals, of the shape of ``x``.
        cov: whether to return the covariances of the coefficients too; ``"unscaled"``: not scaled by the residuals.

    Returns:
        The coefficients ``(deg + 1,)`` or ``(deg + 1, K)``, that of the highest power first; or a tuple.

    Raises:
        ValueArgumentError: the degree is negative, or there are too few points for ``cov``.
        ShapeError: the shapes do not fit.

    >>> import tandem as td
    >>> [round(c, 4) for c in td.polyfit(td.asarray([0.0, 1.0, 2.0]), td.asarray([1.0, 3.0, 5.0]), 1).tolist()]
    [2.0, 1.0]
    """
    shapes = spec_of(x).shape, spec_of(y).shape
    if len(shapes[0]) != 1 or len(shapes[1]) not in (1, 2) or shapes[0] != shapes[1][:1] or not shapes[0][0]:
        raise ShapeError(f"polyfit: needs positions of one axis and values for each, not shapes {shapes}")
    if deg < 0:
        raise ValueArgumentError(f"polyfit: the degree is not negative, and is {deg}")
    dtype = result_dtype("float", promoted_dtype("polyfit", (x, y)))
    left, right = vander(cast(x, dtype), deg + 1), cast(y, dtype)
    if w is not None:
        if spec_of(w).shape != shapes[0]:
            raise ShapeError(f"polyfit: weights of shape {spec_of(w).shape} do not fit {shapes[0]}")
        weights = cast(w, dtype)
        left = left * expand_dims(weights, 1)
        right = right * (expand_dims(weights, 1) if len(shapes[1]) == 2 else weights)
    share = shapes[0][0] * float(np.finfo(dtype.np).eps) if rcond is None else rcond
    scale = sqrt(sum(left * left, 0))
    left = left / scale
    solution, residuals, rank, values = lstsq(left, right, share)
    result = solution / (expand_dims(scale, 1) if len(shapes[1]) == 2 else scale)
    if full:
        return result, residuals, rank, values, share
    if not cov:
        return result
    base = inv(matmul(matrix_transpose(left), left)) / outer(scale, scale)
    if cov != "unscaled":
        if shapes[0][0] <= deg + 1:
            raise ValueArgumentError(f"polyfit: the covariances need more than {deg + 1} points")
        factor = residuals / (shapes[0][0] - deg - 1)
        if len(shapes[1]) == 2:
            return result, expand_dims(base, -1) * factor
        base = base * factor
    return result, base

"""Sparse matrix products on the components of a sparse matrix: row starts, columns and values.

The components are dense tensors, so these operators differentiate, trace and batch as others do; operators on sparse
tensors are composed of them (:mod:`tandem.eager.sparse.kernels`). ``spmm`` and ``sddmm`` are linear in each of their
float arguments, and each is the derivative of the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import DTypeError, OutOfBoundsError, ShapeError, UnsupportedError
from ...registry.dtypes import NUMERIC, is_half
from ...registry.lazy_operators import discard_lazy
from ...registry.library import Library
from ...registry.operator import operators
from ...registry.values import TensorSpec
from ..declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis, get_operator, logical_shape
from ..declare.declaration import Declaration
from ..declare.derivatives import Rule
from ..declare.shape_rules import common_device, compute_dtype, spec_of

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Tensor

scipy_sparse = lazy.Module("scipy.sparse")

LIBRARY = Library("sparse", "DEF")
CHUNK = 1 << 20  # products that are stored at a time


def _check_parts(name: str, crow: TensorSpec, col: TensorSpec) -> None:
    if len(crow.shape) != 1 or len(col.shape) != 1 or not crow.shape[0]:
        raise ShapeError(f"{name}: row starts and columns are 1-d, not {crow} and {col}")
    if not (crow.dtype.is_integer and col.dtype.is_integer):
        raise DTypeError(f"{name}: row starts and columns are integers, not {crow.dtype} and {col.dtype}")


def check_pattern(name: str, crow: Any, col: Any, columns: int) -> None:
    """Check that row starts and columns stay within the matrix, before native code uses them as addresses."""
    count = len(col)
    rises = bool((crow[1:] >= crow[:-1]).all())
    if crow[0] != 0 or crow[-1] != count or not rises:
        raise OutOfBoundsError(
            f"{name}: row starts rise from 0 to the number of values, {count}; these do not"
        )
    if count and not (col.min() >= 0 and col.max() < columns):
        raise OutOfBoundsError(
            f"{name}: columns from {int(col.min())} to {int(col.max())}, and there are {columns}"
        )


# -- sparse times dense ------------------------------------------------------------------------------------------------
def _spmm_shape_rule(
    crow_indices: TensorSpec,
    col_indices: TensorSpec,
    values: TensorSpec,
    other: TensorSpec,
    columns: int,
    *,
    transpose: bool = False,
) -> TensorSpec:
    crow, col, held, dense = map(spec_of, (crow_indices, col_indices, values, other))
    _check_parts("spmm", crow, col)
    if held.shape != col.shape:
        raise ShapeError(f"spmm: {held.shape} values for {col.shape} columns")
    rows = crow.shape[0] - 1
    inner, outer = (rows, columns) if transpose else (columns, rows)
    if len(dense.shape) not in (1, 2) or dense.shape[0] != inner:
        raise ShapeError(f"spmm: the dense operand has {inner} rows and 1 or 2 axes, not shape {dense.shape}")
    dtype = compute_dtype("spmm", "same", NUMERIC, (held, dense))
    return TensorSpec((outer, *dense.shape[1:]), dtype, common_device("spmm", (crow, col, held, dense)))


def _spmm_kernel(
    xp: ArrayModule,
    crow_indices: Array,
    col_indices: Array,
    values: Array,
    other: Array,
    columns: int,
    *,
    transpose: bool,
) -> Array:
    check_pattern("spmm", crow_indices, col_indices, columns)
    dtype = (values[:0] * other.reshape(-1)[:0]).dtype
    wide = xp.dtype(xp.float32) if is_half(dtype) else dtype
    matrix = scipy_sparse.csr_array(
        (values.astype(wide, copy=False), col_indices, crow_indices), shape=(len(crow_indices) - 1, columns)
    )
    with xp.errstate(all="ignore"):
        return xp.asarray((matrix.T if transpose else matrix) @ other.astype(wide, copy=False)).astype(dtype)


def spmm(*args: object, **kwargs: Any) -> Tensor:
    """A sparse matrix, or its transpose, times a dense one."""
    result: Tensor = operators["sparse::spmm"](*args, **kwargs)
    return result


def sddmm(*args: object) -> Tensor:
    """The elements of ``one @ two.T`` at the positions of a sparse matrix."""
    result: Tensor = operators["sparse::sddmm"](*args)
    return result


def _values_vjp(
    g: Tensor, crow_indices: Tensor, col_indices: Tensor, other: Tensor, transpose: bool
) -> Tensor:
    return sddmm(crow_indices, col_indices, *((other, g) if transpose else (g, other)))


def _dense_vjp(
    g: Tensor, crow_indices: Tensor, col_indices: Tensor, values: Tensor, columns: int, transpose: bool
) -> Tensor:
    return spmm(crow_indices, col_indices, values, g, columns, transpose=not transpose)


# -- dense times dense, where a sparse matrix has elements -------------------------------------------------------------
def _sddmm_shape_rule(
    crow_indices: TensorSpec, col_indices: TensorSpec, one: TensorSpec, two: TensorSpec
) -> TensorSpec:
    crow, col, first, second = map(spec_of, (crow_indices, col_indices, one, two))
    _check_parts("sddmm", crow, col)
    if len(first.shape) not in (1, 2) or first.shape[1:] != second.shape[1:] or len(second.shape) == 0:
        raise ShapeError(f"sddmm: operands of shapes {first.shape} and {second.shape} do not fit each other")
    if first.shape[0] != crow.shape[0] - 1:
        raise ShapeError(f"sddmm: {crow.shape[0] - 1} rows, and the first operand has shape {first.shape}")
    dtype = compute_dtype("sddmm", "same", NUMERIC, (first, second))
    return TensorSpec(col.shape, dtype, common_device("sddmm", (crow, col, first, second)))


def _sddmm_kernel(xp: ArrayModule, crow_indices: Array, col_indices: Array, one: Array, two: Array) -> Array:
    check_pattern("sddmm", crow_indices, col_indices, len(two))
    dtype = (one.reshape(-1)[:0] * two.reshape(-1)[:0]).dtype
    wide = xp.dtype(xp.float32) if is_half(dtype) else dtype
    width = math.prod(one.shape[1:])
    one, two = (x.astype(wide, copy=False).reshape(len(x), width) for x in (one, two))
    rows = xp.repeat(xp.arange(len(crow_indices) - 1), xp.diff(crow_indices))
    result = xp.empty(len(col_indices), wide)
    step = max(1, CHUNK // max(1, width))
    with xp.errstate(all="ignore"):
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            result[part] = xp.einsum("kj,kj->k", one[rows[part]], two[col_indices[part]])
    return result.astype(dtype)


# -- batches -----------------------------------------------------------------------------------------------------------
def _block_diagonal(
    name: str, in_dims: Dims, crow: Any, col: Any, columns: int, count: int
) -> tuple[Tensor, Tensor]:
    """The pattern of a block-diagonal matrix with ``count`` copies of a pattern: row starts and columns."""
    if in_dims[0] is not None or in_dims[1] is not None:
        raise UnsupportedError(
            f"{name}: the positions of a sparse matrix must be the same for all examples of a batch"
        )
    where = spec_of(crow).device
    steps = get_operator("reshape")(get_operator("arange")(count, device=where), (count, 1))
    held = col.shape[0]
    starts = get_operator("reshape")(crow[:-1] + steps * held, (-1,))
    crow = get_operator("concat")([starts, get_operator("full")((1,), count * held, device=where)])
    return crow, get_operator("reshape")(col + steps * columns, (-1,))


def _stack_examples(x: Tensor, dim: int | None, count: int) -> Tensor:
    """The examples of a tensor concatenated along their first axis."""
    x = ensure_batch_axis(x, dim, count)
    return get_operator("reshape")(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _spmm_batched(
    info: BatchInfo,
    in_dims: Dims,
    crow: Any,
    col: Any,
    values: Tensor,
    other: Tensor,
    columns: int,
    *,
    transpose: bool,
) -> Batched:
    count, rows = info.batch_size, spec_of(crow).shape[-1] - 1
    starts, indices = _block_diagonal("spmm", in_dims, crow, col, columns, count)
    stacked = _stack_examples(values, in_dims[2], count), _stack_examples(other, in_dims[3], count)
    result = info.call(starts, indices, *stacked, columns * count, transpose=transpose)
    return get_operator("reshape")(result, (count, columns if transpose else rows, *result.shape[1:])), 0


def _sddmm_batched(info: BatchInfo, in_dims: Dims, crow: Any, col: Any, one: Tensor, two: Tensor) -> Batched:
    count = info.batch_size
    columns = logical_shape(two, in_dims[3])[0]
    starts, indices = _block_diagonal("sddmm", in_dims, crow, col, columns, count)
    result = info.call(
        starts, indices, _stack_examples(one, in_dims[2], count), _stack_examples(two, in_dims[3], count)
    )
    return get_operator("reshape")(result, (count, spec_of(col).shape[0])), 0


# -- declarations ------------------------------------------------------------------------------------------------------
discard_lazy("sparse", ("spmm", "sddmm"))


def _define(schema: str, doc: str, **fields: Any) -> None:
    LIBRARY.define(schema, Declaration(schema, "sparse", doc, dtypes=NUMERIC, method=False, **fields))


def _values_jvp(
    t: Tensor, crow_indices: Tensor, col_indices: Tensor, other: Tensor, columns: int, transpose: bool
) -> Tensor:
    return spmm(crow_indices, col_indices, t, other, columns, transpose=transpose)


def _dense_jvp(
    t: Tensor, crow_indices: Tensor, col_indices: Tensor, values: Tensor, columns: int, transpose: bool
) -> Tensor:
    return spmm(crow_indices, col_indices, values, t, columns, transpose=transpose)


_define(
    "spmm(Tensor crow_indices, Tensor col_indices, Tensor values, Tensor other, int columns, *, bool transpose=False)"
    " -> Tensor",
    "A sparse matrix in compressed rows, or its transpose, times a dense matrix or vector.",
    shape_rule=_spmm_shape_rule,
    kernel=_spmm_kernel,
    derivative=Rule(
        vjp={"values": _values_vjp, "other": _dense_vjp},
        jvp={"values": _values_jvp, "other": _dense_jvp},
    ),
    batching=_spmm_batched,
)


def _one_vjp(g: Tensor, crow_indices: Tensor, col_indices: Tensor, two: Tensor) -> Tensor:
    return spmm(crow_indices, col_indices, g, two, two.shape[0])


def _two_vjp(
    g: Tensor, crow_indices: Tensor, col_indices: Tensor, one: Tensor, two_spec: TensorSpec
) -> Tensor:
    return spmm(crow_indices, col_indices, g, one, two_spec.shape[0], transpose=True)


_define(
    "sddmm(Tensor crow_indices, Tensor col_indices, Tensor one, Tensor two) -> Tensor",
    "The elements of ``one @ two.T`` at the positions of a sparse matrix in compressed rows.",
    shape_rule=_sddmm_shape_rule,
    kernel=_sddmm_kernel,
    derivative=Rule(
        vjp={"one": _one_vjp, "two": _two_vjp},
        jvp={
            "one": lambda t, crow_indices, col_indices, two: sddmm(crow_indices, col_indices, t, two),
            "two": lambda t, crow_indices, col_indices, one: sddmm(crow_indices, col_indices, one, t),
        },
    ),
    batching=_sddmm_batched,
)

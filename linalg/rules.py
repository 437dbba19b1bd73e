"""Declare operators on stacks of matrices; checks, the adjoint, Hermitian parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LinearAlgebraError, ShapeError
from ..operators.declare import batching
from ..operators.declare.derivatives import Derivative
from ..operators.declare.kinds import array_op
from ..operators.declare.native_kernel import DOUBLES, Decomposition, NativeKernel, NativeLoop
from ..operators.declare.shape_rules import compute_dtype, spec_of
from ..operators.elementwise.complex_parts import conj
from ..operators.shape.rearrange import matrix_transpose
from ..registry.dtypes import COMPLEX, DType, complex128, float32, float64
from ..registry.values import TensorSpec

if TYPE_CHECKING:
    from ..operators.declare.declaration import Errors, Samples
    from ..registry.function import OperatorFunction
    from ..registry.types import Array, ArrayModule, Function, ShapeRule, T, Tensor, TensorOrSpec

REAL = (float32, float64)
DTYPES = (*REAL, *COMPLEX)
TOLERANCE = {"float32": 1e-3, "complex64": 1e-3, "float64": 1e-10, "complex128": 1e-10}


# -- shapes and dtypes -------------------------------------------------------------------------------------------------
def check_matrices(
    name: str, x: TensorOrSpec, is_square: bool = False, dtypes: Sequence[DType] = DTYPES
) -> TensorSpec:
    """Check that a tensor is a stack of matrices and return its spec.

    Raises:
        DTypeError: its dtype is none of ``dtypes``.
        ShapeError: there are fewer than two axes, or the matrices must be square and are not.
    """
    spec = spec_of(x)
    compute_dtype(name, "same", dtypes, (spec,))
    if len(spec.shape) < 2:
        raise ShapeError(f"{name}: needs at least two axes, not shape {spec.shape}")
    if is_square and spec.shape[-1] != spec.shape[-2]:
        raise ShapeError(f"{name}: the matrices must be square, not of shape {spec.shape[-2:]}")
    return spec


def real_dtype(dtype: DType) -> DType:
    """The dtype of norms and of eigenvalues of symmetric matrices."""
    return (float64 if dtype is complex128 else float32) if dtype.kind == "c" else dtype


def adjoint(x: Tensor) -> Tensor:
    """The conjugated transposes of a stack of matrices."""
    turned = matrix_transpose(x)
    return conj(turned) if spec_of(x).dtype.kind == "c" else turned


def symmetrize(x: Tensor) -> Tensor:
    """The nearest symmetric (Hermitian) matrices."""
    return (x + adjoint(x)) / 2


def hermitian_part(xp: ArrayModule, x: Array) -> Array:
    """The symmetric (Hermitian) parts of a stack of matrices, in a kernel."""
    result: Array = (x + xp.conj(xp.swapaxes(x, -1, -2))) / 2
    return result


def call_lapack(name: str, compute: Callable[[], T]) -> T:
    """Call a LAPACK routine and return its result.

    Raises:
        LinearAlgebraError: the routine failed, for example for a singular matrix.
    """
    try:
        with np.errstate(all="ignore"):
            return compute()
    except np.linalg.LinAlgError as fault:
        raise LinearAlgebraError(f"{name}: {fault}") from None


# -- native kernels ----------------------------------------------------------------------------------------------------
MOST_UNROLLED = 8
"""The rows of matrices up to which loops are emitted; for larger ones LAPACK is faster."""


def is_unrolled(x: TensorSpec, *others: object, **options: object) -> bool:
    """Whether matrices are small enough for an emitted loop."""
    return 0 < x.shape[-1] <= MOST_UNROLLED


def emitted_lapack_kernel(name: str, *loops: NativeLoop) -> NativeKernel:
    """The native kernel of an operator whose emitted loops call LAPACK, in double precision."""
    return NativeKernel(loops, f"{name}: there is no memory for the factors", DOUBLES, MemoryError)


def has_short_sides(self: TensorSpec, **options: object) -> bool:
    """Whether the sizes of matrices fit LAPACK's 32-bit integers, with those of work memory."""
    return max(self.shape[-2:]) < 1 << 24


def lapack_kernel(
    *loops: NativeLoop,
    failure: str = "",
    is_finite: bool = False,
    dtypes: tuple[DType, ...] | None = None,
) -> NativeKernel:
    """The native kernel of an operator that NumPy's LAPACK computes, in double precision as NumPy does."""
    return NativeKernel(loops, failure, DOUBLES, is_finite=is_finite, dtypes=dtypes)


# -- declarations ------------------------------------------------------------------------------------------------------
def matrix_op(
    schema: str,
    shape_rule: ShapeRule,
    kernel: Function,
    *,
    doc: str,
    reference: str | Function,
    derivative: Derivative,
    samples: Samples = "samples.linalg.square_samples",
    errors: Errors = "samples.linalg.square_errors",
    tolerance: Mapping[str, float] = TOLERANCE,
    rule: Callable[..., object] = batching.leading,
    native: NativeKernel | None = None,
    decomposition: Decomposition | None = None,
    dtypes: tuple[DType, ...] = DTYPES,
) -> OperatorFunction[Any]:
    """Declare an operator on stacks of matrices whose kernel calls LAPACK."""
    return array_op(
        "factorization",
        schema,
        shape_rule,
        kernel,
        doc=doc,
        reference=reference,
        dtypes=dtypes,
        derivative=derivative,
        batching=rule,
        native=native,
        decomposition=decomposition,
        samples=samples,
        errors=errors,
        tolerance=tolerance,
        method=False,
    )

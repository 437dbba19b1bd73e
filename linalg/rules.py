"""What the operators of linear algebra share: their declaration, shapes of stacks of matrices, the adjoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import lazy
from ..errors import LinearAlgebraError, ShapeError
from ..operators import batching
from ..operators.complex_parts import conj
from ..operators.declare import Bad, Draw, Sample
from ..operators.derivatives import Derivative
from ..operators.kinds import LAYOUTS, library
from ..operators.rearrange import matrix_transpose
from ..operators.rules import compute_dtype, spec_of
from ..registry.dtypes import COMPLEX, DType, complex128, float32, float64, int64
from ..registry.values import TensorSpec

references = lazy.Functions("linalg.references")

TAKEN = (float32, float64, *COMPLEX)
SOLVED = {"float32": 1e-3, "complex64": 1e-3, "float64": 1e-10, "complex128": 1e-10}

Samples = Callable[[DType], Iterable[Sample]]


# -- shapes and dtypes -------------------------------------------------------------------------------------------------
def matrices(name: str, x: Any, is_square: bool = False) -> TensorSpec:
    """The spec of a stack of matrices.

    Raises:
        DTypeError: neither float32, float64 nor complex.
        ShapeError: there are fewer than two axes, or the matrices must be square and are not.
    """
    spec = spec_of(x)
    compute_dtype(name, "same", TAKEN, (spec,))
    if len(spec.shape) < 2:
        raise ShapeError(f"{name}: needs at least two axes, not shape {spec.shape}")
    if is_square and spec.shape[-1] != spec.shape[-2]:
        raise ShapeError(f"{name}: the matrices must be square, not of shape {spec.shape[-2:]}")
    return spec


def real_dtype(dtype: DType) -> DType:
    """The dtype of norms and of eigenvalues of symmetric matrices."""
    return (float64 if dtype is complex128 else float32) if dtype.kind == "c" else dtype


def adjoint(x: Any) -> Any:
    """The conjugated transposes of a stack of matrices."""
    turned = matrix_transpose(x)
    return conj(turned) if spec_of(x).dtype.kind == "c" else turned


def symmetric(x: Any) -> Any:
    """The nearest symmetric (Hermitian) matrices."""
    return (x + adjoint(x)) / 2


def guarded(name: str, compute: Callable[[], Any]) -> Any:
    """What a routine of LAPACK gives.

    Raises:
        LinearAlgebraError: it has failed, as for a singular matrix.
    """
    try:
        with np.errstate(all="ignore"):
            return compute()
    except np.linalg.LinAlgError as fault:
        raise LinearAlgebraError(f"{name}: {fault}") from None


# -- declarations ------------------------------------------------------------------------------------------------------
def square_samples(dtype: DType) -> Iterable[Sample]:
    """Square matrices, well conditioned, in each memory layout, stacked and empty."""
    yield Sample((well_conditioned(3),))
    for layout in LAYOUTS:
        yield Sample((Draw((2, 2), values=(3.0, 1.0, -1.0, 2.0), layout=layout),))
    yield Sample((Draw((2, 2, 2), values=(3.0, 1.0, -1.0, 2.0, 1.0, 0.5, 0.75, -2.0)),))
    yield Sample((Draw((0, 0)),))


def oblong_samples(dtype: DType) -> Iterable[Sample]:
    """Square, tall and wide matrices, stacked and empty."""
    for layout in LAYOUTS:
        yield Sample((Draw((2, 3), values=(3.0, 1.0, -1.0, 2.0, 0.5, -0.25), layout=layout),))
    yield Sample((well_conditioned(3),))
    yield Sample((well_conditioned(4, 2),))
    yield Sample((well_conditioned(2, 3),))
    yield Sample((Draw((2, 3, 2), values=(3.0, 1.0, -1.0, 2.0, 0.5, 0.0, 1.0, 0.5, 0.25, -2.0, 1.0, 0.0)),))


def well_conditioned(size: int, columns: int | None = None) -> Draw:
    """A matrix of numbers between 0.1 and 1; random ones of this size are regular."""
    return Draw((size, columns or size), 0.1, 1.0)


def square_errors() -> Iterable[Bad]:
    """A vector, an oblong matrix, integers."""
    yield Bad((Draw((3,)),), ValueError, "two axes")
    yield Bad((Draw((2, 3)),), ValueError, "square")
    yield Bad((Draw((2, 2), dtype=int64),), TypeError, "does not take int64")


def oblong_errors() -> Iterable[Bad]:
    """A vector, integers."""
    yield Bad((Draw((3,)),), ValueError, "two axes")
    yield Bad((Draw((2, 2), dtype=int64),), TypeError, "does not take int64")


def stacked(
    schema: str,
    meta: Callable[..., Any],
    kernel: Callable[..., Any],
    *,
    doc: str,
    reference: str | Callable[..., Any],
    derivative: Derivative,
    samples: Samples = square_samples,
    errors: Callable[[], Iterable[Bad]] = square_errors,
    tolerance: Mapping[str, float] = SOLVED,
    rule: Callable[..., Any] = batching.leading,
) -> Any:
    """Declare an operator of LAPACK that takes stacks of matrices."""
    return library(
        "factorization",
        schema,
        meta,
        kernel,
        doc=doc,
        reference=reference,
        dtypes=TAKEN,
        derivative=derivative,
        batching=rule,
        samples=samples,
        errors=errors,
        tolerance=tolerance,
        method=False,
    )

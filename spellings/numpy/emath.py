"""``tandem.numpy.emath``: functions of real numbers whose results are complex outside of their domain.

The dtype of a result depends on the values, so that these functions cannot be traced.

Source: ``numpy.emath``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ConcretizationError
from ..operators.declare.shape_rules import is_tensor, spec_of
from ..operators.elementwise import arithmetic, exponential, trigonometry
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import gt, lt
from ..operators.reductions.folds import any as any_of
from ..registry.dtypes import complex64, complex128, float64
from .creation import asarray

if TYPE_CHECKING:
    from ..registry.types import Tensor, TensorLike

    Function = Callable[[Tensor], Tensor]

_SINGLE = ("float32", "float16", "bfloat16")


def _to_domain(name: str, x: TensorLike, is_outside: Function) -> Tensor:
    """A tensor in floating point; complex if an element is outside of a function's domain."""
    given: Tensor = x if is_tensor(x) else asarray(x)  # type: ignore[assignment]
    spec = spec_of(given)
    if spec.dtype.kind == "c":
        return given
    try:
        needs_complex = bool(any_of(is_outside(given)))
    except ConcretizationError as error:
        error.add_note(
            f"the dtype of emath.{name} depends on the values; convert the argument: x.astype(complex)"
        )
        raise
    if needs_complex:
        return astype(given, complex64 if spec.dtype.name in _SINGLE else complex128)
    return given if spec.dtype.is_inexact else astype(given, float64)


def _is_negative(x: Tensor) -> Tensor:
    return lt(x, 0)


def _is_large(x: Tensor) -> Tensor:
    return gt(arithmetic.abs(x), 1)


def sqrt(x: TensorLike) -> Tensor:
    """The square root; complex if an element is negative.

    >>> import tandem.numpy as np
    >>> np.emath.sqrt([-4.0, 9.0]).tolist(), np.emath.sqrt(4).item()
    ([2j, (3+0j)], 2.0)
    """
    return exponential.sqrt(_to_domain("sqrt", x, _is_negative))


def log(x: TensorLike) -> Tensor:
    """The natural logarithm; complex if an element is negative."""
    return exponential.log(_to_domain("log", x, _is_negative))


def log2(x: TensorLike) -> Tensor:
    """The logarithm to base 2; complex if an element is negative."""
    return exponential.log2(_to_domain("log2", x, _is_negative))


def log10(x: TensorLike) -> Tensor:
    """The logarithm to base 10; complex if an element is negative."""
    return exponential.log10(_to_domain("log10", x, _is_negative))


def logn(n: TensorLike, x: TensorLike) -> Tensor:
    """The logarithm to base ``n``; complex if an element or the base is negative."""
    return arithmetic.div(log(x), log(n))


def power(x: TensorLike, p: TensorLike) -> Tensor:
    """``x**p``; complex if an element of ``x`` is negative, in floating point if an exponent is.

    >>> import tandem.numpy as np
    >>> np.emath.power([2, 4], -1).tolist()
    [0.5, 0.25]
    """
    base, exponent = asarray(x), asarray(p)
    domain, fractions = _to_domain("power", base, _is_negative), _to_domain("power", exponent, _is_negative)
    if domain.dtype.kind == "c":
        return arithmetic.pow(domain, astype(exponent, float64) if exponent.dtype.kind in "biu" else exponent)
    if fractions.dtype.kind == "c" and exponent.dtype.kind in "biu":
        return arithmetic.pow(domain, astype(exponent, float64))
    return arithmetic.pow(base, exponent)


def arccos(x: TensorLike) -> Tensor:
    """The inverse cosine; complex if a magnitude is above 1."""
    return trigonometry.acos(_to_domain("arccos", x, _is_large))


def arcsin(x: TensorLike) -> Tensor:
    """The inverse sine; complex if a magnitude is above 1."""
    return trigonometry.asin(_to_domain("arcsin", x, _is_large))


def arctanh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic tangent; complex if a magnitude is above 1."""
    return trigonometry.atanh(_to_domain("arctanh", x, _is_large))

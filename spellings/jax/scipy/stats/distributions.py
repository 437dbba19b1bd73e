"""Arguments of densities, and the base classes of distributions.

A distribution is a class of static functions, as in SciPy: it has no instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....eager.tensor.construct import asarray
from ....operators.declare.shape_rules import promoted_dtype
from ....operators.elementwise.exponential import exp, log
from ....registry.dtypes import default_float
from ...keywords import is_number, to_dtype

if TYPE_CHECKING:
    from ....registry.types import Tensor, TensorLike

INFINITY = float("inf")
NAN = float("nan")


def to_floats(*values: TensorLike) -> list[Tensor]:
    """Tensors of the promoted floating dtype of tensors, arrays and numbers; of integers the default float."""
    given = [value if is_number(value) else asarray(value) for value in values]
    dtype = promoted_dtype("density", given)
    dtype = dtype if dtype.is_inexact else default_float()
    return [to_dtype(value, dtype) for value in given]


class Density:
    """A continuous distribution with ``logpdf``."""

    logpdf: Any

    @classmethod
    def pdf(cls, *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        """The density; the arguments are those of ``logpdf``."""
        return exp(cls.logpdf(*args, **kwargs))


class Cumulative(Density):
    """A continuous distribution with ``logpdf``, ``cdf`` and ``sf``."""

    cdf: Any
    sf: Any

    @classmethod
    def logcdf(cls, *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        """The logarithm of ``cdf``, whose arguments it takes."""
        return log(cls.cdf(*args, **kwargs))

    @classmethod
    def logsf(cls, *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        """The logarithm of ``sf``, whose arguments it takes."""
        return log(cls.sf(*args, **kwargs))


class Mass:
    """A distribution of integers with ``logpmf``."""

    logpmf: Any

    @classmethod
    def pmf(cls, *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        """The probability of an integer; the arguments are those of ``logpmf``."""
        return exp(cls.logpmf(*args, **kwargs))

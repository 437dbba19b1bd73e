"""Constraints of parameters and samples: which values are valid, and how many axes one value has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.rounding import floor
from ...operators.reductions.folds import all, sum
from ...operators.shape.rearrange import matrix_transpose

if TYPE_CHECKING:
    from ...registry.types import Tensor

TOLERANCE = 1e-6


class Constraint:
    """Which values are valid.

    Args:
        name: for error messages.
        is_valid: returns for each element whether it is valid.
        event_dim: the number of axes of one value, over which all elements must be valid.
        is_discrete: whether the values are integers.
    """

    def __init__(
        self, name: str, is_valid: Callable[[Tensor], Any], event_dim: int = 0, is_discrete: bool = False
    ):
        self.name, self.event_dim, self.is_discrete = name, event_dim, is_discrete
        self._is_valid = is_valid

    def check(self, value: Tensor) -> Any:
        """Whether each value is valid: a bool tensor without the axes of one value."""
        valid = self._is_valid(value)
        extra = len(valid.shape) - (len(value.shape) - self.event_dim)
        return all(valid, tuple(range(-extra, 0))) if extra else valid

    def __repr__(self) -> str:
        return self.name


def independent(base: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """A constraint all of whose last batch axes must be valid."""
    event_dim = base.event_dim + reinterpreted_batch_ndims
    return Constraint(base.name, base.check, event_dim, base.is_discrete)


def greater_than(lower_bound: Any) -> Constraint:
    """Numbers above a bound."""
    return Constraint(f"greater_than({lower_bound})", lambda x: x > lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Numbers of at least a bound."""
    return Constraint(f"greater_than_eq({lower_bound})", lambda x: x >= lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Numbers below a bound."""
    return Constraint(f"less_than({upper_bound})", lambda x: x < upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers between two bounds."""
    return Constraint(
        f"interval({lower_bound}, {upper_bound})", lambda x: (x >= lower_bound) & (x <= upper_bound)
    )


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers from one bound to below another."""
    return Constraint(
        f"half_open_interval({lower_bound}, {upper_bound})", lambda x: (x >= lower_bound) & (x < upper_bound)
    )


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Integers between two bounds."""
    return Constraint(
        f"integer_interval({lower_bound}, {upper_bound})",
        lambda x: (x >= lower_bound) & (x <= upper_bound) & _is_integer(x),
        is_discrete=True,
    )


def _is_integer(x: Tensor) -> Any:
    return floor(x) == x if x.dtype.is_inexact else x == x


def _sums_to_one(x: Tensor) -> Any:
    return all(x >= 0, -1) & (abs(sum(x, -1) - 1) < TOLERANCE)


def _is_symmetric(x: Tensor) -> Any:
    return all(abs(x - matrix_transpose(x)) <= TOLERANCE * (1 + abs(x)), (-2, -1))


def _has_positive_diagonal(x: Tensor) -> Any:
    return all(x.diagonal(0, -2, -1) > 0, -1)


real = Constraint("real", lambda x: x == x)
real_vector = independent(real, 1)
positive = Constraint("positive", lambda x: x > 0)
nonnegative = Constraint("nonnegative", lambda x: x >= 0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("boolean", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer = Constraint("nonnegative_integer", lambda x: (x >= 0) & _is_integer(x), is_discrete=True)
simplex = Constraint("simplex", _sums_to_one, 1)
one_hot = Constraint(
    "one_hot", lambda x: all((x == 0) | (x == 1), -1) & (sum(x, -1) == 1), 1, is_discrete=True
)
lower_cholesky = Constraint("lower_cholesky", _has_positive_diagonal, 2)
positive_definite = Constraint("positive_definite", lambda x: _is_symmetric(x) & _has_positive_diagonal(x), 2)


def multinomial(total_count: int) -> Constraint:
    """Vectors of counts with a given sum."""
    return Constraint(
        f"multinomial({total_count})",
        lambda x: all(x >= 0, -1) & (sum(x, -1) == total_count),
        1,
        is_discrete=True,
    )

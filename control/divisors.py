"""gcd and lcm, by Euclid's algorithm with a fixed number of steps for each width of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import lazy
from ..operators.creation.creation import full
from ..operators.declare.docstrings import make_docstring
from ..operators.declare.kinds import composite
from ..operators.declare.shape_rules import (
    broadcast_shapes,
    common_device,
    compute_dtype,
    is_tensor,
    spec_of,
)
from ..operators.elementwise.arithmetic import abs, remainder
from ..operators.elementwise.casting import cast
from ..operators.elementwise.comparison import eq
from ..operators.elementwise.selection import where
from ..operators.shape.views import broadcast_to
from ..registry.dtypes import INTEGERS

if TYPE_CHECKING:
    from ..registry.types import Tensor

_loops = lazy.Module(".control.loops")  # which declares operators that the import need not wait for
# Bytes of an integer: steps of Euclid's algorithm at most, for neighbouring Fibonacci numbers.
_STEPS = {1: 13, 2: 25, 4: 48, 8: 95}
_ARGS = """Args:
    self, other: tensors of integer dtype; shapes that broadcast; all but one may be Python scalars.

Returns:
    A tensor of the broadcast shape and the promoted dtype.

Raises:
    DTypeError: the promoted dtype is not an integer one.
    ShapeError: the shapes do not broadcast."""


def _magnitudes(name: str, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands without signs, in the broadcast shape and the promoted dtype."""
    dtype = compute_dtype(name, "same", INTEGERS, (self, other))
    shape = broadcast_shapes(name, spec_of(self).shape, spec_of(other).shape)
    device = common_device(name, (self, other))
    one, two = (
        cast(x, dtype) if is_tensor(x) else full((), x, dtype=dtype, device=device) for x in (self, other)
    )
    return abs(broadcast_to(one, shape)), abs(broadcast_to(two, shape))


def _divide(one: Tensor, two: Tensor) -> Tensor:
    """The greatest common divisors of magnitudes."""

    def step(_: object, pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x, y = pair
        ends = eq(y, 0)
        return where(ends, x, y), where(ends, 0, remainder(x, where(ends, 1, y)))

    carry: Any = _loops.fori_loop(0, _STEPS[one.dtype.itemsize], step, (one, two))
    result: Tensor = carry[0]
    return result


@composite(
    "gcd(Tensor self, Tensor other) -> Tensor",
    doc=make_docstring(
        "The greatest common divisor of two integers; 0 of two zeros.",
        _ARGS,
        "td.gcd(td.asarray([12, 7]), 8) -> [4, 1]",
    ),
    reference="numpy.gcd",
    samples="samples.elementwise.integer_pair_samples",
    errors="samples.elementwise.integer_pair_errors",
    dtypes=INTEGERS,
    inplace=True,
)
def gcd(self: Tensor, other: Tensor) -> Tensor:
    """See :func:`tandem.gcd`."""
    return _divide(*_magnitudes("gcd", self, other))


@composite(
    "lcm(Tensor self, Tensor other) -> Tensor",
    doc=make_docstring(
        "The least common multiple of two integers; 0 if one of them is 0.",
        _ARGS,
        "td.lcm(td.asarray([4, 3]), 6) -> [12, 6]",
    ),
    reference="numpy.lcm",
    samples="samples.elementwise.integer_pair_samples",
    errors="samples.elementwise.integer_pair_errors",
    dtypes=INTEGERS,
    inplace=True,
)
def lcm(self: Tensor, other: Tensor) -> Tensor:
    """See :func:`tandem.lcm`."""
    one, two = _magnitudes("lcm", self, other)
    divisor = _divide(one, two)
    return one // where(eq(divisor, 0), 1, divisor) * two

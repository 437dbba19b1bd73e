"""gcd and lcm, by NumPy's loops.

Compiled code that cannot call these has Euclid's algorithm with a fixed number of steps for each width of integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..operators.creation.creation import full
from ..operators.declare import batching
from ..operators.declare.derivatives import NotDifferentiable
from ..operators.declare.docstrings import make_docstring
from ..operators.declare.kinds import array_op, elementwise_shape_rule
from ..operators.declare.native_kernel import Decomposition, NativeKernel, NativeLoop
from ..operators.declare.quiet import call_quietly
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
from ..registry.dtypes import INTEGERS, as_dtype
from ..registry.values import TensorSpec

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Array, ArrayModule, Tensor

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


def _compose_gcd(self: Tensor, other: Tensor) -> Tensor:
    return _divide(*_magnitudes("gcd", self, other))


def _compose_lcm(self: Tensor, other: Tensor) -> Tensor:
    one, two = _magnitudes("lcm", self, other)
    divisor = _divide(one, two)
    return one // where(eq(divisor, 0), 1, divisor) * two


def _declare(name: str, body: Callable[[Tensor, Tensor], Tensor], doc: str, example: str) -> Any:  # noqa: ANN401
    """Declare an operator of two integers with NumPy's loop; ``body`` serves compiled code without it."""

    def kernel(xp: ArrayModule, self: Array | int, other: Array | int) -> Array:
        specs = [x if isinstance(x, int) else TensorSpec((), as_dtype(x.dtype)) for x in (self, other)]
        dtype = compute_dtype(name, "same", INTEGERS, specs).np
        one, two = (xp.full((), x, dtype) if isinstance(x, int) else x.astype(dtype) for x in (self, other))
        return call_quietly(getattr(xp, name), one, two)

    return array_op(
        "integer",
        f"{name}(Tensor self, Tensor other) -> Tensor",
        elementwise_shape_rule(name, "same", INTEGERS),
        kernel,
        doc=make_docstring(doc, _ARGS, example),
        reference=f"numpy.{name}",
        decomposition=Decomposition(body),
        derivative=NotDifferentiable(f"{name} is a function of integers"),
        batching=batching.elementwise,
        native=NativeKernel((NativeLoop("numpy", name),), promotes=True),
        samples="samples.elementwise.integer_pair_samples",
        errors="samples.elementwise.integer_pair_errors",
        dtypes=INTEGERS,
        inplace=True,
    )


gcd: OperatorFunction[Tensor] = _declare(
    "gcd",
    _compose_gcd,
    "The greatest common divisor of two integers; 0 of two zeros.",
    "td.gcd(td.asarray([12, 7]), 8) -> [4, 1]",
)
lcm: OperatorFunction[Tensor] = _declare(
    "lcm",
    _compose_lcm,
    "The least common multiple of two integers; 0 if one of them is 0.",
    "td.lcm(td.asarray([4, 3]), 6) -> [12, 6]",
)

"""The gamma function and its relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ValueArgumentError
from ..operators.creation.creation import full
from ..operators.declare.batching import Batched, BatchInfo, Dims
from ..operators.declare.declaration import ErrorInput, SampleInput, TensorSample
from ..operators.declare.derivatives import Partials
from ..operators.declare.docstrings import make_docstring
from ..operators.declare.kinds import array_op
from ..operators.declare.native_kernel import Decomposition, NativeLoop
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.casting import cast
from ..operators.elementwise.exponential import exp, log, log1p
from ..registry.dtypes import float64
from ..registry.values import TensorSpec
from .rules import DTYPES, float_spec, scipy_kernel, scipy_op, scipy_reference, scipy_special

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Tensor

POSITIVE = (0.3, 5.0)
BETWEEN = (0.05, 0.95)


# -- the zeta function -------------------------------------------------------------------------------------------------
zeta: OperatorFunction[Tensor] = scipy_op(
    "zeta",
    "The Hurwitz zeta function; differentiable by its second argument.",
    "td.special.zeta(td.asarray([2.0]), 1.0).astype(td.float16) -> [1.64453125]",
    (1.5, 5.0),
    POSITIVE,
    arguments=("x", "q"),
    derivative={"q": lambda x, q: -x * zeta(x + 1, q)},
    loop=NativeLoop("scipy.special._ufuncs", "_zeta"),
    samples="samples.special.zeta_samples",
    errors=lambda: [ErrorInput((2.5, "x"), TypeError, "must be a Tensor")],
)


# -- polygamma ---------------------------------------------------------------------------------------------------------
def _polygamma_shape_rule(n: int, self: TensorSpec) -> TensorSpec:
    if n < 0:
        raise ValueArgumentError(
            f"polygamma: n must be a non-negative int, the order of the derivative, not {n}"
        )
    return float_spec("special_polygamma", self)


def _polygamma_batched(info: BatchInfo, in_dims: Dims, n: int, self: Tensor) -> Batched:
    return info.call(n, self), 0


def _polygamma_by_zeta(n: int, self: Tensor) -> Tensor:
    """The formula of SciPy, in float64."""
    dtype, x = _polygamma_shape_rule(n, spec_of(self)).dtype, cast(self, float64)
    if n == 0:
        return cast(digamma(x), dtype)
    factor = float((-1.0) ** (n + 1) * scipy_special.gamma(n + 1.0))
    return cast(factor * zeta(full((), n + 1, dtype=float64), x), dtype)


polygamma: OperatorFunction[Tensor] = array_op(
    "special",
    "special_polygamma(int n, Tensor self) -> Tensor",
    _polygamma_shape_rule,
    scipy_kernel("polygamma", "special_polygamma"),
    doc=make_docstring(
        "The n-th derivative of the digamma function.",
        """Args:
    n: the order of the derivative, not negative.
    self: tensor of real dtype, any shape.

Returns:
    A tensor of the same shape and dtype, or the default float for integers.

Raises:
    ValueArgumentError: ``n`` is negative.
    DTypeError: the tensor is complex.""",
        "td.special.polygamma(1, td.asarray([1.0])).astype(td.float16) -> [1.64453125]",
    ),
    reference=scipy_reference("polygamma"),
    decomposition=Decomposition(_polygamma_by_zeta),
    dtypes=DTYPES,
    derivative=Partials({"self": lambda n, self: polygamma(n + 1, self)}),
    batching=_polygamma_batched,
    samples=lambda dtype: [
        SampleInput((n, TensorSample(shape, *POSITIVE)))
        for n, shape in ((0, (5,)), (1, ()), (2, (3, 4)), (3, (0,)))
    ],
    errors=lambda: [ErrorInput((-1, TensorSample((2,))), ValueError, "order")],
    method=False,
)
digamma = scipy_op(
    "digamma",
    "The derivative of `gammaln`; also called psi.",
    "td.special.digamma(td.asarray([1.0])).astype(td.float16) -> [-0.5771484375]",
    POSITIVE,
    derivative={"self": lambda self: polygamma(1, self)},
)
gammaln = scipy_op(
    "gammaln",
    "The logarithm of the magnitude of the gamma function.",
    "td.special.gammaln(td.asarray([1.0, 2.0])) -> [0.0, 0.0]",
    POSITIVE,
    derivative={"self": lambda self: digamma(self)},
)
gamma = scipy_op(
    "gamma",
    "The gamma function: the factorial of each element less 1.",
    "td.special.gamma(td.asarray([1.0, 5.0])) -> [1.0, 24.0]",
    POSITIVE,
    derivative={"self": lambda self, out: out * digamma(self)},
)


# -- the beta function -------------------------------------------------------------------------------------------------
def _beta_slope(one: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return digamma(one) - digamma(self + other)


betaln = scipy_op(
    "betaln",
    "The logarithm of the magnitude of the beta function.",
    "td.special.betaln(td.asarray([1.0]), 1.0) -> [0.0]",
    POSITIVE,
    POSITIVE,
    arguments=("self", "other"),
    derivative={
        "self": lambda self, other: _beta_slope(self, self, other),
        "other": lambda self, other: _beta_slope(other, self, other),
    },
)
beta = scipy_op(
    "beta",
    "The beta function, gamma(self) * gamma(other) / gamma(self + other).",
    "td.special.beta(td.asarray([1.0]), 2.0) -> [0.5]",
    POSITIVE,
    POSITIVE,
    arguments=("self", "other"),
    derivative={
        "self": lambda self, other, out: out * _beta_slope(self, self, other),
        "other": lambda self, other, out: out * _beta_slope(other, self, other),
    },
)


# -- incomplete functions: differentiable by the last argument ---------------------------------------------------------
def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    return exp((a - 1) * log(x) - x - gammaln(a))


def _beta_density(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    return exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln(a, b))


gammainc = scipy_op(
    "gammainc",
    "The regularized lower incomplete gamma function; differentiable by its second argument.",
    "td.special.gammainc(td.asarray([1.0]), 0.0) -> [0.0]",
    POSITIVE,
    POSITIVE,
    arguments=("a", "x"),
    derivative={"x": _gamma_density},
    samples="samples.special.gammainc_samples",
)
gammaincc = scipy_op(
    "gammaincc",
    "The regularized upper incomplete gamma function; differentiable by its second argument.",
    "td.special.gammaincc(td.asarray([1.0]), 0.0) -> [1.0]",
    POSITIVE,
    POSITIVE,
    arguments=("a", "x"),
    derivative={"x": lambda a, x: -_gamma_density(a, x)},
    samples="samples.special.gammaincc_samples",
)
betainc = scipy_op(
    "betainc",
    "The regularized incomplete beta function; differentiable by its third argument.",
    "td.special.betainc(td.asarray([1.0]), 1.0, 0.5) -> [0.5]",
    POSITIVE,
    POSITIVE,
    BETWEEN,
    arguments=("a", "b", "x"),
    derivative={"x": _beta_density},
    samples="samples.special.betainc_samples",
    errors=lambda: [ErrorInput((0.5, 2.5, "x"), TypeError, "must be a Tensor")],
)

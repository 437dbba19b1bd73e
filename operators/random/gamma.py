"""The gamma distribution, and distributions computed from it; all are differentiable by their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import FLOATS, DType, float32, float64
from ...registry.values import TensorSpec
from ..creation.creation import full
from ..declare.batching import (
    Batched,
    BatchInfo,
    Dims,
    elementwise,
    ensure_batch_axis,
    expand_rank,
    logical_shape,
)
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.derivatives import NotDifferentiable, Rule
from ..declare.kinds import array_op, composite
from ..declare.quiet import call_quietly
from ..declare.shape_rules import broadcast_shapes, check_shape, is_tensor, spec_of
from ..elementwise.activation import sigmoid
from ..elementwise.casting import astype
from ..elementwise.exponential import exp, sqrt
from ..nn.normalization import softmax
from ..shape.views import broadcast_to, sum_to
from .continuous import TOLERANCE, parametric
from .discrete import draw_signs
from .key_bits import check_key
from .key_bits import split as split_words
from .uniform import cast_parameter, float_dtype, normal, sample_shape, working_dtype

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Number, Shape, Tensor

rejection = lazy.Functions(".operators.random.rejection")
slopes = lazy.Module(".operators.random.gamma_derivative")

WIDE = (float32, float64)
CLOSE = TOLERANCE | {"float32": 1e-4, "float64": 1e-10}


# -- rejection samplers as operators -----------------------------------------------------------------------------------
def drawing_shape_rule(name: str, result: DType | None) -> Callable[..., TensorSpec]:
    """The shape rule of a sampler of a key, parameters and a shape that the parameters broadcast to."""

    def shape_rule(key: TensorSpec, *rest: Any) -> TensorSpec:
        *parameters, shape = rest
        whole = check_key(name, key).shape[:-1] + check_shape(name, shape)
        specs = [spec_of(one) for one in parameters]
        for spec in specs:
            if spec.dtype not in WIDE:
                raise DTypeError(f"{name}: takes float32 or float64 parameters, not {spec}")
        common = broadcast_shapes(name, whole, *(spec.shape for spec in specs))
        if common != whole:
            raise ShapeError(f"{name}: parameters of shape {common} do not broadcast to {whole}")
        wide = float64 if any(spec.dtype is float64 for spec in specs) else float32
        return TensorSpec(whole, result or wide, spec_of(key).device)

    return shape_rule


def drawing_kernel(draw: Callable[..., Array], result: DType | None) -> Callable[..., Array]:
    """The array kernel of a sampler of a key, parameters and a shape."""

    def kernel(xp: ArrayModule, key: Array, *rest: Any) -> Array:
        *given, shape = rest
        arrays = [xp.asarray(one) for one in given]
        whole = (*key.shape[:-1], *shape)
        wide = [xp.broadcast_to(one, whole).astype(xp.float64, order="C") for one in arrays]
        results = call_quietly(draw, xp, key, shape, *wide)
        cast: Array = results.astype(result.np if result else xp.result_type(*arrays))
        return cast

    return kernel


def drawing_batched(info: BatchInfo, in_dims: Dims, key: Tensor, *rest: Tensor) -> Batched:
    """Batching rule of samplers: each example has its own key, or all have the same one."""
    *parameters, shape = rest
    rank = len(logical_shape(key, in_dims[0])) - 1 + len(shape)
    given = [expand_rank(one, dim, rank) for one, dim in zip(parameters, in_dims[1:])]
    return info.call(ensure_batch_axis(key, in_dims[0], info.batch_size), *given, shape), 0


def _slope_shape_rule(a: TensorSpec, log_x: TensorSpec) -> TensorSpec:
    one, two = spec_of(a), spec_of(log_x)
    for spec in (one, two):
        if spec.dtype not in WIDE:
            raise DTypeError(f"random_gamma_slope: takes float32 or float64, not {spec}")
    return TensorSpec(
        broadcast_shapes("random_gamma_slope", one.shape, two.shape),
        float64 if float64 in (one.dtype, two.dtype) else float32,
        two.device,
    )


def _slope_kernel(xp: ArrayModule, a: Array, log_x: Array) -> Array:
    one, two = xp.broadcast_arrays(a, log_x)
    result = call_quietly(slopes.slope, xp, one.astype(xp.float64), two.astype(xp.float64))
    out: Array = result.astype(xp.result_type(a, log_x))
    return out


gamma_slope = array_op(
    "random",
    "random_gamma_slope(Tensor a, Tensor log_x) -> Tensor",
    _slope_shape_rule,
    _slope_kernel,
    doc="""The derivative of the logarithm of a gamma sample with respect to the shape, for fixed random bits.

    Args:
        a: the shape, positive.
        log_x: the number's logarithm.

    Returns:
        ``d(log x)/da``: a tensor of the broadcast shape. NaN where there is none.

    Raises:
        DTypeError: neither float32 nor float64.
        ShapeError: the shapes do not broadcast.

    >>> round(float(td.ops.td.random_gamma_slope(td.asarray(1.0), td.asarray(0.0))), 4)
    1.1736
    """,
    reference="references.rejection.gamma_slope",
    dtypes=WIDE,
    derivative=NotDifferentiable("the second derivative by the shape has no closed form here"),
    batching=elementwise,
    tolerance={"float32": 1e-3, "float64": 1e-6},
    samples=lambda dtype: [
        SampleInput((TensorSample((7,), 0.5, 3.0), TensorSample((7,), -1.0, 1.0))),
        SampleInput((TensorSample((3, 1), 30.0, 50.0), TensorSample((4,), 3.4, 3.9))),
        SampleInput((TensorSample((0,), 1, 2), TensorSample((0,), 1, 2))),
    ],
    errors=lambda: [
        ErrorInput(
            (TensorSample((2,), 1, 2, dtype=float32), TensorSample((3,), 1, 2, dtype=float32)),
            ValueError,
            "broadcast",
        )
    ],
    method=False,
)


def _a_vjp(g: Tensor, a: Tensor, out: Tensor) -> Tensor:
    return sum_to(g * gamma_slope(a, out), spec_of(a).shape)


draw_loggamma: OperatorFunction[Tensor] = array_op(
    "random",
    "random_draw_loggamma(Tensor key, Tensor a, SymInt[] shape) -> Tensor",
    drawing_shape_rule("random_draw_loggamma", None),
    drawing_kernel(rejection.log_gamma, None),
    doc="""Logarithms of samples of the gamma distribution; :func:`tandem.random.loggamma` calls it.

    Args:
        key: a key, or several.
        a: the shape, a float32 or float64 tensor that broadcasts to the result.
        shape: the shape of what is drawn for each key.

    Returns:
        A tensor of shape ``(*keys, *shape)`` and the dtype of ``a``.

    Raises:
        DTypeError, ShapeError: no key, another dtype, or shapes that do not fit.

    >>> td.ops.td.random_draw_loggamma(td.random.key(0), td.asarray([1.0, 2.0]), (3, 2)).shape
    (3, 2)
    """,
    reference="references.rejection.draw_loggamma",
    dtypes=(float32,),
    derivative=Rule(vjp={"a": _a_vjp}, jvp={"a": lambda t, a, out: t * gamma_slope(a, out)}),
    batching=drawing_batched,
    tolerance={"float32": 1e-5, "float64": 1e-12},
    samples="samples.distributions.draw_samples",
    errors="samples.distributions.draw_errors",
    method=False,
)


def fill_parameter(key: Tensor, value: Tensor | Number, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A parameter as a tensor of a shape, on the device of the key."""
    if is_tensor(value):
        return broadcast_to(astype(value, dtype, copy=False), shape)
    return full(shape, value, dtype=dtype, device=spec_of(key).device)


def draw_loggammas(key: Tensor, a: Tensor, shape: tuple[int, ...], wide: DType) -> Tensor:
    """Logarithms of gamma samples; ``a`` is a number or a tensor that broadcasts to the shape."""
    return draw_loggamma(key, fill_parameter(key, a, shape, wide), shape)


def split_key(key: Tensor, n: int = 2) -> list[Tensor]:
    """Split a key into a list of ``n`` keys."""
    words = split_words(key, n)
    return [words[..., one, :] for one in range(n)]


# -- distributions -----------------------------------------------------------------------------------------------------
@parametric(
    "loggamma(Tensor a)",
    "Logarithms of samples of the gamma distribution, which do not underflow for small shapes.",
    "a: the shape, positive.",
    bounds=((0.3, 4.0),),
    reference="references.rejection.loggamma",
    example="2.0",
    tolerance=CLOSE,
    implicit=True,
)
def loggamma(key: Tensor, shape: Shape, wide: DType, a: Tensor) -> Tensor:
    return draw_loggammas(key, a, shape, wide)


@parametric(
    "gamma(Tensor a)",
    "Samples of the gamma distribution with scale 1.",
    "a: the shape, positive, which is the mean and the variance. NaN for NaN and for negative shapes.",
    bounds=((0.3, 4.0),),
    reference="references.rejection.gamma",
    example="2.0",
    tolerance=CLOSE,
    implicit=True,
)
def gamma(key: Tensor, shape: Shape, wide: DType, a: Tensor) -> Tensor:
    return exp(draw_loggammas(key, a, shape, wide))


@parametric(
    "beta(Tensor a, Tensor b)",
    "Samples of the beta distribution, between 0 and 1.",
    "a, b: its shapes, positive.",
    bounds=((0.5, 4.0), (0.5, 4.0)),
    reference="references.rejection.beta",
    example="2.0, 3.0",
    tolerance=CLOSE,
    implicit=True,
)
def beta(key: Tensor, shape: Shape, wide: DType, a: Tensor, b: Tensor) -> Tensor:
    one, two = split_key(key)
    return sigmoid(draw_loggammas(one, a, shape, wide) - draw_loggammas(two, b, shape, wide))


@parametric(
    "chisquare(Tensor df)",
    "Samples of the chi-square distribution.",
    "df: the degrees of freedom, positive.",
    bounds=((1.0, 6.0),),
    reference="references.rejection.chisquare",
    example="3.0",
    tolerance=CLOSE,
    implicit=True,
)
def chisquare(key: Tensor, shape: Shape, wide: DType, df: Tensor) -> Tensor:
    return 2.0 * exp(draw_loggammas(key, 0.5 * df, shape, wide))


@parametric(
    "t(Tensor df)",
    "Samples of Student's t-distribution.",
    "df: the degrees of freedom, positive.",
    bounds=((1.0, 6.0),),
    reference="references.rejection.t",
    example="3.0",
    tolerance=CLOSE,
    implicit=True,
)
def t(key: Tensor, shape: Shape, wide: DType, df: Tensor) -> Tensor:
    one, two = split_key(key)
    half = 0.5 * df
    scale = sqrt(half / exp(draw_loggammas(two, half, shape, wide)))
    return normal(one, shape, wide) * scale


@parametric(
    "f(Tensor dfnum, Tensor dfden)",
    "Samples of the F-distribution.",
    "dfnum, dfden: the degrees of freedom of numerator and denominator, positive.",
    bounds=((1.0, 6.0), (2.0, 6.0)),
    reference="references.rejection.f",
    example="3.0, 4.0",
    tolerance=CLOSE,
    implicit=True,
)
def f(key: Tensor, shape: Shape, wide: DType, above: Tensor, below: Tensor) -> Tensor:
    one, two = split_key(key)
    ratio = exp(draw_loggammas(one, 0.5 * above, shape, wide) - draw_loggammas(two, 0.5 * below, shape, wide))
    return ratio * (below / above)


@parametric(
    "generalized_normal(Tensor p)",
    "Samples with a density proportional to `exp(-abs(x) ** p)`.",
    "p: the exponent, positive: 1 is the Laplace distribution, 2 a normal one.",
    bounds=((0.7, 4.0),),
    reference="references.rejection.generalized_normal",
    example="2.0",
    tolerance=CLOSE,
    implicit=True,
)
def generalized_normal(key: Tensor, shape: Shape, wide: DType, p: Tensor) -> Tensor:
    one, two = split_key(key)
    size = exp(draw_loggammas(one, 1.0 / p, shape, wide) / p)
    return draw_signs(two, shape, wide) * size


@composite(
    "random_dirichlet(Tensor key, Tensor alpha, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""Samples of the Dirichlet distribution: vectors of positive numbers with sum 1.

    Args:
        key: a key, or several.
        alpha: a tensor whose last axis has the concentrations, positive.
        shape: the shape of vectors to draw for each key, to which the leading axes of ``alpha`` broadcast; None: these.
        dtype: a float dtype; None: that of ``alpha``.

    Returns:
        A tensor of that shape and one axis more; with several keys, their axes come first.

    Raises:
        DTypeError: no float dtype, or no key.
        ShapeError: no key, a negative size, or axes that do not broadcast to the shape.
        ValueArgumentError: ``alpha`` has no axis, or nothing along it.

    >>> td.random.dirichlet(td.random.key(0), td.ones(5), (3,)).shape
    (3, 5)
    """,
    reference="references.rejection.dirichlet",
    samples="samples.distributions.dirichlet_samples",
    errors="samples.distributions.dirichlet_errors",
    dtypes=FLOATS,
    tolerance=CLOSE,
    method=False,
)
def dirichlet(key: Tensor, alpha: Tensor, shape: Shape, dtype: DType | None) -> Tensor:
    spec = spec_of(alpha)
    if not spec.shape or not spec.shape[-1]:
        raise ValueArgumentError(
            f"random_dirichlet: alpha has one axis at least, of concentrations, unlike {spec}"
        )
    lead = sample_shape("random_dirichlet", shape, TensorSpec(spec.shape[:-1], spec.dtype))
    dtype = float_dtype("random_dirichlet", dtype, alpha)
    wide = working_dtype(dtype)
    drawn = draw_loggammas(key, cast_parameter(alpha, wide), (*lead, spec.shape[-1]), wide)
    return astype(softmax(drawn, -1), dtype, copy=False)

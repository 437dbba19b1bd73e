"""The gamma distribution, and those that are made of it; all differentiable by their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import lazy
from ..errors import DTypeError, ShapeError, ValueArgumentError
from ..registry.dtypes import FLOATS, DType, float32, float64
from ..registry.values import TensorSpec
from .activation import sigmoid
from .batching import Batched, BatchInfo, Dims, at_rank, elementwise, logical_shape, with_batch
from .casting import astype
from .creation import full
from .declare import Bad, Draw, Sample
from .derivatives import NotDifferentiable, Rule
from .exponential import exp, sqrt
from .kinds import composite, library
from .normalization import softmax
from .quiet import quietly
from .random_continuous import TOLERANCE, parametric
from .random_discrete import signs
from .random_keys import KEY, KEYS, check_key, key_errors
from .random_keys import split as split_words
from .random_numbers import computed_in, drawn_shape, float_dtype, normal, parameter
from .rules import broadcast_shapes, check_shape, is_tensor, spec_of
from .views import broadcast_to, sum_to

references = lazy.Functions("operators.references_rejection")
rejection = lazy.Functions("operators.random_rejection")
slopes = lazy.Functions("operators.random_slope")

WIDE = (float32, float64)
CLOSE = TOLERANCE | {"float32": 1e-4, "float64": 1e-10}


# -- what draws until it is accepted -----------------------------------------------------------------------------------
def drawing_meta(name: str, result: DType | None) -> Callable[..., TensorSpec]:
    """The rule of an operator of a key, parameters and a shape: parameters broadcast to the keys' shape and it."""

    def meta(key: Any, *rest: Any) -> TensorSpec:
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

    return meta


def drawing_kernel(draw: Callable[..., Any], result: DType | None) -> Callable[..., Any]:
    """The array kernel of such an operator."""

    def kernel(xp: Any, key: Any, *rest: Any) -> Any:
        *given, shape = rest
        arrays = [xp.asarray(one) for one in given]
        whole = (*key.shape[:-1], *shape)
        wide = [xp.broadcast_to(one, whole).astype(xp.float64, order="C") for one in arrays]
        found = quietly(draw, xp, key, shape, *wide)
        return found.astype(result.np if result else xp.result_type(*arrays))

    return kernel


def drawing_batched(info: BatchInfo, in_dims: Dims, key: Any, *rest: Any) -> Batched:
    """Each example has its own key, or all have the same one."""
    *parameters, shape = rest
    rank = len(logical_shape(key, in_dims[0])) - 1 + len(shape)
    given = [at_rank(one, dim, rank) for one, dim in zip(parameters, in_dims[1:])]
    return info.call(with_batch(key, in_dims[0], info.batch_size), *given, shape), 0


def _draw_samples(dtype: DType) -> Iterable[Sample]:
    yield Sample((KEY, Draw((), 0.5, 3.0), (5,)))
    yield Sample((KEY, Draw((6,), 0.1, 4.0), (2, 6)))
    yield Sample((KEYS, Draw((2, 1), 0.5, 30.0), (3,)))
    yield Sample((KEY, Draw((0,), 1, 2), (0,)))


def _draw_errors() -> list[Bad]:
    x = Draw((3,), 1, 2, dtype=float32)
    return [
        *key_errors(x, (3,)),
        Bad((KEY, x, (2,)), ValueError, "broadcast"),
        Bad((KEY, x, (-1,)), ValueError, "negative"),
    ]


def _slope_meta(a: Any, log_x: Any) -> TensorSpec:
    one, two = spec_of(a), spec_of(log_x)
    for spec in (one, two):
        if spec.dtype not in WIDE:
            raise DTypeError(f"random_gamma_slope: takes float32 or float64, not {spec}")
    return TensorSpec(
        broadcast_shapes("random_gamma_slope", one.shape, two.shape),
        float64 if float64 in (one.dtype, two.dtype) else float32,
        two.device,
    )


def _slope_kernel(xp: Any, a: Any, log_x: Any) -> Any:
    one, two = xp.broadcast_arrays(a, log_x)
    found = quietly(slopes.slope, xp, one.astype(xp.float64), two.astype(xp.float64))
    return found.astype(xp.result_type(a, log_x))


gamma_slope: Any = library(
    "random",
    "random_gamma_slope(Tensor a, Tensor log_x) -> Tensor",
    _slope_meta,
    _slope_kernel,
    doc="""How the logarithm of a number of the gamma distribution moves with the shape, the random bits fixed.

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
    reference=references.gamma_slope,
    dtypes=WIDE,
    derivative=NotDifferentiable("the second derivative by the shape has no closed form here"),
    batching=elementwise,
    tolerance={"float32": 1e-3, "float64": 1e-6},
    samples=lambda dtype: [
        Sample((Draw((7,), 0.5, 3.0), Draw((7,), -1.0, 1.0))),
        Sample((Draw((3, 1), 30.0, 50.0), Draw((4,), 3.4, 3.9))),
        Sample((Draw((0,), 1, 2), Draw((0,), 1, 2))),
    ],
    errors=lambda: [
        Bad((Draw((2,), 1, 2, dtype=float32), Draw((3,), 1, 2, dtype=float32)), ValueError, "broadcast")
    ],
    method=False,
)


def _by_a(g: Any, a: Any, out: Any) -> Any:
    return sum_to(g * gamma_slope(a, out), spec_of(a).shape)


draw_loggamma: Any = library(
    "random",
    "random_draw_loggamma(Tensor key, Tensor a, SymInt[] shape) -> Tensor",
    drawing_meta("random_draw_loggamma", None),
    drawing_kernel(rejection.log_gamma, None),
    doc="""Logarithms of numbers of the gamma distribution: what :func:`tandem.random.loggamma` is made of.

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
    reference=references.draw_loggamma,
    dtypes=(float32,),
    derivative=Rule(vjp={"a": _by_a}, jvp={"a": lambda t, a, out: t * gamma_slope(a, out)}),
    batching=drawing_batched,
    tolerance={"float32": 1e-5, "float64": 1e-12},
    samples=_draw_samples,
    errors=_draw_errors,
    method=False,
)


def filled(key: Any, value: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """A parameter as a tensor of a shape, where the key lies."""
    if is_tensor(value):
        return broadcast_to(astype(value, dtype, copy=False), shape)
    return full(shape, value, dtype=dtype, device=spec_of(key).device)


def logs(key: Any, a: Any, shape: tuple[int, ...], wide: DType) -> Any:
    """Logarithms of gamma numbers; ``a`` is a number or a tensor that broadcasts to the shape."""
    return draw_loggamma(key, filled(key, a, shape, wide), shape)


def halves(key: Any, n: int = 2) -> list[Any]:
    """New keys, apart."""
    words = split_words(key, n)
    return [words[..., one, :] for one in range(n)]


# -- distributions -----------------------------------------------------------------------------------------------------
@parametric(
    "loggamma(Tensor a)",
    "Logarithms of numbers of the gamma distribution, which do not underflow for small shapes.",
    "a: the shape, positive.",
    bounds=((0.3, 4.0),),
    reference=references.loggamma,
    example="2.0",
    tolerance=CLOSE,
    implicit=True,
)
def loggamma(key: Any, shape: Any, wide: DType, a: Any) -> Any:
    return logs(key, a, shape, wide)


@parametric(
    "gamma(Tensor a)",
    "Numbers of the gamma distribution with scale 1.",
    "a: the shape, positive: the mean and the variance. NaN gives NaN, as does what is negative.",
    bounds=((0.3, 4.0),),
    reference=references.gamma,
    example="2.0",
    tolerance=CLOSE,
    implicit=True,
)
def gamma(key: Any, shape: Any, wide: DType, a: Any) -> Any:
    return exp(logs(key, a, shape, wide))


@parametric(
    "beta(Tensor a, Tensor b)",
    "Numbers of the beta distribution, between 0 and 1.",
    "a, b: its shapes, positive.",
    bounds=((0.5, 4.0), (0.5, 4.0)),
    reference=references.beta,
    example="2.0, 3.0",
    tolerance=CLOSE,
    implicit=True,
)
def beta(key: Any, shape: Any, wide: DType, a: Any, b: Any) -> Any:
    one, two = halves(key)
    return sigmoid(logs(one, a, shape, wide) - logs(two, b, shape, wide))


@parametric(
    "chisquare(Tensor df)",
    "Sums of squares of normal numbers: the chi-square distribution.",
    "df: the degrees of freedom, positive.",
    bounds=((1.0, 6.0),),
    reference=references.chisquare,
    example="3.0",
    tolerance=CLOSE,
    implicit=True,
)
def chisquare(key: Any, shape: Any, wide: DType, df: Any) -> Any:
    return 2.0 * exp(logs(key, 0.5 * df, shape, wide))


@parametric(
    "t(Tensor df)",
    "Numbers of Student's distribution.",
    "df: the degrees of freedom, positive.",
    bounds=((1.0, 6.0),),
    reference=references.t,
    example="3.0",
    tolerance=CLOSE,
    implicit=True,
)
def t(key: Any, shape: Any, wide: DType, df: Any) -> Any:
    one, two = halves(key)
    half = 0.5 * df
    scale = sqrt(half / exp(logs(two, half, shape, wide)))
    return normal(one, shape, wide) * scale


@parametric(
    "f(Tensor dfnum, Tensor dfden)",
    "Numbers of Fisher's distribution: ratios of mean squares of normal numbers.",
    "dfnum, dfden: the degrees of freedom above and below, positive.",
    bounds=((1.0, 6.0), (2.0, 6.0)),
    reference=references.f,
    example="3.0, 4.0",
    tolerance=CLOSE,
    implicit=True,
)
def f(key: Any, shape: Any, wide: DType, above: Any, below: Any) -> Any:
    one, two = halves(key)
    ratio = exp(logs(one, 0.5 * above, shape, wide) - logs(two, 0.5 * below, shape, wide))
    return ratio * (below / above)


@parametric(
    "generalized_normal(Tensor p)",
    "Numbers with a density proportional to `exp(-abs(x) ** p)`.",
    "p: the exponent, positive: 1 gives Laplace's distribution, 2 a normal one.",
    bounds=((0.7, 4.0),),
    reference=references.generalized_normal,
    example="2.0",
    tolerance=CLOSE,
    implicit=True,
)
def generalized_normal(key: Any, shape: Any, wide: DType, p: Any) -> Any:
    one, two = halves(key)
    size = exp(logs(one, 1.0 / p, shape, wide) / p)
    return signs(two, shape, wide) * size


def _dirichlet_samples(dtype: DType) -> Iterable[Sample]:
    yield Sample((KEY, Draw((4,), 0.5, 3.0, dtype=float32)))
    yield Sample((KEY, Draw((2, 3), 0.5, 3.0, dtype=float32)), {"shape": (3, 2), "dtype": dtype})
    yield Sample((KEYS, Draw((3,), 0.5, 3.0, dtype=float32)), {"shape": (2,)})
    yield Sample((KEY, Draw((0, 3), 0.5, 3.0, dtype=float32)))


@composite(
    "random_dirichlet(Tensor key, Tensor alpha, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""Vectors of positive numbers with sum 1: Dirichlet's distribution.

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
    reference=references.dirichlet,
    samples=_dirichlet_samples,
    errors=lambda: [
        *key_errors(Draw((3,), 1, 2)),
        Bad((KEY, 1.0), ValueError, "one axis"),
        Bad((KEY, Draw((0,), 1, 2)), ValueError, "one axis"),
        Bad((KEY, Draw((2, 3), 1, 2)), ValueError, "broadcast", {"shape": (3,)}),
        Bad((KEY, Draw((3,), 1, 2)), TypeError, "floats", {"dtype": "int32"}),
    ],
    dtypes=FLOATS,
    tolerance=CLOSE,
    method=False,
)
def dirichlet(key: Any, alpha: Any, shape: Any, dtype: DType | None) -> Any:
    spec = spec_of(alpha)
    if not spec.shape or not spec.shape[-1]:
        raise ValueArgumentError(
            f"random_dirichlet: alpha has one axis at least, of concentrations, unlike {spec}"
        )
    lead = drawn_shape("random_dirichlet", shape, TensorSpec(spec.shape[:-1], spec.dtype))
    dtype = float_dtype("random_dirichlet", dtype, alpha)
    wide = computed_in(dtype)
    drawn = logs(key, parameter(alpha, wide), (*lead, spec.shape[-1]), wide)
    return astype(softmax(drawn, -1), dtype, copy=False)

"""``tandem.numpy.random``: generators with the methods of NumPy's, and functions that draw from a global one.

A generator is a :class:`tandem.Generator`, so that jitted functions may draw from it. The numbers of a seed are not
NumPy's, and floats are float64. Names that NumPy lacks (``key``, ``split``) are those of ``td.random``.

Source: ``numpy.random``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.compiled import compile_writes_when_hot
from ..eager.tensor.generator import Generator as _Generator
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, ShapeError
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.exponential import exp
from ..registry.dtypes import as_dtype, float64, int64, uint8
from ..spellings.forwarding import forward_to
from .composed_distributions import ComposedDistributions, to_shape
from .creation import asarray

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, TensorLike

    Size = int | Sequence[int] | None


_bytes = bytes
_NUMBERS = frozenset((int, float))


def _to_operand(value: TensorLike) -> Tensor:
    """A parameter that multiplies or shifts float64 samples, as a tensor; a Python number is returned as it is."""
    return value if type(value) in _NUMBERS else asarray(value)  # type: ignore[return-value]


def _scale_and_shift(samples: Tensor, scale: TensorLike, loc: TensorLike = 0.0) -> Tensor:
    """``samples * scale + loc``; a scale of 1 and a shift of 0 take no time."""
    if type(scale) not in _NUMBERS or scale != 1:
        samples = samples * _to_operand(scale)
    if type(loc) not in _NUMBERS or loc != 0:
        samples = samples + _to_operand(loc)
    return samples


def _to_seed(seed: object) -> int:
    if seed is None:
        return secrets.randbits(63)
    if isinstance(seed, (int, np.integer)):
        return int(seed)
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))  # type: ignore[arg-type]


class Generator(ComposedDistributions, _Generator):
    """A source of random numbers with the methods of ``numpy.random.Generator``.

    Args:
        seed: an int, a sequence of ints, or None: a seed from the operating system.

    >>> import tandem.numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rng.normal(10.0, 0.1, size=(2, 3)).shape, rng.integers(0, 4, 5).dtype
    ((2, 3), tandem.int64)
    """

    def __init__(self, seed: object = None):
        super().__init__(_to_seed(seed))

    def _draw(self, sampler: str, *args: Any, **options: Any) -> Tensor:  # noqa: ANN401
        result: Tensor = getattr(_Generator, sampler)(self, *args, **options)
        return result

    def spawn(self, n_children: int) -> list[Generator]:
        """New generators, whose seeds are drawn from this one."""
        return [type(self)(seed) for seed in self.integers(0, 2**62, n_children).tolist()]

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        return _bytes(self.integers(0, 256, length, uint8).tolist())

    # -- uniform numbers -----------------------------------------------------------------------------------------------
    def random(self, size: Size = None, dtype: DTypeLike = float64, out: Tensor | None = None) -> Tensor:
        """Floats between 0 and 1; ``out`` is a tensor that is written and returned."""
        if out is not None:
            return _fill(out, size, self.random)
        return self._draw("uniform", to_shape(size), as_dtype(dtype))

    def uniform(self, low: TensorLike = 0.0, high: TensorLike = 1.0, size: Size = None) -> Tensor:
        """Floats between two bounds."""
        samples = self._draw("uniform", to_shape(size, low, high), float64)
        return _scale_and_shift(samples, _to_operand(high) - _to_operand(low), low)

    def integers(
        self,
        low: TensorLike,
        high: TensorLike | None = None,
        size: Size = None,
        dtype: DTypeLike = int64,
        endpoint: bool = False,
    ) -> Tensor:
        """Integers from ``low`` to below ``high``, or from 0 to below ``low``; with ``endpoint``, including the end."""
        low, high = (0, low) if high is None else (low, high)
        shape, end = to_shape(size, low, high), asarray(high)
        return self._draw("randint", shape, asarray(low), end + 1 if endpoint else end, as_dtype(dtype))

    # -- choices -------------------------------------------------------------------------------------------------------
    def choice(
        self,
        a: TensorLike | Sequence[Any],
        size: Size = None,
        replace: bool = True,
        p: TensorLike | None = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Tensor:
        """Elements of a tensor along an axis, or numbers below an int, with probabilities ``p``."""
        weights = None if p is None else asarray(p)
        return self._draw("choice", _to_items(a), to_shape(size), replace, weights, axis)

    def permutation(self, x: TensorLike | Sequence[Any], axis: int = 0) -> Tensor:
        """The slices of a tensor along an axis in random order, or the numbers below an int."""
        return self._draw("permutation", _to_items(x), axis)

    def permuted(self, x: TensorLike, axis: int | None = None) -> Tensor:
        """The elements in random order, of each row along an axis by itself; None: of the flattened tensor."""
        given = asarray(x)
        if axis is None:
            return self.permutation(given.reshape(-1)).reshape(given.shape)
        return self._draw("permutation", given, axis, True)

    def shuffle(self, x: Any, axis: int = 0) -> None:  # noqa: ANN401
        """Put the slices of a tensor, or the items of a list, in random order, in place."""
        if isinstance(x, list):
            x[:] = [x[int(position)] for position in self.permutation(len(x))]
        elif isinstance(x, Tensor):
            x[...] = self.permutation(x, axis)
        else:
            raise ArgumentError(f"shuffle: takes a tensor or a list, not {type(x).__name__}")

    # -- distributions -------------------------------------------------------------------------------------------------
    def standard_normal(
        self, size: Size = None, dtype: DTypeLike = float64, out: Tensor | None = None
    ) -> Tensor:
        """The normal distribution of mean 0 and variance 1."""
        if out is not None:
            return _fill(out, size, self.standard_normal)
        return self._draw("normal", to_shape(size), as_dtype(dtype))

    def normal(self, loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: Size = None) -> Tensor:
        """The normal distribution."""
        return _scale_and_shift(self._draw("normal", to_shape(size, loc, scale), float64), scale, loc)

    def lognormal(self, mean: TensorLike = 0.0, sigma: TensorLike = 1.0, size: Size = None) -> Tensor:
        """Numbers whose logarithms have the normal distribution."""
        return exp(self.normal(mean, sigma, size))

    def standard_exponential(
        self, size: Size = None, dtype: DTypeLike = float64, method: str = "zig", out: Tensor | None = None
    ) -> Tensor:
        """The exponential distribution of mean 1; ``method`` is accepted for compatibility with NumPy."""
        if out is not None:
            return _fill(out, size, self.standard_exponential)
        return self._draw("exponential", to_shape(size), as_dtype(dtype))

    def exponential(self, scale: TensorLike = 1.0, size: Size = None) -> Tensor:
        """The exponential distribution of a mean."""
        return _scale_and_shift(self._draw("exponential", to_shape(size, scale), float64), scale)

    def laplace(self, loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: Size = None) -> Tensor:
        """The Laplace distribution."""
        return _scale_and_shift(self._draw("laplace", to_shape(size, loc, scale), float64), scale, loc)

    def logistic(self, loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: Size = None) -> Tensor:
        """The logistic distribution."""
        return _scale_and_shift(self._draw("logistic", to_shape(size, loc, scale), float64), scale, loc)

    def gumbel(self, loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: Size = None) -> Tensor:
        """The Gumbel distribution."""
        return _scale_and_shift(self._draw("gumbel", to_shape(size, loc, scale), float64), scale, loc)

    def standard_gamma(
        self,
        shape: TensorLike,
        size: Size = None,
        dtype: DTypeLike = float64,
        out: Tensor | None = None,
    ) -> Tensor:
        """The gamma distribution of scale 1."""
        if out is not None:
            return _fill(out, size, lambda size, dtype: self.standard_gamma(shape, size, dtype))
        return self._draw("gamma", asarray(shape), to_shape(size, shape), as_dtype(dtype))

    def gamma(self, shape: TensorLike, scale: TensorLike = 1.0, size: Size = None) -> Tensor:
        """The gamma distribution."""
        return _scale_and_shift(self.standard_gamma(shape, to_shape(size, shape, scale)), scale)

    def beta(self, a: TensorLike, b: TensorLike, size: Size = None) -> Tensor:
        """The beta distribution."""
        return self._draw("beta", asarray(a), asarray(b), to_shape(size, a, b), float64)

    def chisquare(self, df: TensorLike, size: Size = None) -> Tensor:
        """The chi-square distribution."""
        return self._draw("chisquare", asarray(df), to_shape(size, df), float64)

    def standard_t(self, df: TensorLike, size: Size = None) -> Tensor:
        """Student's t distribution."""
        return self._draw("t", asarray(df), to_shape(size, df), float64)

    def pareto(self, a: TensorLike, size: Size = None) -> Tensor:
        """The Lomax distribution: the Pareto distribution, less 1."""
        return self._draw("pareto", asarray(a), to_shape(size, a), float64) - 1

    def rayleigh(self, scale: TensorLike = 1.0, size: Size = None) -> Tensor:
        """The Rayleigh distribution."""
        return self._draw("rayleigh", asarray(scale), to_shape(size, scale), float64)

    def weibull(self, a: TensorLike, size: Size = None) -> Tensor:
        """The Weibull distribution of scale 1."""
        return self._draw("weibull_min", asarray(1.0), asarray(a), to_shape(size, a), float64)

    def triangular(self, left: TensorLike, mode: TensorLike, right: TensorLike, size: Size = None) -> Tensor:
        """The triangular distribution."""
        bounds = [asarray(value) for value in (left, mode, right)]
        return self._draw("triangular", *bounds, to_shape(size, *bounds), float64)

    def poisson(self, lam: TensorLike = 1.0, size: Size = None) -> Tensor:
        """The Poisson distribution."""
        return self._draw("poisson", asarray(lam), to_shape(size, lam), int64)

    def binomial(self, n: TensorLike, p: TensorLike, size: Size = None) -> Tensor:
        """The binomial distribution."""
        return self._draw("binomial", asarray(n) * 1.0, asarray(p), to_shape(size, n, p), float64).astype(
            int64
        )

    def geometric(self, p: TensorLike, size: Size = None) -> Tensor:
        """The geometric distribution."""
        return self._draw("geometric", asarray(p), to_shape(size, p), int64)

    def dirichlet(self, alpha: TensorLike, size: Size = None) -> Tensor:
        """The Dirichlet distribution."""
        return self._draw("dirichlet", asarray(alpha), to_shape(size, 0), float64)

    def multivariate_normal(self, mean: TensorLike, cov: TensorLike, size: Size = None) -> Tensor:
        """The normal distribution of vectors."""
        return self._draw(
            "multivariate_normal", asarray(mean) * 1.0, asarray(cov) * 1.0, to_shape(size, 0), float64
        )


for _name in vars(Generator).copy():
    if not _name.startswith("_") and _name not in ("spawn", "bytes", "shuffle"):
        setattr(Generator, _name, compile_writes_when_hot(getattr(Generator, _name)))


def _fill(out: Tensor, size: Size, draw: Callable[..., Tensor]) -> Tensor:
    """Write samples of a tensor's shape and dtype into it, and return it."""
    if size is not None and to_shape(size) != spec_of(out).shape:
        raise ShapeError(f"random: out has shape {spec_of(out).shape}, and size is {size}")
    return out.copy_(draw(spec_of(out).shape, spec_of(out).dtype))


def _to_items(a: Any) -> Any:  # noqa: ANN401
    """Convert what is chosen from to an int, or to a tensor of at least one axis."""
    if isinstance(a, (int, np.integer)):
        return int(a)
    given = asarray(a)
    return given if spec_of(given).shape else int(given)


class RandomState(Generator):
    """A generator with the old names of NumPy: ``rand``, ``randn``, ``randint``, ``random_sample``."""

    def seed(self, seed: object = None) -> None:
        """Reset the generator to a seed."""
        self.manual_seed(_to_seed(seed))

    def rand(self, *size: int) -> Tensor:
        """Floats between 0 and 1, in a shape that is given size by size."""
        return self.random(size)

    def randn(self, *size: int) -> Tensor:
        """The standard normal distribution, in a shape that is given size by size."""
        return self.standard_normal(size)

    def randint(
        self, low: TensorLike, high: TensorLike | None = None, size: Size = None, dtype: DTypeLike = int64
    ) -> Tensor:
        """As :meth:`integers`."""
        return self.integers(low, high, size, dtype)

    def random_sample(self, size: Size = None) -> Tensor:
        """As :meth:`random`."""
        return self.random(size)


def default_rng(seed: object = None) -> Generator:
    """A generator with a seed; the argument itself, if it is a generator."""
    return seed if isinstance(seed, Generator) else Generator(seed)


_global: list[RandomState] = []


def _draw_globally(name: str) -> Callable[..., Any]:
    """The function that calls a method of the global generator, which is made at the first call."""

    def draw(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if not _global:
            _global.append(RandomState())
        return getattr(_global[0], name)(*args, **kwargs)

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"``{name}`` of the global generator, see :class:`RandomState`."
    return draw


_CLASSES = (ComposedDistributions, Generator, RandomState)
for _name in [name for cls in _CLASSES for name in vars(cls) if not name.startswith("_")]:
    if _name not in ("integers", "permuted", "spawn"):
        vars()[_name] = _draw_globally(_name)
__getattr__, __dir__ = forward_to(__name__, "random")

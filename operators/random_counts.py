"""Distributions of counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import lazy
from ..errors import DTypeError, ValueArgumentError
from ..registry.dtypes import DEFAULT_INT, FLOATS, DType, float32, float64, int32, int64
from .casting import astype
from .declare import Bad, Draw, Sample
from .derivatives import NotDifferentiable
from .exponential import log1p
from .kinds import composite, library
from .random_gamma import drawing_batched, drawing_kernel, drawing_meta, filled
from .random_keys import KEY, KEYS, key_errors
from .random_math import log_of
from .random_numbers import computed_in, drawn_shape, float_dtype, open_uniform
from .rounding import floor
from .selection import maximum

references = lazy.Functions("operators.references_discrete")
rejection = lazy.Functions("operators.random_rejection")

COUNTS = NotDifferentiable("it gives counts")


def _poisson(xp: Any, key: Any, shape: tuple[int, ...], rate: Any) -> Any:
    found = rejection.poisson(xp, key, shape, rate)
    return xp.where(xp.isnan(found), -1.0, found)


draw_poisson: Any = library(
    "random",
    "random_draw_poisson(Tensor key, Tensor lam, SymInt[] shape) -> Tensor",
    drawing_meta("random_draw_poisson", int64),
    drawing_kernel(_poisson, int64),
    doc="""Numbers of Poisson's distribution: what :func:`tandem.random.poisson` is made of.

    Args:
        key: a key, or several.
        lam: the rate, a float32 or float64 tensor that broadcasts to the result.
        shape: the shape of what is drawn for each key.

    Returns:
        An int64 tensor of shape ``(*keys, *shape)``.

    Raises:
        DTypeError, ShapeError: no key, another dtype, or shapes that do not fit.

    >>> td.ops.td.random_draw_poisson(td.random.key(0), td.asarray([0.0, 2.0]), (3, 2)).shape
    (3, 2)
    """,
    reference=references.draw_poisson,
    dtypes=(float32, float64),
    derivative=COUNTS,
    batching=drawing_batched,
    samples=lambda dtype: [
        Sample((KEY, Draw((6,), 0.1, 30.0), (2, 6))),
        Sample((KEYS, Draw((2, 1), 0.5, 60.0), (3,))),
        Sample((KEY, Draw((0,), 1, 2), (0,))),
    ],
    errors=lambda: [*key_errors(Draw((3,), 1, 2, dtype=float32), (3,))],
    method=False,
)
draw_binomial: Any = library(
    "random",
    "random_draw_binomial(Tensor key, Tensor n, Tensor p, SymInt[] shape) -> Tensor",
    drawing_meta("random_draw_binomial", None),
    drawing_kernel(rejection.binomial, None),
    doc="""Numbers of the binomial distribution: what :func:`tandem.random.binomial` is made of.

    Args:
        key: a key, or several.
        n: how many trials, a float32 or float64 tensor that broadcasts to the result.
        p: the probability, likewise.
        shape: the shape of what is drawn for each key.

    Returns:
        A float tensor of shape ``(*keys, *shape)``.

    Raises:
        DTypeError, ShapeError: no key, another dtype, or shapes that do not fit.

    >>> td.ops.td.random_draw_binomial(td.random.key(0), td.asarray(5.0), td.asarray(0.5), (3, 2)).shape
    (3, 2)
    """,
    reference=references.draw_binomial,
    dtypes=(float32,),
    derivative=COUNTS,
    batching=drawing_batched,
    samples=lambda dtype: [
        Sample((KEY, Draw((3,), values=(5, 40, 1000)), Draw((3,), 0.1, 0.9), (2, 3))),
        Sample((KEYS, Draw((), values=(30,)), Draw((2, 1), 0.2, 0.6), (3,))),
        Sample((KEY, Draw((0,), 1, 2), Draw((), 0, 1), (0,))),
    ],
    errors=lambda: [*key_errors(Draw((3,), 1, 2, dtype=float32), Draw((3,), 0, 1, dtype=float32), (3,))],
    method=False,
)


def _integer(name: str, dtype: DType | None) -> DType:
    if dtype is not None and not (dtype.is_integer or dtype.is_floating):
        raise DTypeError(f"{name}: gives integers, not {dtype}")
    return dtype or DEFAULT_INT


def _rate_samples(dtype: DType) -> Iterable[Sample]:
    yield Sample((KEY, 3.0), {"shape": (3, 4)})
    yield Sample((KEY, Draw((4,), 0.5, 20.0)))
    yield Sample((KEY, Draw((4,), 0.5, 20.0)), {"shape": (2, 4), "dtype": int32})
    yield Sample((KEYS, Draw((), 0.5, 20.0)), {"shape": (3,)})


@composite(
    "random_poisson(Tensor key, Tensor lam, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""How often what happens at a constant rate happens: numbers of Poisson's distribution.

    Args:
        key: a key, or several.
        lam: the rate: a number of at least 0, or a tensor. Where an element is none, the result is -1.
        shape: the shape of what is drawn for each key, to which the rate broadcasts; None: its shape.
        dtype: an integer or float dtype; None: int64.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: another dtype, or no key.
        ShapeError: no key, a negative size, or a rate that does not broadcast to the shape.
        ValueArgumentError: a negative number.

    >>> td.random.poisson(td.random.key(0), 2.0, (3, 4)).shape
    (3, 4)
    """,
    reference=references.poisson,
    samples=_rate_samples,
    errors=lambda: [
        *key_errors(1.0),
        Bad((KEY, -1.0), ValueError, "rate"),
        Bad((KEY, 1.0), TypeError, "integers", {"dtype": "bool"}),
        Bad((KEY, Draw((3,), 1, 2, dtype=float32), (2,)), ValueError, "broadcast"),
    ],
    dtypes=FLOATS,
    method=False,
)
def poisson(key: Any, lam: Any, shape: Any, dtype: DType | None) -> Any:
    if type(lam) in (int, float) and not lam >= 0:
        raise ValueArgumentError(f"random_poisson: {lam} is no rate")
    shape = drawn_shape("random_poisson", shape, lam)
    float_dtype("random_poisson", None, lam)
    return astype(
        draw_poisson(key, filled(key, lam, shape, float64), shape),
        _integer("random_poisson", dtype),
        copy=False,
    )


def _trial_samples(dtype: DType) -> Iterable[Sample]:
    yield Sample((KEY, 10, 0.3), {"shape": (3, 4), "dtype": dtype})
    yield Sample((KEY, 100, Draw((4,), 0.1, 0.9, dtype=float32)))
    yield Sample(
        (KEY, Draw((2, 1), 5, 60, dtype=int64), Draw((4,), 0.1, 0.9, dtype=float32)), {"shape": (2, 4)}
    )
    yield Sample((KEYS, 20, Draw((), 0.1, 0.9, dtype=float32)), {"shape": (3,)})


@composite(
    "random_binomial(Tensor key, Tensor n, Tensor p, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""How many of ``n`` trials succeed: numbers of the binomial distribution.

    Args:
        key: a key, or several.
        n: how many trials: a number, or a tensor.
        p: the probability of each: a number, or a tensor. Where one is none, the result is NaN.
        shape: the shape of what is drawn for each key, to which both broadcast; None: their shape.
        dtype: a float dtype; None: that of ``p``, float32 for numbers.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: no float dtype, or no key.
        ShapeError: no key, a negative size, or parameters that do not broadcast to the shape.
        ValueArgumentError: a number that is no probability.

    >>> td.random.binomial(td.random.key(0), 10, 1.0, (3,)).tolist()
    [10.0, 10.0, 10.0]
    """,
    reference=references.binomial,
    samples=_trial_samples,
    errors=lambda: [
        *key_errors(3, 0.5),
        Bad((KEY, 3, 1.5), ValueError, "probability"),
        Bad((KEY, 3, 0.5), TypeError, "floats", {"dtype": "int32"}),
        Bad((KEY, 3, Draw((3,), 0, 1, dtype=float32), (2,)), ValueError, "broadcast"),
    ],
    dtypes=FLOATS,
    method=False,
)
def binomial(key: Any, n: Any, p: Any, shape: Any, dtype: DType | None) -> Any:
    if type(p) in (int, float) and not 0 <= p <= 1:
        raise ValueArgumentError(f"random_binomial: {p} is no probability")
    shape = drawn_shape("random_binomial", shape, n, p)
    dtype = float_dtype("random_binomial", dtype, n, p)
    return astype(
        draw_binomial(key, filled(key, n, shape, float64), filled(key, p, shape, float64), shape),
        dtype,
        copy=False,
    )


@composite(
    "random_geometric(Tensor key, Tensor p, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""How many trials there are up to the first success, at least 1.

    Args:
        key: a key, or several.
        p: the probability of each trial, above 0: a number, or a tensor.
        shape: the shape of what is drawn for each key, to which ``p`` broadcasts; None: its shape.
        dtype: an integer dtype; None: int64.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: another dtype, or no key.
        ShapeError: no key, a negative size, or a ``p`` that does not broadcast to the shape.
        ValueArgumentError: a number that is no probability, or 0.

    >>> td.random.geometric(td.random.key(0), 1.0, (3,)).tolist()
    [1, 1, 1]
    """,
    reference=references.geometric,
    samples=lambda dtype: [
        Sample((KEY, 0.3), {"shape": (3, 4)}),
        Sample((KEY, Draw((4,), 0.1, 0.9))),
        Sample((KEYS, Draw((), 0.1, 0.9)), {"shape": (3,), "dtype": int32}),
    ],
    errors=lambda: [
        *key_errors(0.5),
        Bad((KEY, 0.0), ValueError, "probability"),
        Bad((KEY, 0.5), TypeError, "integers", {"dtype": "bool"}),
    ],
    dtypes=FLOATS[2:],
    method=False,
)
def geometric(key: Any, p: Any, shape: Any, dtype: DType | None) -> Any:
    if type(p) in (int, float) and not 0 < p <= 1:
        raise ValueArgumentError(f"random_geometric: {p} is no probability of a success that comes")
    shape = drawn_shape("random_geometric", shape, p)
    wide = computed_in(float_dtype("random_geometric", None, p))
    failures = floor(log_of(open_uniform(key, shape, wide)) / log1p(-filled(key, p, shape, wide)))
    return astype(maximum(failures + 1.0, 1.0), _integer("random_geometric", dtype), copy=False)

"""``td.random``: random numbers as pure functions of a key.

The numbers of a key are the same, eager, jitted and on every backend; new numbers need a new key, from ``split`` or
``fold_in``. The functions have no state; :class:`tandem.Generator` has a state and draws numbers from it.

>>> import tandem as td
>>> first, second = td.random.split(td.random.key(0))
>>> td.random.normal(first, (2, 3)).shape
(2, 3)
>>> bool((td.random.uniform(second, 4) == td.random.uniform(second, 4)).all())
True
"""

from __future__ import annotations

from ... import lazy as _lazy
from .continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    weibull_min,
)
from .counts import binomial, geometric, poisson
from .discrete import categorical, choice, rademacher
from .gamma import beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from .key_bits import random_bits
from .mixtures import double_sided_maxwell, multinomial, wald
from .multivariate import ball, multivariate_normal, orthogonal
from .typed_keys import Key, clone, fold_in, key, key_data, randint, split, wrap_key_data
from .uniform import bernoulli, integers, normal, permutation, uniform

bits = random_bits

__all__ = [
    "Key",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "integers",
    "key",
    "key_data",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]

_lazy.refuse_unknown(__name__, "td.random.")

"""``td.random``: random numbers as pure functions of a key.

The same key gives the same numbers, eager, jitted and on every backend; new numbers need a new key, from ``split`` or
``fold_in``. Nothing is kept between calls; :class:`tandem.Generator` is for those who want that.

>>> import tandem as td
>>> first, second = td.random.split(td.random.key(0))
>>> td.random.normal(first, (2, 3)).shape
(2, 3)
>>> bool((td.random.uniform(second, 4) == td.random.uniform(second, 4)).all())
True
"""

from __future__ import annotations

from .random_continuous import (
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
from .random_counts import binomial, geometric, poisson
from .random_discrete import categorical, choice, rademacher
from .random_gamma import beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from .random_keys import random_bits
from .random_mixed import double_sided_maxwell, multinomial, wald
from .random_numbers import bernoulli, integers, normal, permutation, uniform
from .random_typed import Key, clone, fold_in, key, key_data, randint, split, wrap_key_data
from .random_vectors import ball, multivariate_normal, orthogonal

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

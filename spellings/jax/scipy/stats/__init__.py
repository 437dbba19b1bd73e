"""``tandem.jax.scipy.stats``: densities and probabilities of distributions.

normal.py: norm, multivariate_normal
continuous.py: beta, cauchy, chi2, dirichlet, expon, gamma, laplace, logistic, pareto, t, uniform
discrete.py: bernoulli, binom, geom, nbinom, poisson
distributions.py: arguments, and base classes
"""

from ....spellings.forwarding import refuse_unknown as _refuse_unknown
from .continuous import beta as beta
from .continuous import cauchy as cauchy
from .continuous import chi2 as chi2
from .continuous import dirichlet as dirichlet
from .continuous import expon as expon
from .continuous import gamma as gamma
from .continuous import laplace as laplace
from .continuous import logistic as logistic
from .continuous import pareto as pareto
from .continuous import t as t
from .continuous import uniform as uniform
from .discrete import bernoulli as bernoulli
from .discrete import binom as binom
from .discrete import geom as geom
from .discrete import nbinom as nbinom
from .discrete import poisson as poisson
from .normal import multivariate_normal as multivariate_normal
from .normal import norm as norm

__getattr__ = _refuse_unknown(__name__)

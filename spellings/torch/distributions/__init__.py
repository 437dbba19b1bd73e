"""``tandem.torch.distributions``: distributions with PyTorch's names and arguments.

Samples come from the global generator, that of ``torch.manual_seed``.

distribution.py: Distribution, the base class
constraints.py: which values are valid
normal.py: Normal, LogNormal, HalfNormal
location_scale.py: Laplace, Cauchy, Gumbel
uniform.py: Uniform, Exponential
gamma.py: Gamma, Chi2, Beta, Dirichlet, StudentT
heavy_tails.py: HalfCauchy, Pareto, Weibull, InverseGamma
von_mises.py: VonMises
probabilities.py: probs or logits
discrete.py: Bernoulli, Geometric, Binomial, NegativeBinomial, Poisson
categorical.py: Categorical, OneHotCategorical, Multinomial
multivariate_normal.py: MultivariateNormal
independent.py: Independent
kl.py: kl_divergence
"""

from . import constraints as constraints
from .categorical import Categorical as Categorical
from .categorical import Multinomial as Multinomial
from .categorical import OneHotCategorical as OneHotCategorical
from .discrete import Bernoulli as Bernoulli
from .discrete import Binomial as Binomial
from .discrete import Geometric as Geometric
from .discrete import NegativeBinomial as NegativeBinomial
from .discrete import Poisson as Poisson
from .distribution import Distribution as Distribution
from .gamma import Beta as Beta
from .gamma import Chi2 as Chi2
from .gamma import Dirichlet as Dirichlet
from .gamma import Gamma as Gamma
from .gamma import StudentT as StudentT
from .heavy_tails import HalfCauchy as HalfCauchy
from .heavy_tails import InverseGamma as InverseGamma
from .heavy_tails import Pareto as Pareto
from .heavy_tails import Weibull as Weibull
from .independent import Independent as Independent
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .location_scale import Cauchy as Cauchy
from .location_scale import Gumbel as Gumbel
from .location_scale import Laplace as Laplace
from .multivariate_normal import MultivariateNormal as MultivariateNormal
from .normal import HalfNormal as HalfNormal
from .normal import LogNormal as LogNormal
from .normal import Normal as Normal
from .uniform import Exponential as Exponential
from .uniform import Uniform as Uniform
from .von_mises import VonMises as VonMises

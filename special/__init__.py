"""``td.special``: special functions, with SciPy's names; loaded at first use.

rules.py: declares elementwise operators that SciPy computes
bessel.py: Bessel functions
gammas.py: gamma, beta and their incomplete functions
normals.py: the normal distribution function and erfinv
entropies.py: xlogy, entr, logit
"""

from .. import lazy as _lazy
from ..operators.elementwise.activation import sigmoid as _sigmoid
from ..operators.elementwise.exponential import erf as erf
from ..operators.elementwise.exponential import erfc as erfc
from ..operators.nn.normalization import log_softmax as log_softmax
from ..operators.nn.normalization import logsumexp as logsumexp
from ..operators.nn.normalization import softmax as softmax
from .bessel import i0 as i0
from .bessel import i0e as i0e
from .bessel import i1 as i1
from .bessel import i1e as i1e
from .bessel import j0 as j0
from .bessel import j1 as j1
from .bessel import y0 as y0
from .bessel import y1 as y1
from .entropies import entr as entr
from .entropies import logit as logit
from .entropies import xlog1py as xlog1py
from .entropies import xlogy as xlogy
from .gammas import beta as beta
from .gammas import betainc as betainc
from .gammas import betaln as betaln
from .gammas import digamma as digamma
from .gammas import gamma as gamma
from .gammas import gammainc as gammainc
from .gammas import gammaincc as gammaincc
from .gammas import gammaln as gammaln
from .gammas import polygamma as polygamma
from .gammas import zeta as zeta
from .normals import erfinv as erfinv
from .normals import log_ndtr as log_ndtr
from .normals import ndtr as ndtr
from .normals import ndtri as ndtri

expit, psi = _sigmoid, digamma

_lazy.refuse_unknown(__name__, "td.special.")

"""``tandem.jax.scipy.special``: the functions of ``td.special``, and those of JAX that it lacks.

combinatorial.py: factorial, poch, multigammaln, kl_div, rel_entr
exponential_integrals.py: exp1, expn
"""

from ...spellings.forwarding import forward_to as _forward_to
from ..nn.exponential_sums import log_softmax as log_softmax
from ..nn.exponential_sums import logsumexp as logsumexp
from ..nn.exponential_sums import softmax as softmax
from .combinatorial import factorial as factorial
from .combinatorial import kl_div as kl_div
from .combinatorial import multigammaln as multigammaln
from .combinatorial import poch as poch
from .combinatorial import rel_entr as rel_entr
from .exponential_integrals import exp1 as exp1
from .exponential_integrals import expn as expn

__getattr__, __dir__ = _forward_to(__name__, "special")

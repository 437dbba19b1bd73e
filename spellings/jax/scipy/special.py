"""``tandem.jax.scipy.special``: the functions of ``td.special``, and ``logsumexp`` with factors and signs."""

from ...spellings.forwarding import forward_to as _forward_to
from ..nn.exponential_sums import log_softmax as log_softmax
from ..nn.exponential_sums import logsumexp as logsumexp
from ..nn.exponential_sums import softmax as softmax

__getattr__, __dir__ = _forward_to(__name__, "special")

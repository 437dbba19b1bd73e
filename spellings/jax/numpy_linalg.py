"""``tandem.jax.numpy.linalg``: the functions of ``td.linalg`` with JAX's arguments, which also take integers."""

from ..numpy.decompositions import matrix_rank as matrix_rank
from ..numpy.decompositions import qr as qr
from ..numpy.decompositions import svd as svd
from ..spellings.forwarding import adapt_own as _adapt_own
from ..spellings.forwarding import forward_to as _forward_to
from ..spellings.integer_arguments import accept_integers as _accept_integers

_adapt_own(__name__, ("matrix_rank", "qr", "svd"), _accept_integers)
__getattr__, __dir__ = _forward_to(__name__, "linalg", adapt=_accept_integers)

"""``tandem.jax.numpy.linalg``: the functions of ``td.linalg`` with JAX's arguments, which also take integers."""

from ..numpy.decompositions import matrix_rank as matrix_rank
from ..numpy.decompositions import qr as qr
from ..numpy.decompositions import svd as svd
from ..spellings.forwarding import adapt_function as _adapt_function
from ..spellings.forwarding import forward_to as _forward_to
from ..spellings.integer_arguments import accept_integers as _accept_integers

for _function in (matrix_rank, qr, svd):
    vars()[_function.__name__] = _adapt_function(_function, _accept_integers, __name__, _function.__name__)
__getattr__, __dir__ = _forward_to(__name__, "linalg", adapt=_accept_integers)

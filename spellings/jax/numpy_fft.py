"""``tandem.jax.numpy.fft``: the functions of ``td.fft``, which also take integers."""

from ..spellings.forwarding import forward_to as _forward_to
from ..spellings.integer_arguments import accept_integers as _accept_integers

__getattr__, __dir__ = _forward_to(__name__, "fft", adapt=_accept_integers)

"""``tandem.jax.scipy.special``: the functions of ``td.special``."""

from ...spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "special")

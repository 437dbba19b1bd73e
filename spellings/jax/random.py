"""``tandem.jax.random``: the names of ``jax.random``, which ``tandem.random`` has."""

from ..operators.random.namespace import key as PRNGKey
from ..spellings.forwarding import forward_to as _forward_to

__all__ = ["PRNGKey"]
__getattr__, __dir__ = _forward_to(__name__, "random")

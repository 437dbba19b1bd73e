"""``tandem.jax.tree_util``: the functions of pytrees with JAX's names, which ``tandem.pytree`` has."""

from ..spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "pytree")

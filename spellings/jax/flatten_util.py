"""``tandem.jax.flatten_util``: the tensors of a pytree as one vector, by ``td.pytree.ravel_pytree``."""

from ..pytree import ravel_pytree as ravel_pytree
from ..spellings.forwarding import refuse_unknown as _refuse_unknown

__getattr__ = _refuse_unknown(__name__)

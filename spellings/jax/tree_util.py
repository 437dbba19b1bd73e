"""``tandem.jax.tree_util``: the functions of ``tandem.pytree``, for which random keys are leaves."""

from ..spellings.forwarding import forward_to as _forward_to
from .key_leaves import keep_keys as _keep_keys

__getattr__, __dir__ = _forward_to(__name__, "pytree", adapt=_keep_keys)

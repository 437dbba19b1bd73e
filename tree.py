"""Short names of the pytree functions: ``td.tree.map``, ``td.tree.leaves``, ...; see :mod:`tandem.pytree`."""

from . import lazy as _lazy
from .pytree import ravel_pytree as ravel
from .pytree import register_static as static
from .pytree import tree_all as all
from .pytree import tree_broadcast as broadcast
from .pytree import tree_flatten as flatten
from .pytree import tree_flatten_with_path as flatten_with_path
from .pytree import tree_leaves as leaves
from .pytree import tree_leaves_with_path as leaves_with_path
from .pytree import tree_map as map
from .pytree import tree_map_with_path as map_with_path
from .pytree import tree_reduce as reduce
from .pytree import tree_reduce_associative as reduce_associative
from .pytree import tree_structure as structure
from .pytree import tree_transpose as transpose
from .pytree import tree_unflatten as unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "ravel",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

_lazy.refuse_unknown(__name__, "td.tree.")

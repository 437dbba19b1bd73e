"""Pytrees: nested dicts, lists, tuples, namedtuples, dataclasses, None, and classes that the user registers.

Flattening a tree returns its leaves and a :class:`TreeDef`, which is hashable and rebuilds the tree from other leaves.
Everything that is not a container is a leaf.

Source: ``jax.tree_util``. Unlike there, dicts keep their order (as PyTorch's and optree's can), and dataclasses are
containers without being registered.

- builders.py: compiled expressions that rebuild trees of built-in containers
- functions.py: tree_map, tree_reduce, tree_transpose and the other tree functions
- keys.py: the steps of key paths
- matching.py: compare trees, and flatten a tree up to another one
- nodes.py: how each type of container is flattened and unflattened
- ravel.py: ravel_pytree
- registration.py: register classes as containers
- treedef.py: TreeDef, flatten and unflatten
"""

from .functions import all_leaves as all_leaves
from .functions import check_same as check_same
from .functions import tree_all as tree_all
from .functions import tree_broadcast as tree_broadcast
from .functions import tree_flatten as tree_flatten
from .functions import tree_flatten_with_path as tree_flatten_with_path
from .functions import tree_leaves as tree_leaves
from .functions import tree_leaves_with_path as tree_leaves_with_path
from .functions import tree_map as tree_map
from .functions import tree_map_with_path as tree_map_with_path
from .functions import tree_reduce as tree_reduce
from .functions import tree_reduce_associative as tree_reduce_associative
from .functions import tree_structure as tree_structure
from .functions import tree_transpose as tree_transpose
from .functions import tree_unflatten as tree_unflatten
from .functions import treedef_children as treedef_children
from .functions import treedef_is_leaf as treedef_is_leaf
from .functions import treedef_tuple as treedef_tuple
from .keys import DictKey as DictKey
from .keys import FlattenedIndexKey as FlattenedIndexKey
from .keys import GetAttrKey as GetAttrKey
from .keys import KeyPath as KeyPath
from .keys import SequenceKey as SequenceKey
from .keys import keystr as keystr
from .matching import broadcast_prefix as broadcast_prefix
from .matching import difference as difference
from .matching import flatten_up_to as flatten_up_to
from .matching import spread_prefix as spread_prefix
from .nodes import NAMEDTUPLE as NAMEDTUPLE
from .nodes import is_tree_node as is_tree_node
from .ravel import ravel_pytree as ravel_pytree
from .registration import Partial as Partial
from .registration import register_dataclass as register_dataclass
from .registration import register_pytree_node as register_pytree_node
from .registration import register_pytree_node_class as register_pytree_node_class
from .registration import register_pytree_with_keys as register_pytree_with_keys
from .registration import register_pytree_with_keys_class as register_pytree_with_keys_class
from .registration import register_static as register_static
from .treedef import LEAF as LEAF
from .treedef import TreeDef as TreeDef
from .treedef import flatten as flatten

leaves, map_tree, unflatten = tree_leaves, tree_map, tree_unflatten

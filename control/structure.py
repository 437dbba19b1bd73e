"""The carries of loops and operands of branches as pytrees whose leaves are converted to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from .. import pytree
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..eager.tensor.weak_scalars import is_weak, strengthen
from ..errors import ArgumentError, TandemError
from ..named_tuple import NamedTuple
from ..pytree import TreeDef
from ..registry.dtypes import DType
from ..registry.values import SCALARS, TensorSpec, traced_number_types
from ..tracer.trace import is_tracing

if TYPE_CHECKING:
    from ..registry.types import Pytree
    from ..tracer.scalar import TracerScalar


class Leaves(NamedTuple):
    """A flattened tree.

    Attributes:
        tensors: its leaves, converted to tensors.
        treedef: its containers.
        weak: for each leaf, whether it was a Python number, which adapts to other dtypes.
        originals: the leaves before the conversion.
    """

    tensors: list[Tensor]
    treedef: TreeDef
    weak: list[bool]
    originals: list[object]


def is_number(leaf: object) -> bool:
    """Whether a leaf is a Python number, a weak scalar, or a traced number."""
    return type(leaf) in SCALARS or type(leaf) in traced_number_types or is_weak(leaf)


def to_tensor(leaf: object) -> Tensor:
    """Convert a leaf to a tensor."""
    if isinstance(leaf, Tensor):
        tensor: Tensor = strengthen(leaf)
        return tensor
    if type(leaf) in traced_number_types:
        dtype = asarray(cast("TracerScalar", leaf).python_type(0)).dtype
        return by_name("full")((), leaf, dtype=dtype)
    tensor = asarray(leaf)
    if type(leaf) in (bool, int, float) and is_tracing():  # a constant of the graph, not a captured tensor
        return by_name("full")((), leaf, dtype=tensor.dtype)
    return tensor


def flatten_tensors(name: str, role: str, tree: Pytree, like: TreeDef | None = None) -> Leaves:
    """Flatten a tree and convert its leaves to tensors.

    Args:
        name: the function that the user called, for messages.
        role: the role of the tree in that call, for messages.
        tree: the tree.
        like: the structure of another tree, whose order the keys of dicts take.

    Raises:
        ArgumentError: a leaf cannot be converted.
    """
    leaves, treedef = flatten_like(like, tree)
    tensors = []
    for index, leaf in enumerate(leaves):
        try:
            tensors.append(to_tensor(leaf))
        except TandemError as error:
            path = treedef.paths()[index]
            raise ArgumentError(f"{name}: {role}{f' at {path}' if path else ''}: {error}") from None
    return Leaves(tensors, treedef, [is_number(leaf) for leaf in leaves], leaves)


def flatten_like(like: TreeDef | None, tree: Pytree) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure; dicts with the keys of those of another structure take their order."""
    leaves, treedef = pytree.flatten(tree)
    if like is None or treedef == like:
        return leaves, treedef
    try:
        ordered = pytree.flatten_up_to(like, tree)
    except TandemError:
        return leaves, treedef
    is_like = not any(pytree.is_tree_node(type(leaf)) for leaf in ordered)
    return (ordered, like) if is_like else (leaves, treedef)


def convert_leaves(leaves: list[object], treedef: TreeDef) -> Leaves:
    """Convert the leaves of a tree to tensors."""
    return Leaves(list(map(to_tensor, leaves)), treedef, list(map(is_number, leaves)), leaves)


def specs_of(tensors: Sequence[Tensor]) -> list[TensorSpec]:
    """The specs of tensors."""
    return [x.spec for x in tensors]


def check_structure(name: str, role: str, expected: TreeDef, actual: TreeDef) -> None:
    """Raise ArgumentError if two trees differ in structure."""
    if expected != actual:
        raise ArgumentError(f"{name}: {role} differ in structure{pytree.difference(expected, actual)}")


def to_dtype(leaf: object, dtype: DType) -> Tensor:
    """Convert a leaf to a tensor of a dtype, directly, so that a Python number keeps its precision."""
    return asarray(leaf, dtype=dtype)

"""Check and convert the functions, arguments and results of transforms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .. import pytree
from ..eager.layers.level_stack import name_function
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..eager.tensor.weak_scalars import strengthen
from ..errors import ArgumentError, DTypeError, TandemError, TangentError, TreeError
from ..registry.dispatch.keys import CPU_KEYS, GRAD_CPU_KEYS
from ..registry.values import SCALARS, describe

if TYPE_CHECKING:
    from ..pytree import TreeDef
    from ..registry.types import Args, Pytree, TensorOrSpec

Positions = int | Sequence[int]
PLAIN = (CPU_KEYS, GRAD_CPU_KEYS)  # key sets of tensors that are used as they are


def name_of(what: str, fun: object) -> str:
    """The name of a transformed function in messages: ``grad(loss)``."""
    return f"{what}({name_function(fun)})"


def check_callable(what: str, fun: object) -> None:
    """Raise ArgumentError if `fun` is not callable."""
    if not callable(fun):
        raise ArgumentError(f"{what} takes a function, not {describe(fun)}; call it as td.{what}(fun)(*args)")


def check_positions(what: str, fun: object, argnums: object) -> tuple[int, ...]:
    """The positions of the arguments to differentiate by."""
    check_callable(what, fun)
    positions = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    if not positions or not all(type(position) is int for position in positions):
        raise ArgumentError(f"{what}: argnums is an int or a sequence of ints, not {argnums!r}")
    return positions


def check_given(name: str, positions: tuple[int, ...], args: Args) -> None:
    """Raise ArgumentError if a call lacks an argument at one of the positions, or if two name the same argument."""
    for position in positions:
        if not -len(args) <= position < len(args):
            raise ArgumentError(
                f"{name}: argnums={position}, and the call has {len(args)} positional arguments; pass what is "
                "differentiated by position"
            )
    if len({position % len(args) for position in positions}) < len(positions):
        raise ArgumentError(
            f"{name}: argnums={positions} names an argument of the {len(args)} positional ones twice"
        )


def replace_positions(args: Args, positions: Sequence[int], values: Iterable[Pytree]) -> list[Pytree]:
    """The arguments of a call, with those at the positions replaced by values."""
    replaced = list(args)
    for position, value in zip(positions, values):
        replaced[position] = value
    return replaced


def tensor_leaves(
    name: str, trees: Sequence[Pytree], positions: Sequence[int], allow_int: bool = True
) -> tuple[list[Tensor], TreeDef]:
    """Convert the leaves of arguments to tensors; return them and the TreeDef of the list of arguments.

    Raises:
        DTypeError: a leaf is not floating-point or complex, and ``allow_int`` is False.
    """
    leaves, treedef = pytree.flatten(list(trees))
    return [
        _as_tensor(name, leaf, i, treedef, positions, allow_int) for i, leaf in enumerate(leaves)
    ], treedef


def _as_tensor(
    name: str, leaf: object, index: int, treedef: TreeDef, positions: Sequence[int], allow_int: bool
) -> Tensor:
    try:
        tensor: Tensor = leaf if type(leaf) is Tensor and leaf._keys in PLAIN else strengthen(asarray(leaf))
    except (ArgumentError, DTypeError) as fault:
        raise type(fault)(f"{name}: {describe_leaf(index, treedef, positions)}: {fault}") from None
    if not (tensor.dtype.is_inexact or allow_int):
        raise DTypeError(
            f"{name}: {describe_leaf(index, treedef, positions)} is {describe(tensor)}, and derivatives are by "
            "floating-point values; cast it with x.astype(td.float32), or choose other arguments (with argnums, or by "
            "a function of fewer); td.grad and td.jacrev with allow_int=True return zeros for it"
        )
    return tensor


def describe_leaf(index: int, treedef: TreeDef, positions: Sequence[int]) -> str:
    """Describe the argument of a leaf and the path in it, for messages."""
    where, _, path = treedef.paths()[index][1:].partition("]")
    return f"argument {positions[int(where)]}{f', at {path}' if path else ''}"


def split_aux(name: str, result: object, has_aux: bool) -> tuple[Pytree, Pytree]:
    """Split a result into the value and the auxiliary output."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(
            f"{name}: with has_aux=True the function gives a pair (value, aux), not {describe(result)}"
        )
    return result


def result_leaves(name: str, result: Pytree) -> tuple[list[Tensor], TreeDef]:
    """Convert the leaves of a result to tensors; return them and its TreeDef."""
    leaves, treedef = pytree.flatten(result)
    tensors = []
    for leaf, path in zip(leaves, treedef.paths()):
        try:
            tensors.append(leaf if isinstance(leaf, Tensor) else asarray(leaf))
        except TandemError as fault:
            raise type(fault)(f"{name}: the result{f' at {path}' if path else ''}: {fault}") from None
    return tensors, treedef


def match_leaves(
    name: str, what: str, tree: Pytree, treedef: TreeDef, values: Sequence[TensorOrSpec]
) -> list[Tensor | None]:
    """Flatten tangents or cotangents and check them; return one for each value, of its shape and dtype.

    Args:
        name: the caller's name, for messages.
        what: ``"tangent"`` or ``"cotangent"``.
        tree: a tree with the structure of the values; None in it is zero.
        treedef: the TreeDef of the values.
        values: the values; the result for one that is not floating-point or complex is None.

    Raises:
        ArgumentError: the trees differ in structure.
        TangentError: a tangent differs from its value in shape or dtype.
    """
    leaves = leaves_with_nones(tree, treedef)
    if leaves is None:
        there = pytree.flatten(tree)[1]
        raise TreeError(
            f"{name}: the {what}s differ in structure from the values{pytree.difference(treedef, there)}"
        )
    paths = treedef.paths()
    return [_match_leaf(name, what, leaf, value, path) for leaf, value, path in zip(leaves, values, paths)]


def leaves_with_nones(tree: Pytree, treedef: TreeDef) -> list[object] | None:
    """Flatten a tree in which None may replace any subtree; return None if the structure differs otherwise."""
    leaves, there = pytree.flatten(tree)
    if there == treedef:
        return leaves
    padded: list[object] = []

    def walk(part: Pytree, like: TreeDef) -> bool:
        if part is None:
            padded.extend([None] * like.leaf_count)
            return True
        leaves, there = pytree.flatten(part)
        if like.kind is None:
            padded.extend(leaves)
            return there.kind is None
        if there.kind is not like.kind or there.static != like.static:
            return False
        parts = _children(part, there)
        return all(walk(child, below) for child, below in zip(parts, like.children))

    return padded if walk(tree, treedef) else None


def _children(tree: Pytree, treedef: TreeDef) -> list[Pytree]:
    """The children of a container, including those that are None."""
    if isinstance(tree, dict):
        return list(tree.values())
    if isinstance(tree, (list, tuple)):
        return list(tree)
    return [getattr(tree, label[1:]) for label in treedef.labels]


def _match_leaf(name: str, what: str, leaf: object, value: TensorOrSpec, path: str) -> Tensor | None:
    if leaf is None or not value.dtype.is_inexact:
        return None
    at = f" at {path}" if path else ""
    if type(leaf) in SCALARS:
        leaf = asarray(leaf, dtype=value.dtype)
    elif not isinstance(leaf, Tensor):
        leaf = asarray(leaf)
    if leaf.shape != value.shape:
        raise TangentError(f"{name}: the {what}{at} has shape {leaf.shape}, and its value {value.shape}")
    if leaf.dtype is not value.dtype:
        raise TangentError(
            f"{name}: the {what}{at} is {leaf.dtype}, and its value {value.dtype}; cast it with "
            f"t.astype(td.{value.dtype.name})"
        )
    return leaf

"""Check and convert the functions, arguments and results of transforms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import pytree
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..eager.tensor.weak_scalars import strengthen
from ..errors import ArgumentError, DTypeError, TandemError, TangentError, TreeError
from ..registry.values import SCALARS, describe

Positions = int | Sequence[int]


def name_of(what: str, fun: Any) -> str:
    """The name of a transformed function in messages: ``grad(loss)``."""
    return f"{what}({getattr(fun, '__qualname__', repr(fun))})"


def check_callable(what: str, fun: Any) -> None:
    """Raise ArgumentError if `fun` is not callable."""
    if not callable(fun):
        raise ArgumentError(f"{what} takes a function, not {describe(fun)}; call it as td.{what}(fun)(*args)")


def check_positions(what: str, fun: Any, argnums: Any) -> tuple[int, ...]:
    """The positions of the arguments to differentiate by."""
    check_callable(what, fun)
    positions = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    if not positions or not all(type(position) is int for position in positions):
        raise ArgumentError(f"{what}: argnums is an int or a sequence of ints, not {argnums!r}")
    return positions


def check_given(name: str, positions: tuple[int, ...], args: tuple[Any, ...]) -> None:
    """Refuse a call that lacks an argument to differentiate by, and one that would differentiate twice by one."""
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


def tensor_leaves(
    name: str, trees: Sequence[Any], positions: Sequence[int], allow_int: bool = True
) -> tuple[list[Any], Any]:
    """The leaves of arguments as tensors, floating-point or complex ones where nothing else is allowed, and the
    TreeDef of the list of them.
    """
    leaves, treedef = pytree.flatten(list(trees))
    return [
        _as_tensor(name, leaf, i, treedef, positions, allow_int) for i, leaf in enumerate(leaves)
    ], treedef


def _as_tensor(
    name: str, leaf: Any, index: int, treedef: Any, positions: Sequence[int], allow_int: bool
) -> Any:
    try:
        tensor = strengthen(asarray(leaf))
    except (ArgumentError, DTypeError) as fault:
        raise type(fault)(f"{name}: {describe_leaf(index, treedef, positions)}: {fault}") from None
    if not (tensor.dtype.is_inexact or allow_int):
        raise DTypeError(
            f"{name}: {describe_leaf(index, treedef, positions)} is {describe(tensor)}, and derivatives are by "
            "floating-point values; cast it with x.astype(td.float32), or choose other arguments (with argnums, or by "
            "a function of fewer); td.grad and td.jacrev with allow_int=True return zeros for it"
        )
    return tensor


def describe_leaf(index: int, treedef: Any, positions: Sequence[int]) -> str:
    """Describe the argument of a leaf and the path in it, for messages."""
    where, _, path = treedef.paths()[index][1:].partition("]")
    return f"argument {positions[int(where)]}{f', at {path}' if path else ''}"


def split_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Split a result into the value and the auxiliary output."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(
            f"{name}: with has_aux=True the function gives a pair (value, aux), not {describe(result)}"
        )
    return result


def result_leaves(name: str, result: Any) -> tuple[list[Any], Any]:
    """The leaves of a result as tensors, and its TreeDef."""
    leaves, treedef = pytree.flatten(result)
    items = []
    for leaf, path in zip(leaves, treedef.paths()):
        try:
            items.append(leaf if isinstance(leaf, Tensor) else asarray(leaf))
        except TandemError as fault:
            raise type(fault)(f"{name}: the result{f' at {path}' if path else ''}: {fault}") from None
    return items, treedef


def match_leaves(name: str, what: str, tree: Any, treedef: Any, values: Sequence[Any]) -> list[Any]:
    """The leaves of tangents or cotangents, one for each value, of its shape and dtype.

    Args:
        name: what asks, for messages.
        what: ``"tangent"`` or ``"cotangent"``.
        tree: a tree like that of the values; None in it stands for zero.
        treedef: that of the values.
        values: the values; what is not inexact has no derivative, and None is found for it.

    Raises:
        ArgumentError: the trees differ.
        TangentError: a shape or a dtype does.
    """
    leaves = leaves_with_nones(tree, treedef)
    if leaves is None:
        there = pytree.flatten(tree)[1]
        raise TreeError(
            f"{name}: the {what}s differ in structure from the values{pytree.difference(treedef, there)}"
        )
    paths = treedef.paths()
    return [_match_leaf(name, what, leaf, value, path) for leaf, value, path in zip(leaves, values, paths)]


def leaves_with_nones(tree: Any, treedef: Any) -> list[Any] | None:
    """The leaves of a tree where None may stand for any part of it; None: the tree is another."""
    leaves, there = pytree.flatten(tree)
    if there == treedef:
        return leaves
    items: list[Any] = []

    def walk(part: Any, like: Any) -> bool:
        if part is None:
            items.extend([None] * like.leaf_count)
            return True
        leaves, there = pytree.flatten(part)
        if like.kind is None:
            items.extend(leaves)
            return there.kind is None
        if there.kind is not like.kind or there.static != like.static:
            return False
        parts = _children(part, there)
        return all(walk(child, below) for child, below in zip(parts, like.children))

    return items if walk(tree, treedef) else None


def _children(tree: Any, treedef: Any) -> list[Any]:
    """The children of a container, None among them included."""
    if isinstance(tree, dict):
        return list(tree.values())
    if isinstance(tree, (list, tuple)):
        return list(tree)
    return [getattr(tree, label[1:]) for label in treedef.labels]


def _match_leaf(name: str, what: str, leaf: Any, value: Any, path: str) -> Any:
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

"""The carries of loops as pytrees: conversion of leaves to tensors, and checks of the carry that a body returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from .. import pytree
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..eager.tensor.weak_scalars import is_weak, strengthen
from ..errors import ArgumentError, TandemError
from ..named_tuple import NamedTuple
from ..pytree import TreeDef
from ..registry.dtypes import DType
from ..registry.values import SCALARS, TensorSpec, describe, traced_number_types
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


def flatten_tensors(name: str, role: str, tree: Pytree) -> Leaves:
    """Flatten a tree and convert its leaves to tensors.

    Args:
        name: the function that the user called, for messages.
        role: the role of the tree in that call, for messages.
        tree: the tree.

    Raises:
        ArgumentError: a leaf cannot be converted.
    """
    leaves, treedef = pytree.flatten(tree)
    tensors = []
    for index, leaf in enumerate(leaves):
        try:
            tensors.append(to_tensor(leaf))
        except TandemError as error:
            path = treedef.paths()[index]
            raise ArgumentError(f"{name}: {role}{f' at {path}' if path else ''}: {error}") from None
    return Leaves(tensors, treedef, [is_number(leaf) for leaf in leaves], leaves)


def specs_of(tensors: Sequence[Tensor]) -> list[TensorSpec]:
    """The specs of tensors."""
    return [x.spec for x in tensors]


def check_structure(name: str, role: str, expected: TreeDef, actual: TreeDef) -> None:
    """Raise ArgumentError if two trees differ in structure."""
    if expected != actual:
        raise ArgumentError(f"{name}: {role} differ in structure{pytree.difference(expected, actual)}")


def find_wider_dtypes(name: str, role: str, before: Leaves, after: Leaves) -> list[DType | None] | None:
    """Compare the carry that a body returns with its input carry.

    Args:
        name: the function that the user called, for messages.
        role: the two carries, for messages.
        before: the input carry.
        after: the carry that the body returns.

    Returns:
        None if they agree; else for each leaf the wider dtype that a Python number in the input carry must have.

    Raises:
        ArgumentError: they differ in structure, shape or dtype; the message names the key path.
    """
    check_structure(name, role, before.treedef, after.treedef)
    dtypes: list[DType | None] = [None] * len(before.tensors)
    for index, (old, new) in enumerate(zip(before.tensors, after.tensors)):
        if old.shape == new.shape and old.dtype is new.dtype:
            continue
        path = before.treedef.paths()[index]
        if old.shape == new.shape and before.weak[index] and _can_hold(new.dtype, old.dtype):
            dtypes[index] = new.dtype
            continue
        if old.shape == new.shape and after.weak[index] and _can_hold(old.dtype, new.dtype):
            continue
        raise ArgumentError(
            f"{name}: {role} differ{f' at {path}' if path else ''}: {describe(old)} and {describe(new)}; give both "
            "the same shape and dtype, for example with x.astype(y.dtype)"
        )
    return dtypes if any(dtype is not None for dtype in dtypes) else None


def _can_hold(dtype: DType, number: DType) -> bool:
    """Whether ``dtype`` can hold a Python number of the dtype ``number``; bools and numbers do not mix."""
    if (dtype.kind == "b") is not (number.kind == "b"):
        return False
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return order[dtype.kind] >= order[number.kind]


def cast_numbers(leaves: Leaves, dtypes: Sequence[DType | None]) -> Leaves:
    """Cast the Python numbers among leaves to other dtypes."""
    tensors = [
        x if dtype is None else to_dtype(original, dtype)
        for original, x, dtype in zip(leaves.originals, leaves.tensors, dtypes)
    ]
    return leaves._replace(tensors=tensors)


def cast_to_carry(before: Leaves, after: Leaves) -> list[Tensor]:
    """Cast the Python numbers that a body returns to the dtypes of the carry."""
    return [
        x if x.dtype is old.dtype else to_dtype(original, old.dtype)
        for old, x, original in zip(before.tensors, after.tensors, after.originals)
    ]


def to_dtype(leaf: object, dtype: DType) -> Tensor:
    """Convert a leaf to a tensor of a dtype, directly, so that a Python number keeps its precision."""
    return asarray(leaf, dtype=dtype)

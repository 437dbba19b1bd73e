"""The carries of loops as pytrees: conversion of leaves to tensors, and checks of the carry that a body returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import pytree
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..eager.tensor.weak_scalars import is_weak, strengthen
from ..errors import ArgumentError, TandemError
from ..pytree import TreeDef
from ..registry.dtypes import DType
from ..registry.values import SCALARS, TensorSpec, describe, traced_number_types


class Leaves(NamedTuple):
    """A flattened tree.

    Attributes:
        tensors: its leaves.
        treedef: its containers.
        weak: for each leaf, whether it was a Python number, which adapts to other dtypes.
        given: the original leaves.
    """

    tensors: list[Any]
    treedef: TreeDef
    weak: list[bool]
    given: list[Any]


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a Python number, a weak scalar, or a traced number."""
    return type(leaf) in SCALARS or type(leaf) in traced_number_types or is_weak(leaf)


def to_tensor(leaf: Any) -> Any:
    """Convert a leaf to a tensor."""
    if isinstance(leaf, Tensor):
        return strengthen(leaf)
    if type(leaf) in traced_number_types:
        return by_name("full")((), leaf, dtype=asarray(leaf.python_type(0)).dtype)
    return asarray(leaf)


def flatten_tensors(name: str, what: str, tree: Any) -> Leaves:
    """Flatten a tree and convert its leaves to tensors.

    Raises:
        ArgumentError: a leaf cannot be converted.
    """
    leaves, treedef = pytree.flatten(tree)
    tensors = []
    for place, leaf in enumerate(leaves):
        try:
            tensors.append(to_tensor(leaf))
        except TandemError as fault:
            path = treedef.paths()[place]
            raise ArgumentError(f"{name}: {what}{f' at {path}' if path else ''}: {fault}") from None
    return Leaves(tensors, treedef, [is_number(leaf) for leaf in leaves], leaves)


def specs_of(tensors: Sequence[Any]) -> list[TensorSpec]:
    """The specs of tensors."""
    return [x.spec for x in tensors]


def check_structure(name: str, what: str, given: TreeDef, found: TreeDef) -> None:
    """Raise ArgumentError if two trees differ in structure."""
    if given != found:
        raise ArgumentError(f"{name}: {what} differ in structure{pytree.difference(given, found)}")


def find_wider_dtypes(name: str, what: str, given: Leaves, found: Leaves) -> list[DType | None] | None:
    """Compare the carry that a body returns with its input carry.

    Returns:
        None if they agree; else for each leaf the wider dtype that a Python number in the input carry must have.

    Raises:
        ArgumentError: they differ in structure, shape or dtype; the message names the key path.
    """
    check_structure(name, what, given.treedef, found.treedef)
    wanted: list[DType | None] = [None] * len(given.tensors)
    for place, (old, new) in enumerate(zip(given.tensors, found.tensors)):
        if old.shape == new.shape and old.dtype is new.dtype:
            continue
        path = given.treedef.paths()[place]
        if old.shape == new.shape and given.weak[place] and _can_hold(new.dtype, old.dtype):
            wanted[place] = new.dtype
            continue
        if old.shape == new.shape and found.weak[place] and _can_hold(old.dtype, new.dtype):
            continue
        raise ArgumentError(
            f"{name}: {what} differ{f' at {path}' if path else ''}: {describe(old)} and {describe(new)}; give both "
            "the same shape and dtype, for example with x.astype(y.dtype)"
        )
    return wanted if any(dtype is not None for dtype in wanted) else None


def _can_hold(dtype: DType, number: DType) -> bool:
    """Whether ``dtype`` can hold a Python number of the dtype ``number``; bools and numbers do not mix."""
    if (dtype.kind == "b") is not (number.kind == "b"):
        return False
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return order[dtype.kind] >= order[number.kind]


def cast_numbers(given: Leaves, dtypes: Sequence[DType | None]) -> Leaves:
    """Cast the Python numbers among leaves to other dtypes."""
    tensors = [
        x if dtype is None else to_dtype(leaf, dtype)
        for leaf, x, dtype in zip(given.given, given.tensors, dtypes)
    ]
    return given._replace(tensors=tensors)


def cast_to_carry(given: Leaves, found: Leaves) -> list[Any]:
    """Cast the Python numbers that a body returns to the dtypes of the carry."""
    return [
        x if x.dtype is old.dtype else to_dtype(leaf, old.dtype)
        for old, x, leaf in zip(given.tensors, found.tensors, found.given)
    ]


def to_dtype(leaf: Any, dtype: DType) -> Any:
    """Convert a leaf to a tensor of a dtype, directly, so that a Python number keeps its precision."""
    return asarray(leaf, dtype=dtype)

"""The trees that loops carry: leaves as tensors, and checks that a body gives back what it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import pytree
from ..eager.construct import asarray
from ..eager.dunders import by_name
from ..eager.tensor import Tensor
from ..errors import ArgumentError, TandemError
from ..pytree import TreeDef
from ..registry.dtypes import DType
from ..registry.values import SCALARS, TensorSpec, describe, number_stand_ins


class Leaves(NamedTuple):
    """A tree taken apart.

    Attributes:
        tensors: its leaves.
        treedef: its containers.
        weak: for each leaf whether it was a Python number, which takes the dtype of what it meets.
    """

    tensors: list[Any]
    treedef: TreeDef
    weak: list[bool]


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a Python number, or stands for one while tracing."""
    return type(leaf) in SCALARS or type(leaf) in number_stand_ins


def as_tensor(leaf: Any) -> Any:
    """A leaf as a tensor."""
    if isinstance(leaf, Tensor):
        return leaf
    if type(leaf) in number_stand_ins:
        return by_name("full")((), leaf, dtype=asarray(leaf.python_type(0)).dtype)
    return asarray(leaf)


def take_apart(name: str, what: str, tree: Any) -> Leaves:
    """The leaves of a tree as tensors.

    Raises:
        ArgumentError: a leaf is nothing that a tensor can be made of.
    """
    leaves, treedef = pytree.flatten(tree)
    tensors = []
    for place, leaf in enumerate(leaves):
        try:
            tensors.append(as_tensor(leaf))
        except TandemError as fault:
            path = treedef.paths()[place]
            raise ArgumentError(f"{name}: {what}{f' at {path}' if path else ''}: {fault}") from None
    return Leaves(tensors, treedef, [is_number(leaf) for leaf in leaves])


def specs_of(tensors: Sequence[Any]) -> list[TensorSpec]:
    """The specs of tensors."""
    return [x.spec for x in tensors]


def check_structure(name: str, what: str, given: TreeDef, found: TreeDef) -> None:
    """Refuse a tree whose containers are not those that were given."""
    if given != found:
        raise ArgumentError(f"{name}: {what} differ in structure{pytree.difference(given, found)}")


def widened(name: str, what: str, given: Leaves, found: Leaves) -> list[DType | None] | None:
    """Compare the carry that a body gives with the one that it was given.

    Returns:
        None if they agree; else for each leaf the dtype that a Python number among the given ones takes instead.

    Raises:
        ArgumentError: they differ in structure, shape or dtype; the message names the key path.
    """
    check_structure(name, what, given.treedef, found.treedef)
    wanted: list[DType | None] = [None] * len(given.tensors)
    for place, (old, new) in enumerate(zip(given.tensors, found.tensors)):
        if old.shape == new.shape and old.dtype is new.dtype:
            continue
        path = given.treedef.paths()[place]
        if old.shape == new.shape and given.weak[place] and _holds(new.dtype, old.dtype):
            wanted[place] = new.dtype
            continue
        if old.shape == new.shape and found.weak[place] and _holds(old.dtype, new.dtype):
            continue
        raise ArgumentError(
            f"{name}: {what} differ{f' at {path}' if path else ''}: {describe(old)} and {describe(new)}; give both "
            "the same shape and dtype, for example with x.astype(y.dtype)"
        )
    return wanted if any(dtype is not None for dtype in wanted) else None


def _holds(dtype: DType, number: DType) -> bool:
    """Whether a Python number that became ``number`` may as well be of ``dtype``; a bool stands for no number."""
    if (dtype.kind == "b") is not (number.kind == "b"):
        return False
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return order[dtype.kind] >= order[number.kind]


def cast_numbers(given: Leaves, dtypes: Sequence[DType | None]) -> Leaves:
    """The leaves with Python numbers cast to other dtypes."""
    tensors = [x if dtype is None else by_name("astype")(x, dtype) for x, dtype in zip(given.tensors, dtypes)]
    return given._replace(tensors=tensors)


def fitted(given: Leaves, found: Leaves) -> list[Any]:
    """The leaves that a body gives, with Python numbers among them in the dtype of the carry."""
    return [
        x if x.dtype is old.dtype else by_name("astype")(x, old.dtype)
        for old, x in zip(given.tensors, found.tensors)
    ]

"""Trees of tensors as vectors: what :func:`tandem.tree.ravel` does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ..control.structure import as_tensor, take_apart
from ..eager.dunders import by_name
from ..errors import DTypeError, ShapeError
from ..pytree import TreeDef
from ..registry.dtypes import DType, float32, promote
from ..registry.values import TensorSpec, describe


class Unravel:
    """From a vector to the tree; two are equal that make the same trees of the same vectors."""

    __slots__ = ("dtype", "specs", "treedef")

    def __init__(self, treedef: TreeDef, specs: Sequence[TensorSpec], dtype: DType):
        self.treedef, self.specs, self.dtype = treedef, tuple(specs), dtype

    def __call__(self, flat: Any) -> Any:
        """The tree whose leaves, one behind the other, are the elements of ``flat``."""
        flat = as_tensor(flat)
        size = sum(spec.size for spec in self.specs)
        if tuple(flat.shape) != (size,):
            raise ShapeError(
                f"tree.ravel: the tree is made of a vector of {size} elements, not {describe(flat)}"
            )
        mixed = any(spec.dtype is not self.dtype for spec in self.specs)
        if mixed and flat.dtype is not self.dtype:
            raise DTypeError(
                f"tree.ravel: the tree, whose leaves differ in dtype, is made of a vector of {self.dtype}, not "
                f"{describe(flat)}"
            )
        leaves, start = [], 0
        for spec in self.specs:
            part = by_name("reshape")(flat[start : start + spec.size], spec.shape)
            leaves.append(by_name("astype")(part, spec.dtype) if mixed else part)
            start += spec.size
        return self.treedef.unflatten(leaves)

    def _same(self) -> tuple[Any, ...]:
        return self.treedef, self.specs, self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unravel) and self._same() == other._same()

    def __hash__(self) -> int:
        return hash(self._same())

    def __repr__(self) -> str:
        return f"<function that makes {self.treedef} of a vector>"


def ravel(tree: Any) -> tuple[Any, Unravel]:
    """See :func:`tandem.pytree.ravel_pytree`."""
    found = take_apart("tree.ravel", "the tree", tree)
    specs = [TensorSpec(tuple(x.shape), x.dtype, x.device) for x in found.tensors]
    dtype = reduce(promote, [spec.dtype for spec in specs]) if specs else float32
    rows = [by_name("reshape")(by_name("astype")(x, dtype, copy=False), (-1,)) for x in found.tensors]
    flat = by_name("concat")(rows) if rows else by_name("zeros")((0,))
    return flat, Unravel(found.treedef, specs, dtype)

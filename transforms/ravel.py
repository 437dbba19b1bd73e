"""Ravel trees of tensors into vectors; see :func:`tandem.tree.ravel`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from ..control.structure import flatten_tensors, to_tensor
from ..eager.tensor.dunders import by_name
from ..errors import DTypeError, ShapeError
from ..pytree import TreeDef
from ..registry.dtypes import DType, float32, promote
from ..registry.values import TensorSpec, describe

if TYPE_CHECKING:
    from ..registry.types import Pytree, Tensor, TensorLike


class Unravel:
    """A function from a vector to a tree; two are equal if they have the same treedef, specs and dtype."""

    __slots__ = ("dtype", "specs", "treedef")

    def __init__(self, treedef: TreeDef, specs: Sequence[TensorSpec], dtype: DType):
        self.treedef, self.specs, self.dtype = treedef, tuple(specs), dtype

    def __call__(self, flat: TensorLike) -> Any:
        """The tree whose concatenated leaves are the elements of ``flat``."""
        vector: Tensor = to_tensor(flat)
        size = sum(spec.size for spec in self.specs)
        if tuple(vector.shape) != (size,):
            raise ShapeError(f"tree.ravel: the vector must have {size} elements, not {describe(vector)}")
        mixed = any(spec.dtype is not self.dtype for spec in self.specs)
        if mixed and vector.dtype is not self.dtype:
            raise DTypeError(
                f"tree.ravel: the leaves of the tree differ in dtype, so the vector must be {self.dtype}, not "
                f"{describe(vector)}"
            )
        leaves, start = [], 0
        for spec in self.specs:
            part = by_name("reshape")(vector[start : start + spec.size], spec.shape)
            leaves.append(by_name("astype")(part, spec.dtype) if mixed else part)
            start += spec.size
        return self.treedef.unflatten(leaves)

    def _key(self) -> tuple[object, ...]:
        return self.treedef, self.specs, self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unravel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<function that makes {self.treedef} of a vector>"


def ravel(tree: Pytree) -> tuple[Tensor, Unravel]:
    """Concatenate the leaves of a tree to a vector; see :func:`tandem.pytree.ravel_pytree`."""
    result = flatten_tensors("tree.ravel", "the tree", tree)
    specs = [TensorSpec(tuple(x.shape), x.dtype, x.device) for x in result.tensors]
    dtype = reduce(promote, [spec.dtype for spec in specs]) if specs else float32
    rows = [by_name("reshape")(by_name("astype")(x, dtype, copy=False), (-1,)) for x in result.tensors]
    flat = by_name("concat")(rows) if rows else by_name("zeros")((0,))
    return flat, Unravel(result.treedef, specs, dtype)

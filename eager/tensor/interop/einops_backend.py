"""The backend by which einops finds tensors: ``einops.rearrange(x, "a b -> b a")``, eager, traced and under transforms.

einops looks for it among the subclasses of its ``AbstractBackend``; this module is imported after that class exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from einops._backends import AbstractBackend

from .... import lazy
from ..construct import asarray
from ..dunders import by_name
from ..tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....registry.types import Array


_einsum = lazy.Module(".operators.contraction.einsum")


class TandemBackend(AbstractBackend):  # type: ignore[misc, unused-ignore]
    """The operations that einops needs."""

    framework_name = __package__.partition(".")[0]

    def is_appropriate_type(self, tensor: object) -> bool:
        """Whether this backend computes with a value."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Array) -> Tensor:
        """A tensor of an array."""
        return asarray(x)

    def to_numpy(self, x: Tensor) -> Array:
        """The array of a tensor."""
        return x.numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """The integers from ``start`` to ``stop``."""
        return by_name("arange")(start, stop)

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """A view with the axes in another order."""
        return by_name("permute")(x, tuple(axes))

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        """The tensors joined along a new first axis."""
        return by_name("stack")(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """A view with an axis of length 1."""
        return by_name("expand_dims")(x, new_position)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        """A view with new axes, along which the tensor is repeated."""
        sizes = list(x.shape)
        for position in sorted(pos2len):
            x = self.add_axis(x, position)
            sizes.insert(position, pos2len[position])
        return by_name("broadcast_to")(x, tuple(sizes))

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        """The tensor repeated along each axis."""
        return by_name("tile")(x, tuple(repeats))

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """The tensors joined along an axis."""
        return by_name("concat")(list(tensors), axis)

    def is_float_type(self, x: Tensor) -> bool:
        """Whether the elements are real floating-point numbers."""
        return x.dtype.is_floating

    def einsum(self, pattern: str, *x: Tensor) -> Any:
        """A sum of products by the pattern."""
        return _einsum.einsum(pattern, *x)

"""Guards on the tensors that a function captures: on their layout, and on the data of masks with constant positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import lazy
from ...eager.tensor.tensor import Tensor
from ...named_tuple import NamedTuple
from ...registry.values import describe
from .leaves import LeafGuard, NotNative, device_key, make_guard, read_strides

if TYPE_CHECKING:
    from ...registry.types import Array
    from ..native_record import GuardBuilder

jit_layout = lazy.Module(".backends.cpu.fastpath.glue.jit_layout")


class CapturedGuard(NamedTuple):
    """A guard that a captured tensor has the shape, dtype, device and key set that it had during the trace.

    Attributes:
        tensor: the tensor, whose data are read at each call.
        leaf: its properties during the trace.
        parameter: which of the graph's parameters it is.
    """

    tensor: Tensor
    leaf: LeafGuard
    parameter: int

    def check(self) -> bool:
        """Whether the tensor has the same properties."""
        tensor, leaf = self.tensor, self.leaf
        if type(tensor) is not Tensor:
            return bool((tensor._keys, tensor.shape, tensor.device) == (leaf.keys, leaf.shape, leaf.device))
        array = tensor._array
        same = tensor._keys == leaf.keys and array.shape == leaf.shape and array.dtype == leaf.dtype
        return bool(same and (not leaf.strides or array.strides == leaf.strides))

    def explain(self) -> str:
        """Describe what has changed since the trace; return an empty text if the guard holds."""
        return "" if self.check() else f"a captured tensor was {self.leaf}, now {describe(self.tensor)}"

    def emit(self, builder: GuardBuilder) -> None:
        """Add the guard to the guard program of a native entry."""
        builder.guards.add(jit_layout.GuardCode.OBJECT)
        builder.guards.same(self.tensor)
        builder.add_array(self.leaf, self.parameter)


class MaskGuard(NamedTuple):
    """A guard that a captured mask has the elements that it had during the trace, which made its positions constants.

    Attributes:
        mask: the mask.
        elements: a copy of its elements.
    """

    mask: Tensor
    elements: Array

    def check(self) -> bool:
        """Whether the mask has the same elements."""
        return np.array_equal(self.mask._array, self.elements)

    def explain(self) -> str:
        """Describe what has changed since the trace; return an empty text if the guard holds."""
        return "" if self.check() else f"the elements of a captured mask {describe(self.mask)} have changed"

    def emit(self, builder: GuardBuilder) -> None:
        """Refuse a native entry, which would not compare elements.

        Raises:
            NotNative: always.
        """
        raise NotNative("a captured mask whose positions are constants")


def guard_captured(tensor: Tensor, parameter: int) -> CapturedGuard:
    """Make the guard of a captured tensor."""
    if type(tensor) is not Tensor:
        return CapturedGuard(tensor, make_guard(device_key(tensor, tensor.device)), parameter)
    array = tensor._array
    key = (Tensor, array.dtype, array.shape, read_strides(array), tensor._keys)
    return CapturedGuard(tensor, make_guard(key), parameter)

"""``x.at[index].set(v)``: writing that gives a new tensor; works everywhere, under jit and transforms too.

Source: ``jax.numpy.ndarray.at``.
"""

from __future__ import annotations

from typing import Any

from ..operators.indexing import getitem, put
from .dunders import by_name
from .tensor import Tensor


class Place:
    """The elements of a tensor that an index selects."""

    __slots__ = ("_index", "_tensor")

    def __init__(self, tensor: Tensor, index: Any):
        self._tensor, self._index = tensor, index

    def get(self) -> Any:
        """The elements; the same as ``x[index]``."""
        return getitem(self._tensor, self._index)

    def set(self, value: Any) -> Any:
        """A copy of the tensor with the elements replaced."""
        return put(self._tensor, self._index, value)

    def add(self, value: Any) -> Any:
        """A copy with ``value`` added to the elements; an element selected twice gets both."""
        return put(self._tensor, self._index, value, accumulate=True)

    def multiply(self, value: Any) -> Any:
        """A copy with the elements multiplied; an element selected twice is multiplied once."""
        return self._with("mul", value)

    def divide(self, value: Any) -> Any:
        """A copy with the elements divided; an element selected twice is divided once."""
        return self._with("div", value)

    def min(self, value: Any) -> Any:
        """A copy with the smaller of the elements and ``value``."""
        return self._with("minimum", value)

    def max(self, value: Any) -> Any:
        """A copy with the larger of the elements and ``value``."""
        return self._with("maximum", value)

    def apply(self, function: Any) -> Any:
        """A copy with the elements replaced by ``function(elements)``."""
        return self.set(function(self.get()))

    def _with(self, operator: str, value: Any) -> Any:
        return self.set(by_name(operator)(self.get(), value))


class At:
    """What ``x.at`` is; index it."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def __getitem__(self, index: Any) -> Place:
        return Place(self._tensor, index)

"""``x.at[index].set(v)``: writing that gives a new tensor; works everywhere, under jit and transforms too.

Source: ``jax.numpy.ndarray.at``.
"""

from __future__ import annotations

from typing import Any

from .. import lazy
from ..operators.indexing import getitem, put
from .dunders import by_name
from .tensor import Tensor

bounds = lazy.Functions("operators.index_bounds")


class Place:
    """The elements of a tensor that an index selects.

    All methods take these keywords:

    - ``mode``: what a position beyond its axis means. None and ``"promise_in_bounds"``: an error; ``"clip"``: the
      nearest element; ``"drop"`` and ``"fill"``: nothing is written there, and ``fill_value`` is read.
    - ``wrap_negative_indices``: whether -1 is the last element; if not, it lies beyond the axis.
    - ``indices_are_sorted``, ``unique_indices``: for programs written for JAX; they change nothing.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0, 3.0])
    >>> x.at[td.asarray([0, 7])].add(10.0, mode="drop")
    tensor([11.,  2.,  3.])
    >>> x.at[td.asarray([0, 7])].get(mode="fill", fill_value=0.0)
    tensor([1., 0.])
    """

    __slots__ = ("_index", "_tensor")

    def __init__(self, tensor: Tensor, index: Any):
        self._tensor, self._index = tensor, index

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Any:
        """The elements: ``x[index]``, and with ``mode="fill"`` or ``"drop"`` the ``fill_value`` beyond the axis.

        Without a ``fill_value`` that is NaN, True, the smallest signed or the largest unsigned integer.
        """
        if mode is None and wrap_negative_indices:
            return getitem(self._tensor, self._index)
        return bounds.get_within(self._tensor, self._index, mode, wrap_negative_indices, fill_value)

    def set(self, value: Any, **options: Any) -> Any:
        """A copy of the tensor with the elements replaced."""
        return self._put(value, False, **options)

    def add(self, value: Any, **options: Any) -> Any:
        """A copy with ``value`` added to the elements; an element selected twice gets both."""
        return self._put(value, True, **options)

    def subtract(self, value: Any, **options: Any) -> Any:
        """A copy with ``value`` subtracted from the elements; from an element selected twice, both."""
        return self._put(-value, True, **options)

    def multiply(self, value: Any, **options: Any) -> Any:
        """A copy with the elements multiplied; an element selected twice is multiplied once."""
        return self._with("mul", value, options)

    mul = multiply

    def divide(self, value: Any, **options: Any) -> Any:
        """A copy with the elements divided; an element selected twice is divided once."""
        return self._with("div", value, options)

    def power(self, value: Any, **options: Any) -> Any:
        """A copy with the elements raised to a power; an element selected twice is raised once."""
        return self._with("pow", value, options)

    def min(self, value: Any, **options: Any) -> Any:
        """A copy with the smaller of the elements and ``value``."""
        return self._with("minimum", value, options)

    def max(self, value: Any, **options: Any) -> Any:
        """A copy with the larger of the elements and ``value``."""
        return self._with("maximum", value, options)

    def apply(self, function: Any, **options: Any) -> Any:
        """A copy with the elements replaced by ``function(elements)``."""
        return self._put(function(self.get(**options)), False, **options)

    def _with(self, operator: str, value: Any, options: dict[str, Any]) -> Any:
        return self._put(by_name(operator)(self.get(**options), value), False, **options)

    def _put(
        self,
        value: Any,
        accumulate: bool,
        *,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Any:
        if mode is None and wrap_negative_indices:
            return put(self._tensor, self._index, value, accumulate=accumulate)
        return bounds.put_within(self._tensor, self._index, value, mode, wrap_negative_indices, accumulate)


class At:
    """What ``x.at`` is; index it."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def __getitem__(self, index: Any) -> Place:
        return Place(self._tensor, index)

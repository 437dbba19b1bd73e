"""``x.at[index].set(v)``: updates that return a new tensor; they also work under jit and transforms.

Source: ``jax.numpy.ndarray.at``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...operators.declare.shape_rules import spec_of
from ...operators.indexing.masks import MaskedElements
from ...operators.indexing.slicing import check_storable
from ...operators.indexing.subscript import apply_at_mask, getitem, put
from ...registry.schemas.binding import to_tensor_or_number
from .construct import asarray
from .dunders import by_name, is_operand
from .tensor import Tensor

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class IndexOptions(TypedDict, total=False):
        """The keywords of the methods of IndexUpdate that write."""

        mode: str | None
        wrap_negative_indices: bool
        indices_are_sorted: bool
        unique_indices: bool


copied_writes = lazy.Module(".eager.tensor.copied_writes")
out_of_bounds = lazy.Module(".operators.indexing.out_of_bounds")


class IndexUpdate:
    """The elements of a tensor that an index selects.

    All methods take these keywords:

    - ``mode``: the treatment of indices out of bounds. None and ``"promise_in_bounds"``: an error; ``"clip"``: the
      nearest element; ``"drop"`` and ``"fill"``: nothing is written there, and ``fill_value`` is read.
    - ``wrap_negative_indices``: whether -1 is the last element; if not, it is out of bounds.
    - ``indices_are_sorted``, ``unique_indices``: accepted for compatibility with JAX; they have no effect.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0, 3.0])
    >>> x.at[td.asarray([0, 7])].add(10.0, mode="drop")
    tensor([11.,  2.,  3.])
    >>> x.at[td.asarray([0, 7])].get(mode="fill", fill_value=0.0)
    tensor([1., 0.])
    """

    __slots__ = ("_index", "_tensor")

    def __init__(self, tensor: Tensor, index: object):
        self._tensor, self._index = tensor, index

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: object = None,
        size: int | None = None,
        wrap_negative_indices: bool = True,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Tensor:
        """The elements: ``x[index]``, and with ``mode="fill"`` or ``"drop"`` the ``fill_value`` beyond the axis.

        Of a mask, ``size`` is the number of elements to return: the first ones, padded with ``fill_value``. A trace
        needs it for a mask that depends on data. The default of ``fill_value`` is NaN, True, the smallest signed or the
        largest unsigned integer.

        >>> import tandem as td
        >>> td.jit(lambda x: x.at[x > 1].get(size=3, fill_value=0))(td.asarray([3.0, 1.0, 2.0])).tolist()
        [3.0, 2.0, 0.0]
        """
        if size is not None:
            sized: Tensor = out_of_bounds.get_sized(self._tensor, self._index, size, fill_value)
            return sized
        if mode is None and wrap_negative_indices:
            elements: Tensor = getitem(self._tensor, self._index)
            return elements
        result: Tensor = out_of_bounds.get_with_mode(
            self._tensor, self._index, mode, wrap_negative_indices, fill_value
        )
        return result

    def set(self, value: object, **options: Unpack[IndexOptions]) -> Tensor:
        """A copy of the tensor with the elements replaced; of several values for one element the last stays."""
        return self._put(value, "", **options)

    def add(self, value: object, **options: Unpack[IndexOptions]) -> Tensor:
        """A copy with ``value`` added to the elements; an element selected twice gets both."""
        return self._put(value, "add", **options)

    def subtract(self, value: object, **options: Unpack[IndexOptions]) -> Tensor:
        """A copy with ``value`` subtracted from the elements; from an element selected twice, both."""
        return self._put(by_name("neg")(self._like(value)), "add", **options)

    def multiply(self, value: object, **options: Unpack[IndexOptions]) -> Tensor:
        """A copy with the elements multiplied by ``value``; an element selected twice by both."""
        return self._put(value, "multiply", **options)

    mul = multiply

    def divide(self, value: object, **options: Unpack[IndexOptions]) -> Tensor:
        """A copy with the elements divided by ``value``; an element selected twice by the product of both."""
        return self._put(value, "divide", **options)

    def power(self, value: object, **options: Unpack[IndexOptions]) -> Tensor:
        """A copy with the elements raised to the power ``value``; an element selected twice to the product of both."""
        return self._put(value, "power", **options)

    def min(self, value: object, **options: Unpack[IndexOptions]) -> Tensor:
        """A copy with the smallest of the elements and their values."""
        return self._put(value, "minimum", **options)

    def max(self, value: object, **options: Unpack[IndexOptions]) -> Tensor:
        """A copy with the largest of the elements and their values."""
        return self._put(value, "maximum", **options)

    def apply(self, function: Callable[[Tensor], object], **options: Unpack[IndexOptions]) -> Tensor:
        """A copy with the elements replaced by ``function(elements)``; one selected twice is replaced once.

        A function of elements at a traced mask must be elementwise: it is also called where the mask is false.
        """
        if not options.get("mode"):
            masked = apply_at_mask(self._tensor, self._index, function)
            if masked is not None:
                return masked
        return self._put(function(self.get(**options)), "", **options)

    def _like(self, value: object) -> Tensor:
        """A value in the dtype of the tensor, in which it is negated."""
        tensor, value = self._tensor, _operand(value)
        check_storable("at", tensor.spec, value, spec_of(value).shape)
        if isinstance(value, Tensor):
            return by_name("astype")(value, tensor.dtype, copy=False)
        return by_name("full")((), value, dtype=tensor.dtype, device=tensor.device)

    def _put(
        self,
        value: object,
        combine: str,
        *,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Tensor:
        if mode is None and wrap_negative_indices:
            written: Tensor | None = copied_writes.write_into_copy(self._tensor, self._index, value, combine)
            if written is not None:
                return written
            return put(self._tensor, self._index, _operand(value), combine=combine)
        result: Tensor = out_of_bounds.put_with_mode(
            self._tensor, self._index, _operand(value), mode, wrap_negative_indices, combine
        )
        return result


def _operand(value: object) -> Any:
    """A value as a tensor or a number: NumPy's arrays and scalars, and lists, become tensors."""
    if is_operand(value):
        return to_tensor_or_number(value)
    return value if type(value) is MaskedElements else asarray(value)


class At:
    """The object ``x.at``; indexing it returns an :class:`IndexUpdate`."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def __getitem__(self, index: object) -> IndexUpdate:
        return IndexUpdate(self._tensor, index)

"""``x.size``: the number of elements, which PyTorch's programs call."""

from __future__ import annotations

import math
from typing import ClassVar, overload

from ...operators.declare.shape_rules import normalize_axis


class ElementCount(int):
    """The number of elements of a tensor; called, it returns the shape or the length of an axis.

    >>> import tandem as td
    >>> x = td.zeros((2, 3))
    >>> x.size, x.size(), x.size(-1), type(x.size + 0)
    (6, (2, 3), 3, <class 'int'>)
    """

    _shape: tuple[int, ...]
    known: ClassVar[dict[tuple[int, ...], ElementCount]] = {}  # by shape; native code reads it
    MOST_KNOWN = 1024

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> ElementCount:
        """The number of elements of a tensor of a shape."""
        result = cls.known.get(shape)
        if result is None:
            if len(cls.known) >= cls.MOST_KNOWN:
                cls.known.clear()
            result = cls.known[shape] = cls(math.prod(shape))
            result._shape = shape
        return result

    @overload
    def __call__(self, dim: None = None) -> tuple[int, ...]: ...

    @overload
    def __call__(self, dim: int) -> int: ...

    def __call__(self, dim: int | None = None) -> int | tuple[int, ...]:
        """The shape of the tensor, or the length of one axis, as in PyTorch.

        Raises:
            OutOfBoundsError: there is no such axis.
        """
        return self._shape if dim is None else self._shape[normalize_axis("size", dim, len(self._shape))]

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        """Pickle and copy the number only."""
        return int, (int(self),)

"""``ndarray``: the class of tensors, which also makes one of a shape, as NumPy's does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..eager.tensor.tensor import Tensor
from ..errors import UnsupportedError
from .creation import empty

if TYPE_CHECKING:
    from ..registry.types import DTypeLike


class _ArrayType(type):
    """The class of `ndarray`: tensors are its instances, and its attributes are those of Tensor."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, Tensor)

    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401
        return getattr(Tensor, name)

    def __call__(
        cls, shape: int | tuple[int, ...], dtype: DTypeLike | None = None, buffer: object = None
    ) -> Tensor:
        if buffer is not None:
            raise UnsupportedError("ndarray: write asarray(buffer) for a tensor over memory")
        return empty(shape, dtype=dtype)


class ndarray(metaclass=_ArrayType):
    """A tensor; ``ndarray(shape, dtype)`` returns one whose values are unspecified.

    >>> import tandem.numpy as np
    >>> isinstance(np.ones(2), np.ndarray), np.ndarray((2, 3)).shape
    (True, (2, 3))

    Source: ``numpy.ndarray``.
    """

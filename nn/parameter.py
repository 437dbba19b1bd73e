"""Parameter: a tensor that a module trains."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor

if TYPE_CHECKING:
    from ..registry.types import TensorLike

# Those that were made here, by id: weak references compare their tensors by ==.
_made: WeakValueDictionary[int, Tensor] = WeakValueDictionary()


class _ParameterType(type):
    """``isinstance(x, Parameter)`` asks what the tensor is, since parameters are plain tensors to native code."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and (
            bool(value.requires_grad and value.is_leaf) or _made.get(id(value)) is value
        )


class Parameter(metaclass=_ParameterType):
    """Make a tensor that a module trains: a leaf that requires a gradient.

    The result is a plain tensor. A module registers it under the name of the attribute that it is assigned to.

    Args:
        data: a tensor, whose memory the parameter shares, or anything that :func:`tandem.asarray` takes.
        requires_grad: whether ``backward`` computes its gradient; a parameter without one is in the ``state_dict`` too.

    Raises:
        DTypeError: it requires a gradient and is not floating-point.

    >>> import tandem as td
    >>> weight = td.nn.Parameter(td.ones(2))
    >>> weight.requires_grad, isinstance(weight, td.nn.Parameter), isinstance(td.ones(2), td.nn.Parameter)
    (True, True, False)
    """

    def __new__(cls, data: TensorLike, requires_grad: bool = True) -> Tensor:  # type: ignore[misc]
        """Return the tensor."""
        result: Tensor = data.detach() if isinstance(data, Tensor) else asarray(data)
        if requires_grad:
            result.requires_grad_()
        _made[id(result)] = result
        return result

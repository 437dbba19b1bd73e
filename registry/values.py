"""Base types of arguments: TensorBase, TensorSpec, conversions to tensors, and descriptions for messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..named_tuple import NamedTuple
from .dtypes import DType
from .formatting import short_repr

if TYPE_CHECKING:
    from .operator import Operator
    from .types import Args, Kwargs, Tensor


class TensorBase:
    """Base class of the tensor classes; the registry reads only the key set ``_keys`` of an instance."""

    __slots__ = ()
    _keys: int


ALIGNMENT = 64  # of buffers in a workspace, in bytes
# The most axes that an array of NumPy can have.
MAX_RANK = 64


class TensorSpec(NamedTuple):
    """Shape, dtype and device of a tensor without its data; shape rules take and return these."""

    shape: tuple[int, ...]
    dtype: DType
    device: str = "cpu"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


# The types of Python scalars, narrowest first.
SCALARS = (bool, int, float, complex)

# type -> function that converts such a value to a tensor where a schema says Tensor (ndarray, np.generic, ...).
converters: dict[type, Callable[[Any], Tensor]] = {}

# Types of traced Python numbers -> function that converts an instance to a 0-d tensor. Instances have the attribute
# ``python_type``, the number's type.
traced_number_types: dict[type, Callable[[Any], Tensor]] = {}


_DEPTH = 4  # of nested lists; one may hold itself


def describe(value: object, depth: int = 0) -> str:
    """A short description of an argument for error messages: ``float32[3,4]``, ``[float32[2], 1]``, ``'x'``."""
    if isinstance(value, (TensorBase, TensorSpec)):
        shape, dtype = getattr(value, "shape", ()), getattr(value, "dtype", "?")
        return f"{dtype}[{','.join(map(str, shape))}]"
    if isinstance(value, (list, tuple)):
        if depth == _DEPTH:
            return "[...]"
        items = [describe(item, depth + 1) for item in value[:4]]
        return f"[{', '.join(items)}{', ...' if len(value) > 4 else ''}]"
    if type(value) is int and value.bit_length() > 300:
        return f"int of {value.bit_length()} bits"  # Python refuses to print the largest
    text = short_repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def tensors_of(op: Operator, args: Args, kwargs: Kwargs) -> list[Any]:
    """The tensors among the arguments of a bound call."""
    binder = op.binder
    values = [args[index] for index, _ in binder.tensor_positions]
    values += [kwargs[name] for name in binder.tensor_keywords]
    flat = [item for value in values for item in (value if isinstance(value, (tuple, list)) else (value,))]
    return [value for value in flat if isinstance(value, TensorBase)]


def align_up(nbytes: int) -> int:
    """The next multiple of the alignment; at least one, so that buffers are distinct."""
    return max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT

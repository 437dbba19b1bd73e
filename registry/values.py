"""What the registry knows about arguments: which are tensors, what stands for one, and what shape and type mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .dtypes import DType
from .text import shown


class TensorBase:
    """Root of the tensor classes; the registry reads the key set ``_keys`` of an instance and nothing else."""

    __slots__ = ()
    _keys: int


class TensorSpec(NamedTuple):
    """Shape, dtype and device of a tensor without its data: what shape rules take and give."""

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


# The types of Python scalars, the narrowest first.
SCALARS = (bool, int, float, complex)

# type -> function that makes a tensor of such a value where a schema says Tensor (ndarray, np.generic, ...).
converters: dict[type, Callable[[Any], TensorBase]] = {}

# Types that stand for a Python number while a function is traced; an instance has ``python_type``, the number's type.
number_stand_ins: set[type] = set()


_DEPTH = 4  # of nested lists; one may hold itself


def describe(value: Any, depth: int = 0) -> str:
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
    text = shown(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"

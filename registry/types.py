"""Types for annotations, in packages that may not import the classes themselves.

Type checkers read ``types.pyi``, where ``Tensor`` is the class of :mod:`tandem.eager.tensor.tensor`; at run time it is
the base class of all tensors, because ``registry`` and ``operators`` do not import ``eager``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType, ModuleType
from typing import Any, TypeVar

import numpy as np

from .dtypes import DType
from .values import TensorBase, TensorSpec

Tensor = TensorBase
T = TypeVar("T")
Array = np.ndarray[Any, np.dtype[Any]]
# A Python number; bool is an int.
Number = int | float | complex
# A value that an operator takes for an argument of type Tensor.
TensorLike = TensorBase | Number | np.ndarray[Any, np.dtype[Any]] | np.generic
# A value that as_dtype accepts.
DTypeLike = DType | str | type | np.dtype[Any]
# NumPy, cupy or a module with their functions; type checkers know that these return arrays.
ArrayModule = ModuleType
Shape = tuple[int, ...]
ShapeLike = int | Sequence[int]
# A tensor, its spec, or a number in place of one.
TensorOrSpec = TensorBase | TensorSpec
Operand = TensorBase | TensorSpec | Number
ShapeRule = Callable[..., TensorSpec | tuple[TensorSpec, ...]]
# One part of a subscript after normalization.
IndexItem = int | slice | EllipsisType | TensorBase | np.ndarray[Any, np.dtype[Any]] | None
Axes = int | Sequence[int] | None
# The arguments of a call: tensors, numbers, and whatever else a schema has.
Args = tuple[object, ...]
Kwargs = dict[str, object]
# Nested containers whose leaves are tensors or other values.
Pytree = object
Function = Callable[..., object]

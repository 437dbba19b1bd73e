"""Types for annotations, in packages that may not import the classes themselves.

Type checkers read ``types.pyi``, where ``Tensor`` is the class of :mod:`tandem.eager.tensor.tensor`; at run time it is
the base class of all tensors, because ``registry`` and ``operators`` do not import ``eager``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from .dtypes import DType
from .values import TensorBase

Tensor = TensorBase
Array = np.ndarray[Any, np.dtype[Any]]
# A Python number; bool is an int.
Number = int | float | complex
# A value that an operator takes for an argument of type Tensor.
TensorLike = TensorBase | Number | np.ndarray[Any, np.dtype[Any]] | np.generic
# A value that as_dtype accepts.
DTypeLike = DType | str | type | np.dtype[Any]
# NumPy, cupy or a namespace with their functions.
ArrayModule = ModuleType
Shape = tuple[int, ...]
ShapeLike = int | Sequence[int]
Axes = int | Sequence[int] | None
# The arguments of a call: tensors, numbers, and whatever else a schema has.
Args = tuple[object, ...]
Kwargs = dict[str, object]
# Nested containers whose leaves are tensors or other values.
Pytree = object
Function = Callable[..., object]

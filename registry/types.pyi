"""Types for annotations; see ``types.py``."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..eager.tensor.tensor import Tensor as Tensor
from .dtypes import DType

Array = np.ndarray[Any, np.dtype[Any]]
Number = int | float | complex
TensorLike = Tensor | Number | np.ndarray[Any, np.dtype[Any]] | np.generic
DTypeLike = DType | str | type | np.dtype[Any]
ArrayModule = ModuleType
Shape = tuple[int, ...]
ShapeLike = int | Sequence[int]
Axes = int | Sequence[int] | None
Args = tuple[object, ...]
Kwargs = dict[str, object]
Pytree = object
Function = Callable[..., object]

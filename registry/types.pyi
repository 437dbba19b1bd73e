"""Types for annotations; see ``types.py``."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import EllipsisType, ModuleType
from typing import Any, TypeVar

import numpy as np

from ..eager.tensor.tensor import Tensor as Tensor
from .dtypes import DType
from .values import TensorSpec

T = TypeVar("T")
Array = np.ndarray[Any, np.dtype[Any]]
Number = int | float | complex
TensorLike = Tensor | Number | np.ndarray[Any, np.dtype[Any]] | np.generic
DTypeLike = DType | str | type | np.dtype[Any]

class ArrayFunction:
    def __call__(self, *args: object, **kwargs: object) -> Array: ...
    def __getattr__(self, name: str) -> ArrayFunction: ...

class ArrayModule(ModuleType):
    bool_: type[np.bool_]
    intp: type[np.intp]
    int32: type[np.int32]
    int64: type[np.int64]
    uint8: type[np.uint8]
    uint32: type[np.uint32]
    uint64: type[np.uint64]
    float32: type[np.float32]
    float64: type[np.float64]
    inf: float
    nan: float
    def finfo(self, dtype: object) -> np.finfo[Any]: ...
    def errstate(self, **kinds: str) -> AbstractContextManager[None]: ...
    def __getattr__(self, name: str) -> ArrayFunction: ...

Shape = tuple[int, ...]
ShapeLike = int | Sequence[int]
Operand = Tensor | TensorSpec | Number
TensorOrSpec = Tensor | TensorSpec
ShapeRule = Callable[..., TensorSpec | tuple[TensorSpec, ...]]
IndexItem = int | slice | EllipsisType | Tensor | np.ndarray[Any, np.dtype[Any]] | None
Axes = int | Sequence[int] | None
Args = tuple[object, ...]
Kwargs = dict[str, object]
Pytree = object
Function = Callable[..., object]

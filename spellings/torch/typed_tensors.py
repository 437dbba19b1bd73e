"""``torch.FloatTensor`` and its kind: tensors of one dtype from a shape or from data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..eager.tensor.construct import asarray
from ..operators.creation.full import zeros
from ..registry import dtypes
from ..registry.dtypes import DType

if TYPE_CHECKING:
    from ..registry.types import Tensor


def _make_constructor(name: str, dtype: DType) -> Callable[..., Tensor]:
    def construct(*data: object) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            return asarray(data[0], copy=True).to(dtype)
        return zeros(data, dtype=dtype)

    vars(construct)["dtype"] = dtype
    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = f"""A tensor of dtype {dtype.name} from data, or from sizes, whose elements are zeros.

    >>> import tandem.torch as torch
    >>> torch.{name}([1, 0]).dtype.name, torch.{name}(2, 3).shape
    ('{dtype.name}', (2, 3))
    """
    return construct


BoolTensor = _make_constructor("BoolTensor", dtypes.bool_)
ByteTensor = _make_constructor("ByteTensor", dtypes.uint8)
CharTensor = _make_constructor("CharTensor", dtypes.int8)
ShortTensor = _make_constructor("ShortTensor", dtypes.int16)
IntTensor = _make_constructor("IntTensor", dtypes.int32)
LongTensor = _make_constructor("LongTensor", dtypes.int64)
HalfTensor = _make_constructor("HalfTensor", dtypes.float16)
BFloat16Tensor = _make_constructor("BFloat16Tensor", dtypes.bfloat16)
FloatTensor = _make_constructor("FloatTensor", dtypes.float32)
DoubleTensor = _make_constructor("DoubleTensor", dtypes.float64)

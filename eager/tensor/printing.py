"""``repr`` and ``str`` of tensors, formatted as NumPy formats arrays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ...registry.dtypes import DEFAULT_COMPLEX, DEFAULT_FLOAT, DEFAULT_INT, bfloat16, bool_, float32
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.types import Array

_DEFAULT_DTYPES = (
    bool_,
    DEFAULT_INT,
    DEFAULT_FLOAT,
    DEFAULT_COMPLEX,
)  # the dtypes that are not printed


def elements(tensor: Tensor, prefix: str, **options: object) -> str:
    """The elements as nested brackets, lines after the first indented by the length of ``prefix``.

    Args:
        tensor: the tensor.
        prefix: the text in front.
        options: of ``numpy.array2string``.
    """
    array: Array = tensor._host("printing")
    if tensor.dtype is bfloat16:  # NumPy cannot print it
        array = array.astype(float32.np)
    given: dict[str, Any] = {"separator": ", ", "suffix": ")", **options}
    return np.array2string(array, prefix=prefix, **given)


def describe_tensor(tensor: Tensor, name: str = "tensor") -> str:
    """``repr`` of a tensor: ``tensor([1., 2.])``, with properties that differ from the default."""
    text = elements(tensor, f"{name}(")
    notes = [] if tensor.size or len(tensor.shape) == 1 else [f"shape={tensor.shape}"]
    if tensor.dtype not in _DEFAULT_DTYPES or not tensor.size:
        notes.append(f"dtype={tensor.dtype}")
    if tensor.device != "cpu":
        notes.append(f"device='{tensor.device}'")
    meta = tensor._meta
    if meta is not None and meta.requires_grad:
        notes.append("requires_grad=True" if meta.node is None else f"grad_fn={meta.node.name}")
    return f"{name}({', '.join([text, *notes])})"


def to_string(tensor: Tensor) -> str:
    """``str`` of a tensor: the elements alone, as NumPy prints them."""
    return (
        re.sub(r",(?=\s)", "", elements(tensor, "")) if tensor.shape else str(tensor._host("printing").item())
    )

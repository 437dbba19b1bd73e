"""``repr`` and ``str`` of tensors, formatted as NumPy formats arrays."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ...registry.dtypes import DEFAULT_INT, bfloat16, bool_, default_complex, default_float, float32
from ..layers.level_stack import stack
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.types import Array


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
    defaults = bool_, DEFAULT_INT, default_float(), default_complex()
    if tensor.dtype not in defaults or not tensor.size:
        notes.append(f"dtype={tensor.dtype}")
    if tensor.device != "cpu":
        notes.append(f"device='{tensor.device}'")
    meta = tensor._meta
    if stack.recording is not None and stack.recording.reaches_inputs(tensor):
        plain = f"{name}({', '.join([text, *notes])})"
        return f"<value of {stack.recording.name}: {plain}>"
    if meta is not None and meta.requires_grad:
        notes.append("requires_grad=True" if meta.node is None else f"grad_fn={meta.node.name}")
    return f"{name}({', '.join([text, *notes])})"


def to_html(tensor: Tensor) -> str:
    """The text that a notebook shows: a table of a matrix or a vector with its dtype and shape, else ``repr``."""
    if tensor.ndim not in (1, 2) or not tensor.size or type(tensor) is not Tensor:
        return f"<pre>{html.escape(repr(tensor))}</pre>"
    rows = tensor._host("printing")
    rows = rows if tensor.ndim == 2 else rows[None]
    cells = [
        ["&hellip;"] if row is None else [_format_cell(cell) for cell in _shorten(row)]
        for row in _shorten(rows)
    ]
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells]
    caption = f"{tensor.dtype.name}{list(tensor.shape)} on {tensor.device}"
    return f"<table><caption>{caption}</caption>{''.join(lines)}</table>"


def _shorten(items: Array) -> list[Any]:
    """The items of an array; of a long one the first and last, and None between."""
    shown: int = np.get_printoptions()["edgeitems"]
    if len(items) <= 4 * shown:
        return [*items]
    return [*items[: 2 * shown], None, *items[-2 * shown :]]


def _format_cell(cell: Any) -> str:
    return (
        "&hellip;" if cell is None else html.escape(f"{cell:.6g}" if cell.dtype.kind in "fV" else str(cell))
    )


def to_string(tensor: Tensor) -> str:
    """``str`` of a tensor: the elements alone, as NumPy prints them."""
    return (
        re.sub(r",(?=\s)", "", elements(tensor, "")) if tensor.shape else str(tensor._host("printing").item())
    )

"""Creation operators that are composed of ``full``: zeros, ones, empty, and the ``_like`` variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...registry.dtypes import ALL, DType, default_float
from ..declare.kinds import composite
from ..declare.shape_rules import spec_of
from .creation import full

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Function, Number, Shape, Tensor


_SHAPE_DOC = """

    Args:
        shape: its shape; an int means one axis.
        dtype: its dtype; None: float32.
        device: its device; None: the CPU.

    Returns:
        A new tensor.

    Raises:
        ShapeError: a size is negative, or the shape has too many elements.
        AllocationError: there is not enough memory.
"""
_LIKE_DOC = """

    Args:
        self: the tensor whose shape, dtype and device the result has.
        dtype: the dtype, if not that of ``self``.
        device: the device, if not that of ``self``.

    Returns:
        A new tensor.
"""


def _shape_op(
    name: str, doc: str, reference: str | Function
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    return composite(
        f"{name}(SymInt[] shape, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        doc=doc,
        reference=reference,
        samples="samples.creation.shape_samples",
        errors="samples.creation.shape_errors",
        dtypes=ALL,
        method=False,
    )


def _like_op(
    name: str, doc: str, reference: str | Function
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    return composite(
        f"{name}(Tensor self, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        doc=doc,
        reference=reference,
        samples="samples.creation.like_samples",
        errors="samples.creation.like_errors",
        dtypes=ALL,
        method=False,
    )


@_shape_op(
    "zeros",
    "A tensor of zeros." + _SHAPE_DOC + "\n    >>> td.zeros(2).tolist()\n    [0.0, 0.0]\n",
    "references.basic.zeros",
)
def zeros(shape: Shape, *, dtype: DType | None, device: str | None) -> Tensor:
    return full(shape, 0, dtype=dtype or default_float(), device=device)


@_shape_op(
    "ones",
    "A tensor of ones." + _SHAPE_DOC + "\n    >>> td.ones(2).tolist()\n    [1.0, 1.0]\n",
    "references.basic.ones",
)
def ones(shape: Shape, *, dtype: DType | None, device: str | None) -> Tensor:
    return full(shape, 1, dtype=dtype or default_float(), device=device)


@_shape_op(
    "empty",
    "A tensor with unspecified values (zeros today, since the system returns zeroed memory)."
    + _SHAPE_DOC
    + "\n    >>> td.empty((2, 3)).shape\n    (2, 3)\n",
    "references.basic.zeros",
)
def empty(shape: Shape, *, dtype: DType | None, device: str | None) -> Tensor:
    return full(shape, 0, dtype=dtype or default_float(), device=device)


@composite(
    "full_like(Tensor self, Tensor fill_value, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    doc="A tensor of one value, with the shape of another."
    + _LIKE_DOC.replace("        dtype:", "        fill_value: a number or a 0-d tensor.\n        dtype:")
    + "\n    >>> td.full_like(td.zeros(2), 3).tolist()\n    [3.0, 3.0]\n",
    reference="references.basic.full_like",
    samples=("samples.creation.like_samples", 1),
    errors=("samples.creation.like_errors", 1),
    dtypes=ALL,
    method=False,
)
def full_like(self: Tensor, fill_value: Number, *, dtype: DType | None, device: str | None) -> Tensor:
    like = spec_of(self)
    return full(like.shape, fill_value, dtype=dtype or like.dtype, device=device or like.device)


@_like_op(
    "zeros_like",
    "A tensor of zeros with the shape of another."
    + _LIKE_DOC
    + "\n    >>> td.zeros_like(td.ones(2)).tolist()\n    [0.0, 0.0]\n",
    "references.basic.zeros_like",
)
def zeros_like(self: Tensor, *, dtype: DType | None, device: str | None) -> Tensor:
    return full(self.shape, 0, dtype=dtype or self.dtype, device=device or self.device)


@_like_op(
    "ones_like",
    "A tensor of ones with the shape of another."
    + _LIKE_DOC
    + "\n    >>> td.ones_like(td.zeros(2)).tolist()\n    [1.0, 1.0]\n",
    "references.basic.ones_like",
)
def ones_like(self: Tensor, *, dtype: DType | None, device: str | None) -> Tensor:
    return full(self.shape, 1, dtype=dtype or self.dtype, device=device or self.device)


@_like_op(
    "empty_like",
    "A tensor with the shape of another, with unspecified values."
    + _LIKE_DOC
    + "\n    >>> td.empty_like(td.ones((2, 3))).shape\n    (2, 3)\n",
    "references.basic.zeros_like",
)
def empty_like(self: Tensor, *, dtype: DType | None, device: str | None) -> Tensor:
    return full(self.shape, 0, dtype=dtype or self.dtype, device=device or self.device)

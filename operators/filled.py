"""Tensors of zeros, of ones, or like another tensor: all of them are ``full``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import lazy
from ..registry.dtypes import ALL, DEFAULT_FLOAT, DType
from .creation import full, shape_errors
from .declare import Bad, Draw, Sample
from .kinds import composite
from .rules import spec_of

references = lazy.Functions("operators.references")


def _shape_samples(dtype: DType) -> Iterable[Sample]:
    for shape in ((), 3, (2, 0), (2, 3)):
        yield Sample((shape,), {"dtype": dtype})
    yield Sample((2,))


def _like_samples(*rest: Any) -> Any:
    def samples(dtype: DType) -> Iterable[Sample]:
        for shape in ((), (0,), (2, 3)):
            yield Sample((Draw(shape), *rest))
        yield Sample((Draw((2,)), *rest), {"dtype": dtype})

    return samples


def _like_errors(*rest: Any) -> Any:
    return lambda: [
        Bad((Draw((2,)), *rest), TypeError, "not a dtype", {"dtype": "float12"}),
        Bad((Draw((2,)), *rest), RuntimeError, "pip install", {"device": "cuda"}),
        Bad((None, *rest), TypeError, "Tensor"),
    ]


_SHAPE_DOC = """

    Args:
        shape: its shape; an int means one axis.
        dtype: its dtype; None: float32.
        device: where it lies; None: the CPU.

    Returns:
        A new tensor.

    Raises:
        ShapeError: a size is negative, or the shape has too many elements.
        AllocationError: there is not enough memory.
"""
_LIKE_DOC = """

    Args:
        self: the tensor whose shape, dtype and device are taken.
        dtype: another dtype instead.
        device: another device instead.

    Returns:
        A new tensor.
"""


def _shaped(name: str, doc: str, reference: Any) -> Callable[[Callable[..., Any]], Any]:
    return composite(
        f"{name}(SymInt[] shape, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        doc=doc,
        reference=reference,
        samples=_shape_samples,
        errors=shape_errors,
        dtypes=ALL,
        method=False,
    )


def _like(name: str, doc: str, reference: Any) -> Callable[[Callable[..., Any]], Any]:
    return composite(
        f"{name}(Tensor self, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        doc=doc,
        reference=reference,
        samples=_like_samples(),
        errors=_like_errors(),
        dtypes=ALL,
        method=False,
    )


@_shaped(
    "zeros",
    "A tensor of zeros." + _SHAPE_DOC + "\n    >>> td.zeros(2).tolist()\n    [0.0, 0.0]\n",
    references.zeros,
)
def zeros(shape: Any, *, dtype: DType | None, device: str | None) -> Any:
    return full(shape, 0, dtype=dtype or DEFAULT_FLOAT, device=device)


@_shaped(
    "ones",
    "A tensor of ones." + _SHAPE_DOC + "\n    >>> td.ones(2).tolist()\n    [1.0, 1.0]\n",
    references.ones,
)
def ones(shape: Any, *, dtype: DType | None, device: str | None) -> Any:
    return full(shape, 1, dtype=dtype or DEFAULT_FLOAT, device=device)


@_shaped(
    "empty",
    "A tensor whose values nobody should rely on; they are zeros, which the system gives for nothing."
    + _SHAPE_DOC
    + "\n    >>> td.empty((2, 3)).shape\n    (2, 3)\n",
    references.zeros,
)
def empty(shape: Any, *, dtype: DType | None, device: str | None) -> Any:
    return full(shape, 0, dtype=dtype or DEFAULT_FLOAT, device=device)


@composite(
    "full_like(Tensor self, Tensor fill_value, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    doc="A tensor of one value, with the shape of another."
    + _LIKE_DOC.replace("        dtype:", "        fill_value: a number or a 0-d tensor.\n        dtype:")
    + "\n    >>> td.full_like(td.zeros(2), 3).tolist()\n    [3.0, 3.0]\n",
    reference=references.full_like,
    samples=_like_samples(1),
    errors=_like_errors(1),
    dtypes=ALL,
    method=False,
)
def full_like(self: Any, fill_value: Any, *, dtype: DType | None, device: str | None) -> Any:
    like = spec_of(self)
    return full(like.shape, fill_value, dtype=dtype or like.dtype, device=device or like.device)


@_like(
    "zeros_like",
    "A tensor of zeros with the shape of another."
    + _LIKE_DOC
    + "\n    >>> td.zeros_like(td.ones(2)).tolist()\n    [0.0, 0.0]\n",
    references.zeros_like,
)
def zeros_like(self: Any, *, dtype: DType | None, device: str | None) -> Any:
    return full(self.shape, 0, dtype=dtype or self.dtype, device=device or self.device)


@_like(
    "ones_like",
    "A tensor of ones with the shape of another."
    + _LIKE_DOC
    + "\n    >>> td.ones_like(td.zeros(2)).tolist()\n    [1.0, 1.0]\n",
    references.ones_like,
)
def ones_like(self: Any, *, dtype: DType | None, device: str | None) -> Any:
    return full(self.shape, 1, dtype=dtype or self.dtype, device=device or self.device)


@_like(
    "empty_like",
    "A tensor with the shape of another, whose values nobody should rely on."
    + _LIKE_DOC
    + "\n    >>> td.empty_like(td.ones((2, 3))).shape\n    (2, 3)\n",
    references.zeros_like,
)
def empty_like(self: Any, *, dtype: DType | None, device: str | None) -> Any:
    return full(self.shape, 0, dtype=dtype or self.dtype, device=device or self.device)

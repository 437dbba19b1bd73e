"""Tensors from data and new tensors, as PyTorch makes them, with ``out`` and ``requires_grad``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import wrap
from ..errors import ArgumentError, ShapeError
from ..operators.creation import creation as _creation
from ..operators.creation import full as _full
from ..operators.creation import grids as _grids
from ..operators.elementwise import complex_parts as _complex_parts
from ..operators.elementwise.trigonometry import cos, sin
from ..operators.shape.joining import stack
from ..registry.dtypes import as_dtype, default_float
from ..registry.values import SCALARS, describe

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import DTypeLike, Number, Tensor


_HOST = (None, "cpu")
_NEW = frozenset((list, int, float, bool, complex))
_ON_HOST = _NEW | {np.ndarray}


def tensor(
    data: object, *, dtype: DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor with a copy of the data."""
    if device in _HOST and type(data) in _NEW:  # what is made of these shares no memory
        return finish(asarray(data) if dtype is None else asarray(data, dtype), requires_grad)
    return asarray(data, dtype, device=device, copy=True, requires_grad=requires_grad)


def as_tensor(data: object, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor that shares the memory of an array if possible."""
    if device is None or (device == "cpu" and type(data) in _ON_HOST):
        return asarray(data) if dtype is None else asarray(data, dtype)
    return asarray(data, dtype, device=device)


def from_numpy(ndarray: object) -> Tensor:
    """A tensor that shares the memory of a NumPy array.

    Raises:
        ArgumentError: the argument is not an array.
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(f"from_numpy takes a NumPy array, not {describe(ndarray)}")
    result = asarray(ndarray)
    return result if result._array is ndarray else asarray(ndarray, copy=False)


# -- options -----------------------------------------------------------------------------------------------------------
def finish(result: Tensor, requires_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """Write a new tensor into ``out`` if that is given, and let it require gradients if wanted."""
    if out is not None:
        if out.shape != result.shape:
            raise ShapeError(f"out has shape {out.shape}, and the result {result.shape}")
        result = out.copy_(result)
    return result.requires_grad_() if requires_grad else result


def to_shape(sizes: Sequence[int | Sequence[int]]) -> tuple[int, ...]:
    """The shape that sizes make, one by one or as one sequence."""
    only = sizes[0] if len(sizes) == 1 else sizes
    return (only,) if isinstance(only, (int, np.integer)) else tuple(only)  # type: ignore[arg-type]


def _with_options(function: OperatorFunction[Tensor]) -> Callable[..., Tensor]:
    """A creation function that takes PyTorch's options too.

    ``layout`` and ``memory_format`` are accepted: all such tensors are dense and row-major.
    """

    @functools.wraps(function)
    def create(
        *args: object,
        out: Tensor | None = None,
        layout: object = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: object = None,
        **options: object,
    ) -> Tensor:
        if options.get("device") == "cpu":
            del options["device"]  # where tensors are anyway; native entries take no devices
        result = finish(function(*args, **options), requires_grad, out)
        return result.pin_memory() if pin_memory else result

    return create


zeros, ones, empty, full = map(_with_options, (_full.zeros, _full.ones, _full.empty, _creation.full))
zeros_like, ones_like, empty_like, full_like = map(
    _with_options, (_full.zeros_like, _full.ones_like, _full.empty_like, _full.full_like)
)
arange, eye = map(_with_options, (_creation.arange, _creation.eye))
_linspace, _logspace = map(_with_options, (_creation.linspace, _grids.logspace))


def linspace(start: Number, end: Number, steps: int, **options: object) -> Tensor:
    """``steps`` numbers at equal distances from ``start`` to ``end``.

    >>> import tandem.torch as torch
    >>> torch.linspace(0, 1, steps=3).tolist()
    [0.0, 0.5, 1.0]
    """
    return _linspace(start, end, steps, **options)


def logspace(start: float, end: float, steps: int, base: float = 10.0, **options: object) -> Tensor:
    """``steps`` powers of ``base``, from ``base ** start`` to ``base ** end``.

    >>> import tandem.torch as torch
    >>> torch.logspace(0, 2, steps=3).tolist()
    [1.0, 10.0, 100.0]
    """
    return _logspace(start, end, steps, base=base, **options)


def range(start: float, end: float | None = None, step: float = 1, **options: object) -> Tensor:
    """Numbers from ``start`` to ``end``, which is included: of one argument, from 0.

    >>> import tandem.torch as torch
    >>> torch.range(1, 3).tolist()
    [1.0, 2.0, 3.0]
    """
    first, last = (0, start) if end is None else (start, end)
    count = max(0, math.floor((last - first) / step) + 1)
    dtype = options.pop("dtype", None) or default_float()
    return arange(count, dtype=dtype, **options) * step + first


def frombuffer(
    buffer: bytes | bytearray | memoryview,
    *,
    dtype: DTypeLike,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor that shares the memory of an object with Python's buffer protocol.

    >>> import tandem.torch as torch
    >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16).tolist()
    [1, 2]
    """
    array = np.frombuffer(buffer, as_dtype(dtype).np, count, offset)
    return finish(asarray(array, copy=False), requires_grad)


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor whose memory is a file; writes reach the file if it is shared.

    Args:
        filename: its path.
        shared: whether writes reach the file, which is created if it is missing.
        size: the number of elements.
        dtype: their dtype; None: the default float.
        requires_grad: whether operations on the tensor are recorded.
    """
    wanted = as_dtype(dtype or default_float())
    if shared:
        with open(filename, "ab") as file:
            file.truncate(max(file.tell(), size * wanted.itemsize))
    array = np.memmap(filename, wanted.np, "r+" if shared else "c", shape=(size,))
    return finish(asarray(np.asarray(array), copy=False), requires_grad)


def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: DTypeLike | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor for values to be written, with the given strides; its elements are zeros.

    >>> import tandem.torch as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, steps = tuple(size), tuple(stride)
    reach = 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if reach < 0 or any(step < 0 for step in steps):
        raise ArgumentError(f"empty_strided: strides must not be negative, unlike {steps}")
    memory = np.zeros(reach, as_dtype(dtype or default_float()).np)
    distances = [step * memory.itemsize for step in steps]
    return finish(wrap(np.lib.stride_tricks.as_strided(memory, shape, distances)), requires_grad)


# -- complex numbers ---------------------------------------------------------------------------------------------------
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of their real and imaginary parts.

    Raises:
        ArgumentError: an argument is a Python number.

    >>> import tandem.torch as torch
    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0])).tolist()
    [(1+2j)]
    """
    _refuse_numbers("complex", real, imag)
    return finish(_complex_parts.complex(real, imag), False, out)


def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of their magnitudes and angles.

    Raises:
        ArgumentError: an argument is a Python number.

    >>> import tandem.torch as torch
    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0])).tolist()
    [(2+0j)]
    """
    _refuse_numbers("polar", abs, angle)
    return complex(abs * cos(angle), abs * sin(angle), out=out)


def _refuse_numbers(name: str, *values: object) -> None:
    for value in values:
        if isinstance(value, SCALARS):
            raise ArgumentError(f"{name} takes tensors, not {describe(value)}")


# -- indices and windows -----------------------------------------------------------------------------------------------
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """The indices of the lower triangle of a matrix: a row of row numbers, and a row of columns.

    >>> import tandem.torch as torch
    >>> torch.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return as_tensor(stack(_grids.tril_indices(row, offset, col)), dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """The indices of the upper triangle of a matrix: a row of row numbers, and a row of columns."""
    return as_tensor(stack(_grids.triu_indices(row, offset, col)), dtype, device)

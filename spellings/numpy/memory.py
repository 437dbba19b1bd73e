"""Functions of NumPy that read memory and text, and that ask about memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor.tensor import Tensor
from ..errors import ValueArgumentError
from ..operators.contraction.einsum import einsum as _einsum
from ..operators.declare.shape_rules import is_tensor
from ..operators.elementwise.casting import contiguous
from ..operators.shape.rearrange import transpose
from ..operators.shape.views import reshape
from ..registry.dtypes import DType, as_dtype
from ..registry.native_type import accept_entry
from .creation import asarray

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, TensorLike


def to_arrays(value: object) -> Any:  # noqa: ANN401
    """Tensors and dtypes of tandem as those of NumPy; other values as they are."""
    return value.numpy() if isinstance(value, Tensor) else value.np if isinstance(value, DType) else value


def _reader(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function of NumPy that reads numbers, with a tensor as its result."""

    @wraps(function)
    def read(*args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        return asarray(function(*map(to_arrays, args), **{name: to_arrays(x) for name, x in kwargs.items()}))

    read.__module__ = __name__
    read.__doc__ = f"``numpy.{function.__name__}``, whose result becomes a tensor."
    return read


frombuffer = _reader(np.frombuffer)
fromfile = _reader(np.fromfile)
fromiter = _reader(np.fromiter)
fromstring = _reader(np.fromstring)
genfromtxt = _reader(np.genfromtxt)
loadtxt = _reader(np.loadtxt)


# -- tensors of array-like objects -------------------------------------------------------------------------------------
def ascontiguousarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of at least one axis whose elements follow each other in memory, in the order of C.

    >>> import tandem.numpy as np
    >>> np.ascontiguousarray(np.ones((2, 3)).T).strides
    (16, 8)
    """
    if dtype is None and type(a) is Tensor and a.ndim and a._array.flags.c_contiguous:
        return a
    result = contiguous(asarray(a, dtype))
    return result if result.shape else reshape(result, (1,))


def asfortranarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor whose elements follow each other in memory, in the order of Fortran.

    >>> import tandem.numpy as np
    >>> np.asfortranarray(np.ones((2, 3))).strides
    (8, 16)
    """
    return transpose(contiguous(transpose(asarray(a, dtype))))


def asarray_chkfinite(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor without infinities and NaNs.

    Raises:
        ValueArgumentError: there is one.

    >>> import tandem.numpy as np
    >>> np.asarray_chkfinite([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    result = asarray(a, dtype)
    if result.dtype.is_inexact and not np.isfinite(result.numpy()).all():
        raise ValueArgumentError("asarray_chkfinite: the elements must not be infinite or NaN")
    return result


@accept_entry("read_real")
def real(val: TensorLike) -> Tensor:
    """A view of the real parts of complex elements; a real tensor itself.

    >>> import tandem.numpy as np
    >>> np.real([1 + 2j]).tolist()
    [1.0]
    """
    return asarray(val).real


@accept_entry("read_imaginary", "zeros_like")
def imag(val: TensorLike) -> Tensor:
    """A view of the imaginary parts of complex elements; zeros for real ones.

    >>> import tandem.numpy as np
    >>> np.imag([1 + 2j]).tolist()
    [2.0]
    """
    return asarray(val).imag


def real_if_close(a: TensorLike, tol: float = 100) -> Tensor:
    """The real parts of a complex tensor, if all imaginary parts are close to zero; else the tensor.

    Args:
        a: a tensor; its elements must be known.
        tol: how many epsilons of the dtype are close, if above 1; else the largest part itself.

    >>> import tandem.numpy as np
    >>> np.real_if_close(np.array([1.0 + 1e-16j])).tolist()
    [1.0]
    """
    result = asarray(a)
    return asarray(np.real_if_close(result.numpy(), tol)) if result.dtype.kind == "c" else result


# -- questions ---------------------------------------------------------------------------------------------------------
def isfortran(a: Tensor) -> bool:
    """Whether the elements are in the order of Fortran, and not in that of C."""
    return bool(np.isfortran(a.numpy()))


def may_share_memory(a: TensorLike, b: TensorLike, max_work: Any = None) -> bool:  # noqa: ANN401
    """Whether the bounds of two tensors in memory overlap."""
    return bool(np.may_share_memory(_view(a), _view(b), max_work))


def shares_memory(a: TensorLike, b: TensorLike, max_work: Any = None) -> bool:  # noqa: ANN401
    """Whether two tensors have an element at the same address."""
    return bool(np.shares_memory(_view(a), _view(b), max_work))


def _view(x: TensorLike) -> object:
    return x._array if type(x) is Tensor else to_arrays(x)


def min_scalar_type(a: object) -> DType:
    """The smallest dtype that holds a number, or the dtype of a tensor of some axes.

    >>> import tandem.numpy as np
    >>> np.min_scalar_type(300)
    tandem.uint16
    """
    return as_dtype(np.min_scalar_type(to_arrays(a)))


def common_type(*arrays: Tensor) -> DType:
    """The floating or complex dtype to which the dtypes of tensors promote; that of integers is float64.

    >>> import tandem.numpy as np
    >>> np.common_type(np.arange(3), np.ones(2, dtype=np.float32))
    tandem.float64
    """
    return as_dtype(np.common_type(*[np.empty(0, one.dtype.np) for one in arrays]))


def einsum(*operands: Any, **options: Any) -> Any:  # noqa: ANN401
    """Sums of products in Einstein notation, of tensors or nested lists of numbers; see ``td.einsum``.

    Source: ``numpy.einsum``.

    >>> import tandem.numpy as np
    >>> np.einsum("i,i", [1.0, 2.0], np.ones(2)).item()
    3.0
    """
    first = int(isinstance(operands[0], str)) if operands else 0
    step = 1 if first else 2  # a list of axes follows each tensor
    last = len(operands) if first else len(operands) & ~1  # the last list is that of the result
    converted = list(operands)
    for at in range(first, last, step):
        if type(operands[at]) is list:
            converted[at] = asarray(operands[at])
    return _einsum(*converted, **options)


def einsum_path(subscripts: str, *operands: TensorLike, optimize: Any = "greedy") -> tuple[list[Any], str]:  # noqa: ANN401
    """The order of the products of ``einsum`` with the least work, and a table of it, by ``numpy.einsum_path``.

    >>> import tandem.numpy as np
    >>> np.einsum_path("ij,jk->ik", np.ones((2, 3)), np.ones((3, 2)))[0]
    ['einsum_path', (0, 1)]
    """
    shapes = [np.broadcast_to(np.float64(0), x.shape if is_tensor(x) else np.shape(x)) for x in operands]
    return np.einsum_path(subscripts, *shapes, optimize=optimize)


def ndenumerate(arr: Tensor) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Iterate over pairs of an index and the element there.

    >>> import tandem.numpy as np
    >>> [(at, x.item()) for at, x in np.ndenumerate(np.array([5, 6]))]
    [((0,), 5), ((1,), 6)]
    """
    return ((index, arr[index]) for index in np.ndindex(arr.shape))

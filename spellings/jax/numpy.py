"""``tandem.jax.numpy``: the names of ``jax.numpy``; those of tandem, and ``array``, ``put``, ``where`` and so on."""

from __future__ import annotations

from numpy import character as character
from numpy import flexible as flexible
from numpy import object_ as object_
from numpy.exceptions import ComplexWarning as ComplexWarning

from ..eager.tensor.construct import asarray as _asarray
from ..eager.tensor.tensor import Tensor as _Tensor
from ..errors import ArgumentError as _ArgumentError
from ..errors import ValueArgumentError as _ValueArgumentError
from ..numpy.creation import arrange as _arrange
from ..numpy.files import savez as savez
from ..numpy.memory import frombuffer as frombuffer
from ..numpy.memory import fromfile as fromfile
from ..numpy.memory import fromiter as fromiter
from ..numpy.memory import fromstring as fromstring
from ..numpy.searching import argsort as argsort
from ..numpy.searching import sort as sort
from ..numpy.shapes import roll as roll
from ..numpy.shapes import to_condition as _to_condition
from ..numpy.writing import put_values as _put_values
from ..numpy.writing import replace_at_mask as _place_values
from ..operators.elementwise.selection import where as _where
from ..operators.indexing.take import nonzero as _nonzero
from ..operators.indexing.writing import fill_diagonal as fill_diagonal
from ..operators.indexing.writing import put_along_axis as put_along_axis
from ..registry.dtypes import DType as _DType
from ..registry.types import DTypeLike as _DTypeLike
from ..registry.types import TensorLike as _TensorLike
from ..spellings.forwarding import forward_to_tandem as _forward_to_tandem
from . import numpy_fft as fft
from . import numpy_linalg as linalg
from .numpy_keywords import linspace as linspace
from .numpy_keywords import meshgrid as meshgrid
from .numpy_keywords import repeat as repeat
from .numpy_keywords import searchsorted as searchsorted
from .numpy_keywords import take as take
from .numpy_products import dot as dot
from .numpy_products import inner as inner
from .numpy_products import matmul as matmul
from .numpy_products import tensordot as tensordot
from .numpy_products import vdot as vdot


def array(
    object: object,
    dtype: _DTypeLike | None = None,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: str | None = None,
) -> _Tensor:
    """Return a tensor of an array-like object with elements of its own; see ``tandem.numpy.array``.

    >>> import tandem.jax.numpy as jnp
    >>> jnp.array([1, 2], float)
    tensor([1., 2.])
    """
    return _arrange(_asarray(object, dtype, device=device, copy=copy or None), order, ndmin)


def put(
    a: _Tensor, ind: _TensorLike, v: _TensorLike, mode: str | None = None, *, inplace: bool = True
) -> _Tensor:
    """The tensor with values at positions of the flattened tensor; out of bounds they are clipped, as in JAX.

    Raises:
        ValueArgumentError: ``inplace`` is not False.
    """
    _check_inplace("put", inplace)
    return _put_values(a, ind, v, mode or "clip")


def place(arr: _Tensor, mask: _TensorLike, vals: _TensorLike, *, inplace: bool = True) -> _Tensor:
    """The tensor with values at the true elements of a mask, one after the other.

    Raises:
        ValueArgumentError: ``inplace`` is not False.
    """
    _check_inplace("place", inplace)
    return _place_values(arr, mask, vals)


def where(
    condition: _TensorLike,
    x: _TensorLike | None = None,
    y: _TensorLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: int = 0,
) -> _Tensor | tuple[_Tensor, ...]:
    """Elements of ``x`` and ``y``; of a condition alone the indices where it is true, one tensor for each axis.

    Args:
        condition: a tensor.
        x, y: values where it is true and where it is false.
        size: the number of indices, which a jitted function needs; ``fill_value`` completes them.
        fill_value: the index that stands after the last one.

    Raises:
        ArgumentError: there is one value only, or ``size`` is given with values.

    >>> import tandem as td
    >>> import tandem.jax.numpy as jnp
    >>> td.jit(lambda x: jnp.where(x > 1, size=2))(td.arange(3))
    (tensor([2, 0]),)
    """
    if x is None and y is None:
        return _nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None or size is not None:
        raise _ArgumentError("where takes a condition and two values, or a condition and size")
    return _where(_to_condition(condition), x, y)


def _check_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise _ValueArgumentError(f"{name}: pass inplace=False, as in JAX, and use the result")


ndarray, dtype = _Tensor, _DType
__all__ = [
    "ComplexWarning", "argsort", "array", "character", "dot", "dtype", "fft", "fill_diagonal", "flexible",
    "frombuffer", "fromfile", "fromiter", "fromstring", "inner", "linalg", "linspace", "matmul", "meshgrid",
    "ndarray", "object_", "place", "put", "put_along_axis", "repeat", "roll", "savez", "searchsorted", "sort", "take",
    "tensordot", "vdot", "where",
]  # fmt: skip
__getattr__, __dir__ = _forward_to_tandem(__name__)

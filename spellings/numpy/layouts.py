"""Tensors like others, copies and casts, with NumPy's arguments ``order``, ``shape`` and ``casting``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, ValueArgumentError
from ..operators.creation import creation, full
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise import casting
from ..operators.elementwise.casting import astype as _astype
from ..registry.dtype_functions import can_cast
from ..registry.dtypes import as_dtype
from .array_likes import name_operator
from .creation import arrange, asarray

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor, TensorLike


def _with_shape(function: Callable[..., Tensor], make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that makes tensors like others, and by ``make`` of another shape, with the argument ``order``."""

    @name_operator(function, "shape", "order", "subok")
    @wraps(function, updated=())
    def make_like(
        a: Tensor,
        *args: Any,  # noqa: ANN401
        shape: int | Sequence[int] | None = None,
        order: str | None = "K",
        subok: bool = True,
        **kwargs: Any,  # noqa: ANN401
    ) -> Tensor:
        if shape is None:
            result = function(a, *args, **kwargs)
        else:
            spec = spec_of(a)
            like = (
                {"dtype": spec.dtype}
                if spec.device == "cpu"
                else {"dtype": spec.dtype, "device": spec.device}
            )
            given = {name: value for name, value in kwargs.items() if value is not None}
            result = make(shape, *args, **{**like, **given})
        return result if order == "K" else arrange(result, order, 0)

    return make_like


zeros_like = _with_shape(full.zeros_like, full.zeros)
ones_like = _with_shape(full.ones_like, full.ones)
empty_like = _with_shape(full.empty_like, full.empty)
full_like = _with_shape(full.full_like, creation.full)


@name_operator(casting.clone, "order", "subok")
def copy(a: Tensor, order: str | None = "K", subok: bool = False) -> Tensor:
    """A tensor with elements of its own, in an order in memory. Source: ``numpy.copy``.

    >>> import tandem.numpy as np
    >>> np.copy(np.ones((2, 3)), order="F").strides
    (8, 16)
    """
    return arrange(casting.clone(a), order, 0)


_ORDERS = {"C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F"}
_FLAGS = frozenset(("A", "ALIGNED", "W", "WRITEABLE", "O", "OWNDATA", "E", "ENSUREARRAY"))


def require(
    a: TensorLike, dtype: DTypeLike | None = None, requirements: str | Sequence[str] | None = None
) -> Tensor:
    """A tensor that meets requirements; a copy where the argument does not.

    Args:
        a: a tensor, an array, or nested lists of numbers.
        dtype: the dtype of the result; None: that of the elements.
        requirements: ``"C"`` or ``"F"``, the order in memory; ``"O"``: elements of its own. ``"A"``, ``"W"`` and
            ``"E"`` hold for every tensor.

    Raises:
        ValueArgumentError: there is no such requirement, or two orders are required.

    Source: ``numpy.require``.

    >>> import tandem.numpy as np
    >>> np.require([1, 2], dtype="float32", requirements="C")
    tensor([1., 2.])
    """
    names = [name.upper() for name in requirements or ()]
    unknown = [name for name in names if name not in _ORDERS and name not in _FLAGS]
    orders = {_ORDERS[name] for name in names if name in _ORDERS}
    if unknown or len(orders) > 1:
        raise ValueArgumentError(
            f"require: requirements={requirements!r}: one order, 'C' or 'F', and 'A', 'W', 'O', 'E'"
        )
    x = asarray(a, dtype)
    if not {"O", "OWNDATA"}.isdisjoint(names) and x is a:
        x = casting.clone(x)
    return arrange(x, orders.pop() if orders else "K", 0)


@name_operator(casting.astype, "casting", "order", "subok")
def astype(
    a: Tensor,
    dtype: DTypeLike,
    order: str | None = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
    *,
    device: str | None = None,
) -> Tensor:
    """The tensor with another dtype.

    Args:
        a: a tensor.
        dtype: the dtype of the result.
        order: the order in memory.
        casting: the casts that are allowed, as for :func:`tandem.can_cast`.
        subok: accepted for compatibility with NumPy.
        copy: whether to copy if the dtype is the same.
        device: the device of the result; None: that of ``a``.

    Raises:
        DTypeError: the cast is not allowed.

    >>> import tandem.numpy as np
    >>> np.arange(2).astype(np.float64, casting="safe").tolist()
    [0.0, 1.0]

    Source: ``numpy.ndarray.astype``.
    """
    target = as_dtype(dtype)
    if casting != "unsafe" and not can_cast(spec_of(a).dtype, target, casting):
        raise DTypeError(f"astype: cannot cast {spec_of(a).dtype} to {target} (casting={casting!r})")
    return arrange(_astype(a, target, copy=copy, device=device), order, 0)

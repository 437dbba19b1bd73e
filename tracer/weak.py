"""Traced weak scalars: results of operators on the Python numbers that a jitted function takes as arguments.

Their value is a 0-d tensor of the graph in double precision. In a call with other tensors it is cast to the dtype of
promotion, so compiled code returns the same results as eager calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..eager.tensor.dunders import by_name
from ..eager.tensor.weak_scalars import WEAK, Traced, shown
from ..errors import UnsupportedError
from ..registry.dtypes import DType, bool_, complex128, float64, int64, promote_scalar
from ..registry.schemas.binding import weak_scalar_types
from ..registry.values import TensorSpec
from .graph import SCALAR_DTYPES
from .infer import EXAMPLES
from .scalar import TracerScalar
from .tensor import TracerTensor, make_tracer

if TYPE_CHECKING:
    from ..registry.types import Tensor

_wraps = ContextVar("wraps", default=False)


@contextmanager
def wrap_integers() -> Iterator[None]:
    """Let traced integers that meet tensors of narrower dtypes wrap, as the counters of JAX's loops do."""
    token = _wraps.set(True)
    try:
        yield
    finally:
        _wraps.reset(token)


_TYPES = {bool_: bool, int64: int, float64: float, complex128: complex}


class WeakTracer(TracerTensor):
    """A weak scalar whose number is known at run time only; its Value holds the number in full precision."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The dtype that it shows: the default one of its kind."""
        wide = self._value.spec.dtype
        return shown(wide)

    @property
    def spec(self) -> TensorSpec:
        """Shape, dtype and device."""
        return self._value.spec._replace(dtype=self.dtype)

    def __repr__(self) -> str:
        return f"<traced weak {self.spec}>"

    __str__ = __repr__


def weaken(tensor: Tensor) -> WeakTracer | None:
    """Convert a traced tensor in double precision to a weak scalar; None for other tensors."""
    if type(tensor) is not TracerTensor:
        return None
    result = WeakTracer.__new__(WeakTracer)
    result._value, result._trace, result._keys = tensor._value, tensor._trace, tensor._keys | WEAK
    result._meta = result._storage = result._aliases = None
    return result


def make_weak_tracer(number: TracerScalar) -> object:
    """The traced weak scalar of a traced number."""
    return weaken(widen(number, SCALAR_DTYPES[number.python_type]))


def python_type(tensor: Any) -> type:
    """The type of the Python number of a traced weak scalar."""
    return _TYPES[tensor._value.spec.dtype]


def to_full_precision(tensor: Any) -> TracerTensor:
    """The number of a traced weak scalar as an ordinary traced tensor in double precision."""
    return make_tracer(tensor._trace, tensor._value)


def widen(number: Any, dtype: DType) -> Any:
    """A traced number, or a traced weak scalar, as an ordinary traced tensor of a dtype."""
    if type(number) is TracerScalar:
        return by_name("full")((), number, dtype=dtype)
    wide = to_full_precision(number)
    return wide if wide.dtype is dtype else by_name("astype")(wide, dtype)


def strengthen(tensor: Tensor, other: DType | None) -> Any:
    """Convert a traced weak scalar to an ordinary traced tensor, of the dtype of its promotion with ``other``.

    Raises:
        UnsupportedError: the dtype may not hold an integer whose value is unknown while tracing.
    """
    if other is None:
        return widen(tensor, tensor.dtype)
    kind = python_type(tensor)
    if kind is bool:  # a condition stays one; beside numbers it promotes as its number does
        return widen(tensor, bool_)
    dtype = promote_scalar(other, EXAMPLES[kind])
    if kind is int and dtype.is_integer and dtype is not int64 and not _wraps.get():
        raise UnsupportedError(
            f"whether an integer computed by an operator from a traced Python int fits {dtype} is not known while "
            f"tracing; cast it with td.asarray(x, dtype=td.{dtype.name})"
        )
    return widen(tensor, dtype)


weak_scalar_types[TracerScalar] = make_weak_tracer
Traced.types = (WeakTracer,)
Traced.python_type = python_type
Traced.widen, Traced.strengthen, Traced.weaken = widen, strengthen, weaken

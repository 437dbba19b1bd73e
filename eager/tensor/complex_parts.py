"""``x.real`` and ``x.imag``: views of the parts of complex elements, and assignments to them, as in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DTypeError
from ...registry.native_type import accept_entry
from .construct import asarray
from .dunders import by_name
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.types import TensorLike


@accept_entry("read_real")
def _get_real(self: Tensor) -> Tensor:
    """A view of the real part of each element; the tensor itself if they are real."""
    return by_name("view_part")(self, False) if self.dtype.kind == "c" else self


@accept_entry("read_imaginary", "zeros_like")
def _get_imag(self: Tensor) -> Tensor:
    """A view of the imaginary part of each element; 0 for real elements."""
    return by_name("view_part")(self, True) if self.dtype.kind == "c" else by_name("zeros_like")(self)


def _set_real(self: Tensor, value: TensorLike) -> None:
    """Assign the real part of each element.

    Raises:
        DTypeError: the value is complex.
    """
    _get_real(self)[...] = _check_part(self, value) if self.dtype.kind == "c" else value


def _set_imag(self: Tensor, value: TensorLike) -> None:
    """Assign the imaginary part of each element.

    Raises:
        DTypeError: the value is complex, or the elements are real.
    """
    if self.dtype.kind != "c":
        raise DTypeError(f"elements of {self.dtype} have no imaginary part to assign to")
    _get_imag(self)[...] = _check_part(self, value)


def _check_part(self: Tensor, value: TensorLike) -> Tensor:
    """A value as a tensor; complex ones are refused."""
    part = asarray(value)
    if part.dtype.kind == "c":
        raise DTypeError(
            f"a part of elements of {self.dtype} is assigned complex numbers; take their real or imag"
        )
    return part


real = property(_get_real, _set_real, doc=_get_real.__doc__)
imag = property(_get_imag, _set_imag, doc=_get_imag.__doc__)

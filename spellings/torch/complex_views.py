"""Complex numbers as pairs of real ones, and back; conjugates, which are never delayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DTypeError, ShapeError
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.complex_parts import complex, conj
from ..operators.shape.joining import stack
from ..registry.dtypes import float32, float64
from ..registry.native_type import accept_entry

if TYPE_CHECKING:
    from ..registry.types import Tensor


@accept_entry("read_real")
def real(input: Tensor) -> Tensor:
    """A view of the real parts of complex elements; a real tensor itself.

    >>> import tandem.torch as torch
    >>> torch.real(torch.tensor([1 + 2j])).tolist()
    [1.0]
    """
    return input.real


@accept_entry("read_imaginary", "zeros_like")
def imag(input: Tensor) -> Tensor:
    """A view of the imaginary parts of complex elements; zeros for real ones, which PyTorch refuses.

    >>> import tandem.torch as torch
    >>> torch.imag(torch.tensor([1 + 2j])).tolist()
    [2.0]
    """
    return input.imag


def view_as_real(input: Tensor) -> Tensor:
    """The real and imaginary parts along a new last axis; a copy, in PyTorch a view.

    Raises:
        DTypeError: the tensor is real.

    >>> import tandem.torch as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j])).tolist()
    [[1.0, 2.0]]
    """
    if spec_of(input).dtype.kind != "c":
        raise DTypeError(f"view_as_real takes complex tensors, not {spec_of(input).dtype}")
    return stack((input.real, input.imag), -1)


def view_as_complex(input: Tensor) -> Tensor:
    """Complex numbers whose parts are along the last axis, of length 2; a copy, in PyTorch a view.

    Raises:
        DTypeError: the tensor is neither float32 nor float64.
        ShapeError: the last axis does not have length 2.

    >>> import tandem.torch as torch
    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    spec = spec_of(input)
    if spec.dtype not in (float32, float64):
        raise DTypeError(f"view_as_complex takes float32 and float64, not {spec.dtype}")
    if not spec.shape or spec.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: the last axis has length 2, unlike shape {spec.shape}")
    return complex(input[..., 0], input[..., 1])


def is_conj(input: Tensor) -> bool:
    """False: conjugates are computed at once, so no tensor is a delayed one."""
    return False


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negations are computed at once."""
    return input


def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate of each element."""
    return conj(input)

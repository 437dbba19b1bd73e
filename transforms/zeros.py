"""Zero tangents: float0 tangents of integers, and SymbolicZero for rules written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from ..eager.autograd.node import zeros_of
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..named_tuple import NamedTuple
from ..registry.dtypes import DType, bool_
from ..registry.values import SCALARS, TensorSpec

# For each value its tangent or cotangent; None is zero.
Tangents = Sequence[Tensor | None]
# The dtype of the tangents and cotangents of integers and booleans. They are all zero: False, which adds nothing to
# any number and has no part in promotion.
float0 = bool_


class SymbolicZero:
    """A tangent or cotangent known to be zero; rules with ``symbolic_zeros=True`` receive it and may return it.

    Args:
        spec: shape, dtype and device of the zeros.

    >>> import tandem as td
    >>> @td.custom_jvp
    ... def product(x, y):
    ...     return x * y
    >>> def rule(primals, tangents):
    ...     (x, y), (dx, dy) = primals, tangents
    ...     print(type(dy).__name__, dy.shape)
    ...     return product(x, y), dx * y
    >>> product.defjvp(rule, symbolic_zeros=True) is rule
    True
    >>> td.grad(product)(2.0, 3.0)
    SymbolicZero ()
    tensor(3.)
    """

    __slots__ = ("spec",)

    def __init__(self, spec: TensorSpec):
        self.spec = spec

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.spec.shape

    @property
    def dtype(self) -> DType:
        """Data type of the elements."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.spec.shape)

    def instantiate(self) -> Tensor:
        """The zeros as a tensor.

        Returns:
            A new tensor of this shape and dtype.
        """
        return zeros_of(self.spec)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.dtype.name}{list(self.shape)})"


class CustomVJPPrimal(NamedTuple):
    """An argument of ``fwd`` of a ``custom_vjp`` with ``symbolic_zeros=True``.

    Attributes:
        value: the tensor or number.
        perturbed: whether it is differentiated.
    """

    value: object
    perturbed: bool


def tangent_spec(spec: TensorSpec) -> TensorSpec:
    """Shape and dtype of the tangents of a value."""
    return spec if spec.dtype.is_inexact else spec._replace(dtype=float0)


def zero_tangent(spec: TensorSpec) -> Tensor:
    """The tangent of a value that does not vary."""
    return zeros_of(tangent_spec(spec))


def zero_for(leaf: object, symbolic: bool) -> Tensor | SymbolicZero | float:
    """The tangent that a rule written by hand receives for an argument that is not differentiated."""
    if isinstance(leaf, Tensor):
        return SymbolicZero(tangent_spec(leaf.spec)) if symbolic else zero_tangent(leaf.spec)
    return SymbolicZero(tangent_spec(asarray(leaf).spec)) if symbolic and type(leaf) in SCALARS else 0.0

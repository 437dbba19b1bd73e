"""NumPy kernels of views that are declared by their rule alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....eager.tensor.tensor import Tensor, wrap_view
from ....errors import OutOfBoundsError
from ....operators.declare.view_spec import ViewLayout, check_within
from ....registry.operator import Operator

if TYPE_CHECKING:
    from ....registry.types import Array


class _StridedMemory:
    """An object with NumPy's array interface that keeps the array alive whose memory it describes."""

    def __init__(self, interface: dict[str, Any], base: Array):
        self.__array_interface__, self.base = interface, base


def view_array(op: Operator, array: Array, *args: Any, **kwargs: Any) -> Array:
    """Return the array that a view operator returns for an array.

    Raises:
        OutOfBoundsError: its rule addresses memory outside of the array.
    """
    if op.decl.kernel is not None:
        result: Array = op.decl.kernel(np, array, *args, **kwargs)
        return result
    name, base = op.schema.name, ViewLayout(array.shape, array.strides)
    layout = op.decl.view(base, *args, **kwargs)
    if layout is None:
        raise OutOfBoundsError(f"{name}: the elements of this tensor have to be copied")
    check_within(name, layout, base)
    return address_memory(array, layout)


def rule_kernel(op: Operator) -> Callable[..., Tensor]:
    """Return the kernel of a view that is declared by its rule."""
    meta = op.decl.shape_rule

    def kernel(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        meta(self, *args, **kwargs)  # checks the arguments
        return wrap_view(view_array(op, self._array, *args, **kwargs), self)

    return kernel


def address_memory(array: Array, layout: ViewLayout) -> Array:
    """Return an array over the same memory; strides and offset are in bytes."""
    interface = dict(array.__array_interface__)
    address, readonly = interface["data"]
    interface["data"] = (address + layout.offset, readonly)
    interface["shape"], interface["strides"] = tuple(layout.sizes), tuple(layout.strides)
    result: Array = np.asarray(_StridedMemory(interface, array))
    return result if result.dtype == array.dtype else result.view(array.dtype)

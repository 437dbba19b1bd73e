"""Views of device memory: arithmetic on shapes and strides, as for tensors without data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...eager.meta_views import reshaped_strides
from ...operators.slicing import planned_strides
from ...registry.operator import Operator
from . import toolkit as tools
from .arrays import DeviceArray, Layout
from .native_keyed import KeyedDoors, SubscriptDoors
from .tensor import CudaTensor, cuda_view

MOST = 1 << 12
Ints = tuple[int, ...]


def _reshape(x: DeviceArray, shape: Ints) -> DeviceArray | None:
    strides = reshaped_strides(x.shape, x.strides, shape)
    return None if strides is None else x.view(shape, strides)


def permuted(x: DeviceArray, axes: Ints) -> DeviceArray:
    """The array with its axes in another order."""
    return x.view(tuple(x.shape[axis] for axis in axes), tuple(x.strides[axis] for axis in axes))


def _permute(x: DeviceArray, shape: Ints, axes: Ints) -> DeviceArray:
    return permuted(x, axes)


def broadcast(x: DeviceArray, shape: Ints, _: Any = None) -> DeviceArray:
    """The array repeated along new leading axes and those of length 1."""
    if x.shape == shape:
        return x
    lead = len(shape) - len(x.shape)
    strides = [0 if old != new else step for old, new, step in zip(x.shape, shape[lead:], x.strides)]
    return x.view(shape, (0,) * lead + tuple(strides))


def planned(x: DeviceArray, shape: Ints, plan: tuple[Any, ...]) -> DeviceArray:
    """The elements that a plan of basic indexing selects (:mod:`tandem.operators.slicing`)."""
    strides, first = planned_strides(plan, x.strides)
    return x.view(shape, strides, first if 0 not in shape else 0)


# view operator -> the view of an array, given the result's shape; None where memory has to be copied
VIEWS: dict[str, Callable[..., DeviceArray | None]] = {
    "td::reshape": _reshape,
    "td::permute": _permute,
    "td::broadcast_to": broadcast,
    "td::basic_index": planned,
    "td::stop_gradient": lambda x, shape: x,
    "td::checkpoint_name": lambda x, shape, *rest: x,
}


def view_kernel(op: Operator, copied: Callable[[CudaTensor], CudaTensor]) -> Callable[..., CudaTensor]:
    """The kernel of a view operator.

    Args:
        op: the operator.
        copied: makes a contiguous copy, for a reshape that needs one.
    """
    view, meta = VIEWS[op.name], op.decl.meta
    doors = SubscriptDoors(op) if view is planned else KeyedDoors(op)
    known: dict[Any, tuple[Layout, int] | None] = {}  # by layout and arguments: what the view is

    def look(x: DeviceArray, self: CudaTensor, args: tuple[Any, ...]) -> tuple[Layout, int] | None:
        doors.open()
        shape = meta(self, *args).shape
        found = view(x, shape, *(() if view is _reshape else args))
        if len(known) >= MOST:
            known.clear()
        kept = None if found is None else (found.layout, found.ptr - x.ptr)
        known[x.layout, args] = kept
        return kept

    def kernel(self: CudaTensor, *args: Any) -> CudaTensor:
        x = self._data
        try:
            found = known[x.layout, args]
        except (KeyError, TypeError):  # a new one, or arguments that the rule refuses
            found = look(x, self, args)
        if found is not None:
            return cuda_view(DeviceArray(x.ptr + found[1], found[0], x.buffer), self)
        fresh = copied(self)
        whole = _reshape(fresh._data, meta(self, *args).shape)
        return cuda_view(whole, fresh)  # type: ignore[arg-type]  # what is contiguous reshapes

    tools.changed.append(known.clear)
    doors.kernel = kernel
    return kernel

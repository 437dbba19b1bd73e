"""Kernels of view operators, which compute shapes, strides and offsets only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....eager.meta.views import reshaped_strides
from ....operators.indexing.slicing import plan_strides
from ....registry.operator import Operator
from ..fastpath.call_cache import CallCache, SubscriptCache
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, Layout
from .tensor import CudaTensor, cuda_view

MOST = 1 << 12
Ints = tuple[int, ...]


def _reshape(x: DeviceArray, shape: Ints) -> DeviceArray | None:
    strides = reshaped_strides(x.shape, x.strides, shape)
    return None if strides is None else x.view(shape, strides)


def permute(x: DeviceArray, axes: Ints) -> DeviceArray:
    """The array with its axes in another order."""
    return x.view(tuple(x.shape[axis] for axis in axes), tuple(x.strides[axis] for axis in axes))


def _permute(x: DeviceArray, shape: Ints, axes: Ints) -> DeviceArray:
    return permute(x, axes)


def broadcast(x: DeviceArray, shape: Ints, _: Any = None) -> DeviceArray:
    """The array broadcast to a shape."""
    if x.shape == shape:
        return x
    lead = len(shape) - len(x.shape)
    strides = [0 if old != new else step for old, new, step in zip(x.shape, shape[lead:], x.strides)]
    return x.view(shape, (0,) * lead + tuple(strides))


def basic_index(x: DeviceArray, shape: Ints, plan: tuple[Any, ...]) -> DeviceArray:
    """The elements that a plan of basic indexing selects (:mod:`tandem.operators.indexing.slicing`)."""
    strides, first = plan_strides(plan, x.strides)
    return x.view(shape, strides, first if 0 not in shape else 0)


# view operator -> function that returns the view of an array for the result's shape; None if a copy is needed
VIEWS: dict[str, Callable[..., DeviceArray | None]] = {
    "td::reshape": _reshape,
    "td::permute": _permute,
    "td::broadcast_to": broadcast,
    "td::basic_index": basic_index,
    "td::stop_gradient": lambda x, shape: x,
    "td::checkpoint_name": lambda x, shape, *rest: x,
}


def view_kernel(op: Operator, copied: Callable[[CudaTensor], CudaTensor]) -> Callable[..., CudaTensor]:
    """The kernel of a view operator.

    Args:
        op: the operator.
        copied: returns a contiguous copy, for a reshape that needs one.
    """
    view, meta = VIEWS[op.name], op.decl.shape_rule
    entries = SubscriptCache(op) if view is basic_index else CallCache(op)
    known: dict[Any, tuple[Layout, int] | None] = {}  # (layout, arguments) -> layout and offset of the view

    def find_view(x: DeviceArray, self: CudaTensor, args: tuple[Any, ...]) -> tuple[Layout, int] | None:
        entries.install_if_free()
        shape = meta(self, *args).shape
        result = view(x, shape, *(() if view is _reshape else args))
        if len(known) >= MOST:
            known.clear()
        kept = None if result is None else (result.layout, result.ptr - x.ptr)
        known[x.layout, args] = kept
        return kept

    def kernel(self: CudaTensor, *args: Any) -> CudaTensor:
        x = self._data
        try:
            value = known[x.layout, args]
        except (KeyError, TypeError):  # not cached, or invalid arguments
            value = find_view(x, self, args)
        if value is not None:
            return cuda_view(DeviceArray(x.ptr + value[1], value[0], x.buffer), self)
        fresh = copied(self)
        whole = _reshape(fresh._data, meta(self, *args).shape)
        return cuda_view(whole, fresh)  # type: ignore[arg-type]  # a contiguous array can be reshaped

    tools.change_listeners.append(known.clear)
    entries.kernel = kernel
    return kernel

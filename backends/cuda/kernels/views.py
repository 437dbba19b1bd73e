"""Kernels of view operators, which compute shapes, strides and offsets only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....operators.declare.view_spec import ViewLayout, check_within
from ....operators.indexing.slicing import plan_strides
from ....registry.dtypes import DType
from ....registry.operator import Operator
from ..fastpath.call_cache import CallCache, SubscriptCache
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, Layout, layout_of
from .tensor import CudaTensor, cuda_view

MOST = 1 << 12
Ints = tuple[int, ...]


def permute(x: DeviceArray, axes: Ints) -> DeviceArray:
    """The array with its axes in another order."""
    return x.view(tuple(x.shape[axis] for axis in axes), tuple(x.strides[axis] for axis in axes))


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


def _apply(op: Operator, x: DeviceArray, dtype: DType, args: tuple[Any, ...]) -> DeviceArray | None:
    """The view, in elements of ``dtype``, that an operator's rule describes; None if a copy is needed.

    Raises:
        OutOfBoundsError: the rule addresses memory outside of the array.
    """
    base = ViewLayout(x.shape, x.strides, 0, x.dtype.itemsize)
    layout = op.decl.view(base, *args)
    if layout is None:
        return None
    check_within(op.schema.name, layout, base)
    address = x.ptr + layout.offset * dtype.itemsize
    return DeviceArray(address, layout_of(layout.sizes, layout.strides, dtype, x.layout.index), x.buffer)


def view_kernel(op: Operator, copied: Callable[[CudaTensor], CudaTensor]) -> Callable[..., CudaTensor]:
    """The kernel of a view operator.

    Args:
        op: the operator.
        copied: returns a contiguous copy, for a reshape or a bitcast that needs one.
    """
    meta = op.decl.shape_rule
    entries = SubscriptCache(op) if op.name == "td::basic_index" else CallCache(op)
    known: dict[Any, tuple[Layout, int] | None] = {}  # (layout, arguments) -> layout and offset of the view

    def find_view(x: DeviceArray, self: CudaTensor, args: tuple[Any, ...]) -> tuple[Layout, int] | None:
        entries.install_if_free()
        result = _apply(op, x, meta(self, *args).dtype, args)  # the shape rule checks the arguments
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
        whole = _apply(op, fresh._data, meta(self, *args).dtype, args)
        return cuda_view(whole, fresh)  # type: ignore[arg-type]  # a contiguous array needs no copy

    tools.change_listeners.append(known.clear)
    entries.kernel = kernel
    return kernel

"""Stubs of operators whose entries remember what they computed for earlier calls: layouts of views, plans of loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..... import lazy
from .....eager.tensor.tensor import Tensor
from .....eager.tensor.weak_scalars import is_function
from .....registry.dtypes import default_float, default_stamp
from .....registry.function import functions
from ..runtime import capi
from ..runtime import rt_base as rt
from .structs import OperatorStruct, StructMemory, find_writer
from .stubs import ColdCallable, Stub

loop_calls = lazy.Module(".backends.cpu.fastpath.entries.rt_loop_calls")
rt_cached_views = lazy.Module(".backends.cpu.fastpath.entries.rt_cached_views")
rt_view_steps = lazy.Module(".backends.cpu.fastpath.entries.rt_view_steps")
plans = lazy.Module(".backends.cpu.native_kernels.plans")


def find_steps(source: Tensor, result: Any) -> Any:
    """Return the calls of view operators that lead from a tensor to a recorded result, see `rt_view_steps`.

    Returns:
        A tuple of programs; False if a result has another history.
    """
    views = result if isinstance(result, tuple) else (result,)
    programs = tuple(_find_program(source, view) for view in views)
    return False if None in programs else programs


def _find_program(source: Tensor, view: Tensor) -> tuple[Any, ...] | None:
    """Return the calls that lead from a tensor to one view; None if its history is another one."""
    program: tuple[Any, ...] = ()
    while view is not source:
        call = None if view._meta is None else view._meta.view
        if call is None or call.kwargs or len(call.args) > rt_view_steps.MOST_ARGUMENTS:
            return None
        program = (functions[call.derivative.op.name], call.args[1:], *program)
        view = call.base
    return program


def make_slots(size: int, *items: int, tables: int = 1) -> StructMemory:
    """Return memory for the slots of an entry.

    Args:
        size: bytes of a slot.
        items: the fields of a slot that refer to an item of a list, each of a list of its own, which the memory keeps.
        tables: how many tables of slots follow each other.
    """
    slots = tables * rt_cached_views.SLOTS
    result = StructMemory(slots * size)
    words = np.frombuffer(result.memory, np.int64).reshape(slots, -1)
    for field in items:
        owned = [None] * slots
        result.kept.append(owned)
        words[:, field // 8] = capi.PyList(id(owned)).items + 8 * np.arange(slots)
    return result


class ViewStub(Stub):
    """The native entry of a view that remembers layouts."""

    def make_struct(self, fall_back: Any, miss: Any) -> OperatorStruct:
        """Return the struct of an entry, with memory for the layouts."""
        names = tuple(argument.name for argument in self.operator.schema.arguments)
        fields = {"write_out": find_writer(self.operator), **self.more_fields()}
        result = OperatorStruct(self.runtime.process, fall_back, miss, names, **fields)
        result.point(rt.OperatorEntry.variants, self.find_slots(result))
        return result

    def more_fields(self) -> dict[str, Any]:
        """Return the class of the struct and values of its fields, where it is not an `OperatorEntry`."""
        is_composite = self.operator.decl.kind == "composite"
        return {"layout": rt_cached_views.ViewEntry} | ({"find_steps": find_steps} if is_composite else {})

    def find_slots(self, record: OperatorStruct) -> StructMemory:
        """Return the memory for the layouts of a struct."""
        return self.make_slots()

    def make_slots(self) -> StructMemory:
        """Return memory for the layouts."""
        return make_slots(rt_cached_views.SLOT_SIZE, rt_cached_views.LayoutKey.steps)


class ViewListStub(ViewStub):
    """The native entry of an operator that returns a list of views."""

    def make_slots(self) -> StructMemory:
        """Return memory for the keys, and keep the lists that own the layouts and the steps with it."""
        items = rt_cached_views.CachedList.item, rt_cached_views.LayoutKey.steps
        return make_slots(rt_cached_views.LIST_SLOT_SIZE, *items)


class LoopStub(ViewStub):
    """The native entry of an operator that declares a native kernel; it remembers plans of calls."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.patch_points[0].miss = self.make_plan
        self._slots: dict[object, StructMemory] = {}  # by struct and default dtype
        self._stamp: object = None  # of the default dtype that the entries have the plans of

    def add_wrapper(self, wrapper: Any) -> None:
        """Let a callable that converts arguments pass its calls on: plans are those of the function's entry."""
        ColdCallable.add_wrapper(self, wrapper)

    def _install(self) -> None:
        super()._install()
        self.install_wrappers()

    def more_fields(self) -> dict[str, Any]:
        """Return the class of the struct and values of its fields."""
        arguments = self.operator.schema.positional
        bits = sum(1 << index for index, argument in enumerate(arguments) if argument.type.core == "Tensor")
        return {"layout": loop_calls.LoopEntry, "operands": bits, "make_symbolic": self.make_symbolic}

    def make_struct(self, fall_back: Any, miss: Any) -> OperatorStruct:
        """Return the struct of an entry; the registry's lock is held, as while the default dtype changes."""
        self._stamp = default_stamp()
        return super().make_struct(fall_back, miss)

    def clear_variants(self) -> None:
        """Change to the plans of another default dtype, which dtypes of results follow from."""
        changes = loop_calls.LoopEntry.changes
        for point in self.patch_points:
            if point.record is not None:
                point.record.set(changes, point.record.get(changes) + 1)
                point.record.replace(rt.OperatorEntry.variants, self.find_slots(point.record))
        self._stamp = default_stamp()

    def find_slots(self, record: OperatorStruct) -> StructMemory:
        """Return the memory for the plans of a struct with the default dtype."""
        key = record.address, default_float()
        if key not in self._slots:
            self._slots[key] = self.make_slots()
        return self._slots[key]

    def make_slots(self) -> StructMemory:
        """Return memory for the keys of plans and of symbolic ones, and keep the list that owns these with it."""
        return make_slots(rt_cached_views.LIST_SLOT_SIZE, rt_cached_views.CachedList.item, tables=2)

    def make_plan(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the plan of a call, see `rt_loops.LoopPlan`.

        Returns:
            A `bytes` object; None if Python runs such calls; an ellipsis if the default dtype has changed meanwhile.
        """
        return self._make(plans.find_plan, args, kwargs)

    def make_symbolic(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the symbolic plan of the calls that differ from one by one size.

        Returns:
            A `bytes` object, see `plans.find_symbolic`; None or an ellipsis as for a plan.
        """
        return self._make(plans.find_symbolic, args, kwargs)

    def _make(self, find: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        has_tensors = any(isinstance(value, Tensor) for value in (*args, *kwargs.values()))
        if not has_tensors and is_function(self.operator, args, kwargs):
            return None  # Python computes functions of numbers alone in double precision
        stamp, named = default_stamp(), dict(zip(kwargs, plans.take_arrays(kwargs.values())))
        result = find(self.operator, plans.take_arrays(args), named)
        return result if stamp == self._stamp == default_stamp() else ...

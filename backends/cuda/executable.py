"""Executables on CUDA: a table of addresses, one call of the emitted ``main``, and tensors on its results."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...eager.tensor import Tensor, wrap
from ...lowering.evaluate import call
from ...lowering.lowered import Lowered
from ...registry.dtypes import check_range
from ...tracer.graph import Node, Value
from ..cpu.executable import FORMATS, CallPlan, Parameter
from .arrays import DeviceArray, contiguous_layout, empty
from .call import DeviceEntry
from .casting import copied
from .copies import to_device
from .devices import Device
from .graph_choice import GraphChoice
from .memory import allocate
from .streams import stream_at
from .tensor import CudaTensor, cuda_tensor

ALIGNED = 15  # bits of an address that kernels want to be zero


class CudaExecutable:
    """A compiled graph.

    Attributes:
        plan: how to call it; see :class:`.CallPlan` and :class:`.call_text.CallWriter`.
        lowered: what it was compiled from.
        at: the device.
        choice: how its kernels get into the stream.
        fresh: the layouts of the results to allocate.
    """

    def __init__(self, lowered: Lowered, plan: CallPlan, at: Device, choice: GraphChoice, keep: Any):
        self.lowered, self.plan, self.at = lowered, plan, at
        self.choice, self._keep = choice, keep
        self.fresh = [contiguous_layout(spec.shape, spec.dtype, at.index) for spec in plan.storages]
        self._arrays = sum(p.weak is None for p in plan.parameters)
        self._scalars = ctypes.c_int64 * (len(plan.parameters) - self._arrays + 1)
        self._words = ctypes.c_uint64 * (self._arrays + len(self.fresh) + 4)

    def run(self, given: list[Any]) -> list[Any]:
        """Put its work into the device's current stream.

        Args:
            given: for each parameter of the traced graph a tensor of the device, an ndarray (it is copied there), or a
                Python scalar where it is weak.

        Returns:
            the results, as tensors; what depends on no input as it is in the graph.

        Raises:
            CudaError: the driver has refused a launch.
            OutOfMemoryError: the device has no memory for the results.
        """
        plan, at = self.plan, self.at
        at.make_current()
        scalars, arrays = self._scalars(), []
        for parameter, item in zip(plan.parameters, given, strict=True):
            if parameter.weak is None:
                arrays.append(self._array(item))
            else:
                self._pass(parameter, item, scalars)
        fresh = [empty(layout) for layout in self.fresh]
        scratch = allocate(plan.workspace, at.index) if plan.workspace else None
        stream = stream_at(at.index)
        table = self._words(
            *[array.ptr for array in arrays],
            *[array.ptr for array in fresh],
            0 if scratch is None else scratch.ptr,
            plan.tables,
            0,
            stream.number,
        )
        self.choice.queue(stream, table, scalars)
        for array in (*arrays, *plan.constants):
            if array.buffer.pool is None or array.buffer.pool.stream is not stream:
                array.buffer.used_by(stream)
        return [self._result(place, given, fresh) for place in range(len(plan.outputs))]

    @property
    def launching(self) -> str:
        """How its kernels get into the stream, in words."""
        return str(self.choice)

    @property
    def settled(self) -> bool:
        """Whether calls may go by machine code: until it is known how to launch, Python looks at them."""
        return self.choice.settled

    def entry(self) -> DeviceEntry:
        """What machine code needs to call it on the thread's current stream, once it is settled."""
        return DeviceEntry(self)

    def _array(self, given: Any) -> DeviceArray:
        """An argument as the kernels take it: contiguous, and aligned."""
        if type(given) is not CudaTensor:
            return to_device(given, self.at.index)
        data = given._data
        return data if data.layout.contiguous and not data.ptr & ALIGNED else copied(data)

    def _pass(self, parameter: Parameter, given: Any, scalars: Any) -> None:
        for dtype in parameter.ranges:
            check_range(dtype, given)
        FORMATS[parameter.weak or float].from_buffer(scalars, 8 * parameter.slot).value = given

    def _result(self, place: int, given: list[Any], fresh: list[DeviceArray]) -> Any:
        output, wanted = self.plan.outputs[place], self.lowered.optimized.outputs[place]
        if output.kind == "object":
            return wanted
        if output.kind == "parameter":
            item = given[output.index]
            return item if output.same or output.layout is None else _view_again(wanted, item)
        if output.kind == "constant" and wanted.spec.device == "cpu":
            tensor = self.lowered.folded[output.index][1]
            return np.array(_view_again(wanted, tensor)._array)
        data = fresh[output.index] if output.kind == "storage" else copied(self.plan.constants[output.index])
        if output.layout is not None and not output.same:
            data = data.view(output.layout.shape, output.layout.strides, output.layout.offset)
        return cuda_tensor(data)


def _view_again(value: Value, given: Any) -> Any:
    """The view of an argument or a constant that ``value`` is."""
    chain: list[Node] = []
    while value.node is not None:
        chain.append(value.node)
        value = value.node.args[0]
    tensor = given if isinstance(given, Tensor) else wrap(given)
    for node in reversed(chain):
        (tensor,) = call(node, (tensor, *node.args[1:]), node.kwargs)
    return tensor

"""Executables on CUDA: fill the table of addresses, call the emitted ``main``, and wrap the results as tensors."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ....eager.tensor.tensor import Tensor, wrap
from ....lowering.interpreter import call_kernel
from ....lowering.lower import Lowered
from ....registry.dtypes import check_range
from ....tracer.graph import Node, Value
from ...cpu.executable import WEAK_CTYPES, CallingConvention, Parameter
from ..kernels.casting import copy_array
from ..kernels.tensor import CudaTensor, cuda_tensor
from ..runtime.arrays import DeviceArray, contiguous_layout, empty
from ..runtime.copies import to_device
from ..runtime.devices import Device
from ..runtime.memory import allocate, note_uses
from ..runtime.streams import stream_at
from .call import DeviceEntry
from .graph_choice import GraphChoice

ALIGNED = 15  # bits of an address that kernels want to be zero


class CudaExecutable:
    """A compiled graph.

    Attributes:
        convention: how to call it; see :class:`tandem.backends.cpu.executable.CallingConvention` and
            :class:`.call_text.DeviceMainWriter`.
        lowered: the lowered graph.
        at: the device.
        choice: whether its kernels are launched one by one or replayed as a CUDA graph.
        fresh: the layouts of the results to allocate.
    """

    def __init__(self, lowered: Lowered, plan: CallingConvention, at: Device, choice: GraphChoice, keep: Any):
        self.lowered, self.convention, self.at = lowered, plan, at
        self.choice, self._keep = choice, keep
        self.fresh = [contiguous_layout(spec.shape, spec.dtype, at.index) for spec in plan.storages]
        self._arrays = sum(p.weak is None for p in plan.parameters)
        self._scalars = ctypes.c_int64 * (len(plan.parameters) - self._arrays + 1)
        self._words = ctypes.c_uint64 * (self._arrays + len(self.fresh) + 4)

    def run(self, given: list[Any]) -> list[Any]:
        """Run the graph in the device's current stream.

        Args:
            given: for each parameter of the traced graph, a tensor on the device, an ndarray (it is copied to the
                device), or a Python scalar for a weak parameter.

        Returns:
            the results, as tensors; outputs that depend on no input are returned as they are in the graph.

        Raises:
            CudaError: the driver reports an error of a launch.
            OutOfMemoryError: the device has no memory for the results.
        """
        plan, at = self.convention, self.at
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
        note_uses((*arrays, *plan.constants), stream)
        return [self._result(index, given, fresh) for index in range(len(plan.outputs))]

    @property
    def launching(self) -> str:
        """A description of how the kernels are launched."""
        return str(self.choice)

    @property
    def settled(self) -> bool:
        """Whether native code may answer calls: Python runs them until the kind of launch is chosen."""
        return self.choice.is_final

    def entry(self) -> DeviceEntry:
        """The native struct for calls on the thread's current stream; valid once ``settled``."""
        return DeviceEntry(self)

    def _array(self, given: Any) -> DeviceArray:
        """An argument as a contiguous and aligned array on the device."""
        if type(given) is not CudaTensor:
            return to_device(given, self.at.index)
        data = given._data
        return data if data.layout.contiguous and not data.ptr & ALIGNED else copy_array(data)

    def _pass(self, parameter: Parameter, given: Any, scalars: Any) -> None:
        for dtype in parameter.ranges:
            check_range(dtype, given)
        WEAK_CTYPES[parameter.weak or float].from_buffer(scalars, 8 * parameter.slot).value = given

    def _result(self, index: int, given: list[Any], fresh: list[DeviceArray]) -> Any:
        output, wanted = self.convention.outputs[index], self.lowered.optimized.outputs[index]
        if output.kind == "object":
            return wanted
        if output.kind == "parameter":
            item = given[output.index]
            return item if output.same or output.layout is None else _replay_views(wanted, item)
        if output.kind == "constant" and wanted.spec.device == "cpu":
            tensor = self.lowered.folded[output.index][1]
            return np.array(_replay_views(wanted, tensor)._array)
        data = (
            fresh[output.index]
            if output.kind == "storage"
            else copy_array(self.convention.constants[output.index])
        )
        if output.layout is not None and not output.same:
            data = data.view(output.layout.shape, output.layout.strides, output.layout.offset)
        return cuda_tensor(data)


def _replay_views(value: Value, given: Any) -> Any:
    """Compute a value that is a view of an argument or a constant."""
    chain: list[Node] = []
    while value.node is not None:
        chain.append(value.node)
        value = value.node.args[0]
    tensor = given if isinstance(given, Tensor) else wrap(given)
    for node in reversed(chain):
        (tensor,) = call_kernel(node, (tensor, *node.args[1:]), node.kwargs)
    return tensor

"""Executables on the CPU: a table of data pointers, one call of the emitted ``main``, and arrays out of its results."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from ...lowering.layout import Layout
from ...lowering.lowered import Lowered, Output
from ...registry.dtypes import DType, check_range
from ...registry.values import TensorSpec
from ...tracer.graph import Node, Value

# the exception that a callback raises stays set in the interpreter: PYFUNCTYPE holds the GIL, and raises what is set
_MAIN = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
FORMATS: dict[type, Any] = {bool: ctypes.c_bool, int: ctypes.c_int64, float: ctypes.c_double}


class Parameter(NamedTuple):
    """What is passed for one parameter of the graph.

    Attributes:
        spec: shape, dtype and device.
        weak: the Python type of a scalar, which goes into the table of scalars; None for an array.
        slot: its place in the table of buffers, or of scalars.
        ranges: the integer dtypes that a Python integer meets, and has to fit.
    """

    spec: TensorSpec
    weak: type | None
    slot: int
    ranges: tuple[DType, ...]


class CallPlan(NamedTuple):
    """How to call an executable, as plain data.

    ``main(buffers, scalars)`` returns 0, or something else with a Python exception set; it wants the GIL. ``buffers``
    holds the data pointers of the array parameters, each C-contiguous, then of the storages, of the workspace, and of
    the table of constants and callables;
    ``scalars`` holds 8 bytes for each weak parameter: an int64, a double or a bool.

    Attributes:
        address: of ``main``.
        parameters: in the order of the traced graph's parameters.
        storages: specs of the fresh, C-contiguous arrays to allocate.
        workspace: bytes of scratch memory, aligned to 64; 0 for none.
        outputs: what each result is.
        constants: the arrays that outputs of the kind ``"constant"`` show.
        tables: address of the table of constants and callables.
    """

    address: int
    parameters: tuple[Parameter, ...]
    storages: tuple[TensorSpec, ...]
    workspace: int
    outputs: tuple[Output, ...]
    constants: tuple[Any, ...]
    tables: int


class CpuExecutable:
    """A compiled graph.

    Attributes:
        plan: how to call it without Python; see :class:`CallPlan`.
        lowered: what it was compiled from.
    """

    def __init__(self, lowered: Lowered, plan: CallPlan, keep: Any):
        self.lowered, self.plan = lowered, plan
        self._keep = keep  # the code, and whatever it refers to
        self._main = _MAIN(plan.address)
        self._spare: list[Any] = []  # workspaces of calls that are over
        self._arrays = sum(p.weak is None for p in plan.parameters)

    def run(self, arrays: list[Any]) -> list[Any]:
        """Run it.

        Args:
            arrays: an ndarray for each parameter of the traced graph, or a Python scalar where it is weak.

        Returns:
            the results, as ndarrays; what depends on no input as it is in the graph.
        """
        plan = self.plan
        given = [self._argument(p, a) for p, a in zip(plan.parameters, arrays, strict=True)]
        scalars = (ctypes.c_int64 * (len(given) - self._arrays + 1))()
        fresh = [np.empty(spec.shape, spec.dtype.np) for spec in plan.storages]
        scratch = self._spare.pop() if self._spare else np.empty(plan.workspace + 64, np.uint8)
        held = [a for p, a in zip(plan.parameters, given, strict=True) if p.weak is None] + fresh
        table = [a.__array_interface__["data"][0] for a in held]
        table += [-(-scratch.__array_interface__["data"][0] // 64) * 64, plan.tables]
        for p, a in zip(plan.parameters, given, strict=True):
            if p.weak is not None:
                FORMATS[p.weak].from_buffer(scalars, 8 * p.slot).value = a
        buffers = (ctypes.c_void_p * len(table))(*table)
        failed = self._main(ctypes.addressof(buffers), ctypes.addressof(scalars))
        if failed:  # PYFUNCTYPE has raised what was set
            raise SystemError("an executable has failed without saying why")
        self._spare.append(scratch)
        return [self._result(place, arrays, fresh) for place in range(len(plan.outputs))]

    def _argument(self, parameter: Parameter, given: Any) -> Any:
        if parameter.weak is None:
            return np.ascontiguousarray(given).reshape(parameter.spec.shape)
        for dtype in parameter.ranges:
            check_range(dtype, given)
        return given

    def _result(self, place: int, arrays: list[Any], fresh: list[Any]) -> Any:
        output = self.plan.outputs[place]
        if output.kind == "object":
            return self.lowered.optimized.outputs[output.index]
        sources = {"parameter": arrays, "storage": fresh, "constant": self.plan.constants}[output.kind]
        source = sources[output.index]
        if output.kind == "constant":
            source = source.copy()
        if output.same or output.layout is None:
            return source
        if output.kind == "parameter" and not source.flags.c_contiguous:
            return view_again(self.lowered.optimized.outputs[place], source)
        return view(source, output.layout)


def view(array: Any, layout: Layout) -> Any:
    """A view of a contiguous array."""
    if array.size == 0:
        return array.reshape(layout.shape)
    flat = array.reshape(-1)[layout.offset :]
    strides = tuple(s * array.itemsize for s in layout.strides)
    return np.lib.stride_tricks.as_strided(flat, layout.shape, strides)


def view_again(value: Value, array: Any) -> Any:
    """The view of an argument that ``value`` is, of an array whose strides are not those of the plan."""
    chain: list[Node] = []
    while value.node is not None:
        chain.append(value.node)
        value = value.node.args[0]
    for node in reversed(chain):
        array = node.op.decl.kernel(np, array, *node.args[1:], **node.kwargs)
    return array

"""Executables on the CPU: fill a table of data pointers, call the emitted ``main``, wrap its results as arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...lowering.layout import Layout
from ...lowering.lower import Lowered, Output
from ...named_tuple import NamedTuple
from ...operators.declare.shape_rules import promoted_dtype
from ...registry.dispatch.observers import Note
from ...registry.dtypes import DType, check_range
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value, bodies_of, body_inputs
from ...tracer.infer import to_example
from .kernels.views import view_array
from .timestamps import TimestampedExecutable

# the exception that a callback raises stays set in the interpreter: PYFUNCTYPE holds the GIL, and raises what is set
_MAIN = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
WEAK_CTYPES: dict[type, Any] = {bool: ctypes.c_bool, int: ctypes.c_int64, float: ctypes.c_double}


class Parameter(NamedTuple):
    """The calling convention of one parameter of the graph.

    Attributes:
        spec: shape, dtype and device.
        weak: the Python type of a scalar, which goes into the table of scalars; None for an array.
        slot: its index in the table of buffers, or of scalars.
        ranges: the integer dtypes that a Python integer is promoted to and must fit.
    """

    spec: TensorSpec
    weak: type | None
    slot: int
    ranges: tuple[DType, ...]


class CallingConvention(NamedTuple):
    """The calling convention of one executable, as plain data.

    ``main(buffers, scalars)`` returns 0 on success; otherwise a Python exception is set. It is called with the GIL held
    and returns with it held; long kernels and loops release it. ``buffers`` holds the data pointers of the array
    parameters (each C-contiguous), of the storages, of the workspace, and of the table of constants and callables, then
    8 bytes that ``main`` uses. ``scalars`` holds 8 bytes for each weak parameter: an int64, a double or a bool.

    Attributes:
        address: address of ``main``.
        parameters: how each is passed, in the order of the traced graph.
        storages: specs of the fresh, C-contiguous arrays to allocate.
        workspace: bytes of scratch memory, aligned to 64; 0 for none.
        outputs: where each result comes from.
        constants: the arrays of outputs of the kind ``"constant"``.
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
        lowered: the lowered graph that it was compiled from.
        convention: how to call it without Python.
        timestamped: runs the graph and notes its kernels.
    """

    def __init__(
        self,
        lowered: Lowered,
        convention: CallingConvention,
        keep: Any,
        timestamped: TimestampedExecutable,
    ):
        self.lowered, self.convention, self.timestamped = lowered, convention, timestamped
        self._keep = keep  # the code and the objects that it refers to
        self._main = _MAIN(convention.address)
        self._spare: list[Any] = []  # workspaces of finished calls
        self._arrays = sum(p.weak is None for p in convention.parameters)

    def run(self, arrays: list[Any], times: int = 0) -> list[Any]:
        """Run the graph.

        Args:
            arrays: an ndarray for each parameter of the traced graph, or a Python scalar where it is weak.
            times: address of the memory for the time after each step, for code that writes it.

        Returns:
            the results, as ndarrays; a result that depends on no input is the object in the graph.

        Native twin: backends/cpu/fastpath/entries/rt_jit.py:run
        """
        convention = self.convention
        given = [self._convert_argument(p, a) for p, a in zip(convention.parameters, arrays, strict=True)]
        scalars = (ctypes.c_int64 * (len(given) - self._arrays + 1))()
        fresh = [np.empty(spec.shape, spec.dtype.np) for spec in convention.storages]
        scratch = self._take_workspace()
        held = [a for p, a in zip(convention.parameters, given, strict=True) if p.weak is None] + fresh
        table = [a.__array_interface__["data"][0] for a in held]
        table += [-(-scratch.__array_interface__["data"][0] // 64) * 64, convention.tables, 0, times]
        for p, a in zip(convention.parameters, given, strict=True):
            if p.weak is not None:
                WEAK_CTYPES[p.weak].from_buffer(scalars, 8 * p.slot).value = a
        buffers = (ctypes.c_void_p * len(table))(*table)
        failed = self._main(ctypes.addressof(buffers), ctypes.addressof(scalars))
        if failed:  # PYFUNCTYPE has raised what was set
            raise SystemError("compiled code failed without setting an exception")
        self._spare.append(scratch)
        return [self._make_result(index, arrays, fresh) for index in range(len(convention.outputs))]

    def run_profiled(self, arrays: list[Any], note: Note) -> list[Any]:
        """Run the graph and report each kernel to ``note``."""
        return self.timestamped.run(arrays, note)

    def _take_workspace(self) -> Any:
        """Return the workspace of a finished call, or a new one: several threads may run the code at the same time."""
        try:
            return self._spare.pop()
        except IndexError:
            return np.empty(self.convention.workspace + 64, np.uint8)

    def _convert_argument(self, parameter: Parameter, given: Any) -> Any:
        if parameter.weak is None:
            return np.ascontiguousarray(given).reshape(parameter.spec.shape)
        for dtype in parameter.ranges:
            check_range(dtype, given)
        return given

    def _make_result(self, index: int, arrays: list[Any], fresh: list[Any]) -> Any:
        output = self.convention.outputs[index]
        if output.kind == "object":
            return self.lowered.optimized.outputs[output.index]
        sources = {"parameter": arrays, "storage": fresh, "constant": self.convention.constants}[output.kind]
        source = sources[output.index]
        if output.kind == "constant":
            source = source.copy()
        if output.same or output.layout is None:
            return source
        if output.kind == "parameter" and not source.flags.c_contiguous:
            return rebuild_view(self.lowered.optimized.outputs[index], source)
        return view(source, output.layout)


def view(array: Any, layout: Layout) -> Any:
    """Return a view of a contiguous array in a given layout; its base is the array.

    Native twin: backends/cpu/fastpath/entries/rt_results.py:make_view
    """
    if array.size == 0:
        return array.reshape(layout.shape)
    strides = tuple(s * array.itemsize for s in layout.strides)
    return np.ndarray(layout.shape, array.dtype, array, layout.offset * array.itemsize, strides)


def rebuild_view(value: Value, array: Any) -> Any:
    """Apply the views that lead to ``value`` to an argument with other strides than the traced one."""
    chain: list[Node] = []
    while value.node is not None:
        chain.append(value.node)
        value = value.node.args[0]
    for node in reversed(chain):
        array = view_array(node.op, array, *node.args[1:], **node.kwargs)
    return array


def make_calling_convention(lowered: Lowered, address: int, tables: Any) -> CallingConvention:
    """Return how to call compiled code that uses an :class:`~.object_table.ObjectTable`, or a backend's equivalent."""
    parameters = find_parameters(lowered.graph, integer_ranges(lowered.optimized))
    storages = tuple(value.spec for value in lowered.storages)
    workspace = lowered.memory.workspace
    outputs, constants = tuple(lowered.outputs), tuple(tables.arrays)
    return CallingConvention(address, parameters, storages, workspace, outputs, constants, tables.address)


def find_parameters(graph: Graph, ranges: Mapping[Value, Sequence[DType]]) -> tuple[Parameter, ...]:
    """Return the calling conventions of a graph's parameters.

    Args:
        graph: the traced graph.
        ranges: the integer dtypes that Python integers are promoted to.
    """
    result: list[Parameter] = []
    counts = {True: 0, False: 0}
    for value in graph.parameters:
        weak = value.weak is not None
        result.append(Parameter(value.spec, value.weak, counts[weak], tuple(ranges.get(value, ()))))
        counts[weak] += 1
    return tuple(result)


def make_empty_convention(graph: Graph) -> CallingConvention:
    """Return the calling convention of a graph without computation, which has no code."""
    return CallingConvention(0, find_parameters(graph, {}), (), 0, (), (), 0)


def integer_ranges(graph: Graph) -> dict[Value, list[DType]]:
    """Return, for each Python integer passed at run time, the integer dtypes that it is promoted to and must fit."""
    result: dict[Value, list[DType]] = {}
    for node in graph.nodes:
        for body in bodies_of(node):
            inner = integer_ranges(body)
            for value, given in body_inputs(node):
                if type(given) is Value and given.weak is int:
                    known = result.setdefault(given, [])
                    known += [dtype for dtype in inner.get(value, ()) if dtype not in known]
        integers = [v for v in node.inputs if v.weak is int]
        if integers and node.op.decl is not None and node.op.decl.is_elementwise:
            met = _promotion_dtype(node)
            for value in integers:
                if met.is_integer and met not in result.setdefault(value, []):
                    result[value].append(met)
    return result


def _promotion_dtype(node: Node) -> DType:
    """Return the dtype that a node's operands are promoted to."""
    examples = [to_example(a) if isinstance(a, Value) else a for a in node.args]
    return promoted_dtype(node.op.schema.name, examples)

"""Results of jitted functions that are views or copies, and writes into arguments, for the native entry.

Most functions have neither, so this module is imported when one has.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ..backends.cpu.executable import CallingConvention
from ..backends.cpu.fastpath.glue import jit_layout as at
from ..backends.cpu.fastpath.glue.jit_structs import (
    SpecializationStruct,
    ViewOfArray,
    WriteBack,
    make_int64_array,
    make_write_table,
)
from ..eager.autograd.view_writes import Step
from ..eager.tensor.tensor import wrap
from ..eager.tensor.weak_scalars import weak_scalar
from ..lowering.layout import contiguous
from ..lowering.loop_bodies import LoopThunk
from ..lowering.lower import Lowered
from ..lowering.lower import Output as Computed
from ..lowering.point_accesses import reads_what_it_writes
from ..lowering.thunks import KernelThunk, NodeThunk
from ..registry.dtypes import DType
from ..registry.function import functions
from .guards.leaves import NotNative
from .outputs import Output

if TYPE_CHECKING:
    from .native_record import GuardBuilder


def make_view_call(views: Sequence[Step]) -> Callable[[Any], Any]:
    """Make the function that applies views to an argument."""
    calls = [(functions.get(step.op.name, step.op), step.args, step.kwargs) for step in views]
    if len(calls) == 1 and not calls[0][2]:
        ((function, args, _),) = calls
        return lambda tensor: function(tensor, *args)

    def apply(tensor: Any) -> Any:
        for function, args, kwargs in calls:
            tensor = function(tensor, *args, **kwargs)
        return tensor

    return apply


def make_copy_call(convention: CallingConvention, output: Computed) -> Callable[[], Any]:
    """Make the function that returns a tensor of a copy of a constant.

    Raises:
        NotNative: the result is a view of the constant.
    """
    array = convention.constants[output.index]
    if not output.same:
        raise NotNative("a view of a constant among the results")
    return lambda: wrap(array.copy())


def to_weak_scalar(tensor: Any) -> Any:
    """Return the weak scalar of a result without axes."""
    return weak_scalar(tensor.item())


@cache
def has_value_in_place(dtype: DType) -> bool:
    """Whether a NumPy scalar of a dtype has its value where native code reads it."""
    sample = dtype.np.type(1)
    value = ctypes.string_at(id(sample) + at.NUMPY_SCALAR_VALUE, dtype.itemsize)
    return sys.implementation.name == "cpython" and value == sample.tobytes()


def fills_storage(builder: GuardBuilder, output: Computed) -> bool:
    """Whether a view has each element of a result once, so that the result can be made with its layout."""
    layout = output.layout
    if layout is None or layout.offset:
        return False
    return bool(layout.size == builder.results[output.index].size and layout.in_memory_order.is_contiguous)


def set_layout(builder: GuardBuilder, storage: int, layout: Any) -> None:
    """Give the array that is allocated for a result the layout of a view."""
    spec = builder.results[storage] = builder.results[storage]._replace(shape=layout.shape)
    if not layout.is_contiguous:
        builder.strides[storage] = tuple(step * spec.dtype.itemsize for step in layout.strides)


def describe_view(builder: GuardBuilder, output: Computed, is_copy: bool) -> ViewOfArray:
    """Describe a result that is not the whole of a storage that it owns.

    Args:
        builder: the guards and results of the call.
        output: the result.
        is_copy: whether the result is copied, since it does not own its memory.

    Raises:
        NotNative: it is no array.
    """
    convention, of_argument = builder.convention, output.kind == "parameter"
    if output.kind not in ("parameter", "storage") or (
        of_argument and output.index not in builder.array_indices
    ):
        raise NotNative("a Python object or a number among the results")
    source = builder.array_indices[output.index] if of_argument else output.index
    whole = convention.parameters[output.index].spec if of_argument else convention.storages[output.index]
    layout = contiguous(whole.shape) if output.same else output.layout
    if layout is None:
        raise NotNative("a result that is neither an array nor a view of one")
    size = whole.dtype.itemsize
    strides = tuple(step * size for step in layout.strides)
    spec = whole._replace(shape=layout.shape)
    first = builder.strided.get(output.index, 0) if of_argument else 0
    return ViewOfArray(spec, strides, first + layout.offset * size, source, of_argument, is_copy)


# -- writes --------------------------------------------------------------------------------------------------------
def add_writes(builder: GuardBuilder, record: SpecializationStruct) -> None:
    """Add the writes into arguments to the struct of a specialization.

    Raises:
        NotNative: machine code cannot copy the new contents.
    """
    if builder.device is not None:
        raise NotNative("it writes into an argument on a device")
    outputs = builder.specialization.outputs
    writes = [_find_write(builder, parameter, source) for parameter, source in outputs.writes]
    for parameter, source in outputs.writes:
        storage = _find_written_in_place(builder, parameter, source)
        if storage is not None:
            builder.written[storage] = builder.array_indices[parameter]
    tensors = [
        held - 1 for held in builder.array_indices.values()
    ]  # the objects given: tensors and NumPy arrays
    record.set(at.Specialization.writes, len(writes))
    record.set(at.Specialization.tensors, len(tensors))
    record.point(at.Specialization.write_table, make_write_table(writes))
    record.point(at.Specialization.tensor_table, make_int64_array(tensors))


def _find_written_in_place(builder: GuardBuilder, parameter: int, source: Output) -> int | None:
    """Find the storage of an argument's new contents that the code may store in the argument's memory at once.

    That is where a single kernel computes them, which cannot fail, and reads each element before it writes it.
    """
    executable, convention = builder.specialization.executable, builder.convention
    if source.kind == "parameter" or executable is None or len(executable.lowered.steps) != 1:
        return None
    lowered, output = executable.lowered, convention.outputs[source.number]
    (step,), sharing = lowered.steps, [o for o in convention.outputs if (o.kind, o.index) == output[:2]]
    if output.kind != "storage" or not output.same or len(sharing) != 1 or not isinstance(step, KernelThunk):
        return None
    if step.updated is not None or any(stage.has_index_maps() for stage in step.kernel.stages):
        return None
    value, out = lowered.optimized.parameters[parameter], lowered.storages[output.index]
    is_same = value.spec == out.spec and out.spec.dtype.kind in "fcb"
    return output.index if is_same and reads_what_it_writes(step, value, out, "cpu") else None


def _find_write(builder: GuardBuilder, parameter: int, source: Output) -> WriteBack:
    target = builder.reference_indices.get(parameter)
    if target is None or parameter in builder.strided:
        raise NotNative("it writes into an array of NumPy, or into a tensor that is not contiguous")
    spec = builder.convention.parameters[parameter].spec
    slot, offset = _find_contents(builder, source)
    return WriteBack(target, slot, offset, spec.size * spec.dtype.itemsize)


def _find_contents(builder: GuardBuilder, source: Output) -> tuple[int, int]:
    """Find the slot of the data pointer of contiguous contents, and their offset in bytes."""
    convention = builder.convention
    if source.kind == "parameter":
        if source.views:
            raise NotNative("it writes a view of an argument")
        if source.number in builder.strided:
            raise NotNative("it writes an argument that is not contiguous")
        return _find_slot(builder, source.number), 0
    output = convention.outputs[source.number]
    is_dense = output.layout is not None and output.layout._replace(offset=0).is_contiguous
    if output.kind not in ("storage", "parameter") or not (output.same or is_dense):
        raise NotNative("it writes contents that are a constant, or not contiguous")
    offset = 0 if output.same or output.layout is None else output.layout.offset
    if output.kind == "parameter":
        return _find_slot(builder, output.index), offset * convention.parameters[
            output.index
        ].spec.dtype.itemsize
    return builder.arrays + output.index, offset * convention.storages[output.index].dtype.itemsize


def _find_slot(builder: GuardBuilder, parameter: int) -> int:
    described = builder.convention.parameters[parameter]
    if described.weak is not None or parameter in builder.specialization.outputs.written:
        raise NotNative("it writes a number, or exchanges arguments")
    return described.slot


def has_kernels(lowered: Lowered | None) -> bool:
    """Whether compiled code runs the graph without calls of Python."""
    return lowered is not None and lowered.native and not any(map(_calls_python, lowered.steps))


def _calls_python(step: object) -> bool:
    if isinstance(step, LoopThunk):
        bodies: list[Lowered | None] = [body.lowered for body in step.bodies]
        return any(lowered is not None and any(map(_calls_python, lowered.steps)) for lowered in bodies)
    return isinstance(step, NodeThunk) and step.kind == "callback"

"""The memory that native entries read, written from Python: process struct, operator structs, variants.

A struct keeps every Python object and every piece of code that it points to alive, and lives as long as the process:
a thread may be inside an entry at any time.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .....eager.autograd.autograd_meta import AutogradMeta
from .....eager.autograd.node import Node, sequence
from .....eager.tensor.storage import Hold, Number, Storage
from .....named_tuple import NamedTuple
from .....registry import dtypes as dt
from .....registry.dispatch import state as dispatch_state
from .....registry.dispatch.keys import CPU_KEYS, GRAD_CPU_KEYS, WEAK_KEYS
from .....registry.dtypes import DType
from .....registry.values import TensorSpec
from ..compiler.structs import sizeof
from ..runtime import rt_base as rt
from ..runtime import rt_memory

# The code of a dtype is its index here; `rt_operands` has the same numbers.
CODES: tuple[DType, ...] = dt.ALL[:1] + dt.SIGNED + dt.UNSIGNED + dt.FLOATS + dt.COMPLEX
WEAK_CODES: dict[int, type] = {16: bool, 17: int, 18: float, 19: complex}

SPARE_BYTES = 1 << 29  # maximum free memory in the pool of result buffers


class StructMemory:
    """A block of memory with fields of 8 bytes, which keeps the objects that it points to alive."""

    def __init__(self, size: int) -> None:
        self.memory: Any = ctypes.create_string_buffer(size)
        self.address = ctypes.addressof(self.memory)
        self.kept: list[Any] = []

    def set(self, offset: Any, value: int) -> None:
        ctypes.c_int64.from_address(self.address + offset).value = value

    def get(self, offset: Any) -> int:
        return ctypes.c_int64.from_address(self.address + offset).value

    def word(self, offset: Any) -> Any:
        """Return one field as a ctypes object with a `value`; the caller keeps the struct alive."""
        return ctypes.c_int64.from_address(self.address + offset)

    def refer(self, offset: Any, value: Any) -> None:
        """Store the address of a Python object and keep the object alive."""
        self.kept.append(value)
        self.set(offset, id(value))

    def point(self, offset: Any, other: StructMemory) -> None:
        """Store the address of another struct and keep it alive."""
        self.kept.append(other)
        self.set(offset, other.address)

    def replace(self, offset: Any, value: Any, address: int) -> None:
        """Store the address of an object that may be replaced repeatedly, and keep it alive once."""
        if all(value is not known for known in self.kept):
            self.kept.append(value)
        self.set(offset, address)


def make_dtype_map() -> StructMemory:
    """Return a map of NumPy's type numbers to codes; 255 for types that native code does not support."""
    result = StructMemory(256)
    result.memory.raw = bytes([255]) * 256
    for code, dtype in enumerate(CODES):
        if dtype is not dt.bfloat16 and dtype.np.num < 256:
            result.memory[dtype.np.num] = code
    for alias in "qQ":  # long long is int64 with another type number
        result.memory[np.dtype(alias).num] = CODES.index(dt.as_dtype(np.dtype(alias)))
    return result


def make_pointer_table(values: Iterable[Any]) -> StructMemory:
    """Return the addresses of objects, one after the other."""
    values = list(values)
    result = StructMemory(8 * len(values))
    for index, value in enumerate(values):
        result.refer(8 * index, value)
    return result


def make_pool() -> StructMemory:
    """Return an empty pool of result buffers."""
    result = StructMemory(sizeof(rt_memory.Pool))
    result.set(rt_memory.Pool.limit, SPARE_BYTES)
    return result


def make_process_struct(tensor: type) -> StructMemory:
    """Return the struct that all entries reach: classes, key sets, dtype map."""
    result = StructMemory(sizeof(rt.Globals))
    result.refer(rt.Globals.tensor, tensor)
    result.refer(rt.Globals.keys, CPU_KEYS)
    result.refer(rt.Globals.grad_keys, GRAD_CPU_KEYS)
    result.point(rt.Globals.dtypes, make_dtype_map())
    result.refer(rt.Globals.storage, Storage)
    result.refer(rt.Globals.number, Number)
    result.refer(rt.Globals.weak_keys, WEAK_KEYS)
    result.refer(rt.Globals.zero, 0)
    result.point(rt.Globals.pool, make_pool())
    result.point(rt.Globals.types, make_pointer_table(CODES))
    descriptors = StructMemory(8 * len(CODES))  # NULL: not loaded
    result.point(rt.Globals.descrs, descriptors)
    result.set(rt.Globals.bfloat16, -1)

    def store_descriptor(dtype: DType) -> None:
        descriptors.refer(8 * CODES.index(dtype), dtype.np)
        if dtype is dt.bfloat16:
            result.set(rt.Globals.bfloat16, dtype.np.num)

    for dtype in CODES:
        dtype.call_when_loaded(store_descriptor)
    result.set(rt.Globals.active, id(dispatch_state.ACTIVE))
    result.set(rt.Globals.state, id(dispatch_state.variable))
    for offset, value in {
        rt.Globals.node: Node,
        rt.Globals.meta: AutogradMeta,
        rt.Globals.hold: Hold,
        rt.Globals.spec: TensorSpec,
        rt.Globals.sequence: sequence,
        rt.Globals.empty: (),
        rt.Globals.nothing: "",
        rt.Globals.one: 1,
        rt.Globals.cpu: "cpu",
    }.items():
        result.refer(offset, value)
    return result


class Recorder(NamedTuple):
    """Records calls on tensors that require gradients.

    Attributes:
        call: the Python function, of the arguments and the result.
        recording: the struct by which machine code does it; None if it cannot.
    """

    call: Callable[..., Any]
    recording: StructMemory | None


class OperatorStruct(StructMemory):
    """The struct that the entry of one operator reads.

    Args:
        process: the process struct.
        fall_back: called on a failed guard.
        miss: called on operand types without a variant.
        names: the keywords that the entry knows, in the order that it expects.
    """

    def __init__(self, process: StructMemory, fall_back: Any, miss: Any, names: tuple[str, ...] = ()) -> None:
        super().__init__(sizeof(rt.OperatorEntry))
        self.point(rt.OperatorEntry.globals_, process)
        self.refer(rt.OperatorEntry.fall_back, fall_back)
        self.refer(rt.OperatorEntry.miss, miss)
        self.refer(rt.OperatorEntry.names, tuple(map(sys.intern, names)))
        self.variants: dict[int, StructMemory] = {}
        self._publish(8)

    @property
    def calls(self) -> int:
        """Calls run by the entry."""
        return self.get(rt.OperatorEntry.calls)

    def set_recorder(self, recorder: Recorder | None) -> None:
        """Set the recorder of calls on tensors that require gradients; None sends such calls to Python."""
        self.set(rt.OperatorEntry.records, 0)
        if recorder is not None:
            self.replace(rt.OperatorEntry.record, recorder.call, id(recorder.call))
            if recorder.recording is None:
                self.set(rt.OperatorEntry.recording, 0)
            else:
                self.replace(rt.OperatorEntry.recording, recorder.recording, recorder.recording.address)
            self.set(rt.OperatorEntry.records, 1)

    def add(self, variant: StructMemory) -> None:
        """Make a variant reachable. The old table stays: a thread may be reading it."""
        self.variants[variant.get(rt.Variant.key)] = variant
        self._publish(max(8, 1 << (4 * len(self.variants)).bit_length()))

    def clear(self) -> None:
        """Remove all variants (the operator's kernels have changed)."""
        self.variants = {}
        self._publish(8)

    def _publish(self, size: int) -> None:
        table = StructMemory(8 * size + 8)
        table.set(0, size - 1)
        for key, variant in self.variants.items():
            index = (key ^ key >> 5) & (size - 1)
            while table.get(8 * index + 8):
                index = (index + 1) & (size - 1)
            table.point(8 * index + 8, variant)
        self.point(rt.OperatorEntry.variants, table)


def make_variant(
    key: int, loop: int, out: DType | None, to: tuple[DType, ...], keep: Any = None
) -> StructMemory:
    """Return the variant of one combination of operand types.

    Args:
        key: the operands' codes, 5 bits each.
        loop: address of the loop; 0 leaves the combination to Python.
        out: the result's dtype.
        to: per operand, the dtype that its elements have (a Python scalar is written as it).
        keep: the object that keeps the loop's code alive.
    """
    result = StructMemory(sizeof(rt.Variant))
    result.kept.append(keep)
    result.set(rt.Variant.key, key)
    result.set(rt.Variant.loop, loop)
    if out is not None:
        result.refer(rt.Variant.descr, out.np)
        result.set(rt.Variant.itemsize, out.itemsize)
    for i, dtype in enumerate(to):
        result.set(rt.Variant.sizes + 8 * i, dtype.itemsize)
        result.set(rt.Variant.scalar_codes + 8 * i, CODES.index(dtype))
    result.set(rt.Variant.release, rt.RELEASE_ELEMENTS)
    return result

"""The memory that native entries read, written from Python: process record, operator records, variants.

A record keeps every Python object and every piece of code that it points to alive, and lives as long as the process:
a thread may be inside an entry at any time.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ....eager.meta import AutogradMeta
from ....eager.node import Node, sequence
from ....eager.storage import Hold, Storage
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ....registry.keys import CPU_KEYS, GRAD_CPU_KEYS
from ....registry.values import TensorSpec
from . import rt_base as rt
from . import rt_elementwise as ew
from . import rt_memory

# The code of a dtype is its place here; `rt_operands` has the same numbers.
CODES: tuple[DType, ...] = dt.ALL[:1] + dt.SIGNED + dt.UNSIGNED + dt.FLOATS + dt.COMPLEX
WEAK_CODES: dict[int, type] = {16: bool, 17: int, 18: float, 19: complex}

SPARE_BYTES = 1 << 29  # the most memory that lies unused in the pool of result buffers


class Record:
    """A block of memory with named fields of 8 bytes, and what it keeps alive."""

    def __init__(self, size: int) -> None:
        self.memory: Any = ctypes.create_string_buffer(size)
        self.address = ctypes.addressof(self.memory)
        self.kept: list[Any] = []

    def set(self, offset: int, value: int) -> None:
        ctypes.c_int64.from_address(self.address + offset).value = value

    def get(self, offset: int) -> int:
        return ctypes.c_int64.from_address(self.address + offset).value

    def word(self, offset: int) -> Any:
        """One field as an object with a `value`; whoever uses it keeps the record."""
        return ctypes.c_int64.from_address(self.address + offset)

    def refer(self, offset: int, value: Any) -> None:
        """Store the address of a Python object and keep the object."""
        self.kept.append(value)
        self.set(offset, id(value))

    def point(self, offset: int, other: Record) -> None:
        """Store the address of another record and keep it."""
        self.kept.append(other)
        self.set(offset, other.address)

    def replace(self, offset: int, value: Any, address: int) -> None:
        """Store the address of what may come and go, and keep it: once, however often it comes."""
        if all(value is not known for known in self.kept):
            self.kept.append(value)
        self.set(offset, address)


def dtype_map() -> Record:
    """NumPy's type numbers to codes; 255 for types that native code does not know."""
    found = Record(256)
    found.memory.raw = bytes([255]) * 256
    for code, dtype in enumerate(CODES):
        if dtype.np.num < 256 and dtype is not dt.bfloat16:
            found.memory[dtype.np.num] = code
    for alias in "qQ":  # long long is int64 by another number
        found.memory[np.dtype(alias).num] = CODES.index(dt.as_dtype(np.dtype(alias)))
    return found


def table_of(values: Iterable[Any]) -> Record:
    """The addresses of objects, one after the other."""
    values = list(values)
    found = Record(8 * len(values))
    for place, value in enumerate(values):
        found.refer(8 * place, value)
    return found


def pool_record() -> Record:
    """An empty pool of result buffers."""
    found = Record(rt_memory.P_SIZE_OF)
    found.set(rt_memory.P_LIMIT, SPARE_BYTES)
    return found


def process_record(tensor: type) -> Record:
    """The record that all entries reach: classes, key sets, dtype map."""
    found = Record(rt.G_SIZE)
    found.refer(rt.G_TENSOR, tensor)
    found.refer(rt.G_KEYS, CPU_KEYS)
    found.refer(rt.G_GRAD_KEYS, GRAD_CPU_KEYS)
    found.point(rt.G_DTYPES, dtype_map())
    found.refer(rt.G_STORAGE, Storage)
    found.refer(rt.G_ZERO, 0)
    found.point(rt.G_POOL, pool_record())
    found.point(rt.G_TYPES, table_of(CODES))
    found.point(rt.G_DESCRS, table_of(dtype.np for dtype in CODES))
    found.set(rt.G_BFLOAT16, dt.bfloat16.np.num)
    for offset, value in {
        rt.G_NODE: Node,
        rt.G_META: AutogradMeta,
        rt.G_HOLD: Hold,
        rt.G_SPEC: TensorSpec,
        rt.G_SEQUENCE: sequence,
        rt.G_EMPTY: (),
        rt.G_NOTHING: "",
        rt.G_ONE: 1,
        rt.G_CPU: "cpu",
    }.items():
        found.refer(offset, value)
    return found


class Recorder(NamedTuple):
    """What records calls with history.

    Attributes:
        call: the Python function, of the arguments and the result.
        plan: how machine code does it; None where it cannot.
    """

    call: Callable[..., Any]
    plan: Record | None


class OperatorRecord(Record):
    """What the entry of one operator reads.

    Args:
        process: the process record.
        slow: called on a failed guard.
        miss: called on operand types without a variant.
        names: the keywords that the entry knows, in the order that it expects.
    """

    def __init__(self, process: Record, slow: Any, miss: Any, names: tuple[str, ...] = ()) -> None:
        super().__init__(rt.D_SIZE)
        self.point(rt.D_GLOBALS, process)
        self.refer(rt.D_SLOW, slow)
        self.refer(rt.D_MISS, miss)
        self.refer(rt.D_NAMES, tuple(map(sys.intern, names)))
        self.variants: dict[int, Record] = {}
        self._publish(8)

    @property
    def calls(self) -> int:
        """Calls answered natively."""
        return self.get(rt.D_CALLS)

    def set_recorder(self, recorder: Recorder | None) -> None:
        """What records a call on tensors with history; None sends such calls to Python."""
        self.set(rt.D_RECORDS, 0)
        if recorder is not None:
            self.replace(rt.D_RECORD, recorder.call, id(recorder.call))
            if recorder.plan is None:
                self.set(rt.D_PLAN, 0)
            else:
                self.replace(rt.D_PLAN, recorder.plan, recorder.plan.address)
            self.set(rt.D_RECORDS, 1)

    def add(self, variant: Record) -> None:
        """Make a variant reachable. The old table stays: a thread may be reading it."""
        self.variants[variant.get(ew.V_KEY)] = variant
        self._publish(max(8, 1 << (4 * len(self.variants)).bit_length()))

    def clear(self) -> None:
        """Forget all variants (the operator's kernels have changed)."""
        self.variants = {}
        self._publish(8)

    def _publish(self, size: int) -> None:
        table = Record(8 * size + 8)
        table.set(0, size - 1)
        for key, variant in self.variants.items():
            place = (key ^ key >> 5) & (size - 1)
            while table.get(8 * place + 8):
                place = (place + 1) & (size - 1)
            table.point(8 * place + 8, variant)
        self.point(rt.D_TABLE, table)


def variant_record(key: int, loop: int, out: DType | None, to: tuple[DType, ...], keep: Any = None) -> Record:
    """One combination of operand types.

    Args:
        key: the operands' codes, 5 bits each.
        loop: address of the loop; 0 leaves the combination to Python.
        out: the result's dtype.
        to: per operand, the dtype that its elements have (a Python scalar is written as it).
        keep: what holds the loop's code.
    """
    found = Record(ew.V_RECORD_SIZE)
    found.kept.append(keep)
    found.set(ew.V_KEY, key)
    found.set(ew.V_LOOP, loop)
    if out is not None:
        found.refer(ew.V_DESCR, out.np)
        found.set(ew.V_ITEMSIZE, out.itemsize)
    for i, dtype in enumerate(to):
        found.set(ew.V_SIZES + 8 * i, dtype.itemsize)
        found.set(ew.V_TO + 8 * i, CODES.index(dtype))
    return found

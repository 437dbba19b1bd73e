"""The memory that native entries read, written from Python: process struct, operator structs, variants.

A struct keeps every Python object and every piece of code that it points to alive, and lives as long as the process:
a thread may be inside an entry at any time.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..... import lazy
from .....eager.autograd.autograd_meta import AutogradMeta
from .....eager.autograd.node import Node, sequence
from .....eager.tensor.storage import Hold, Number, Storage
from .....eager.tensor.tensor import Tensor, wrap
from .....named_tuple import NamedTuple
from .....registry import dtypes as dt
from .....registry.dispatch import state as dispatch_state
from .....registry.dispatch.keys import CPU_KEYS, GRAD_CPU_KEYS, WEAK_KEYS
from .....registry.dtypes import DType
from .....registry.operator import Operator
from .....registry.values import TensorSpec
from ..compiler.engine import Code
from ..compiler.structs import sizeof
from ..runtime import rt_base as rt

# The code of a dtype is its index here; `rt_operands` has the same numbers.
CODES: tuple[DType, ...] = dt.ALL[:1] + dt.SIGNED + dt.UNSIGNED + dt.FLOATS + dt.COMPLEX
CODE_OF: dict[DType, int] = {dtype: code for code, dtype in enumerate(CODES)}
"""The codes of dtypes, which are found by their hashes and not compared one by one."""
WEAK_CODES: dict[int, type] = {16: bool, 17: int, 18: float, 19: complex}

_TYPE_NAMES = {dt.bool_: "u8", dt.bfloat16: "u16", dt.complex64: "f32", dt.complex128: "f64"}

_write_result = lazy.Functions(".registry.respelled_calls").write_result
_spellings_of = lazy.Functions(".registry.respelled_calls").spellings_of
_find_operands = lazy.Functions(".backends.cpu.fastpath.glue.operand_stack").find_operands

CONSTANTS: dict[str, Any] = {
    "keys": CPU_KEYS,
    "grad_keys": GRAD_CPU_KEYS,
    "weak_keys": WEAK_KEYS,
    "zero": 0,
    "one": 1,
    "empty": (),
    "nothing": "",
    "cpu": "cpu",
    "out_name": sys.intern("out"),
    "flags_name": sys.intern("flags"),
}
"""Objects that the process struct refers to, by its fields."""
FREE_TENSORS = 128  # destroyed ones whose memory is kept, at most
SPARE_ARRAY_BYTES = 1 << 14  # of an array of a destroyed tensor that is kept
SPARE_BYTES = 1 << 29  # maximum free memory in the pool of result buffers


class StructMemory:
    """A block of memory with fields of 8 bytes, which keeps the objects that it points to alive.

    Args:
        layout: the struct, or a number of bytes.
        fields: values of fields of the struct, as for `store`.
    """

    def __init__(self, layout: Any, **fields: Any) -> None:
        self.memory: Any = ctypes.create_string_buffer(sizeof(layout) if isinstance(layout, type) else layout)
        self.address = ctypes.addressof(self.memory)
        self.kept: list[Any] = []
        for name, value in fields.items():
            self.store(getattr(layout, name), value)

    def set(self, offset: Any, value: int) -> None:
        ctypes.c_int64.from_address(self.address + offset).value = value

    def get(self, offset: Any) -> int:
        return ctypes.c_int64.from_address(self.address + offset).value

    def field(self, offset: Any) -> ctypes.c_int64:
        """Return a field that is stored often; its `value` is the content."""
        return ctypes.c_int64.from_address(self.address + offset)

    def refer(self, offset: Any, value: Any) -> None:
        """Store the address of a Python object and keep the object alive."""
        self.kept.append(value)
        self.set(offset, id(value))

    def point(self, offset: Any, other: StructMemory) -> None:
        """Store the address of another struct and keep it alive."""
        self.kept.append(other)
        self.set(offset, other.address)

    def store(self, offset: Any, value: Any) -> None:
        """Store an int as a number, and anything else as the address of a struct or object that is kept alive."""
        if type(value) is int:
            self.set(offset, value)
        elif isinstance(value, StructMemory):
            self.point(offset, value)
        else:
            self.refer(offset, value)

    def replace(self, offset: Any, value: Any) -> None:
        """Store, as `store` does, what may be replaced repeatedly, and keep it alive once."""
        if type(value) is not int and any(value is known for known in self.kept):
            value = value.address if isinstance(value, StructMemory) else id(value)
        self.store(offset, value)


class HashTable(StructMemory):
    """A hash table of structs with open addressing: its size - 1, then their addresses; 0 is free.

    Args:
        count: the number of structs; there is room for as many more.
    """

    def __init__(self, count: int) -> None:
        size = max(8, 1 << (4 * count).bit_length())
        super().__init__(8 * size + 8)
        self.mask = size - 1
        self.set(0, self.mask)

    def insert(self, code: int, item: StructMemory) -> None:
        """Insert a struct at the first free index after its hash code."""
        index = code & self.mask
        while self.get(8 * index + 8):
            index = (index + 1) & self.mask
        self.point(8 * index + 8, item)


def make_dtype_map() -> StructMemory:
    """Return a map of NumPy's type numbers to codes; 255 for types that native code does not support."""
    result = StructMemory(256)
    result.memory.raw = bytes([255]) * 256
    for code, dtype in enumerate(CODES):
        if dtype is not dt.bfloat16 and dtype.np.num < 256:
            result.memory[dtype.np.num] = code
    for alias in "qQ":  # long long is int64 with another type number
        result.memory[np.dtype(alias).num] = CODE_OF[dt.as_dtype(np.dtype(alias))]
    return result


class DTypeObjects(StructMemory):
    """A hash table of the objects that name dtypes: their addresses, and the codes of the dtypes.

    These are DTypes, NumPy's dtypes and scalar types, Python's types of numbers, and interned names such as
    ``"float64"`` and ``"f8"``. The codes of ``float`` and ``complex`` follow the default dtypes.

    It is empty until :meth:`fill` is called, before the first entry that reads dtypes is loaded.
    """

    def __init__(self) -> None:
        super().__init__(16 * (rt.DTYPE_OBJECT_MASK + 1))
        self.cells: Any = (ctypes.c_int64 * (2 * rt.DTYPE_OBJECT_MASK + 2)).from_buffer(self.memory)
        self.is_filled = False

    def fill(self) -> None:
        """Insert all objects, once."""
        if self.is_filled:
            return
        self.is_filled = True
        for code, dtype in enumerate(CODES):
            self.insert(dtype, code)
            self.insert(sys.intern(dtype.name), code)
            if dtype is not dt.bfloat16:
                self.insert(sys.intern(f"{dtype.kind}{dtype.itemsize}"), code)
            dtype.call_when_loaded(self.insert_numpy_types)
        for alias in (np.dtype("q"), np.dtype("Q")):  # long long is int64 with another type number
            self.insert(alias, CODE_OF[dt.as_dtype(alias)])
            self.insert(alias.type, CODE_OF[dt.as_dtype(alias)])
        self.insert(bool, CODE_OF[dt.bool_])
        self.insert(int, CODE_OF[dt.DEFAULT_INT])
        self.store_defaults()
        dt.default_listeners.append(self.store_defaults)

    def insert(self, value: object, code: int) -> None:
        """Insert an object, or replace its code; a reader finds the object only after its code."""
        index = id(value) >> rt.DTYPE_OBJECT_SHIFT & rt.DTYPE_OBJECT_MASK
        while self.cells[2 * index] not in (0, id(value)):
            index = (index + 1) & rt.DTYPE_OBJECT_MASK
        self.cells[2 * index + 1] = code
        if not self.cells[2 * index]:
            self.kept.append(value)
            self.cells[2 * index] = id(value)

    def insert_numpy_types(self, dtype: DType) -> None:
        """Insert NumPy's dtype and scalar type."""
        self.insert(dtype.np, CODE_OF[dtype])
        self.insert(dtype.np.type, CODE_OF[dtype])

    def store_defaults(self) -> None:
        """Store the codes of ``float`` and ``complex``."""
        self.insert(float, CODE_OF[dt.default_float()])
        self.insert(complex, CODE_OF[dt.default_complex()])


def make_process_struct(dtype_objects: DTypeObjects) -> StructMemory:
    """Return the struct that all entries reach: classes, key sets, dtype map."""
    types, descriptors, scalars = (StructMemory(8 * len(CODES)) for _ in range(3))  # NULL: not loaded
    result = StructMemory(
        rt.Globals,
        dtypes=make_dtype_map(),
        pool=StructMemory(rt.Pool, limit=SPARE_BYTES),
        spare_arrays=StructMemory(rt.SpareArrays, limit=SPARE_ARRAY_BYTES),
        spare_numbers=StructMemory(2 * rt.WEAK_BOOL * sizeof(rt.NumberList)),
        free_list=StructMemory(rt.FreeList, limit=FREE_TENSORS),
        types=types,
        dtype_objects=dtype_objects,
        descrs=descriptors,
        bfloat16=-1,
        active=id(dispatch_state.ACTIVE),
        state=id(dispatch_state.variable),
        tensor=Tensor,
        array=np.ndarray,
        storage=Storage,
        number=Number,
        node=Node,
        meta=AutogradMeta,
        hold=Hold,
        spec=TensorSpec,
        sequence=sequence,
        weak_references=Tensor.__weakrefoffset__,
        find_operands=_find_operands,
        scalar_types=scalars,
    )

    def store_descriptor(code: int, dtype: DType) -> None:
        descriptors.refer(8 * code, dtype.np)
        if dtype is dt.bfloat16:
            result.set(rt.Globals.bfloat16, dtype.np.num)

    for code, dtype in enumerate(CODES):
        if dtype is not dt.bfloat16:
            scalars.refer(8 * code, dtype.np.type)
        types.refer(8 * code, dtype)
        dtype.call_when_loaded(partial(store_descriptor, code))

    def follow_default() -> None:
        result.set(rt.Globals.default_float, CODE_OF[dt.default_float()])

    dt.default_listeners.append(follow_default)
    follow_default()
    for name, value in CONSTANTS.items():  # ints by their addresses
        result.refer(getattr(rt.Globals, name), value)
    return result


class EntryStruct(StructMemory):
    """The struct that an entry reads.

    Args:
        layout: the struct, an `OperatorEntry`.
        process: the process struct.
        fall_back: called on a failed guard.
        fields: values of further fields.
    """

    def __init__(self, layout: Any, process: StructMemory, fall_back: Any, **fields: Any) -> None:
        super().__init__(layout, globals_=process, fall_back=fall_back, **fields)

    @property
    def calls(self) -> int:
        """Calls run by the entry."""
        return self.get(rt.OperatorEntry.calls)


def find_writer(op: Operator | None) -> Any:
    """Return the function that writes a result of an operator into `out`; 0 where entries do not handle that name."""
    return 0 if op is None or "out" in op.binder.names else partial(_write_result, op)


_SAMPLES: dict[type, tuple[Any, ...]] = {
    bool: (False, True),
    int: (0, 1, -1, 7),
    float: (0.0, 0.5, -1.0, float("nan")),
    DType: (dt.float32, dt.int64),
    Tensor: (np.zeros(2), np.zeros(()), np.ones((), np.int64), np.ones((), np.bool_)),  # as tensors
}


def find_last_names(op: Operator | None) -> dict[str, Any]:
    """Return the fields of an entry for calls with one positional argument more than the schema of an operator has.

    That is `out` or a keyword-only argument: the one that accepts samples of its type, if that is the same for all.
    """
    if op is None or not find_writer(op):
        return {}
    spellings = _spellings_of(op)
    if spellings.variadic or getattr(op.decl, "variadic", None):
        return {}
    names = {}
    for kind, samples in _SAMPLES.items():
        options = {spellings.option_for(wrap(x) if kind is Tensor else x, {}) for x in samples}
        if kind is Tensor and not spellings.returns_view:
            options = {option or "out" for option in options}
        if len(options) == 1 and options != {""}:
            names[kind] = (sys.intern(options.pop()),)
    return {"limit": op.binder.limit, "last_names": names} if names else {}


class Recorder(NamedTuple):
    """Records calls on tensors that require gradients.

    Attributes:
        call: the Python function, of the arguments and the result; None if the entry calls operators that record.
        recording: the struct by which machine code does it; None if it cannot.
    """

    call: Callable[..., Any] | None
    recording: StructMemory | None


class OperatorStruct(EntryStruct):
    """The struct that the entry of one operator reads.

    Args:
        process: the process struct.
        fall_back: called on a failed guard.
        miss: called on operand types without a variant.
        names: the keywords that the entry knows, in the order that it expects.
        layout: the struct, an `OperatorEntry`.
        fields: values of further fields.
    """

    def __init__(
        self,
        process: StructMemory,
        fall_back: Any,
        miss: Any,
        names: tuple[str, ...] = (),
        layout: Any = rt.OperatorEntry,
        **fields: Any,
    ) -> None:
        known = tuple(map(sys.intern, names))
        super().__init__(layout, process, fall_back, miss=miss, names=known, **fields)
        self.variants: dict[int, StructMemory] = {}
        self._publish()

    def set_recorder(self, recorder: Recorder | None) -> None:
        """Set the recorder of calls on tensors that require gradients; None sends such calls to Python."""
        self.set(rt.OperatorEntry.records, 0)
        if recorder is not None:
            self.replace(rt.OperatorEntry.record, recorder.call)
            self.replace(rt.OperatorEntry.recording, recorder.recording or 0)
            self.set(rt.OperatorEntry.records, 1)

    def add(self, *variants: StructMemory) -> None:
        """Make variants reachable. The old table stays: a thread may be reading it."""
        known = {variant.get(rt.Variant.key): variant for variant in variants}
        if not known.keys() <= self.variants.keys():
            self.variants |= known
            self._publish()

    def clear(self) -> None:
        """Remove all variants. They and the old table stay in memory: a thread may be reading them."""
        if self.variants:
            self.kept.append(self.variants)
            self.variants = {}
            self._publish()

    def _publish(self) -> None:
        table = HashTable(len(self.variants))
        for key, variant in self.variants.items():
            table.insert(key ^ key >> 5, variant)
        self.point(rt.OperatorEntry.variants, table)


def make_variant(
    key: int,
    code: Code | None = None,
    out: DType | None = None,
    to: tuple[DType, ...] = (),
    layout: Any = rt.Variant,
    **fields: Any,
) -> StructMemory:
    """Return the variant of one combination of operand types.

    Args:
        key: the operands' codes, 5 bits each.
        code: the loop; None leaves the combination to Python.
        out: the result's dtype.
        to: per operand, the dtype that its elements have (a Python scalar is written as it).
        layout: the struct, a `Variant`.
        fields: values of further fields.
    """
    if code is None or out is None:
        return StructMemory(layout, key=key)
    known = {"descr": out.np, "itemsize": out.itemsize, "release": rt.RELEASE_ELEMENTS}
    result = StructMemory(layout, key=key, loop=code["loop"], **known | fields)
    result.kept.append(code)
    for i, dtype in enumerate(to):
        result.set(rt.Variant.sizes + 8 * i, dtype.itemsize)
        result.set(rt.Variant.scalar_codes + 8 * i, CODE_OF[dtype])
    return result


def machine_type(dtype: DType) -> str:
    """Return the native language's name of a dtype, or of the parts of a complex one; bfloat16 is its bits."""
    return _TYPE_NAMES.get(dtype) or f"{dtype.kind}{8 * dtype.itemsize}"


def unpack_codes(key: int, arity: int) -> tuple[int, ...]:
    """Return the operands' codes in a key."""
    return tuple(key >> rt.CODE_BITS * i & 31 for i in range(arity))

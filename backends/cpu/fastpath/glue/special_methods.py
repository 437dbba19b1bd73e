"""The special methods that slots of the type Tensor call at once: `x + y`, `x += y`, `-x`, `x < y`, `x[key]`.

CPython's slots of a class look for the method in the class, and the native ones know it. CPython puts its own slot back
when a special method is assigned to the class or deleted, and subclasses have CPython's slots.
"""

from __future__ import annotations

import functools
from typing import Any

from .....eager.tensor.tensor import Tensor
from .....named_tuple import NamedTuple
from .....registry import native_type
from ..runtime import rt_base
from .runtime import Runtime
from .structs import StructMemory

# The offsets of slots in the table of numbers.
BINARY = {
    "add": 0,
    "sub": 8,
    "mul": 16,
    "mod": 24,
    "lshift": 88,
    "rshift": 96,
    "and": 104,
    "xor": 112,
    "or": 120,
    "floordiv": 232,
    "truediv": 240,
    "matmul": 272,
}
INPLACE = {
    "iadd": 152,
    "isub": 160,
    "imul": 168,
    "imod": 176,
    "ilshift": 192,
    "irshift": 200,
    "iand": 208,
    "ixor": 216,
    "ior": 224,
    "ifloordiv": 248,
    "itruediv": 256,
}
UNARY = {"neg": 48, "pos": 56, "abs": 64, "invert": 80}
COMPARISON = ("lt", "le", "eq", "ne", "gt", "ge")  # in CPython's order

METHODS = (*BINARY, *(f"r{name}" for name in BINARY), *INPLACE, *UNARY, *COMPARISON, "getitem")
"""The methods, by their indices in `Globals.methods`."""


class MethodSlot(NamedTuple):
    """A slot of a type that calls special methods.

    Attributes:
        entry: the kind of the native entry.
        protocol: the offset in a type of the address of the table that has the slot; 0: the type has it.
        offset: the offset in the table.
        methods: the methods, without underscores.
        before: the field of the process struct for CPython's function; empty: it is not called.
    """

    entry: str
    protocol: int
    offset: int
    methods: tuple[str, ...]
    before: str = ""

    def find(self, cls: type) -> Any:
        """Return the slot of a class, whose `value` is the address of the function."""
        return native_type.find_slot(cls, self.protocol, self.offset)


SLOTS = (
    *(
        MethodSlot(f"slot_{name}", native_type.AS_NUMBER, at, (name, f"r{name}"))
        for name, at in BINARY.items()
    ),
    *(
        MethodSlot(f"slot_{name}", native_type.AS_NUMBER, at, (name,))
        for name, at in (INPLACE | UNARY).items()
    ),
    MethodSlot("slot_compare", 0, native_type.TP_RICHCOMPARE, COMPARISON),
    MethodSlot("slot_subscript", native_type.AS_MAPPING, 8, ("getitem",), "get_subscript"),
    MethodSlot("slot_item", native_type.AS_SEQUENCE, 24, ("getitem",), "get_item"),
)


def install_slots(runtime: Runtime, method: object) -> None:
    """Give Tensor the native slots that call a special method, once; the registry's lock is held."""
    own = vars(Tensor)
    for slot in SLOTS:
        methods = [own.get(f"__{name}__") for name in slot.methods]
        if method in methods and all(isinstance(one, native_type.NativeCallable) for one in methods):
            _install(runtime, slot, methods)


@functools.cache
def _make_table(runtime: Runtime) -> StructMemory:
    """Return the table of the methods that slots call, which the process struct refers to."""
    result = StructMemory(8 * len(METHODS))
    runtime.process.point(rt_base.Globals.methods, result)
    return result


def _install(runtime: Runtime, slot: MethodSlot, methods: list[Any]) -> None:
    table = _make_table(runtime)
    for name, method in zip(slot.methods, methods):
        table.replace(8 * METHODS.index(name), method)
    target = slot.find(Tensor)
    if target.value and target.value == _find_python_slot(slot):
        if slot.before:
            runtime.process.set(getattr(rt_base.Globals, slot.before), target.value)
        target.value = runtime.entry(slot.entry)
        if slot.entry == "slot_item":
            runtime.process.set(rt_base.Globals.own_item, target.value)


def _find_python_slot(slot: MethodSlot) -> int | None:
    """Return the address of CPython's function in a slot, which a class with one special method has; None: it has not.

    It is None if the slot is not where it is expected.
    """
    probe = type("Probe", (), {f"__{slot.methods[0]}__": lambda *args: None})
    value: int | None = slot.find(probe).value
    return value

"""Offsets of the slots of tandem's classes in their instances, which native functions access; verified before use."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from .....eager.autograd.autograd_meta import AutogradMeta
from .....eager.autograd.node import Node
from .....eager.layers.level_stack import Level
from .....eager.tensor.storage import Hold, Number, Storage
from .....eager.tensor.tensor import Tensor
from .....registry.dispatch import state as dispatch_state
from ..compiler import structs
from ..compiler.structs import read
from ..runtime.rt_base import GuardsObject, LevelObject, StorageObject, TensorObject
from ..runtime.rt_operands import NumberObject
from ..runtime.rt_record import MetaObject, NodeObject
from ..runtime.rt_saved import HoldObject

MEMBER_DEF, MEMBERDEF_OFFSET = 40, 16

# Entries read these also while the interpreter exits, so they are never freed. Structs do not refer to them: the
# number of references from anything but states is known.
for lasting in (dispatch_state.ACTIVE, dispatch_state.variable):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))
AT_REST = dispatch_state.IDLE_REFERENCES + 1


def slot_offset(cls: type, name: str) -> int:
    """Return the offset of a `__slots__` entry in the instances of a class."""
    offset: int = read("i64", read("i64", id(cls.__dict__[name]) + MEMBER_DEF) + MEMBERDEF_OFFSET)
    return offset


def slot_constants(cls: Any, struct: Any, probe: Any = None) -> dict[str, int]:
    """Return the offsets of the slots that a struct declares as compile-time constants, such as `T_ARRAY`.

    Args:
        cls: the class.
        struct: the struct of its slots.
        probe: an instance with all slots filled; None to make one whose slots may be filled with anything.

    Raises:
        RuntimeError: the class does not have a slot, or a slot is not where its descriptor says.
    """
    result, fields = {}, vars(struct)["__annotations__"]
    names = [name for name in cls.__slots__ if name.strip("_") in fields]
    if len(names) < len(fields):
        raise RuntimeError(f"{cls.__name__} does not have all of {', '.join(fields)}")
    if probe is None:
        probe = cls.__new__(cls)
        for name in names:
            setattr(probe, name, object())
    for name in names:
        offset = result[struct.slot_prefix + name.strip("_").upper()] = slot_offset(cls, name)
        if read("i64", id(probe) + offset) != id(getattr(probe, name)):
            raise RuntimeError(f"slot {name} of {cls.__name__} is not at offset {offset}")
    structs.slot_offsets.update(result)
    return result


# The classes whose slots native functions access; those that it instantiates, of which it fills all slots, first.
_CREATED: dict[Any, Any] = {Node: NodeObject, AutogradMeta: MetaObject, Hold: HoldObject}
_CLASSES: dict[Any, Any] = {
    **_CREATED,
    Tensor: TensorObject,
    dispatch_state.Guards: GuardsObject,
    Storage: StorageObject,
    Number: NumberObject,
    Level: LevelObject,
}


@functools.cache
def class_constants() -> dict[str, int]:
    """Return slot offsets of the classes whose instances native functions read or create.

    Raises:
        RuntimeError: a class has other slots than machine code fills, or a slot is not where its descriptor says.
    """
    result = {"AT_REST": AT_REST}
    for cls, struct in _CLASSES.items():
        known = vars(struct)["__annotations__"]
        unknown = {name.strip("_") for name in cls.__slots__} - {
            *known,
            "weakref",
            *getattr(cls, "OPTIONAL", ()),
        }
        if unknown and cls in _CREATED:
            raise RuntimeError(f"native code does not know {cls.__name__}.{', '.join(sorted(unknown))}")
        result |= slot_constants(cls, struct, Hold(Storage(None)) if cls is Hold else None)
    return result

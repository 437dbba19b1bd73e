"""`Tensor.__array_ufunc__` and `Tensor.__array_function__` as methods with native entries, and slots of the type.

Their fallback is the methods' Python code, which fills the tables of NumPy's functions.
"""

from __future__ import annotations

from typing import Any

from ..... import lazy
from .....eager.tensor.tensor import Tensor
from .....registry import native_type
from .....registry.values import TensorBase
from ..runtime import rt_base
from . import special_methods
from .patch_points import TensorMethod
from .runtime import Runtime
from .structs import EntryStruct
from .stubs import FunctionStub

numpy_protocols = lazy.Module(".eager.tensor.interop.numpy_protocols")
rt_protocols = lazy.Module(".backends.cpu.fastpath.entries.rt_protocols")

# kind of entry: the method, the table of NumPy's functions, and the keywords that tandem's functions have too
METHODS = {
    "array_ufunc": ("__array_ufunc__", "known_ufuncs", ()),
    "array_function": ("__array_function__", "known_functions", ("axis", "keepdims", "dtype", "out")),
}

SLOTS = {
    "to_array": ("get_buffer", native_type.AS_BUFFER, 0),
    "read_length": ("get_length", native_type.AS_SEQUENCE, 0),
    "to_bool": ("get_truth", native_type.AS_NUMBER, native_type.NB_BOOL),
    "to_int": ("get_int", native_type.AS_NUMBER, native_type.NB_INT),
    "to_float": ("get_float", native_type.AS_NUMBER, native_type.NB_FLOAT),
    "iterate": ("get_iterator", 0, native_type.TP_ITER),
}
"""By kind of entry: the entry of a slot of the type, which is also the field of the function before, and the slot."""


@native_type.bind_natively
@native_type.accept_entries
class ProtocolMethod(TensorMethod):
    """A method that NumPy calls.

    Args:
        runtime: the entries of this process.
        kind: the kind of entry.
        function: the Python code of the method.

    Attributes:
        stub: the native entry; it counts the calls while the method is cold.
    """

    def __init__(self, runtime: Runtime, kind: str, function: Any) -> None:
        super().__init__(METHODS[kind][0], function)
        self.stub = ProtocolStub(runtime, self, kind)


class ProtocolStub(FunctionStub):
    """The native entry of a method that NumPy calls."""

    def make_struct(self) -> EntryStruct:
        """Return the struct that the entry reads."""
        _, table, passed = METHODS[self.kind]
        fields = {"functions": getattr(numpy_protocols, table), "passed": passed, "call": "__call__"}
        return EntryStruct(rt_protocols.ProtocolEntry, self.runtime.process, self.python, **fields)


def install_slot(runtime: Runtime, kind: str, method: object) -> None:
    """Give Tensor the native slot that has the meaning of an entry, if there is one; the registry's lock is held.

    The slot leaves unusual tensors to the function that was there before. If Tensor has another method by now, it
    keeps that method's slot.
    """
    if kind in SLOTS and any(one is method for one in vars(Tensor).values()):
        entry, protocol, offset = SLOTS[kind]
        before, slot = getattr(rt_base.Globals, entry), native_type.find_slot(Tensor, protocol, offset)
        if slot.value and not runtime.process.get(before):
            runtime.process.set(before, slot.value)
            slot.value = runtime.entry(entry)


def install_method_slots(runtime: Runtime, method: object) -> None:
    """Give Tensor the native slots that call a method, and the native deallocator; the registry's lock is held."""
    _install_deallocator(runtime)
    special_methods.install_slots(runtime, method)


def _install_deallocator(runtime: Runtime) -> None:
    """Give Tensor the native deallocator, once, if it has that of all classes."""
    slot = native_type.deallocator_slot(Tensor)
    if slot.value == native_type.deallocator_slot(TensorBase).value:
        slot.value = runtime.entry("deallocate")


def attach(runtime: Runtime) -> None:
    """Install the methods in Tensor, once."""
    for kind, (name, _, _) in METHODS.items():
        function = Tensor.__dict__[name]
        if not isinstance(function, ProtocolMethod):
            setattr(Tensor, name, ProtocolMethod(runtime, kind, function))

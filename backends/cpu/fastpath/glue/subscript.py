"""`x[key]`, `x[key] = value`, `x.T` and `x.mT` with native entries; their fallback is the methods' Python code."""

from __future__ import annotations

from functools import partial
from typing import Any

from .....eager.tensor.tensor import Tensor
from .....registry import native_type
from .....registry.function import functions
from .patch_points import TensorMethod
from .recording import find_recorder
from .runtime import Runtime
from .stubs import Stub

# kind of entry: the method, how the selected view is recorded (as a call of the first operator; Python runs recorded
# writes), and the operators that the method may call
METHODS = {
    "subscript": ("__getitem__", "bound", ("td::basic_index", "td::index", "td::nonzero")),
    "assign": ("__setitem__", "", ("td::basic_put_", "td::where")),
    "reverse_axes": ("T", "bound", ("td::permute",)),
    "swap_last_axes": ("mT", "bound", ("td::permute",)),
}


@native_type.accept_entries
class SubscriptMethod(TensorMethod):
    """``Tensor.__getitem__``, ``Tensor.__setitem__``, or the function of a property.

    Args:
        runtime: the entries of this process.
        kind: the kind of entry.
        function: the Python code of the method.

    Attributes:
        stub: the native entry; it counts the calls while the method is cold.
    """

    def __init__(self, runtime: Runtime, kind: str, function: Any) -> None:
        name, recorder, called = METHODS[kind]
        super().__init__(name, function)
        operators = [functions[one].operator for one in called]
        record = partial(find_recorder, operators[0], recorder)
        self.stub = Stub(runtime, self, kind, function, operators, recorder=record)


def attach(stubs: Any) -> None:
    """Install the methods in Tensor, once."""
    for kind, (name, _, called) in METHODS.items():
        member = Tensor.__dict__.get(name)
        function = member.fget if isinstance(member, property) else member
        is_new = function is not None and not isinstance(function, SubscriptMethod)
        if is_new and all(one in functions for one in called):
            method = SubscriptMethod(stubs.runtime, kind, function)
            stubs.watch(method.stub)
            setattr(Tensor, name, member.getter(method) if isinstance(member, property) else method)

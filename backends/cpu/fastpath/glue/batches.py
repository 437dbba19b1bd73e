"""Calls of native entries on values of levels: which entries take them, and the globals that these read.

An entry runs a call at a level of `vmap` itself (runtime/rt_batches.py) if its operator has the batching rule of a
kind, and passes one at a level of `jvp` to the operator's `ForwardCall`. The module is loaded when the first level
opens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..... import lazy
from .....eager.layers import levels
from .....eager.layers.level_stack import Level
from .....eager.layers.vmap.tensor import BatchedTensor
from .....eager.tensor.dunders import by_name
from .....operators.declare import batching
from .....registry.dispatch.keys import CPU_KEYS, DispatchKey, keyset
from .....registry.operator import Operator, lock
from ..runtime import rt_base as rt
from ..runtime.rt_batches import Kind
from .stubs import Stub

forward_calls = lazy.Module(".eager.autograd.forward_calls")

KINDS: dict[Callable[..., Any], int] = {
    batching.elementwise: Kind.ELEMENTWISE,
    batching.reduction: Kind.REDUCTION,
    batching.index_reduction: Kind.INDEX_REDUCTION,
    batching.scan: Kind.INDEX_REDUCTION,
    batching.pointwise: Kind.UNCHANGED,
}
# Entries whose calls on batches follow from the entry, not from the rule alone.
ENTRIES: dict[str, int] = {
    "matmul": Kind.PRODUCT,
    "subscript": Kind.SUBSCRIPT,
    "reshape": Kind.RESHAPE,
    "permute": Kind.PERMUTE,
}
BATCH_KEYS = keyset(DispatchKey.Batched, DispatchKey.Level)


def find_kind(stub: Stub) -> int:
    """Return how the calls of an entry on batches are run; 0: by Python."""
    op = stub.operators[0]
    rule: Any = None if op.decl is None or stub.base is not op else getattr(op.decl, "batching", None)
    kind = ENTRIES.get(stub.patch_points[0].kind) or KINDS.get(rule, 0)
    return kind if kind and all(map(_runs_own_layers, stub.operators)) else 0


def _runs_own_layers(op: Operator) -> bool:
    """Return whether no other package has registered a kernel of the operator for values of levels."""
    for key in (DispatchKey.Batched, DispatchKey.Level):
        entry = op.table[key]
        if entry.kind != "fallback" or entry.registration is None or not entry.registration.is_trusted:
            return False
    return True


class Batches:
    """Keeps the structs of entries up to date about calls on batches.

    Args:
        stubs: the stubs of this process.
    """

    def __init__(self, stubs: Any) -> None:
        self._stubs = stubs
        process = stubs.runtime.process
        keys = levels.LEVEL_KEYS.setdefault(CPU_KEYS, levels.LEVEL | CPU_KEYS)
        objects = {
            "level": Level,
            "level_value": levels.LevelTensor,
            "level_keys": keys,
            "transpose": by_name("matrix_transpose"),
            "batched": BatchedTensor,
        }
        for name, value in objects.items():
            process.refer(getattr(rt.Globals, name), value)
        with lock:
            stubs.runtime.install_listeners.append(self.update)
            for stub in stubs.list_stubs():
                self.update(stub)

    def update(self, stub: Stub) -> None:
        """Store how an entry runs calls on batches."""
        records = [point.record for point in stub.patch_points if point.record is not None]
        kind = find_kind(stub) if records else 0
        for record in records:
            record.replace(rt.OperatorEntry.function, stub.function)
            record.set(rt.OperatorEntry.batching, kind)
            if kind not in (0, Kind.SUBSCRIPT) and not record.get(rt.OperatorEntry.forward):
                record.replace(rt.OperatorEntry.forward, self._make_forward_call(stub))

    def _make_forward_call(self, stub: Stub) -> object:
        """Return the callable that runs calls of an operator at a level of `jvp`; the first call makes it."""

        def call(*args: Any, **kwargs: Any) -> Any:
            forward_call = forward_calls.ForwardCall(stub.operator, stub.function)
            for point in stub.patch_points:
                if point.record is not None:
                    point.record.replace(rt.OperatorEntry.forward, forward_call)
            return forward_call(*args, **kwargs)

        return call

    def follow(self, op: Operator) -> None:
        """Update the entries of an operator whose kernels for values of levels have changed."""
        if op.changed & BATCH_KEYS:
            for stub in self._stubs.find_concerned(op):
                self.update(stub)

"""The ADInplaceOrView key's kernel: one boxed kernel, below autograd, that counts writes and links views to their base.

Operators whose schema says that they write or give a view carry the key in every call (:class:`.Operator`'s
``layer_keys``); the others never come here. After the kernels below have run, the version of each memory that was
written rises, and a result that lies in its argument's memory shares its storage. Entries of machine code do the same
themselves, and step aside where an operator has a kernel of its own for the key.

Source: ``torch/csrc/autograd/ADInplaceOrViewTypeManual.cpp``, and its generated siblings, of PyTorch.
"""

from __future__ import annotations

from typing import Any

from ..operators.declare import LIBRARY
from ..registry.keys import DispatchKey, below
from ..registry.operator import Operator
from .results import flat
from .storage import owner_of
from .tensor import Tensor, storage_of
from .views import raise_version

BELOW = below(DispatchKey.ADInplaceOrView)
TRACED = 1 << DispatchKey.Tracer


def ad_inplace_or_view(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator that writes or gives a view, and keep the books; the fallback of the ADInplaceOrView key."""
    out = op.dispatch(keyset & BELOW, args, kwargs)
    if keyset & TRACED:
        return out  # the trace keeps books of its own
    for place, argument in enumerate(op.schema.positional):
        if argument.is_write:
            _count(args[place])
    for argument in op.schema.arguments:
        if argument.kwarg_only and argument.is_write:
            _count(kwargs[argument.name])
    if op.schema.is_view:
        _link(op, args, out)
    return out


def _count(written: Any) -> None:
    for tensor in flat(written):
        if isinstance(tensor, Tensor):
            raise_version(tensor)


def _link(op: Operator, args: tuple[Any, ...], out: Any) -> None:
    """Let results share the storage of the argument in whose memory they lie."""
    for value, argument in zip(args, op.schema.positional):
        if type(value) is not Tensor or argument.type.alias is None:
            continue
        owner = owner_of(value._array)
        for item in flat(out):
            if type(item) is Tensor and item is not value and owner_of(item._array) is owner:
                item._storage = storage_of(value)


LIBRARY.fallback(ad_inplace_or_view, DispatchKey.ADInplaceOrView)

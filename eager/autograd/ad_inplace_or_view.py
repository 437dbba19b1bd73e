"""The ADInplaceOrView key's kernel: one boxed kernel, below autograd, that counts writes and links views to their base.

Operators whose schema declares a write or a view have the key in every call (``layer_keys`` of the operator);
others never reach it. After the kernels below have run, the version of each written memory increases, and a result that
shares its argument's memory gets its storage. Native entries do the same themselves, and fall back to Python if an
operator has a kernel of its own for the key.

Source: ``torch/csrc/autograd/ADInplaceOrViewTypeManual.cpp``, and its generated siblings, of PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...operators.declare.declaration import LIBRARY
from ...registry.dispatch.keys import DispatchKey, below
from ...registry.operator import Operator
from ..tensor.results import flat
from ..tensor.storage import owner_of
from ..tensor.tensor import Tensor, storage_of
from .view_writes import bump_version

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

BELOW = below(DispatchKey.ADInplaceOrView)
TRACED = 1 << DispatchKey.Tracer


def ad_inplace_or_view(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator that writes or returns a view, then update versions and storages; the key's fallback."""
    out = op.dispatch(keyset & BELOW, args, kwargs)
    if keyset & TRACED:
        return out  # the trace tracks writes and views itself
    for index, argument in enumerate(op.schema.positional):
        if argument.is_write:
            _count_write(args[index])
    for argument in op.schema.arguments:
        if argument.kwarg_only and argument.is_write:
            _count_write(kwargs[argument.name])
    if op.is_view:
        _share_storage(op, args, out)
    return out


def _count_write(written: object) -> None:
    """Increment the version counters of written tensors.

    Native twin: backends/cpu/fastpath/runtime/rt_outputs.py:bump_version
    """
    for tensor in flat(written):
        if isinstance(tensor, Tensor):
            bump_version(tensor)


def _share_storage(op: Operator, args: Args, out: object) -> None:
    """Give results the storage of the argument whose memory they share."""
    for value, argument in zip(args, op.schema.positional):
        if type(value) is not Tensor or argument.type.alias is None:
            continue
        owner = owner_of(value._array)
        for item in flat(out):
            if type(item) is Tensor and item is not value and owner_of(item._array) is owner:
                item._storage = storage_of(value)


LIBRARY.fallback(ad_inplace_or_view, DispatchKey.ADInplaceOrView)

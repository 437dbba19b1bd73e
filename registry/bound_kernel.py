"""BoundKernel: one kernel of an operator as a callable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import NoKernelError
from ..named_tuple import NamedTuple
from .dispatch import trace
from .dispatch.keys import DispatchKey, below
from .dispatch.precedence import Entry, choose_entry, run_entry
from .registration import KeyName
from .schemas.binding import weak_scalar_resolvers

if TYPE_CHECKING:
    from .operator import Operator


class BoundKernel(NamedTuple):
    """One kernel of an operator as a callable; made by :meth:`.operator.Operator.get_kernel`.

    Attributes:
        operator: the operator.
        key: the key or alias that the kernel serves.
        entry: the entry of the dispatch table when the kernel was looked up.
    """

    operator: Operator
    key: KeyName
    entry: Entry

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Call the kernel with a key set whose highest key is the kernel's.

        Raises:
            NoKernelError: the kernel has been removed since the lookup.
        """
        operator, entry = self.operator, self.entry
        args, kwargs = operator.binder.bind(args, kwargs)
        if operator._weak_key(args, kwargs):
            args, kwargs = weak_scalar_resolvers[0](operator, args, kwargs)
        entry = choose_entry(entry, operator, args, kwargs)
        if entry.registration is not None and not entry.registration.alive:
            raise NoKernelError(f"this kernel of {operator.name} has been removed: {entry.registration!r}")
        bits = operator.keyset(args, kwargs)
        if isinstance(self.key, DispatchKey):
            bits = bits & below(self.key) | 1 << self.key
        if trace.active:
            return trace.run(operator, bits, entry, args, kwargs, "callForKey")
        return run_entry(entry, operator, bits, args, kwargs)

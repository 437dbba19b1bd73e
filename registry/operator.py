"""Operator: a schema, kernels by dispatch key, and the dispatch table that is computed from them.

Source: ``c10::OperatorHandle`` and ``c10::impl::OperatorEntry`` of PyTorch; :mod:`.dispatch.precedence` computes the
table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..errors import AllocationError, ArgumentError, ScalarOverflowError, TandemError, UnknownOperatorError
from .bound_kernel import BoundKernel
from .contract import Contract, enforce_schema
from .dispatch import trace
from .dispatch.keys import (
    ALLOWED_WITH_COMPOSED,
    AUTOCAST,
    BACKEND_OF_DEVICE,
    BACKENDS,
    COMPOSED,
    CPU_KEYS,
    KEY_COUNT,
    NEEDS_NARROWING,
    DispatchKey,
    DispatchKeySet,
    autocast_keys,
    parse_key,
)
from .dispatch.precedence import Entry as Entry
from .dispatch.precedence import (
    Table,
    clear_fallback_row,
    compute_table,
    fallback_row,
    find_newest,
    make_entry,
)
from .dispatch.precedence import fallbacks as fallbacks
from .dispatch.state import current, install, state
from .lazy_operators import materialize, materialize_fallbacks
from .lock import lock as lock
from .registration import Kernel as Kernel
from .registration import KeyName as KeyName
from .registration import Registration as Registration
from .registration import RegistrationSite
from .registration import fallthrough as fallthrough
from .schemas.binding import WEAK, Binder
from .schemas.schema import Schema
from .values import TensorBase, describe, tensors_of

if TYPE_CHECKING:
    from .types import Args, Kwargs

_missing_kernels = lazy.Module(".registry.missing_kernels")
_respelled_calls = lazy.Module(".registry.respelled_calls")

operators: dict[str, Operator] = {}
# Called with each operator whose kernels, fallbacks or declaration have changed, while the lock is held.
change_listeners: list[Callable[[Operator], None]] = []
# Called with each operator that is defined (True) or undefined (False).
definition_listeners: list[Callable[[Operator, bool], None]] = []


def _dispatch_redefined(op: Operator, bits: int, args: Args, kwargs: Kwargs) -> object:
    """Dispatch to the operator that has been defined again with the same schema, or raise.

    This is the kernel in all table entries of an operator whose definition has been removed.
    """
    now = operators.get(op.name)
    if now is None or now is op or now.schema != op.schema:
        return _missing_kernels.raise_undefined(op, bits, args, kwargs)
    return now.dispatch(bits, args, kwargs)


_RETIRED = (Entry("missing", None, _dispatch_redefined, True),) * KEY_COUNT, (1 << KEY_COUNT) - 1


class Operator:
    """One overload of an operator.

    Attributes:
        schema: its parsed schema.
        extra_keys: key set added to the key set of every call, before the thread's excluded keys are removed: 0, except
            while a mode intercepts this operator.
        layer_keys: key set required by its schema: ADInplaceOrView if it writes or returns a view.
        decl: its declaration (``operators/declare/declaration.py:Declaration``), or None for one defined without.
        derivative: how autograd treats it (``eager/autograd/derivative_rules.py:OperatorDerivative``); None until the
            first use.
        version: incremented by each change.
        keys_only: whether the last change was one of ``extra_keys`` alone, which does not increment the version.
        changed: key set of the table entries that the last change replaced; 0 before the table is first used.
        kernels: its registrations by key, the newest last; replaced as a whole when they change.
        is_complete: whether its declaration has ended: until then no call has used it.
        respelled: runs calls in other spellings (:mod:`.respelled_calls`); None before the first.
        site: the code that defined it.
    """

    __slots__ = (
        "__weakref__",
        "_added_keys",
        "_binder",
        "_contract",
        "_extra_keys",
        "_published",
        "_told_keys",
        "changed",
        "decl",
        "derivative", "is_complete", "is_view",
        "kernels",
        "keys_only",
        "layer_keys",
        "name",
        "respelled",
        "schema",
        "site",
        "version"
    )  # fmt: skip

    def __init__(self, schema: Schema, decl: Any = None, site: RegistrationSite | None = None):
        self.schema = schema
        self.decl = decl
        self.site = site or RegistrationSite("")
        self.name = schema.full_name
        self._binder: Binder | None = None
        self._contract: Contract | None = None
        self.kernels: dict[KeyName, list[Registration]] = {}
        self.version = self.changed = 0
        self.is_view = schema.is_view
        writes_or_views = self.is_view or schema.is_mutable
        self.layer_keys = 1 << DispatchKey.ADInplaceOrView if writes_or_views else 0
        self.extra_keys = self._told_keys = 0
        self.keys_only, self.is_complete = False, True
        self.derivative: Any = None
        self.respelled: Callable[[Args, Kwargs], Any] | None = None
        self._published: tuple[Table, int] | None = None

    @property
    def binder(self) -> Binder:
        """The binder, which checks and converts the arguments of calls; created at the first call."""
        if self._binder is None:
            self._binder = Binder(self.schema)
        return self._binder

    @property
    def contract(self) -> Contract:
        """The contract, which checks kernels of other packages; created for the first such kernel."""
        if self._contract is None:
            self._contract = Contract(self.schema)
        return self._contract

    @property
    def extra_keys(self) -> int:
        """The key set added to the key set of every call."""
        return self._extra_keys

    @extra_keys.setter
    def extra_keys(self, bits: int) -> None:
        self._extra_keys, self._added_keys = bits, bits | self.layer_keys

    # -- the table -------------------------------------------------------------------------------------------------
    def add(self, registration: Registration, instead: Registration | None = None) -> None:
        """Add a kernel; the newest kernel of a key is the one that runs. The caller holds the lock.

        Args:
            registration: the kernel.
            instead: a registration to replace.
        """
        registration.bind(self)
        if not registration.is_trusted:
            enforce_schema(registration, self.contract)
        held = list(self.kernels.get(registration.key, ()))
        if instead in held:
            held[held.index(instead)] = registration
        else:
            held.append(registration)
        self.kernels = {**self.kernels, registration.key: held}
        self._recompute()

    def discard(self, registration: Registration) -> None:
        """Remove a kernel, so that an older one of the same key runs again. The caller holds the lock."""
        held = [other for other in self.kernels.get(registration.key, ()) if other is not registration]
        if len(held) < len(self.kernels.get(registration.key, ())):
            rest = {key: value for key, value in self.kernels.items() if key != registration.key}
            self.kernels = {**rest, registration.key: held} if held else rest
            self._recompute()

    def recompute(self) -> None:
        """Recompute the table and call the listeners, after a change of kernels, declaration or ``extra_keys``."""
        with lock:
            self._recompute()

    def _recompute(self) -> None:
        self._renew()
        self.keys_only = self._extra_keys != self._told_keys and not self.changed
        self._tell()

    def follow_fallbacks(self) -> None:
        """Recompute the table after a change of the fallbacks, and call the listeners if it differs."""
        with lock:
            self._renew()
            self.keys_only = False
            if self.changed:
                self._tell()

    def notify_listeners(self) -> None:
        """Call the listeners after a change on which native code depends, and kernels and graphs do not."""
        with lock:
            self.changed, self.keys_only = 0, True
            self._tell()

    def retire(self) -> None:
        """Replace the table after the definition is removed: calls raise, or go to a new definition."""
        with lock:
            self.kernels = {}
            self.changed = 0 if self._published is None else _RETIRED[1]
            self._published, self.keys_only = _RETIRED, False
            self._tell()

    def _renew(self) -> None:
        # A table in use is replaced by one assignment, so that calls always find a table and never wait for the lock.
        before = self._published
        if before is None or before is _RETIRED:
            self.changed = 0
            return
        self._published = after = compute_table(self.kernels, fallback_row())
        self.changed = sum(1 << i for i, (old, new) in enumerate(zip(before[0], after[0])) if old != new)

    def _tell(self) -> None:
        self._told_keys = self._extra_keys
        self.version += not self.keys_only
        for listener in change_listeners:
            listener(self)

    def _publish(self) -> tuple[Table, int]:
        """Compute the table at its first use."""
        materialize_fallbacks()
        with lock:
            if self._published is None:
                self._published = compute_table(self.kernels, fallback_row())
            return self._published

    @property
    def table(self) -> Table:
        """One :class:`Entry` per dispatch key, computed ahead of the calls."""
        return (self._published or self._publish())[0]

    @property
    def in_use(self) -> bool:
        """Whether the table has been computed."""
        return self._published is not None

    def registered(self, key: KeyName) -> Registration | None:
        """The newest registration for a key or an alias and every dtype, or None."""
        return find_newest(self.kernels, key)

    # -- calls -----------------------------------------------------------------------------------------------------
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operator: bind the arguments, compute the key set, run the kernel of its highest key.

        Native twin: backends/cpu/fastpath/entries/rt_kernels.py:kernel_call
        """
        binder = self._binder or self.binder
        given = len(args)
        if given > binder.limit or given + len(kwargs) < binder.needed or not kwargs.keys() <= binder.names:
            run = self.respelled
            return run(args, kwargs) if run else _respelled_calls.call_respelled(self, args, kwargs)
        call = (args, kwargs) if trace.active else None
        args, kwargs = binder.bind(args, kwargs)
        keyset, guards = self.keyset(args, kwargs), current()
        try:
            if call is not None:
                return trace.call(trace.Call(self, *call, keyset, args, kwargs))
            return self.dispatch(keyset, args, kwargs)
        except BaseException as fault:
            install(guards)  # an interrupt may have left the state of an inner layer
            if isinstance(fault, TandemError) or not isinstance(fault, (MemoryError, OverflowError)):
                raise
            kind = AllocationError if isinstance(fault, MemoryError) else ScalarOverflowError
            text = f"{self.schema.name}({', '.join(map(describe, args))}): {fault or 'no memory'}"
            raise kind(text) from None

    def keyset(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The key set of a bound call: its tensors' keys plus this thread's included keys minus its excluded keys."""
        bits = 0
        binder = self._binder or self.binder
        if binder.tensors_only:
            for value in args:
                if isinstance(value, TensorBase):
                    bits |= value._keys
            if bits & BACKENDS:
                bits = (bits | state.include | self._added_keys) & ~state.exclude
                return self._narrowed(bits, args, kwargs) if bits & NEEDS_NARROWING else bits
        for index, is_list in binder.tensor_positions:
            value = args[index]
            if is_list:
                for item in value or ():
                    if isinstance(item, TensorBase):
                        bits |= item._keys
            elif isinstance(value, TensorBase):
                bits |= value._keys
        for name in binder.tensor_keywords:
            if isinstance(kwargs[name], TensorBase):
                bits |= kwargs[name]._keys
        if not bits & BACKENDS:
            bits |= self._default_keys(args, kwargs)
        bits = (bits | state.include | self._added_keys) & ~state.exclude
        return self._narrowed(bits, args, kwargs) if bits & NEEDS_NARROWING else bits

    def _narrowed(self, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Restrict the key set of a call with autocast enabled, or with sparse or quantized keys.

        Raises:
            NoKernelError: a sparse or quantized key is included, and no argument is such a tensor.
        """
        if bits & AUTOCAST:  # of the devices that the arguments are on
            bits &= ~AUTOCAST | autocast_keys(bits)
        if not bits & COMPOSED:
            return bits
        if bits & COMPOSED & state.include:
            _missing_kernels.check_composed(self, bits & COMPOSED & state.include, args, kwargs)
        return bits & ALLOWED_WITH_COMPOSED

    def _default_keys(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The keys of a call without tensors: its device's, and WeakScalar if numbers are passed for tensors."""
        binder = self.binder
        device = kwargs.get(binder.device_argument or "") or "cpu"
        backend = 1 << BACKEND_OF_DEVICE[device.partition(":")[0]]
        numbers = binder.tensor_positions or binder.tensor_keywords
        return backend | WEAK if numbers and backend == CPU_KEYS else backend

    def dispatch(self, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the kernel of the highest key of ``keyset`` on bound arguments."""
        table, mask = self._published or self._publish()
        bits = keyset & mask
        try:
            site = bits.bit_length() - 1
        except AttributeError:  # a DispatchKeySet, from a boxed kernel
            keyset = DispatchKeySet(keyset).bits
            return self.dispatch(keyset | self._weak_key(args, kwargs), args, kwargs)
        if site < 0:
            raise _missing_kernels.make_no_key_error(self, keyset, args, kwargs)
        entry = table[site]
        if trace.active:
            return trace.run(self, bits, entry, args, kwargs)
        if entry.boxed:
            return entry.fn(self, bits, args, kwargs)
        return entry.fn(*args, **kwargs)

    def redispatch(self, keyset: int | DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel of the highest key of a key set, not of the arguments' own.

        Args:
            keyset: the key set; a layer passes the keys below its own.
            args, kwargs: the call's arguments; they are checked as in any call.

        Raises:
            ArgumentError: ``keyset`` is not a key set, or the arguments do not fit the schema.
            NoKernelError: the key set is empty, or nothing serves its highest key.

        >>> import tandem as td
        >>> td.ops.td.exp.default.redispatch(td.DispatchKeySet("CPU"), td.asarray([0.0])).tolist()
        [1.0]
        """
        bits = keyset.bits if isinstance(keyset, DispatchKeySet) else keyset
        if type(bits) is not int or bits < 0 or bits >> KEY_COUNT:
            raise ArgumentError(
                f"redispatch takes a key set first, such as DispatchKeySet('CPU'), not {describe(keyset)}"
            )
        args, kwargs = self.binder.bind(args, kwargs)
        return self.dispatch(bits | self._weak_key(args, kwargs), args, kwargs)

    def _weak_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The WeakScalar key if a weak scalar is among the arguments: no other kernel treats them as numbers."""
        given = tensors_of(self, args, kwargs)
        return WEAK & ~state.exclude if any(value._keys & WEAK for value in given) else 0

    def get_kernel(self, key: KeyName) -> BoundKernel:
        """The kernel that currently serves a key, as a callable that later registrations do not change.

        Args:
            key: a dispatch key, or an alias key.

        Returns:
            A callable of the schema's arguments that runs this kernel.

        Raises:
            ValueArgumentError: the key does not exist.
            NoKernelError: no kernel serves it.

        >>> import tandem as td
        >>> td.ops.td.exp.default.get_kernel("CPU")(td.asarray([0.0])).tolist()
        [1.0]
        """
        return self._kernel_of(key)

    def _kernel_of(self, key: KeyName, call: tuple[Any, ...] | None = None) -> BoundKernel:
        parsed = parse_key(key)
        held = None if isinstance(parsed, DispatchKey) else self.registered(parsed)
        if isinstance(parsed, DispatchKey):
            entry = self.table[parsed]
        else:
            entry = Entry("missing", None, fallthrough) if held is None else make_entry("kernel", held)
        if entry.kind in ("missing", "fallthrough", "ambiguous"):
            raise _missing_kernels.make_no_kernel_error(self, parsed, entry.kind, call)
        return BoundKernel(self, parsed, entry)

    def call_for_key(self, key: KeyName, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operator with the kernel that serves a key, regardless of the keys of the arguments.

        Args:
            key: a dispatch key, or an alias key.
            args, kwargs: the call's arguments.

        Raises:
            ValueArgumentError: the key does not exist.
            NoKernelError: no kernel serves it.

        >>> import tandem as td
        >>> td.ops.td.add.Tensor.call_for_key("CPU", td.asarray([1.0]), 2).tolist()
        [3.0]
        """
        return self._kernel_of(key, (args, kwargs))(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.schema}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (find_operator, (self.name,))


def find_operator(full_name: str) -> Operator:
    """Look up an operator by its full name (``"td::add.Tensor"``).

    Raises:
        UnknownOperatorError: no operator has that name.
    """
    materialize(full_name)
    result = operators.get(full_name)
    if result is None:
        raise UnknownOperatorError(f"no operator {full_name} is registered")
    return result


def recompute_all() -> None:
    """Recompute all tables after a change of the fallbacks; the caller holds the lock."""
    clear_fallback_row()
    for operator in [operator for operator in operators.values() if operator._published is not None]:
        operator.follow_fallbacks()

"""Operators: a schema, kernels by dispatch key, and the dispatch table computed from them ahead of any call.

Source: ``c10::OperatorHandle`` and ``c10::impl::OperatorEntry`` of PyTorch. The precedence in a slot is PyTorch's:
the key's own kernel > CompositeExplicit > CompositeImplicit > the Autograd alias > the key's fallback > missing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import AllocationError, ArgumentError, NoKernelError, ScalarOverflowError, TandemError
from . import trace
from .binding import Binder
from .keys import (
    ALIASES,
    AUTOGRAD,
    AUTOGRAD_OF_BACKEND,
    BACKEND_OF_DEVICE,
    BACKENDS,
    COMPOSITE_IMPLICIT,
    KEY_COUNT,
    DispatchKey,
    DispatchKeySet,
    below,
    from_bits,
    parse_key,
)
from .schema import Schema
from .state import state
from .values import TensorBase, describe

Kernel = Callable[..., Any]
KeyName = DispatchKey | str

lock = threading.RLock()  # taken by registration, never by a call


def fallthrough(*args: Any, **kwargs: Any) -> Any:
    """The kernel that means "not here": the dispatcher passes on to the next lower key.

    Raises:
        NoKernelError: it is called, instead of registered.

    >>> import tandem as td
    >>> with td.Library("td", "IMPL") as lib:
    ...     _ = lib.impl("exp", td.fallthrough, "Mode")
    ...     td.dispatch_table("exp")["Mode"].kind
    'fallthrough'
    """
    raise NoKernelError("fallthrough is a mark for registration, not a kernel to call")


class Registration(NamedTuple):
    """One kernel as it was registered: the function, its key or alias, and where it came from."""

    fn: Kernel
    key: KeyName
    boxed: bool = False
    origin: str = ""
    with_keyset: bool = False

    @property
    def name(self) -> str:
        """The kernel's name for people."""
        return getattr(self.fn, "__qualname__", repr(self.fn))

    @property
    def key_name(self) -> str:
        """The name of the key or alias."""
        return self.key if isinstance(self.key, str) else self.key.name

    # the same function registered twice is two registrations
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class Entry(NamedTuple):
    """One slot of a dispatch table.

    Attributes:
        kind: ``"kernel"``, ``"composite_explicit"``, ``"composite_implicit"``, ``"fallback"``, ``"fallthrough"`` or
            ``"missing"``.
        registration: what fills the slot, or None where it is missing.
    """

    kind: str
    registration: Registration | None
    fn: Kernel
    boxed: bool = False


# Backend fallbacks, newest last. Layers that nobody has registered let calls fall through.
fallbacks: dict[DispatchKey, list[Registration]] = {}
operators: dict[str, Operator] = {}
change_listeners: list[Callable[[Operator], None]] = []
# Told of each operator that is defined (True) or undefined (False).
definition_listeners: list[Callable[[Operator, bool], None]] = []


class Operator:
    """One overload of an operator.

    Attributes:
        schema: its parsed schema.
        extra_keys: key set added to that of every call, before the thread's excluded keys are taken out: 0, except
            while a mode is interested in this operator.
        decl: its declaration (:class:`tandem.operators.declare.Declaration`), or None for one defined without.
        plan: how autograd treats it (:class:`tandem.eager.plans.Plan`), or None as long as nobody has asked.
        version: rises with each change of the table.
    """

    __slots__ = (
        "__weakref__", "_binder", "_published", "decl", "extra_keys", "kernels", "name", "plan", "schema",
        "version"
    )  # fmt: skip

    def __init__(self, schema: Schema, decl: Any = None):
        self.schema = schema
        self.decl = decl
        self.name = schema.full_name
        self._binder: Binder | None = None
        self.kernels: dict[KeyName, list[Registration]] = {}
        self.version = 0
        self.extra_keys = 0
        self.plan: Any = None
        self._published: tuple[tuple[Entry, ...], int] | None = None

    @property
    def binder(self) -> Binder:
        """What checks and normalises the arguments of a call; made at the first one."""
        if self._binder is None:
            self._binder = Binder(self.schema)
        return self._binder

    # -- the table -------------------------------------------------------------------------------------------------
    def add(self, registration: Registration) -> None:
        """Add a kernel; the newest for a key is the one in force."""
        with lock:
            self.kernels.setdefault(registration.key, []).append(registration)
            self.recompute()

    def discard(self, registration: Registration) -> None:
        """Take a kernel away; an older one for the same key is in force again."""
        with lock:
            held = self.kernels.get(registration.key, [])
            if registration in held:
                held.remove(registration)
                if not held:
                    del self.kernels[registration.key]
                self.recompute()

    def recompute(self) -> None:
        """Withdraw the table, since a kernel or a fallback has changed; the next use publishes a new one."""
        with lock:
            self._published, self.version = None, self.version + 1
        for listener in change_listeners:
            listener(self)

    def _publish(self) -> tuple[tuple[Entry, ...], int]:
        with lock:
            table = tuple(self._entry(key) for key in DispatchKey)
            mask = sum(1 << key for key, entry in zip(DispatchKey, table) if entry.kind != "fallthrough")
            self._published = table, mask
            return self._published

    @property
    def table(self) -> tuple[Entry, ...]:
        """One :class:`Entry` per dispatch key, computed ahead of the calls."""
        return (self._published or self._publish())[0]

    def registered(self, key: KeyName) -> Registration | None:
        """The registration in force for a key or an alias, or None."""
        held = self.kernels.get(key)
        return held[-1] if held else None

    def _entry(self, key: DispatchKey) -> Entry:
        bit = 1 << key
        own = self.registered(key)
        if own is not None:
            return _filled("kernel", own)
        explicit = self.registered("CompositeExplicit")
        if explicit is not None and bit & BACKENDS:
            return _filled("composite_explicit", explicit)
        implicit = self.registered("CompositeImplicit")
        if implicit is not None and bit & COMPOSITE_IMPLICIT and not self._has_backend_kernel(key):
            return _filled("composite_implicit", implicit)
        alias = self.registered("Autograd")
        if alias is not None and bit & AUTOGRAD:
            return _filled("kernel", alias)
        return self._fallback_entry(key)

    def _has_backend_kernel(self, key: DispatchKey) -> bool:
        """Whether an autograd key's backend has a kernel of its own, which a composite must not bypass."""
        behind = [backend for backend, autograd in AUTOGRAD_OF_BACKEND.items() if autograd is key]
        return any(self.registered(backend) for backend in behind) or (
            bool(behind) and self.registered("CompositeExplicit") is not None
        )

    def _fallback_entry(self, key: DispatchKey) -> Entry:
        held = fallbacks.get(key)
        if held:
            return _filled("fallback", held[-1])
        if not 1 << key & BACKENDS:
            return Entry("fallthrough", None, fallthrough)
        return Entry("missing", None, lambda *args, **kwargs: self._no_kernel(key, args, kwargs))

    def _no_kernel(self, key: DispatchKey, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        there = [str(getattr(k, "name", k)) for k in self.kernels] or ["none"]
        raise NoKernelError(
            f"operator {self.name} has no kernel for the dispatch key {key.name}\n"
            f"  called with: {', '.join(map(describe, args))}\n"
            f"  registered:  {', '.join(there)}\n"
            f'  to add one:  Library("{self.schema.namespace}", "IMPL")'
            f'.impl("{self.schema.name}", kernel, "{key.name}")'
        )

    # -- calls -----------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator: bind the arguments, compute the key set, run the kernel of its highest key."""
        args, kwargs = self.binder.bind(args, kwargs)
        keyset = self.keyset(args, kwargs)
        try:
            return self.dispatch(keyset, args, kwargs)
        except (MemoryError, OverflowError) as fault:
            if isinstance(fault, TandemError):
                raise
            kind = AllocationError if isinstance(fault, MemoryError) else ScalarOverflowError
            raise kind(
                f"{self.schema.name}({', '.join(map(describe, args))}): {fault or 'no memory'}"
            ) from None

    def keyset(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The key set of a bound call: its tensors' keys, with this thread's included and without its excluded."""
        bits = 0
        if self.binder.tensors_only:
            for value in args:
                if isinstance(value, TensorBase):
                    bits |= value._keys
            if bits & BACKENDS:
                return (bits | state.include | self.extra_keys) & ~state.exclude
        for index, is_list in self.binder.tensor_positions:
            value = args[index]
            if is_list:
                for item in value or ():
                    if isinstance(item, TensorBase):
                        bits |= item._keys
            elif isinstance(value, TensorBase):
                bits |= value._keys
        for name in self.binder.tensor_keywords:
            if isinstance(kwargs[name], TensorBase):
                bits |= kwargs[name]._keys
        if not bits & BACKENDS:
            bits |= self._default_backend(args, kwargs)
        return (bits | state.include | self.extra_keys) & ~state.exclude

    def _default_backend(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        device = kwargs.get(self.binder.device_argument or "") or "cpu"
        return 1 << BACKEND_OF_DEVICE[device.partition(":")[0]]

    def dispatch(self, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the kernel of the highest key of ``keyset`` on bound arguments."""
        table, mask = self._published or self._publish()
        bits = keyset & mask
        if not bits:
            raise NoKernelError(f"operator {self.name}: no key left to dispatch to in {from_bits(keyset)}")
        entry = table[bits.bit_length() - 1]
        if trace.active:
            return trace.run(self, bits, entry, args, kwargs)
        if entry.boxed:
            return entry.fn(self, bits, args, kwargs)
        return entry.fn(*args, **kwargs)

    def redispatch(self, keyset: int | DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel of the highest key of a key set, not of the arguments' own.

        Args:
            keyset: the key set; a layer passes on what lies below itself.
            args, kwargs: the call's arguments; they are checked as those of any call.

        Raises:
            ArgumentError: the key set is none, or the arguments do not fit the schema.
            NoKernelError: the key set is empty, or nothing serves its highest key.

        >>> import tandem as td
        >>> td.ops.td.exp.default.redispatch(td.DispatchKeySet("CPU"), td.asarray([0.0])).tolist()
        [1.0]
        """
        bits = keyset.bits if isinstance(keyset, DispatchKeySet) else keyset
        if type(bits) is not int or bits < 0 or bits >> KEY_COUNT:
            raise ArgumentError(
                f"redispatch takes a key set first, such as DispatchKeySet('CPU'), not {keyset!r}"
            )
        return self.dispatch(bits, *self.binder.bind(args, kwargs))

    def get_kernel(self, key: KeyName) -> BoundKernel:
        """The kernel that serves a key now, to call later, whatever is registered after.

        Args:
            key: a dispatch key, or an alias key.

        Returns:
            A callable of the schema's arguments that runs this kernel.

        Raises:
            ValueArgumentError: no such key.
            NoKernelError: nothing serves it.

        >>> import tandem as td
        >>> td.ops.td.exp.default.get_kernel("CPU")(td.asarray([0.0])).tolist()
        [1.0]
        """
        parsed = parse_key(key)
        if isinstance(parsed, DispatchKey):
            entry = self.table[parsed]
        else:
            held = self.registered(parsed)
            entry = Entry("missing", None, fallthrough) if held is None else _filled("kernel", held)
        if entry.kind in ("missing", "fallthrough", "ambiguous"):
            name = getattr(parsed, "name", parsed)
            raise NoKernelError(f"operator {self.name} has no kernel to call for {name}: it is {entry.kind}")
        return BoundKernel(self, parsed, entry)

    def call_for_key(self, key: KeyName, *args: Any, **kwargs: Any) -> Any:
        """Call the operator with the kernel that serves a key, whatever the keys of the arguments.

        Args:
            key: a dispatch key, or an alias key.
            args, kwargs: the call's arguments.

        Raises:
            ValueArgumentError: no such key.
            NoKernelError: nothing serves it.

        >>> import tandem as td
        >>> td.ops.td.add.Tensor.call_for_key("CPU", td.asarray([1.0]), 2).tolist()
        [3.0]
        """
        return self.get_kernel(key)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.schema}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (find, (self.name,))


class BoundKernel(NamedTuple):
    """One kernel of an operator, to call by itself; made by :meth:`Operator.get_kernel`.

    Attributes:
        operator: the operator.
        key: the key or alias that the kernel serves.
        entry: the slot of the dispatch table as it was.
    """

    operator: Operator
    key: KeyName
    entry: Entry

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel on the arguments of a call, with the keys up to its own."""
        operator, entry = self.operator, self.entry
        args, kwargs = operator.binder.bind(args, kwargs)
        if not entry.boxed:
            return entry.fn(*args, **kwargs)
        bits = operator.keyset(args, kwargs)
        if isinstance(self.key, DispatchKey):
            bits = bits & below(self.key) | 1 << self.key
        return entry.fn(operator, bits, args, kwargs)


def _filled(kind: str, registration: Registration) -> Entry:
    fn = registration.fn
    if fn is fallthrough:
        return Entry("fallthrough", registration, fallthrough)
    if registration.with_keyset:
        return Entry(kind, registration, lambda op, bits, args, kwargs: fn(bits, *args, **kwargs), True)
    return Entry(kind, registration, fn, registration.boxed)


def find(full_name: str) -> Operator:
    """The operator of a full name (``"td::add.Tensor"``)."""
    return operators[full_name]


def recompute_all() -> None:
    """Publish new tables everywhere; a fallback has changed."""
    for operator in list(operators.values()):
        operator.recompute()


def is_alias(key: KeyName) -> bool:
    """Whether a key names several."""
    return isinstance(key, str) and key in ALIASES

"""Operators: a schema, kernels by dispatch key, and the dispatch table computed from them ahead of any call.

Source: ``c10::OperatorHandle`` and ``c10::impl::OperatorEntry`` of PyTorch; :mod:`.precedence` says what fills a slot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import (
    AllocationError,
    ArgumentError,
    NoKernelError,
    ScalarOverflowError,
    TandemError,
    UnknownOperatorError,
)
from . import trace
from .binding import Binder
from .keys import (
    BACKEND_OF_DEVICE,
    BACKENDS,
    BESIDE_COMPOSED,
    COMPOSED,
    KEY_COUNT,
    DispatchKey,
    DispatchKeySet,
    below,
    parse_key,
)
from .late import declare_promised
from .lock import lock as lock
from .precedence import Entry as Entry
from .precedence import Table, chosen, compute, fallback_row, fallbacks_changed, filled, in_force, run_entry
from .precedence import fallbacks as fallbacks
from .registration import Kernel as Kernel
from .registration import KeyName as KeyName
from .registration import Place
from .registration import Registration as Registration
from .registration import fallthrough as fallthrough
from .schema import Schema
from .shortage import no_key_left, no_such_kernel, retired
from .state import state
from .values import TensorBase, describe

operators: dict[str, Operator] = {}
# Told of each operator whose kernels, fallbacks or declaration have changed, while the lock is held.
change_listeners: list[Callable[[Operator], None]] = []
# Told of each operator that is defined (True) or undefined (False).
definition_listeners: list[Callable[[Operator, bool], None]] = []


def _renewed(op: Operator, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The kernel in every slot of an operator whose definition has been removed: what is defined alike serves calls."""
    now = operators.get(op.name)
    if now is None or now is op or now.schema != op.schema:
        return retired(op, bits, args, kwargs)
    return now.dispatch(bits, args, kwargs)


_RETIRED = (Entry("missing", None, _renewed, True),) * KEY_COUNT, (1 << KEY_COUNT) - 1


class Operator:
    """One overload of an operator.

    Attributes:
        schema: its parsed schema.
        extra_keys: key set added to that of every call, before the thread's excluded keys are taken out: 0, except
            while a mode is interested in this operator.
        layer_keys: key set that its schema asks for: ADInplaceOrView where it writes or gives a view.
        decl: its declaration (:class:`tandem.operators.declare.Declaration`), or None for one defined without.
        plan: how autograd treats it (:class:`tandem.eager.plans.Plan`), or None as long as nobody has asked.
        version: rises with each change.
        keys_only: whether the last change was one of ``extra_keys`` alone, which leaves the version as it is.
        changed: key set of the slots that the last change has filled otherwise, as far as a table had been in use.
        kernels: its registrations by key, the newest last; replaced as a whole when they change.
        place: where it was defined.
    """

    __slots__ = (
        "__weakref__",
        "_added_keys",
        "_binder",
        "_extra_keys",
        "_published",
        "_told_keys",
        "changed",
        "decl",
        "kernels",
        "keys_only",
        "layer_keys",
        "name",
        "place",
        "plan",
        "schema",
        "version"
    )  # fmt: skip

    def __init__(self, schema: Schema, decl: Any = None, place: Place | None = None):
        self.schema = schema
        self.decl = decl
        self.place = place or Place("")
        self.name = schema.full_name
        self._binder: Binder | None = None
        self.kernels: dict[KeyName, list[Registration]] = {}
        self.version = self.changed = 0
        writes_or_views = schema.is_mutable or schema.is_view
        self.layer_keys = 1 << DispatchKey.ADInplaceOrView if writes_or_views else 0
        self.extra_keys = self._told_keys = 0
        self.keys_only = False
        self.plan: Any = None
        self._published: tuple[Table, int] | None = None

    @property
    def binder(self) -> Binder:
        """What checks and normalises the arguments of a call; made at the first one."""
        if self._binder is None:
            self._binder = Binder(self.schema)
        return self._binder

    @property
    def extra_keys(self) -> int:
        """See the class."""
        return self._extra_keys

    @extra_keys.setter
    def extra_keys(self, bits: int) -> None:
        self._extra_keys, self._added_keys = bits, bits | self.layer_keys

    # -- the table -------------------------------------------------------------------------------------------------
    def add(self, registration: Registration, instead: Registration | None = None) -> None:
        """Add a kernel, while the lock is held; the newest for a key is the one in force.

        Args:
            registration: the kernel.
            instead: a registration whose place it takes.
        """
        held = list(self.kernels.get(registration.key, ()))
        if instead in held:
            held[held.index(instead)] = registration
        else:
            held.append(registration)
        self.kernels = {**self.kernels, registration.key: held}
        self._recompute()

    def discard(self, registration: Registration) -> None:
        """Take a kernel away, while the lock is held; an older one for the same key is in force again."""
        held = [other for other in self.kernels.get(registration.key, ()) if other is not registration]
        if len(held) < len(self.kernels.get(registration.key, ())):
            rest = {key: value for key, value in self.kernels.items() if key != registration.key}
            self.kernels = {**rest, registration.key: held} if held else rest
            self._recompute()

    def recompute(self) -> None:
        """A kernel, the declaration or ``extra_keys`` has changed: renew the table and tell the listeners."""
        with lock:
            self._recompute()

    def _recompute(self) -> None:
        self._renew()
        self.keys_only = self._extra_keys != self._told_keys and not self.changed
        self._tell()

    def follow_fallbacks(self) -> None:
        """Bring the table up to date after a change of the fallbacks, and tell the listeners if it differs."""
        with lock:
            self._renew()
            self.keys_only = False
            if self.changed:
                self._tell()

    def retire(self) -> None:
        """The definition has been removed: whoever still holds the operator gets an error, or what replaces it."""
        with lock:
            self.kernels = {}
            self.changed = 0 if self._published is None else _RETIRED[1]
            self._published, self.keys_only = _RETIRED, False
            self._tell()

    def _renew(self) -> None:
        # A table that has been in use is replaced at once, so that calls never find none and never wait for the lock.
        before = self._published
        if before is None or before is _RETIRED:
            self.changed = 0
            return
        self._published = after = compute(self.kernels, fallback_row())
        self.changed = sum(1 << i for i, (old, new) in enumerate(zip(before[0], after[0])) if old != new)

    def _tell(self) -> None:
        self._told_keys = self._extra_keys
        self.version += not self.keys_only
        for listener in change_listeners:
            listener(self)

    def _publish(self) -> tuple[Table, int]:
        """The table, at its first use."""
        with lock:
            if self._published is None:
                self._published = compute(self.kernels, fallback_row())
            return self._published

    @property
    def table(self) -> Table:
        """One :class:`Entry` per dispatch key, computed ahead of the calls."""
        return (self._published or self._publish())[0]

    @property
    def in_use(self) -> bool:
        """Whether anyone has looked at the table yet."""
        return self._published is not None

    def registered(self, key: KeyName) -> Registration | None:
        """The registration in force for a key or an alias and every dtype, or None."""
        return in_force(self.kernels, key)

    # -- calls -----------------------------------------------------------------------------------------------------
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operator: bind the arguments, compute the key set, run the kernel of its highest key."""
        args, kwargs = (self._binder or self.binder).bind(args, kwargs)
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
        binder = self._binder or self.binder
        if binder.tensors_only:
            for value in args:
                if isinstance(value, TensorBase):
                    bits |= value._keys
            if bits & BACKENDS:
                bits = (bits | state.include | self._added_keys) & ~state.exclude
                return bits & BESIDE_COMPOSED if bits & COMPOSED else bits
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
            bits |= self._default_backend(args, kwargs)
        bits = (bits | state.include | self._added_keys) & ~state.exclude
        return bits & BESIDE_COMPOSED if bits & COMPOSED else bits

    def _default_backend(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        device = kwargs.get(self.binder.device_argument or "") or "cpu"
        return 1 << BACKEND_OF_DEVICE[device.partition(":")[0]]

    def dispatch(self, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the kernel of the highest key of ``keyset`` on bound arguments."""
        table, mask = self._published or self._publish()
        bits = keyset & mask
        if not bits:
            raise no_key_left(self, keyset, args, kwargs)
        entry = table[bits.bit_length() - 1]
        if trace.active:
            return trace.run(self, bits, entry, args, kwargs)
        if entry.boxed:
            return entry.fn(self, bits, args, kwargs)
        return entry.fn(*args, **kwargs)

    def redispatch(self, keyset: int | DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
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
                f"redispatch takes a key set first, such as DispatchKeySet('CPU'), not {describe(keyset)}"
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
        return self._kernel_of(key)

    def _kernel_of(self, key: KeyName, call: tuple[Any, ...] | None = None) -> BoundKernel:
        parsed = parse_key(key)
        held = None if isinstance(parsed, DispatchKey) else self.registered(parsed)
        if isinstance(parsed, DispatchKey):
            entry = self.table[parsed]
        else:
            entry = Entry("missing", None, fallthrough) if held is None else filled("kernel", held)
        if entry.kind in ("missing", "fallthrough", "ambiguous"):
            raise no_such_kernel(self, parsed, entry.kind, call)
        return BoundKernel(self, parsed, entry)

    def call_for_key(self, key: KeyName, /, *args: Any, **kwargs: Any) -> Any:
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
        return self._kernel_of(key, (args, kwargs))(*args, **kwargs)

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

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel on the arguments of a call, with the keys up to its own.

        Raises:
            NoKernelError: the kernel has been removed since.
        """
        operator, entry = self.operator, self.entry
        args, kwargs = operator.binder.bind(args, kwargs)
        entry = chosen(entry, operator, args, kwargs)
        if entry.registration is not None and not entry.registration.alive:
            raise NoKernelError(f"this kernel of {operator.name} has been removed: {entry.registration!r}")
        bits = operator.keyset(args, kwargs)
        if isinstance(self.key, DispatchKey):
            bits = bits & below(self.key) | 1 << self.key
        if trace.active:
            return trace.run(operator, bits, entry, args, kwargs, "callForKey")
        return run_entry(entry, operator, bits, args, kwargs)


def find(full_name: str) -> Operator:
    """The operator of a full name (``"td::add.Tensor"``).

    Raises:
        UnknownOperatorError: there is none.
    """
    declare_promised(full_name)
    found = operators.get(full_name)
    if found is None:
        raise UnknownOperatorError(f"no operator {full_name} is registered")
    return found


def recompute_all() -> None:
    """Bring all tables up to date; a fallback has changed, and the lock is held."""
    fallbacks_changed()
    for operator in list(operators.values()):
        if operator.in_use:
            operator.follow_fallbacks()

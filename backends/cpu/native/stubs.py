"""Native entries of operator functions: counted while cold, put in when hot, taken out when kernels change.

Every operator of a kind that has an entry gets a stub. A stub counts calls; from `config.flags.hot_calls` on, the
entry is loaded (from the disk cache, or compiled) and put into the function and the methods that stand for it
(`x + y`), and each combination of operand types gets its loop when it has been seen as often.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from types import MethodType
from typing import Any

from .... import config
from ....registry import native_type
from ....registry.keys import DispatchKey
from ....registry.operator import Operator, lock
from ....registry.state import state
from . import rt_base as rt
from .records import OperatorRecord, Record
from .runtime import Runtime

NAMES = ("axis", "keepdims", "copy", "dtype")  # keywords that entries know, as `rt_reduce` numbers them


def _turned(method: Callable[..., Any]) -> Callable[..., Any]:
    def turned(*args: Any, **kwargs: Any) -> Any:
        return method(*args[::-1], **kwargs) if len(args) == 2 else method(*args, **kwargs)

    return turned


class Door:
    """A callable that the entry of an operator is put into: the operator's function, or a special method.

    Attributes:
        callable: the callable.
        kind: which entry.
        slow: what answers on a failed guard.
        miss: what answers operand types that are not known yet.
        record: what the entry reads; made when the entry is first put in, and then kept.
    """

    def __init__(self, target: Any, kind: str, slow: Any, miss: Any) -> None:
        self.callable, self.kind, self.slow, self.miss = target, kind, slow, miss
        self.record: OperatorRecord | None = None

    def open(self, runtime: Runtime, recorder: Any) -> None:
        """Put the entry in."""
        entry = runtime.entry(self.kind)
        if self.record is None:
            self.record = OperatorRecord(runtime.process, self.slow, self.miss, NAMES)
        self.record.set_recorder(recorder)
        native_type.set_entry(self.callable, entry, self.record.address)

    def hand_on(self, other: Any) -> None:
        """Let another callable have the calls that the entry does not take."""
        self.slow = other
        if self.record is not None:
            self.record.refer(rt.D_SLOW, other)

    def close(self) -> None:
        """Take the entry out."""
        native_type.set_entry(self.callable, 0)


class Stub:
    """The native entry of one operator.

    Args:
        runtime: the entries of this process.
        function: the operator function.
        kind: which entry serves it.
        key_of: the key of a call's operand types, or None for a call that is not for native code.
        make: builds the variant of a key.
        recorder: gives what records a call for autograd, or None.
        base: the operator whose kernel the entry stands for: of a composite, what it calls; by default its own.
    """

    def __init__(
        self,
        runtime: Runtime,
        function: Any,
        kind: str,
        key_of: Callable[..., int | None],
        make: Callable[[int], Record],
        recorder: Callable[[], Any] = lambda: None,
        base: Operator | None = None,
    ) -> None:
        self.runtime, self.function, self.key_of, self.make = runtime, function, key_of, make
        self.operator: Operator = function.operator
        self.base: Operator = base or self.operator
        self.settle()
        self.doors = [Door(function, kind, self.operator, self.call_miss)]
        self.recorder = recorder
        self.cold_calls = 0
        self.seen: Counter[int] = Counter()
        self.failure = ""
        function.target = self.call_cold

    @property
    def record(self) -> OperatorRecord | None:
        """What the function's entry reads; None while it is cold."""
        return self.doors[0].record

    @property
    def usable(self) -> bool:
        """Whether the CPU kernels are still those that the declarations stand for, and no mode wants the calls."""
        watched = self.operator.extra_keys | self.base.extra_keys
        return not (self.failure or watched) and self._kernels() == self.kernels

    def settle(self) -> None:
        """Take the present kernels for those that the declarations stand for."""
        self.kernels = self._kernels()

    def _kernels(self) -> list[Any]:
        keys = (DispatchKey.CPU, DispatchKey.ADInplaceOrView)
        return [op.table[key].fn for op in (self.operator, self.base) for key in keys]

    @property
    def calls(self) -> int:
        """Calls answered natively."""
        return sum(door.record.calls for door in self.doors if door.record is not None)

    def add_method(self, method: Any, swapped: bool) -> None:
        """Put the entry into a special method too; on a failed guard the method's own Python code runs."""
        slow = MethodType(type(method).__call__, method)
        kind = self.doors[0].kind
        if swapped and not kind.startswith("elementwise"):
            return
        if swapped:  # the entry turns the arguments round and hands them on so
            turned = _turned(slow)
            self.doors.append(Door(method, kind + "_swapped", turned, turned))
        else:
            self.doors.append(Door(method, kind, slow, slow))

    def call_cold(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call before the entry is in place. Calls that are being traced do not make an operator hot."""
        if not state.include:
            self.cold_calls += 1
            if self.cold_calls >= config.flags.hot_calls:
                self.attempt(self.put_in)
        return self.operator(*args, **kwargs)

    def call_miss(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call with operand types that have no variant yet."""
        key = self.key_of(*args, **kwargs)
        if key is not None:
            self.seen[key] += 1
            if self.seen[key] >= config.flags.hot_calls:
                self.attempt(self.add_variant, key)
        return self.operator(*args, **kwargs)

    def attempt(self, step: Callable[..., None], *args: Any) -> None:
        """Do a step of compilation; if it fails, say so once, and let Python answer from now on."""
        try:
            step(*args)
        except (RuntimeError, OSError, SyntaxError, ImportError) as error:
            self.failure = f"{type(error).__name__}: {error}"
            self.take_out()
            name = self.operator.name
            warnings.warn(f"{name} runs without native code: {self.failure}", RuntimeWarning, stacklevel=4)

    def put_in(self) -> None:
        """Load or compile the entry and put it into the function and its methods.

        The lock is the registry's: registration tells the stubs, and who makes a stub looks at the registry. No call
        waits for it: while another thread registers, a later call puts the entry in.
        """
        with lock.if_free() as free:
            if free and not self.usable:
                self.cold_calls = 0  # looks again when as many calls have come
            elif free:
                recorder = self.recorder()
                for door in self.doors:
                    door.open(self.runtime, recorder)
                    self._share_variants(door)
                self.function.target = self.operator

    def _share_variants(self, door: Door) -> None:
        known = self.record.variants if self.record is not None else {}
        for key, variant in known.items():
            if door.record is not None and key not in door.record.variants:
                door.record.add(variant)

    def take_out(self) -> None:
        """Send calls to Python again, and count from zero."""
        with lock:
            for door in self.doors:
                door.close()
            self.cold_calls = 0
            self.function.target = self.operator if self.failure else self.call_cold

    def add_variant(self, key: int) -> None:
        """Compile the loop of a combination of operand types and make it reachable."""
        with lock.if_free() as free:
            if free and self.record is not None and key not in self.record.variants:
                variant = self.make(key)
                for door in self.doors:
                    if door.record is not None:
                        door.record.add(variant)

    def follow(self) -> None:
        """The operator's kernels, or who is interested in its calls, have changed; the registry's lock is held."""
        if self.record is None:
            return  # cold
        if native_type.entry_of(self.function):
            self.take_out()
        if self.usable:
            self.put_in()

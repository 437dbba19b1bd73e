"""Recomputation: a function that has run once lets go of what it has saved for the backward pass, and runs again there.

The function runs as it stands and is recorded as it stands. Then the nodes that its results depend on give up what they
saved, for a :class:`.node.Dropped` that knows where to get it from: the first node to ask has the function run again,
with the same levels open, on the same arguments; the nodes of that run correspond one by one to those of the first.
So gradients of gradients, values reached by closures, and levels of any kind around or inside need nothing special.

Source: ``torch.utils.checkpoint`` (non-reentrant), and for the policies ``jax.checkpoint``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import pytree
from ..errors import AutogradError, VersionError
from ..registry.keys import AUTOGRAD, DispatchKey
from ..registry.operator import Operator
from ..registry.state import adjusted, set_keys, state
from ..registry.values import describe
from .dunders import by_name
from .forward import ForwardMeta
from .level_stack import reopened, stack
from .meta import TRACING
from .node import Dropped, Node, sequence, version_of
from .record import policies
from .results import flat
from .storage import Hold
from .tensor import Tensor, storage_of, wrap

MODE = 1 << DispatchKey.Mode  # included, it keeps machine code from answering without being seen

Policy = Callable[..., bool]
_serials = itertools.count()


class _Frames(threading.local):
    """The runs in this thread with a policy, outermost first, and what those that watch have seen drawn."""

    def __init__(self) -> None:
        self.stack: list[Frame] = []
        self.running: list[dict[int, tuple[Any, Any]]] = []


_frames = _Frames()


@contextmanager
def unwatched() -> Iterator[None]:
    """Show no policy the operators that are called in a ``with`` block: bodies of loops, which are traced just once."""
    before, _frames.stack = _frames.stack, []
    try:
        yield
    finally:
        _frames.stack = before


def draws(*states: Any) -> None:
    """Tell the runs in this thread that what is written here, as a generator's state is, will be so in each run."""
    for seen in _frames.running:
        for written in states:
            if id(written) not in seen:
                with adjusted(exclude=MODE):
                    seen[id(written)] = written, written.clone()


@contextmanager
def drawn() -> Iterator[dict[int, tuple[Any, Any]]]:
    """The states of generators that are used in a ``with`` block, by their ids: each, and a copy from before."""
    seen: dict[int, tuple[Any, Any]] = {}
    _frames.running.append(seen)
    try:
        yield seen
    finally:
        _frames.running.pop()


class Frame:
    """One call of a checkpointed function.

    Args:
        fun: the function.
        args, kwargs: its arguments.
        policy: ``policy(op, args, kwargs)``: whether the result of an operator is kept; None: nothing is.
    """

    def __init__(self, fun: Callable[..., Any], args: Any, kwargs: Any, policy: Policy | None):
        self._fun, self._given, self._policy = fun, (args, kwargs), policy
        self._levels, self._floor = list(stack.levels), stack.floor
        self._keys = state.include, state.exclude
        tensors = [x for x in pytree.leaves((args, kwargs)) if isinstance(x, Tensor)]
        self._versions = [(x, version_of(x)) for x in tensors]
        self._kept: dict[int, tuple[Any, Any]] = {}
        self._is_again = False
        self._count = 0
        self._states: list[Any] | None = None
        self._ops: list[Any] = []
        self._drawn: dict[int, tuple[Any, Any]] = {}

    def run(self) -> Any:
        """Run the function; what its nodes have saved is dropped."""
        start = next(sequence)
        args, kwargs = self._given
        with drawn() as self._drawn, self._watched():
            out = self._fun(*args, **kwargs)
        nodes = nodes_since(start, out)
        self._ops = [node.op for node in nodes]
        for index, node in enumerate(nodes):
            node.drop(Dropped(self, index))
        return out

    @contextmanager
    def _as_drawn(self) -> Iterator[None]:
        """Have the generators that were used be as they were; the second run draws what the first one drew."""
        first_run = [item for item in self._drawn.values() if not is_over(item[0])]
        now = [(written, first, written.clone()) for written, first in first_run]
        for written, first, _ in now:
            written[...] = first
        try:
            yield
        finally:
            for written, _, last in now:
                written[...] = last

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Have the operators that are called shown to the policy, if there is one."""
        if self._policy is None:
            yield
            return
        before = set_keys(state.include | MODE, state.exclude)
        self._count = 0
        _frames.stack.append(self)
        policies[0] += 1
        try:
            yield
        finally:
            policies[0] -= 1
            _frames.stack.remove(self)
            set_keys(*before)

    # -- the second run --------------------------------------------------------------------------------------------
    def take(self, index: int) -> Any:
        """What a node had saved, computed again at the first time that a node asks.

        Raises:
            VersionError: an argument was written since.
            AutogradError: the function did something else this time.
        """
        if self._states is None or self._states[index] is None:
            self._states = self._again()
        found, self._states[index] = self._states[index], None
        return found

    def _again(self) -> list[Any]:
        for tensor, version in self._versions:
            if version_of(tensor) != version:
                raise VersionError(
                    f"a checkpointed function is to run again, and its argument {describe(tensor)} was written in "
                    "place since; write into a copy (x.clone())"
                )
        self._is_again = True
        before = set_keys(*self._keys)
        try:
            with self._as_drawn(), reopened(self._levels, self._floor):
                args, kwargs = self._given
                if state.include & TRACING:
                    args, kwargs = pytree.map_tree(_apart, (args, kwargs))
                start = next(sequence)
                with self._watched():
                    out = self._fun(*args, **kwargs)
        finally:
            set_keys(*before)
        nodes = nodes_since(start, out)
        if [node.op for node in nodes] != self._ops:
            raise AutogradError(
                "a checkpointed function called other operators when it ran again than at first; it must do the same "
                "each time, and depend on its arguments alone"
            )
        return [node.state() for node in nodes]

    # -- policies --------------------------------------------------------------------------------------------------
    def kept(self) -> Any:
        """The kept result of the present call, or None."""
        index = self._count
        if not self._is_again or index not in self._kept:
            return None
        out, mark = self._kept[index]
        if (mark.storage.version != mark.version) if type(mark) is Hold else (_mark(out) != mark):
            return None  # it was written since
        with adjusted(exclude=AUTOGRAD if type(mark) is Hold else 0):
            return by_name("clone")(out)

    def finish(self, op: Operator, args: Any, kwargs: Any, out: Any) -> None:
        """A call is over; keep its result if the policy says so."""
        index, self._count = self._count, self._count + 1
        if not self._is_again and isinstance(out, Tensor) and self._policy(op, args, kwargs):  # type: ignore[misc]
            is_plain = type(out) is Tensor  # which may get a history yet that leads here
            self._kept[index] = (wrap(out._array), Hold(storage_of(out))) if is_plain else (out, _mark(out))


def run_call(op: Operator, args: Any, kwargs: Any, compute: Callable[[], Any]) -> Any:
    """Run an operator below all that records, where a policy watches."""
    frames = _frames.stack
    found = next((x for frame in frames if (x := frame.kept()) is not None), None)
    out = compute() if found is None else found
    for frame in frames:
        frame.finish(op, args, kwargs, out)
    return out


def records(values: Any) -> bool:
    """Whether something records what happens to the values, at any level."""
    return any(_is_recorded(value) for value in flat(values))


def _is_recorded(value: Any) -> bool:
    while isinstance(value, Tensor):
        meta = value._meta
        if type(meta) is ForwardMeta:
            if _is_recorded(meta.tangent):
                return True
        elif meta is not None and meta.requires_grad:
            return True
        value = getattr(value, "_payload", None)
    return False


def _mark(x: Any) -> Any:
    """What changes when a tensor is written."""
    while type(x) is not Tensor and hasattr(x, "_payload"):
        x = x._payload
    return version_of(x), getattr(x, "_value", None)


def _apart(leaf: Any) -> Any:
    """An argument of the second run, which the compiler must not take for that of the first."""
    if not isinstance(leaf, Tensor) or not leaf.dtype.is_inexact:
        return leaf
    return by_name("recompute_barrier")(leaf, float(next(_serials) % 1024))


def is_over(state: Any) -> bool:
    """Whether a generator's state was that of a trace which has ended: of a jitted function inside."""
    return bool(getattr(getattr(state, "_trace", None), "finished", False))


def nodes_since(start: int, out: Any) -> list[Node]:
    """The nodes that results depend on, at all levels, as far as they are newer than a number; oldest first."""
    found: dict[int, Node] = {}
    pending: list[Any] = []
    values = pytree.leaves(out)
    while values:
        value = values.pop()
        while isinstance(value, Tensor):
            meta = value._meta
            if meta is not None:
                pending.append(meta.node)
                values += [meta.tangent] if type(meta) is ForwardMeta else []
            value = getattr(value, "_payload", None)
    while pending:
        node = pending.pop()
        if isinstance(node, Node) and node.sequence > start and node.sequence not in found:
            found[node.sequence] = node
            for edge in node.edges:
                targets = edge if edge and isinstance(edge[0], tuple) else (edge,)
                pending += [target[0] for target in targets if target is not None]
    return [found[number] for number in sorted(found)]

"""Rematerialization: drop the residuals of a function after its forward pass and recompute them in the backward pass.

The function runs and is recorded as usual. Then the nodes that its results depend on replace their residuals by a
:class:`.node.DroppedResiduals`. The first node that needs them runs the function again, with the same levels open, on
the same arguments; the nodes of the second run correspond one by one to those of the first. So gradients of gradients,
values captured by closures, and levels of any kind outside or inside need no special case.

Source: ``torch.utils.checkpoint`` (non-reentrant), and for the policies ``jax.checkpoint``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import pytree
from ...errors import AutogradError, VersionError
from ...locks import ThreadLocal
from ...registry.dispatch import unwinding
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOGRAD, DispatchKey
from ...registry.dispatch.observers import draw_watches
from ...registry.dispatch.state import current_keys, set_keys, state
from ...registry.operator import Operator
from ...registry.values import describe
from ..layers.level_stack import reopen_levels, stack
from ..tensor.dunders import by_name
from ..tensor.results import flat
from ..tensor.storage import Hold
from ..tensor.tensor import Tensor, storage_of, wrap
from .autograd_meta import TRACING
from .kernel import policies
from .node import DroppedResiduals, Node, sequence, version_of

if TYPE_CHECKING:
    from ...registry.types import Args, Function, Kwargs

MODE = 1 << DispatchKey.Mode  # including it disables native entries, whose calls could not be observed

Policy = Callable[..., bool]
_serials = itertools.count()


class _PolicyRuns(ThreadLocal):
    """This thread's share of the counter ``policies``."""

    runs = 0


class _Frames(ThreadLocal):
    """The running frames with a policy in this thread, outermost first, and the generator states seen by each run."""

    def __init__(self) -> None:
        self.stack: list[RematFrame] = []
        self.running: list[dict[int, tuple[Tensor, Tensor]]] = []


_frames = unwinding.register_thread_local(_Frames())


def _count_policies(more: int) -> None:
    """Add to the number of runs with a policy in this thread."""
    _policy_runs.runs += more
    policies[0] += more


_policy_runs = _PolicyRuns()
unwinding.parts.append(
    unwinding.Part(lambda: _policy_runs.runs, lambda before: _count_policies(before - _policy_runs.runs))
)


@contextmanager
def hide_from_policies() -> Iterator[None]:
    """Context manager: hide operators from policies; used for bodies of loops, which are traced once."""
    before, _frames.stack = _frames.stack, []
    try:
        yield
    finally:
        _frames.stack = before


def note_draws(*states: Tensor) -> None:
    """Tell the runs in this thread about generator states that are about to be written."""
    for seen in _frames.running:
        for written in states:
            if id(written) not in seen:
                with adjust_keys(exclude=MODE):
                    seen[id(written)] = written, written.clone()


@contextmanager
def watch_draws() -> Iterator[dict[int, tuple[Tensor, Tensor]]]:
    """Context manager: collect the generator states used in the block, by id: the state and a copy from before."""
    seen: dict[int, tuple[Tensor, Tensor]] = {}
    before, _frames.running = _frames.running, [*_frames.running, seen]
    draw_watches.add(1)
    try:
        yield seen
    finally:
        _frames.running = before
        draw_watches.add(-1)


class RematFrame:
    """One call of a checkpointed function.

    Args:
        fun: the function.
        args, kwargs: its arguments.
        policy: ``policy(op, args, kwargs)``: whether to save the result of an operator; None saves nothing.
    """

    def __init__(self, fun: Function, args: Args, kwargs: Kwargs, policy: Policy | None):
        self._fun, self._given, self._policy = fun, (args, kwargs), policy
        self._levels, self._floor = list(stack.levels), stack.floor
        self._keys = state.include, state.exclude
        tensors = [x for x in pytree.leaves((args, kwargs)) if isinstance(x, Tensor)]
        self._versions = [(x, version_of(x)) for x in tensors]
        self._cached: dict[int, tuple[Tensor, object]] = {}
        self._is_rerun = False
        self._count = 0
        self._states: list[Any] | None = None
        self._ops: list[Operator] = []
        self._generator_states: dict[int, tuple[Tensor, Tensor]] = {}

    @unwinding.restore_state_on_error
    def run(self) -> object:
        """Run the function and drop the residuals of its nodes."""
        start = next(sequence)
        args, kwargs = self._given
        with watch_draws() as self._generator_states, self._show_policy():
            out = self._fun(*args, **kwargs)
        nodes = nodes_since(start, out)
        self._ops = [node.op for node in nodes]
        for index, node in enumerate(nodes):
            node.drop(DroppedResiduals(self, index))
        return out

    @contextmanager
    def _restore_generators(self) -> Iterator[None]:
        """Restore the generators that the first run used, so that the second run draws the same numbers."""
        first_run = [item for item in self._generator_states.values() if not is_over(item[0])]
        now = [(written, first, written.clone()) for written, first in first_run]
        for written, first, _ in now:
            written[...] = first
        try:
            yield
        finally:
            for written, _, last in now:
                written[...] = last

    @contextmanager
    def _show_policy(self) -> Iterator[None]:
        """Show the operators that are called to the policy, if there is one."""
        if self._policy is None:
            yield
            return
        before = current_keys()
        self._count = 0
        outer, _frames.stack = _frames.stack, [*_frames.stack, self]
        _count_policies(1)
        try:
            set_keys(state.include | MODE, state.exclude)
            yield
        finally:
            _count_policies(-1)
            _frames.stack = outer
            set_keys(*before)

    # -- the second run --------------------------------------------------------------------------------------------
    def take(self, index: int) -> Any:
        """The state of a node's recomputed counterpart; the first call runs the function again.

        Raises:
            VersionError: an argument was written since.
            AutogradError: the function did something else this time.
        """
        if self._states is None or self._states[index] is None:
            self._states = self._rerun()
        result, self._states[index] = self._states[index], None
        return result

    @unwinding.restore_state_on_error
    def _rerun(self) -> list[Any]:
        for tensor, version in self._versions:
            if version_of(tensor) != version:
                raise VersionError(
                    f"a checkpointed function must run again, but its argument {describe(tensor)} was written in "
                    "place since the first run; write into a copy (x.clone())"
                )
        self._is_rerun = True
        before = current_keys()
        draw_watches.add(1)
        try:
            set_keys(*self._keys)
            with self._restore_generators(), reopen_levels(self._levels, self._floor):
                args, kwargs = self._given
                if state.include & TRACING:
                    args, kwargs = pytree.map_tree(_add_barrier, (args, kwargs))
                start = next(sequence)
                with self._show_policy():
                    out = self._fun(*args, **kwargs)
        finally:
            draw_watches.add(-1)
            set_keys(*before)
        nodes = nodes_since(start, out)
        if [node.op for node in nodes] != self._ops:
            raise AutogradError(
                "a checkpointed function called other operators when it ran again than at first; it must do the same "
                "each time, and depend on its arguments alone"
            )
        return [node.state() for node in nodes]

    # -- policies --------------------------------------------------------------------------------------------------
    def cached_result(self) -> Tensor | None:
        """A copy of the saved result of the current call, or None."""
        index = self._count
        if not self._is_rerun or index not in self._cached:
            return None
        out, mark = self._cached[index]
        if (mark.storage.version != mark.version) if type(mark) is Hold else (_write_mark(out) != mark):
            return None  # it was written since
        with adjust_keys(exclude=AUTOGRAD if type(mark) is Hold else 0):
            return by_name("clone")(out)

    def finish(self, op: Operator, args: Args, kwargs: Kwargs, out: object) -> None:
        """Save the result of a finished call if the policy says so."""
        index, self._count = self._count, self._count + 1
        if not self._is_rerun and isinstance(out, Tensor) and self._policy(op, args, kwargs):  # type: ignore[misc]
            is_plain = type(out) is Tensor  # it may get a graph node later that refers to this frame
            self._cached[index] = (
                (wrap(out._array), Hold(storage_of(out))) if is_plain else (out, _write_mark(out))
            )


def run_call(op: Operator, args: Args, kwargs: Kwargs, compute: Callable[[], object]) -> object:
    """Run an operator below all recording layers, or return its saved result; called while a policy is active."""
    frames = _frames.stack
    result = next((x for frame in frames if (x := frame.cached_result()) is not None), None)
    out = compute() if result is None else result
    for frame in frames:
        frame.finish(op, args, kwargs, out)
    return out


def is_recorded(values: object) -> bool:
    """Whether any of the values is recorded, at any level."""
    return any(_is_value_recorded(value) for value in flat(values))


def _tangent_of(meta: object) -> Tensor | None:
    """Return the tangent that a level of ``jvp`` keeps; None for the metadata of other tensors."""
    tangent: Tensor | None = getattr(meta, "tangent", None)
    return tangent


def _is_value_recorded(value: object) -> bool:
    while isinstance(value, Tensor):
        meta = value._meta
        tangent = _tangent_of(meta)
        if tangent is not None:
            if _is_value_recorded(tangent):
                return True
        elif meta is not None and meta.requires_grad:
            return True
        value = getattr(value, "_payload", None)
    return False


def _write_mark(x: Tensor) -> tuple[int, object]:
    """A value that changes when a tensor is written."""
    while type(x) is not Tensor and hasattr(x, "_payload"):
        x = x._payload
    return version_of(x), getattr(x, "_value", None)


def _add_barrier(leaf: object) -> object:
    """Add a barrier to an argument of the second run, so that the compiler does not merge it with the first (CSE)."""
    if not isinstance(leaf, Tensor) or not leaf.dtype.is_inexact:
        return leaf
    return by_name("recompute_barrier")(leaf, float(next(_serials) % 1024))


def is_over(state: Tensor) -> bool:
    """Whether a generator's state belongs to a trace that has ended."""
    return bool(getattr(getattr(state, "_trace", None), "finished", False))


def nodes_since(start: int, out: object) -> list[Node]:
    """The nodes, at all levels, that results depend on and whose sequence number exceeds `start`; oldest first."""
    nodes: dict[int, Node] = {}
    pending: list[object] = []
    values = pytree.leaves(out)
    while values:
        value = values.pop()
        while isinstance(value, Tensor):
            meta = value._meta
            if meta is not None:
                pending.append(meta.node)
                values.append(_tangent_of(meta))
            value = getattr(value, "_payload", None)
    while pending:
        node = pending.pop()
        if isinstance(node, Node) and node.sequence > start and node.sequence not in nodes:
            nodes[node.sequence] = node
            for edge in node.edges:
                targets = edge if edge and isinstance(edge[0], tuple) else (edge,)
                pending += [target[0] for target in targets if target is not None]
    return [nodes[number] for number in sorted(nodes)]

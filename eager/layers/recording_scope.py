"""Recording scopes: a call of ``grad`` or ``vjp`` on plain tensors, recorded by native entries as for ``backward()``.

A level wraps values, and every operator on them is dispatched in Python (:mod:`.levels`). A call that is not nested in
another transform does not need that: its inputs become leaves of autograd's graph, on which operators have native
entries. What the values of a level may not do, the values of a scope may not do either: they are not written into
tensors that were made outside, and those that outlive the call become values of a level that has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from sys import getrefcount
from types import TracebackType
from typing import Any
from weakref import ref

from ...errors import ConcretizationError, UnsupportedError
from ...registry.dispatch import trace
from ...registry.dispatch.keys import AUTOGRAD, CPU_KEYS, GRAD_CPU_KEYS
from ...registry.dispatch.state import current_keys, set_keys, state
from ...registry.operator import Operator
from ...registry.source import source_line
from ...registry.values import describe
from ..autograd.autograd_meta import AutogradMeta, leaf_count
from ..autograd.kernel import policies
from ..autograd.lifted_captures import capture_lifters
from ..autograd.node import sequence
from ..autograd.view_writes import root_of
from ..tensor.tensor import Tensor, require_grad, wrap_view
from . import dispatch_mode, level_allocations
from .level_stack import Level, stack
from .levels import LEVEL, LevelTensor, find_alias_members


def is_available(tensors: Iterable[Tensor]) -> bool:
    """Whether a call with these inputs may be recorded: nothing else observes or transforms it."""
    if stack.levels or stack.recording is not None or state.include or state.exclude & ~AUTOGRAD:
        return False
    if trace.active or dispatch_mode.watching():
        return False
    if capture_lifters.stack or policies[0]:
        return False
    for tensor in tensors:
        if type(tensor) is not Tensor or tensor._keys != CPU_KEYS or not tensor._array.dtype.isnative:
            return False
    return True


def _count_sole_references() -> int:
    """Return what `getrefcount` returns for an object in a list that is iterated over."""
    return next(getrefcount(item) for item in [object()])


_SOLE_REFERENCES = _count_sole_references()


class RecordingScope:
    """One call of a transform whose values are recorded in autograd's graph. A context manager for the function's run.

    Args:
        name: the transform, for messages.
        tensors: the tensors that are differentiated by; integers stay as they are.

    Attributes:
        sources: the tensors.
        inputs: the leaves that the function gets in place of them.
        metas: the autograd data of these leaves.
        is_kept: whether results keep their graph, because it also leads to leaves of the caller.
    """

    __slots__ = (
        "_before",
        "_index",
        "_level",
        "_made",
        "_recorded",
        "_start",
        "inputs",
        "is_kept",
        "metas",
        "name",
        "sources",
    )

    def __init__(self, name: str, tensors: Sequence[Tensor]) -> None:
        self.name, self.sources = name, tensors
        self.inputs = [_make_leaf(tensor) if tensor.dtype.is_inexact else tensor for tensor in tensors]
        self.metas = {leaf._meta for leaf in self.inputs if leaf._meta is not None}
        self._made: list[Any] = []
        self._recorded: list[Any] = []
        self._level: Level | None = None
        self.is_kept = False
        self._start = next(sequence)

    def __enter__(self) -> RecordingScope:
        self._before = current_keys()
        self._index = level_allocations.scope_count()
        stack.recording = self
        self._made = level_allocations.open_scope()
        set_keys(state.include, state.exclude & ~AUTOGRAD)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        stack.recording = None
        set_keys(*self._before)
        while level_allocations.scope_count() > self._index:
            level_allocations.close_scope()

    # -- the graph -----------------------------------------------------------------------------------------------------
    def reaches_inputs(self, value: Tensor) -> bool:
        """Whether a value depends on an input of the scope."""
        return self._is_reached(_roots_of([value]))

    def _is_reached(self, roots: list[Any]) -> bool:
        return any(leaf in self.metas for leaf in find_leaves(roots))

    def nodes_below(self, targets: Iterable[Any]) -> tuple[list[Any], bool]:
        """The nodes of the scope that some nodes and leaves depend on, and whether they lead to its inputs alone."""
        pending = list(dict.fromkeys(targets))
        seen, nodes, is_closed = set(pending), [], True
        for target in pending:  # which grows meanwhile
            if target.__class__ is AutogradMeta:
                is_closed = is_closed and target in self.metas
            elif target.sequence < self._start:
                is_closed = False
            else:
                nodes.append(target)
                for below in targets_of(target.edges):
                    if below not in seen:
                        seen.add(below)
                        pending.append(below)
        return nodes, is_closed

    @property
    def records_others(self) -> bool:
        """Whether results that depend on leaves of the caller keep their graph: not inside ``no_grad``."""
        return not self._before[1] & AUTOGRAD

    def owns(self, value: object) -> bool:
        """Whether a value is a tensor that depends on an input of the scope."""
        return isinstance(value, Tensor) and self.reaches_inputs(value)

    def depends_on_others(self, values: Iterable[object]) -> bool:
        """Whether a value depends on a leaf that the caller may run ``backward()`` for."""
        if not leaf_count[0] or not self.records_others:
            return False
        return any(map(is_of_caller, find_leaves(_roots_of(values))))

    def strip(self, value: Any, known: dict[int, Tensor]) -> Any:
        """Return what the caller gets for a value: the tensor without its graph, for an input the original tensor."""
        if type(value) is not Tensor or value._meta is None or not value._meta.requires_grad:
            return value
        result = known.get(id(value))
        if result is None:
            result = self._strip(value)
            known[id(value)] = result
        return result

    def _strip(self, value: Tensor) -> Tensor:
        for leaf, source in zip(self.inputs, self.sources):
            if leaf is value:
                return source
        is_own = not self.is_kept and (not leaf_count[0] or self.reaches_inputs(value))
        return wrap_view(value._array, value) if is_own else value

    def detach_arguments(self, values: Sequence[object]) -> list[Any]:
        """Arguments of a custom rule, detached if they depend on inputs of the scope alone."""
        return [
            wrap_view(value._array, value)
            if type(value) is Tensor and self.owns(value) and not self.depends_on_others([value])
            else value
            for value in values
        ]

    def refuse_captured(self, name: str, results: Iterable[object]) -> None:
        """Raise UnsupportedError if a result of a custom rule, whose arguments are detached, depends on the inputs."""
        for result in results:
            if self.owns(result) and not self.depends_on_others([result]):
                raise UnsupportedError(
                    f"{name} has a derivative rule of its own, and its result {describe(result)} depends on a value of "
                    f"{self.name} that is not an argument; pass that value as an argument"
                )

    def note(self, value: Tensor) -> None:
        """Note a value that Python has recorded; native code notes its own (:mod:`.level_allocations`)."""
        self._recorded.append(ref(value))

    # -- what values may not do ----------------------------------------------------------------------------------------
    def check_written(self, op: Operator, target: Tensor, written: Iterable[Any]) -> None:
        """Raise UnsupportedError if a value of the scope would be written into a tensor that was made outside.

        Args:
            op: the operator, for the message.
            target: the tensor that it writes into.
            written: the edges to what it writes.
        """
        if self.reaches_inputs(root_of(target)) or not self._is_reached(targets_of(written)):
            return
        members = find_alias_members(target)
        if members is not None and level_allocations.is_made_since(self._index, members[0]):
            return
        raise UnsupportedError(
            f"{op.name} would write a value of {self.name} into {describe(target)}, which was not made inside "
            f"{self.name}, or shares memory with what was not; make a new tensor: x = x.at[index].set(value), "
            "x = x + y; or write into a copy that is made inside: x = x.clone()"
        )

    def refuse(self, value: Tensor, what: str) -> None:
        """Raise for what cannot be done with a value of the scope."""
        if self.reaches_inputs(value):
            raise UnsupportedError(
                f"{what} works on eager tensors, not on a value of {self.name}, whose gradients are results; use "
                "x.detach()"
            )

    def refuse_numpy(self, value: Tensor) -> None:
        """Raise ConcretizationError for a conversion to NumPy."""
        if self.reaches_inputs(value):
            raise ConcretizationError(
                f"NumPy code was called on a value of {self.name}, opened at {source_line()}; its derivative would be "
                "lost; use tandem's operators, or x.detach() for the value alone"
            )

    # -- the end -------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Turn the values that are still alive into values of a level that has ended; those of a kept graph remain."""
        if stack.recording is self:  # an interrupt came before the block
            self._leave()
        if self.is_kept:
            return
        for tensor in self.inputs:
            if getrefcount(tensor) > _SOLE_REFERENCES and tensor._keys == GRAD_CPU_KEYS:
                self._end(tensor)
        for reference in (*self._made, *self._recorded):
            tensor = reference()
            if tensor is not None and tensor._keys == GRAD_CPU_KEYS and self.reaches_inputs(tensor):
                self._end(tensor)
        self.inputs = []

    def _end(self, tensor: Any) -> None:
        if self._level is None:
            self._level = Level(1, self.name, source_line(), 0)
            self._level.is_open = False
        payload = tensor._copy_object()
        payload._meta, payload._keys = None, CPU_KEYS
        tensor.__class__ = LevelTensor
        tensor._payload, tensor._level, tensor._keys = payload, self._level, LEVEL | CPU_KEYS


def _make_leaf(tensor: Tensor) -> Tensor:
    return require_grad(wrap_view(tensor._array, tensor), AutogradMeta())


def target_of(value: Any) -> Any:
    """The node or leaf of a tensor that requires a gradient, else None."""
    meta = value._meta if isinstance(value, Tensor) else None
    if meta is None or not meta.requires_grad:
        return None
    return meta if meta.node is None else meta.node


def _roots_of(values: Iterable[object]) -> list[Any]:
    """The nodes and leaves of values that require gradients."""
    return [target for value in values if (target := target_of(value)) is not None]


def targets_of(edges: Iterable[Any]) -> list[Any]:
    """The nodes and leaves that edges lead to; those of lists are tuples of edges and None."""
    targets = []
    for edge in edges:
        first = edge[0] if edge else None
        if first is None or first.__class__ is tuple:
            targets += [item[0] for item in edge or () if item is not None]
        else:
            targets.append(first)
    return targets


def is_of_caller(leaf: AutogradMeta) -> bool:
    """Whether a leaf is a tensor that a user has made a leaf, and not the input of a scope."""
    return hasattr(leaf, "leaf")


def find_leaves(roots: list[Any]) -> Iterator[AutogradMeta]:
    """The leaves of the graph below some nodes."""
    pending, seen = list(roots), set(roots)
    while pending:
        target = pending.pop()
        if target.__class__ is AutogradMeta:
            yield target
            continue
        for below in targets_of(target.edges):
            if below not in seen:
                seen.add(below)
                pending.append(below)

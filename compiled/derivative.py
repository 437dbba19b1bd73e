"""The derivative of a specialization: compiled forward and backward passes, and the node that a call records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..eager import dispatch_mode as modes
from ..eager.meta import TRACING
from ..eager.node import Dropped, Named, Node, version_of
from ..eager.plans import Active, Rule
from ..eager.storage import Hold
from ..eager.tensor import EAGER, Tensor, storage_of, wrap
from ..errors import AutogradError, VersionError
from ..registry.keys import AUTOGRAD
from ..registry.state import state
from ..registry.values import describe
from .backward import Backward, without
from .graph_function import GraphFunction, tuple_of
from .outputs import Output, OutputPlan
from .partition import Split
from .specialization import Specialization

Pull = Callable[[dict[int, Any], Sequence[Any]], tuple[Any, ...]]


class Derivative:
    """How calls of one specialization are differentiated.

    A call's *values* are its parameters (leaves, derived numbers, captured tensors), then the results of the forward
    graph: those of the function, then what is kept for the backward graph.

    Args:
        name: of the function.
        split: the graph in two.
        roots: the results that a gradient flows from, in the order in which the backward graph takes them, and the
            place of each in the flat result of the function.
        targets: what the gradients are for: numbers of leaves, or captured tensors.
        computed: the number of the function's own results.
        needed: which parameters the gradients depend on, as numbers.
        fixed: numbers of the leaves that are no parameters.
        cut: places in the flat result of views through which no gradient flows.
        moving: numbers of the leaves that are parameters.

    Attributes:
        forward, backward: the two halves.
        holds: which of the call's values its node keeps.
    """

    def __init__(
        self,
        name: str,
        split: Split,
        roots: dict[int, int],
        targets: list[Any],
        computed: int,
        needed: set[int],
        fixed: tuple[int, ...],
        cut: frozenset[int],
        moving: tuple[int, ...],
    ):
        self.split, self.roots, self.targets, self.computed = split, tuple(roots), tuple(targets), computed
        self.positions, self.fixed, self.cut = tuple(roots.values()), fixed, cut
        self.places: tuple[Any, ...] = tuple(moving.index(t) if type(t) is int else t for t in targets)
        self.called = Named(name)
        self._twin: Specialization | None = None
        self.counts, self.tensors, self.keys = (0, 0), list[int](), list[int]()
        self.parameters = len(split.forward.parameters)
        self.forward = GraphFunction(split.forward, name)
        self.active = Active(tuple(Rule(n, None, (), 0, False, False) for n in range(len(targets))), ())
        places = {value: n for n, value in enumerate([*split.forward.parameters, *split.forward.outputs])}
        self.reads = tuple(places[value] for value in split.reads[: len(split.reads) - len(roots)])
        numbers = {n for n, value in enumerate(split.forward.parameters) if value.weak is not None}
        self.holds = tuple(sorted({*self.reads, *needed, *numbers}))
        self.shown = frozenset(self.parameters + root for root in roots)
        self.backward = Backward(split.backward, f"backward of {name}")
        self._partial: dict[tuple[int, ...], Backward] = {}  # by the roots that no gradient reaches

    @property
    def captured(self) -> bool:
        """Whether captured tensors get gradients."""
        return any(type(target) is not int for target in self.targets)

    def with_values(self, found: Specialization) -> Specialization:
        """The specialization as one whose result is itself, the call's parameters but for derived numbers, and the
        results of the forward pass, for the native entry."""
        if self._twin is None:
            graph, results = found.graph, len(self.forward.graph.outputs)
            first = len(graph.inputs) + len(graph.derived)
            places = [*range(len(graph.inputs)), *range(first, first + len(graph.captured))]
            leaves = [Output("constant", value=found), *(Output("parameter", place) for place in places)]
            leaves += [Output("result", place) for place in range(results)]
            plan = OutputPlan(tuple(leaves), tuple_of(len(leaves)), tuple(self.forward.graph.outputs))
            self.counts = len(graph.inputs), len(graph.captured)
            guards = [found.guards[place] for place in found.moving] + list(found.captured)
            self.tensors = [n + 1 for n, guard in enumerate(guards) if guard.kind == "tensor"]
            self.keys = [guard.keys for guard in guards if guard.kind == "tensor"]
            outputs = plan if not found.outputs.writes else found.outputs
            self._twin = replace(found, outputs=outputs, executable=self.forward.executable)
        return self._twin

    def fixed_leaves(self, found: Specialization) -> tuple[Any, ...]:
        """The leaves that are no parameters, as they were when the function was traced."""
        if not self.fixed:
            return ()
        guards = [found.guards[place] for place in self.fixed]
        return tuple(guard.value._ref() if guard.kind == "same" else guard.value for guard in guards)

    def gradients(self, values: dict[int, Any], cotangents: Sequence[Any]) -> list[Any]:
        """The gradients of the targets, by the compiled backward pass; None where they are zero.

        Args:
            values: the call's values, by number, as far as they are kept.
            cotangents: the gradient of each root; None: zero.
        """
        given = [values[place] for place in self.reads]
        missing = tuple([number for number, g in enumerate(cotangents) if g is None])
        if missing:
            return self._without(missing)([*given, *(g for g in cotangents if g is not None)])
        return self.backward([*given, *cotangents])

    def _without(self, missing: tuple[int, ...]) -> Backward:
        """The backward pass where some gradients are zero."""
        found = self._partial.get(missing)
        if found is None:
            graph = self.split.backward
            cotangents = graph.inputs[len(self.reads) :]
            partial = without(graph, cotangents, {cotangents[number] for number in missing})
            found = self._partial[missing] = Backward(partial, self.backward.function.__name__)
        return found


class CompiledNode(Node):
    """A recorded call of a jitted function.

    Attributes:
        derivative: the compiled derivative; None where the gradient is always computed by ``pull``.
        roots: the results that carry this node, by their numbers here: ``(number, place in the flat result, spec)``.
        pull: computes the gradients from the leaves and the gradients of the results by a jitted function that can
            itself be differentiated, batched and traced.
        kept: which of the call's values are saved.
    """

    __slots__ = ("derivative", "kept", "pull", "roots")

    def __init__(
        self, derivative: Derivative | None, called: Named, active: Active, edges: list[Any], pull: Pull
    ):
        super().__init__(called, active, edges)  # type: ignore[arg-type]
        self.derivative, self.pull = derivative, pull
        self.roots: tuple[Any, ...] = () if derivative is None else derivative.roots
        self.kept: tuple[int, ...] = ()

    def keep(self, values: Sequence[Any], which: tuple[int, ...], shown: frozenset[int]) -> None:
        """Save values of the call.

        Args:
            values: all of them.
            which: the numbers of those to save.
            shown: the numbers of those that will carry this node themselves, so that they are kept as aliases.
        """
        saved, versions = [], []
        for place in which:
            value = values[place]
            if not isinstance(value, Tensor):
                version: Any = None
            elif place in shown:
                version = Hold(storage_of(value))
                value = wrap(value._array) if type(value) is Tensor else value._alias()
            else:
                version = version_of(value)
            saved.append(value)
            versions.append(version)
        self.kept, self.saved, self.versions = which, tuple(saved), tuple(versions)

    def checked(self, needed: Sequence[int] | None = None) -> dict[int, Any]:
        """The saved values by their numbers.

        Raises:
            AutogradError: they have been freed.
            VersionError: one of those needed has been written since.
        """
        if self.saved is None:
            raise AutogradError(
                f"backward needs what the jitted function {self.op.name} had saved a second time, and the first "
                "backward has freed it; give the first one retain_graph=True"
            )
        for place, value, version in zip(self.kept, self.saved, self.versions):
            if version is None or (needed is not None and place not in needed):
                continue
            hold = type(version) is Hold
            now, was = (version.storage.version, version.version) if hold else (version_of(value), version)
            if now != was:
                raise VersionError(
                    f"backward of the jitted function {self.op.name} needs {describe(value)}, which was written in "
                    f"place after the call had saved it (version {now}, saved at {was}); write into a copy (x.clone())"
                )
        return dict(zip(self.kept, self.saved))

    def gradients(self, given: dict[int, Any]) -> list[Any]:
        while self.saved.__class__ is Dropped:
            self.refill(self.saved.source.take(self.saved.index))
        cotangents = [given.get(root) for root in self.roots]
        derivative = self.derivative
        if derivative is not None and self._is_plain(cotangents) and not modes.active():
            return derivative.gradients(self.checked(derivative.reads), cotangents)
        values = self.checked()
        return list(self.pull(values, cotangents))

    def _is_plain(self, cotangents: Sequence[Any]) -> bool:
        """Whether nobody watches how the gradients are computed: no recording, no level, no trace."""
        recording = AUTOGRAD & ~state.exclude
        values = (*cotangents, *(v for v in self.saved or () if recording and isinstance(v, Tensor)))
        return not state.include & TRACING and all(
            v is None or (type(v) in EAGER and not v._keys & recording) for v in values
        )

"""Differentiation of jitted calls: compiled forward and backward passes, and the autograd node of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ... import lazy
from ...eager.autograd.autograd_meta import TRACING
from ...eager.autograd.derivative_rules import ActiveRules, Rule
from ...eager.autograd.node import CallName, Change, DroppedResiduals, Node, packings, version_of
from ...eager.layers import dispatch_mode as modes
from ...eager.tensor.storage import Hold
from ...eager.tensor.tensor import EAGER, Tensor, storage_of, wrap
from ...errors import AutogradError, VersionError
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import NO_GRAD, current, state
from ...registry.values import describe
from ..graph_function import GraphFunction, make_tuple_treedef
from ..guards.leaves import Strides
from ..outputs import Output, OutputTree
from ..specialization import Specialization
from .backward import Backward, specialize_for_zero_cotangents
from .partition import Split

_residual_hooks = lazy.Module(".eager.autograd.residual_hooks")

Pull = Callable[[dict[int, Any], Sequence[Any]], tuple[Any, ...]]


class Derivative:
    """The compiled derivative of one specialization.

    A call's *values* are its parameters (leaves, derived numbers, captured tensors), then the results of the forward
    graph: those of the function, then the residuals of the backward graph.

    Args:
        name: the name of the function.
        split: the forward and the backward graph.
        roots: the results with cotangents, in the order of the backward graph's inputs, and the index of each in the
            flat result of the function.
        targets: what to differentiate by: indices of leaves, or captured tensors.
        computed: the number of the function's own results.
        needed: the indices of the parameters that the gradients depend on.
        fixed: numbers of the leaves that are no parameters.
        detached: indices in the flat result of views through which no gradient flows.
        dynamic: numbers of the leaves that are parameters.
        strided: the parameters that the forward graph reads by their strides.

    Attributes:
        forward, backward: the compiled functions.
        holds: the indices of the call's values that its node stores as residuals.
    """

    def __init__(
        self,
        name: str,
        split: Split,
        roots: dict[int, int],
        targets: list[object],
        computed: int,
        needed: set[int],
        fixed: tuple[int, ...],
        detached: frozenset[int],
        dynamic: tuple[int, ...],
        strided: tuple[tuple[int, Strides], ...],
    ):
        self.split, self.roots, self.targets, self.computed = split, tuple(roots), tuple(targets), computed
        self.positions, self.fixed, self.detached = tuple(roots.values()), fixed, detached
        self.indices: tuple[Any, ...] = tuple(dynamic.index(t) if type(t) is int else t for t in targets)
        self.called = CallName(name)
        self.twin: Specialization | None = None
        self.is_plain = self.is_single = False
        self.pull: Pull | None = None  # of calls without other leaves than parameters
        self.tensor_keys: tuple[tuple[int, int], ...] = ()
        self.counts, self.tensors, self.keys = (0, 0), list[int](), list[int]()
        self.parameters = len(split.forward.parameters)
        self.forward = GraphFunction(split.forward, name, strided)
        self.active = ActiveRules(tuple(Rule(n, None, (), 0, False, False) for n in range(len(targets))), ())
        indices = {value: n for n, value in enumerate([*split.forward.parameters, *split.forward.outputs])}
        self.reads = tuple(indices[value] for value in split.reads[: len(split.reads) - len(roots)])
        numbers = {n for n, value in enumerate(split.forward.parameters) if value.weak is not None}
        self.holds = tuple(sorted({*self.reads, *needed, *numbers}))
        self.shown = frozenset(self.parameters + root for root in roots)
        self.read_positions = tuple(self.holds.index(index) for index in self.reads)
        self.backward = Backward(split.backward, f"backward of {name}")
        self._partial: dict[tuple[int, ...], Backward] = {}  # by the roots that no gradient reaches

    @property
    def captured(self) -> bool:
        """Whether captured tensors receive gradients."""
        return any(type(target) is not int for target in self.targets)

    def make_native_twin(self, specialization: Specialization) -> Specialization:
        """Make the specialization that the native entry runs.

        Its result is the specialization, the call's parameters without derived numbers, and the results of the forward
        pass.
        """
        if self.twin is None:
            graph, results = specialization.graph, len(self.forward.graph.outputs)
            first = len(graph.inputs) + len(graph.derived)
            indices = [*range(len(graph.inputs)), *range(first, first + len(graph.captured))]
            leaves = [
                Output("constant", value=specialization),
                *(Output("parameter", index) for index in indices),
            ]
            leaves += [Output("result", index) for index in range(results)]
            output_tree = OutputTree(
                tuple(leaves), make_tuple_treedef(len(leaves)), tuple(self.forward.graph.outputs)
            )
            self.counts = len(graph.inputs), len(graph.captured)
            guards = [specialization.guards[index] for index in specialization.dynamic] + [
                guard.leaf for guard in specialization.captured
            ]
            self.tensors = [n + 1 for n, guard in enumerate(guards) if guard.kind == "tensor"]
            self.keys = [guard.keys for guard in guards if guard.kind == "tensor"]
            self.tensor_keys = tuple(zip(self.tensors, self.keys))
            self.is_plain = bool(self.roots) and not (
                specialization.outputs.writes
                or specialization.scalar_types
                or graph.captured
                or self.captured
                or self.detached
            )
            outputs = specialization.outputs
            self.is_single = outputs.treedef.kind is None and outputs.leaves[0] == Output("result", 0)
            outputs = output_tree if not specialization.outputs.writes else specialization.outputs
            self.twin = replace(specialization, outputs=outputs, executable=self.forward.executable)
        return self.twin

    def static_leaves(self, specialization: Specialization) -> tuple[object, ...]:
        """The leaves that are not parameters, with their values at tracing."""
        if not self.fixed:
            return ()
        guards = [specialization.guards[index] for index in self.fixed]
        return tuple(guard.value._ref() if guard.kind == "identity" else guard.value for guard in guards)

    def gradients(self, values: dict[int, object], cotangents: Sequence[object]) -> list[Any]:
        """Compute the gradients of the targets with the compiled backward pass; None for zero gradients.

        Args:
            values: the stored values of the call, by index.
            cotangents: the cotangent of each root; None for zero.
        """
        given = [values[index] for index in self.reads]
        missing = tuple([number for number, g in enumerate(cotangents) if g is None])
        if missing:
            return self._backward_without(missing)([*given, *(g for g in cotangents if g is not None)])
        return self.backward([*given, *cotangents])

    def _backward_without(self, missing: tuple[int, ...]) -> Backward:
        """The backward pass specialized for zero cotangents."""
        result = self._partial.get(missing)
        if result is None:
            graph = self.split.backward
            cotangents = graph.inputs[len(self.reads) :]
            partial = specialize_for_zero_cotangents(
                graph, cotangents, {cotangents[number] for number in missing}
            )
            result = self._partial[missing] = Backward(partial, self.backward.function.__name__)
        return result


class CompiledNode(Node):
    """The autograd node of a call of a jitted function.

    Attributes:
        derivative: the compiled derivative; None if ``pull`` always computes the gradient.
        roots: the outputs of this node that are results of the call.
        pull: computes the gradients from the leaves and the gradients of the results by a jitted function that can
            itself be differentiated, batched and traced.
        kept: the indices of the call's values that are stored.
    """

    __slots__ = ("derivative", "kept", "pull", "roots")

    def __init__(
        self,
        derivative: Derivative | None,
        called: CallName,
        active: ActiveRules,
        edges: list[Any],
        pull: Pull,
    ):
        super().__init__(called, active, edges)  # type: ignore[arg-type]
        self.derivative, self.pull = derivative, pull
        self.roots: tuple[Any, ...] = () if derivative is None else derivative.roots
        self.kept: tuple[int, ...] = ()

    def store_residuals(self, values: Sequence[Any], which: tuple[int, ...], shown: frozenset[int]) -> None:
        """Store values of the call as residuals.

        Args:
            values: all values of the call.
            which: the indices of those to store.
            shown: the indices of results that refer to this node; they are stored as aliases to avoid a cycle.
        """
        saved, versions = [], []
        for index in which:
            value = values[index]
            if value.__class__ is Tensor and index not in shown:
                storage = value._storage
                version: Any = 0 if storage is None else storage.version
            elif not isinstance(value, Tensor):
                version = None
            elif index in shown:
                version = Hold(storage_of(value))
                value = wrap(value._array) if type(value) is Tensor else value._alias()
            else:
                version = version_of(value)
            saved.append(value)
            versions.append(version)
        self.kept, self.residuals, self.versions = which, tuple(saved), tuple(versions)
        if packings[0]:
            _residual_hooks.pack_residuals(self)

    def change_residuals(self, change: Change) -> bool:
        """See :meth:`Node.change_residuals`; a call with captured targets refers to these, too."""
        is_whole = super().change_residuals(change)
        return is_whole and (self.derivative is None or not self.derivative.captured)

    def load_residuals(self, needed: Sequence[int] | None = None) -> dict[int, Any]:
        """The stored values by index.

        Raises:
            AutogradError: they have been freed.
            VersionError: a needed value was written in place since the call.
        """
        if self.residuals is None:
            raise AutogradError(
                f"backward needs the values saved by the jitted function {self.op.name} a second time, but the first "
                "backward has freed them; pass retain_graph=True to the first one"
            )
        for index, value, version in zip(self.kept, self.residuals, self.versions):
            if version is None or (needed is not None and index not in needed):
                continue
            hold = type(version) is Hold
            now, was = (version.storage.version, version.version) if hold else (version_of(value), version)
            if now != was:
                raise VersionError(
                    f"backward of the jitted function {self.op.name} needs {describe(value)}, which was written in "
                    f"place after the call had saved it (version {now}, saved at {was}); write into a copy (x.clone())"
                )
        return dict(zip(self.kept, self.residuals))

    def gradients(self, given: dict[int, Any]) -> list[Any]:
        """Run the backward pass of the call; recompute its residuals first if they were dropped."""
        guards, derivative = current(), self.derivative
        if guards.flags == NO_GRAD and derivative is not None and not modes.active():
            residuals = self._read_residuals(derivative.read_positions)
            cotangents = [given[root] for root in self.roots if root in given]
            if (
                residuals is not None
                and len(cotangents) == len(self.roots)
                and all(cotangent.__class__ is Tensor for cotangent in cotangents)
            ):
                return derivative.backward(residuals + cotangents)
        return self._general_gradients(given)

    def _read_residuals(self, positions: tuple[int, ...]) -> list[Any] | None:
        """The residuals that compiled code reads; None if they are not there, or were perhaps written."""
        residuals, versions = self.residuals, self.versions
        if residuals.__class__ is not tuple:
            return None
        result = []
        for position in positions:
            value, version = residuals[position], versions[position]
            if value.__class__ is Tensor:
                if version.__class__ is Hold:
                    if version.storage.version != version.version:
                        return None
                else:
                    storage = value._storage
                    if version != (0 if storage is None else storage.version):
                        return None
            elif version is not None:
                return None
            result.append(value)
        return result

    def _general_gradients(self, given: dict[int, Any]) -> list[Any]:
        while self.residuals.__class__ is DroppedResiduals:
            self.refill(self.residuals.source.take(self.residuals.index))
        cotangents = [given.get(root) for root in self.roots]
        derivative = self.derivative
        if derivative is not None and self._can_use_compiled(cotangents) and not modes.active():
            return derivative.gradients(self.load_residuals(derivative.reads), cotangents)
        values = self.load_residuals()
        return list(self.pull(values, cotangents))

    def _can_use_compiled(self, cotangents: Sequence[Any]) -> bool:
        """Whether the gradients may be computed by compiled code: no recording, transform level or trace is active."""
        recording = AUTOGRAD & ~state.exclude
        values = (*cotangents, *(v for v in self.residuals or () if recording and isinstance(v, Tensor)))
        return not state.include & TRACING and all(
            v is None or (type(v) in EAGER and not v._keys & recording) for v in values
        )

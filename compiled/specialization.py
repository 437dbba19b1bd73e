"""One specialization of a jitted function: what must hold for it to answer a call, and how it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..eager.tensor import Tensor
from ..pytree import TreeDef
from ..registry.values import SCALARS
from ..tracer.graph import Graph, derive
from . import writes
from .execute import run
from .externals import ExternalGuard
from .leaves import LeafGuard, as_tensor
from .outputs import OutputPlan
from .ranges import Range
from .versions import Versions, changes


@dataclass(eq=False, slots=True)
class Specialization:
    """The guards as plain data, so that a native entry can be generated from them, and what runs when they hold.

    Attributes:
        treedef: containers of the arguments: a tuple with one item per parameter that is not static.
        guards: one per leaf of ``treedef``, in order.
        paths: what each leaf is called in messages.
        statics: stand-ins of the static arguments' values (see :func:`.arguments.static_key`).
        include, exclude: this thread's key sets (the default state is 0, 0).
        context: the dtypes that autocast lowers to, where it is on.
        static_values: the static arguments' values.
        externals: closure cells and globals.
        captured: guards on the captured tensors, in step with ``graph.constants``; their data are read at each call.
        versions: the registry.
        scalar_types: types that the derived scalars had.
        graph: what was traced, with all results as outputs.
        program: the same nodes with the results to compute as outputs: what is lowered.
        moving: leaf number of each of ``graph.inputs``.
        outputs: where the leaves of the result come from.
        ranges: bounds on integer scalars.
        executable: has ``run(parameters) -> arrays``; None if there is nothing to compute.
        derivative: for calls on tensors that need gradients: how they are recorded (:class:`.derivative.Derivative`).
        hits: number of calls answered by the Python entry.
        records: for each form of call what the native entry reads, or why it leaves the call to Python.
    """

    treedef: TreeDef
    guards: tuple[LeafGuard, ...]
    paths: tuple[str, ...]
    statics: tuple[Any, ...]
    static_values: tuple[Any, ...]
    include: int
    exclude: int
    externals: tuple[ExternalGuard, ...]
    captured: tuple[LeafGuard, ...]
    versions: Versions
    scalar_types: tuple[type, ...]
    graph: Graph
    program: Graph
    moving: tuple[int, ...]
    outputs: OutputPlan
    ranges: tuple[Range, ...]
    executable: Any = None
    derivative: Any = None
    context: tuple[Any, ...] = ()
    hits: int = 0
    records: dict[Any, Any] = field(default_factory=dict)
    _changes: int = (
        -1
    )  # so the first look at the registry is a whole one: it may have changed during the trace

    @property
    def calls(self) -> int:
        """Calls answered, by Python or natively."""
        native: int = sum(r.hits for r in list(self.records.values()) if not isinstance(r, str))
        return self.hits + native

    def holds(self) -> bool:
        """Whether everything holds that the arguments do not show: variables, captured tensors, the registry."""
        return (
            all(guard.holds() for guard in self.externals)
            and all(_unchanged(guard, tensor) for guard, tensor in zip(self.captured, self.graph.constants))
            and self.current()
        )

    def current(self) -> bool:
        """Whether the registry is as it was."""
        now = changes()
        if now == self._changes:
            return True
        if not self.versions.current():
            return False
        self._changes = now
        return True

    def scalars(self, leaves: Sequence[Any]) -> list[Any] | None:
        """The derived scalars of a call; None if a type differs from the traced one.

        Raises:
            whatever Python's arithmetic raises.
        """
        if not self.scalar_types:
            return []
        found = derive(self.graph, [leaves[index] for index in self.moving])
        return found if tuple(map(type, found)) == self.scalar_types else None

    def overlaps(self, leaves: Sequence[Any]) -> bool:
        """Whether a call writes into memory that several of its tensors share, which was traced as apart."""
        if not self.outputs.writes:
            return False
        given = [
            None if type(leaf) in SCALARS else as_tensor(leaf) for leaf in (leaves[i] for i in self.moving)
        ]
        derived = [None] * len(self.graph.derived)
        return writes.overlaps([*given, *derived, *self.graph.constants], self.outputs.written)

    def run(self, leaves: Sequence[Any], scalars: Sequence[Any]) -> Any:
        """The result of a call whose guards hold.

        Args:
            leaves: the leaves of the arguments.
            scalars: the derived scalars.
        """
        given = [
            leaf if type(leaf) in SCALARS else as_tensor(leaf) for leaf in (leaves[i] for i in self.moving)
        ]
        parameters = [*given, *scalars, *self.graph.constants]
        if self.outputs.writes:
            writes.check("a jitted function", parameters, self.outputs.written)
        for bound in self.ranges:
            bound.check(parameters)
        results = run(self.executable, self.program, parameters) if self.executable is not None else ()
        return self.outputs.build(parameters, results)


def _unchanged(guard: LeafGuard, tensor: Any) -> bool:
    if type(tensor) is not Tensor:
        return bool((tensor._keys, tensor.shape, tensor.device) == (guard.keys, guard.shape, guard.device))
    array = tensor._array
    return bool(tensor._keys == guard.keys and array.shape == guard.shape and array.dtype == guard.dtype)

"""A specialization of a jitted function: its guards, and its compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..pytree import TreeDef
from ..registry.dtypes import DType, float32
from ..registry.values import SCALARS
from ..tracer.graph import Graph, Value, compute_derived
from . import writes
from .execute import lower_graph, run
from .failed_writes import Write, run_with_write_recovery
from .guards.captured import CapturedGuard, MaskGuard
from .guards.externals import ExternalGuard
from .guards.integer_ranges import Range
from .guards.leaves import SCALAR_KINDS, LeafGuard, Strides, to_tensor
from .guards.versions import Versions, count_changes
from .outputs import OutputTree

if TYPE_CHECKING:
    from .guards.guard import Guard

_strided_parameters = lazy.Module(".jit.strided_parameters")


@dataclass(eq=False, repr=False, match_args=False, slots=True)
class Specialization:
    """Guards, as plain data that a native entry can be generated from, and the code that runs when they hold.

    Attributes:
        treedef: containers of the arguments: a tuple with one item per parameter that is not static.
        guards: one per leaf of ``treedef``, in order.
        paths: the name of each leaf in messages.
        statics: keys of the static arguments' values (see :func:`.arguments.static_key`).
        include, exclude: this thread's key sets (the default state is 0, 0).
        context: the dtypes that autocast casts to, if it is on.
        default_dtype: the dtype of new tensors of Python floats.
        static_values: the static arguments' values.
        externals: closure cells and globals.
        captured: guards on the captured tensors, in step with ``graph.constants``; their data are read at each call.
        masks: guards on the elements of captured masks, whose positions are constants of the graph.
        versions: versions of the registry's operators.
        scalar_types: types of the derived scalars.
        graph: the traced graph, with all results as outputs.
        program: the graph to lower: the same nodes, with the results to compute as outputs.
        dynamic: leaf index of each of ``graph.inputs``.
        outputs: the sources of the leaves of the result.
        ranges: bounds on integer scalars.
        strided: the parameters that the program reads by their strides, in bytes, from the memory that it gets.
        writes: the writes into arguments, in program order.
        traced: the whole traced program, if ``graph`` is only a part of it.
        executable: has ``run(parameters) -> arrays``; None if there is nothing to compute.
        donated: the numbers of the parameters whose memory the executable stores results in.
        derivative: the compiled derivative (:class:`.derivatives.autograd_call.Derivative`), if there is one.
        hits: number of calls through Python.
        used: time of the last call through Python; see :func:`.native_entry.use_time`.
        is_dropped: whether the cache has dropped it, so that the native entry must not link it again.
        records: for each form of call, the struct of the native entry, or why Python must run the call.
        repeats: whether it was found to have the results of eager calls for several values of its numbers.
    """

    treedef: TreeDef
    guards: tuple[LeafGuard, ...]
    paths: tuple[str, ...]
    statics: tuple[Any, ...]
    static_values: tuple[Any, ...]
    include: int
    exclude: int
    externals: tuple[ExternalGuard, ...]
    captured: tuple[CapturedGuard, ...]
    versions: Versions
    scalar_types: tuple[type, ...]
    graph: Graph
    program: Graph
    dynamic: tuple[int, ...]
    outputs: OutputTree
    ranges: tuple[Range, ...]
    masks: tuple[MaskGuard, ...] = ()
    strided: tuple[tuple[int, Strides], ...] = ()
    writes: tuple[Write, ...] = ()
    traced: Graph | None = None
    executable: Any = None
    donated: tuple[int, ...] = ()
    derivative: Any = None
    context: tuple[Any, ...] = ()
    default_dtype: DType = float32
    hits: int = 0
    used: int = 0
    is_dropped: bool = False
    records: dict[Any, Any] = field(default_factory=dict)
    repeats: bool | None = None
    _changes: int = (
        -1
    )  # so the first look at the registry is a whole one: it may have changed during the trace

    @property
    def calls(self) -> int:
        """Number of calls, through Python and native."""
        native: int = sum(r.hits for r in list(self.records.values()) if not isinstance(r, str))
        return self.hits + native

    @property
    def last_use(self) -> int:
        """Time of the last call, through Python or native."""
        twin = getattr(self.derivative, "twin", None)
        records = [*self.records.values(), *(twin.records.values() if twin is not None else ())]
        times: list[int] = [record.used for record in records if not isinstance(record, str)]
        return max([self.used, *times])

    def holds(self) -> bool:
        """Whether the guards hold that do not concern arguments: variables, captured tensors, the registry."""
        return all(guard.check() for guard in self.environment) and self.is_current()

    @property
    def environment(self) -> tuple[Guard, ...]:
        """The guards on variables and captured tensors."""
        return (*self.externals, *self.captured, *self.masks)

    def is_current(self) -> bool:
        """Whether the operators that the graph depends on are unchanged in the registry."""
        now = count_changes()
        if now == self._changes:
            return True
        if not self.versions.is_current():
            return False
        self._changes = now
        return True

    def scalars(self, leaves: Sequence[object]) -> list[Any] | None:
        """The derived scalars of a call; None if a type differs from the traced one.

        Raises:
            whatever Python's arithmetic raises.
        """
        if not self.scalar_types:
            return []
        result = compute_derived(self.graph, [leaves[index] for index in self.dynamic])
        return result if tuple(map(type, result)) == self.scalar_types else None

    def overlaps(self, leaves: Sequence[object]) -> bool:
        """Whether a call writes into memory that several of its tensors share; the trace assumed that they do not."""
        if not self.outputs.writes:
            return False
        given = [None if self.guards[i].kind in SCALAR_KINDS else to_tensor(leaves[i]) for i in self.dynamic]
        derived = [None] * len(self.graph.derived)
        return writes.overlaps([*given, *derived, *self.graph.constants], self.outputs.written)

    def run(self, leaves: Sequence[object], scalars: Sequence[object]) -> Any:
        """Run a call whose guards hold.

        Args:
            leaves: the leaves of the arguments.
            scalars: the derived scalars.
        """
        given = [
            leaf if type(leaf) in SCALARS else to_tensor(leaf) for leaf in (leaves[i] for i in self.dynamic)
        ]
        parameters = [*given, *scalars, *self.graph.constants]
        if self.outputs.writes:
            writes.check_writes("a jitted function", parameters, self.outputs.written)
        for bound in self.ranges:
            bound.check(parameters)
        results = self._execute(parameters) if self.executable is not None else ()
        return self.outputs.build(parameters, results)

    def compile(self, donated: Sequence[Value] = ()) -> None:
        """Compile the program; its results may be stored in the memory of donated inputs."""
        lowered = lower_graph(self.program, donated)
        if lowered is not None:
            self.executable, self.donated = lowered.compile(), tuple(sorted(lowered.written))

    def _execute(self, parameters: list[Any]) -> Any:
        given = (
            _strided_parameters.take_bases(parameters, self.strided, self.program)
            if self.strided
            else parameters
        )
        return self.run_with_recovery(
            lambda: run(self.executable, self.program, given, self.donated), parameters
        )

    def run_with_recovery(self, work: Callable[[], object], parameters: Sequence[object]) -> Any:
        """Run compiled code; if it raises, apply the writes that preceded the failure to the arguments.

        Args:
            work: runs the compiled code.
            parameters: the graph's parameters.
        """
        if not self.writes:
            return work()
        return run_with_write_recovery(work, self.traced or self.graph, parameters, self.writes)

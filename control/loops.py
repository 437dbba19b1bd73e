"""``scan``, ``fori_loop`` and ``while_loop``: Python loops, or operators while tracing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from .. import lazy, pytree
from ..eager.layers.levels import LevelTensor, mark_masked, stack
from ..eager.layers.vmap.tensor import BatchedTensor
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..errors import (
    ArgumentError,
    BodyDTypeError,
    DTypeError,
    ScalarOverflowError,
    ShapeError,
    ValueArgumentError,
)
from ..named_tuple import NamedTuple
from ..operators.declare.ownership import copy_shared_leaves
from ..pytree import TreeDef
from ..registry.dispatch.unwinding import restore_state_on_error
from ..registry.dtypes import DType, bool_
from ..registry.values import TensorSpec, describe, traced_number_types
from ..tracer.graph import Graph
from ..tracer.scalar import TracerScalar
from ..tracer.trace import is_tracing
from . import autograd_kernel as autograd_kernel
from .batching import may_need_gradient
from .hot_loops import LoopCall, find_call
from .number_dtypes import Step, cast_numbers, cast_to_carry, find_wider_dtypes, run_with_numbers, trace_step
from .ops import SCAN, WHILE
from .scan_items import convert_reads_to_items
from .structure import Leaves, check_structure, flatten_tensors, specs_of, to_tensor
from .subgraph import ClosedGraph, trace_body

if TYPE_CHECKING:
    from ..registry.dims import Dim
    from ..registry.types import Function, Pytree

_dims = lazy.Module(".registry.dims")

# Longest fori_loop that is a scan: its counters are stored, and its residuals would not fit into memory.
MAX_SCAN = 2**31


# -- scan --------------------------------------------------------------------------------------------------------------
@restore_state_on_error
def scan(
    name: str,
    f: Function,
    init: Pytree,
    xs: Pytree,
    length: int | None,
    reverse: bool,
    lower: int | None = None,
) -> tuple[Any, Any]:
    """See :func:`tandem.scan`.

    ``name`` is the function that the user called; ``lower`` is the first number if ``xs`` is a counter.
    """
    carry, items = flatten_tensors(name, "init", init), flatten_tensors(name, "xs", xs)
    steps = count_steps(name, items, length)
    step = _ScanStep(name, f, items.treedef)
    if not is_tracing() and steps:
        try:
            return _run_eager_scan(_EagerScan(step, items, steps, bool(reverse), lower), carry)
        except BodyDTypeError:
            if lower is None:
                raise  # the graph of a loop with a counter may have a weak one
    specs = [_item_spec(x) for x in items.tensors]
    closed, carry = trace_step(name, step, carry, specs, counts=lower is not None)
    count, tensors = len(carry.tensors), items.tensors
    if lower is not None:
        closed, more = convert_reads_to_items(closed, count, lower, steps)
        tensors = [*tensors, *more]
    out = SCAN(closed.graph, carry.tensors, tensors, closed.captures, length=steps, reverse=bool(reverse))
    results = _restore_unchanged(closed, carry, copy_shared_leaves(out, carry.tensors))
    return carry.treedef.unflatten(results[:count]), step.results.unflatten(results[count:])


class _ScanStep:
    """One step of a scan on flat lists.

    Attributes:
        results: the treedef of a step's results without the carry; unset before the first step.
    """

    results: TreeDef

    def __init__(self, name: str, f: Function, items: TreeDef):
        self.name, self.f, self.items = name, f, items
        self._has_run = False

    def __call__(
        self, carry: Leaves, tensors: Sequence[Tensor], item: Sequence[Tensor]
    ) -> tuple[Leaves, list[Tensor]]:
        """Run one step; returns the next carry and the results of the step."""
        pair = self.f(carry.treedef.unflatten(tensors), self.items.unflatten(item))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(
                f"{self.name}: the body must return a pair (carry, result), where either may be None; it returned "
                f"{describe(pair)}"
            )
        next_carry = flatten_tensors(self.name, "the carry that the body returns", pair[0], carry.treedef)
        like = self.results if self._has_run else None
        result = flatten_tensors(self.name, "the result of the body", pair[1], like)
        if self._has_run:
            check_structure(self.name, "the results of two steps", self.results, result.treedef)
        self.results, self._has_run = result.treedef, True
        return next_carry, result.tensors


def count_steps(name: str, items: Leaves, length: Dim | None) -> Dim:
    """Return the number of steps.

    Raises:
        ShapeError: the leaves of ``xs`` have different lengths, or none.
    """
    sizes: dict[Dim, str] = {}
    if length is not None:
        sizes[length if _dims.is_symbolic(length) else int(length)] = "length"
    for index, x in enumerate(items.tensors):
        path = f"xs{items.treedef.paths()[index]}"
        if not x.shape:
            raise ShapeError(f"{name}: {path} is {describe(x)} and has no axis to run along")
        sizes.setdefault(x.shape[0], path)
    if not sizes:
        raise ValueArgumentError(f"{name}: xs has no leaves; pass the number of steps as length")
    if len(sizes) > 1 or min(sizes) < 0:
        parts = ", ".join(f"{size} of {where}" for size, where in sizes.items())
        raise ShapeError(
            f"{name}: the numbers of steps differ: {parts}" if len(sizes) > 1 else f"{name}: {parts}"
        )
    return next(iter(sizes))


def _item_spec(x: Tensor) -> TensorSpec:
    spec = x.spec
    return type(spec)(tuple(spec.shape[1:]), spec.dtype, spec.device)


class _EagerScan(NamedTuple):
    """An eager scan without its carry.

    Attributes:
        step: runs one step.
        items: what it iterates over.
        length, reverse, lower: as in :func:`scan`.
    """

    step: _ScanStep
    items: Leaves
    length: int
    reverse: bool
    lower: int | None

    def find_call(self, carry: Leaves) -> LoopCall | None:
        """The call of this scan as a loop that may be compiled."""
        step, items = self.step, self.items
        options = self.length, self.reverse, self.lower

        def run(functions: Sequence[Any], init: Any, tensors: Sequence[Tensor]) -> tuple[Any, Any]:
            return scan(step.name, functions[0], init, items.treedef.unflatten(tensors), *options)

        key, trees = (step.name, items.treedef, options), (items.treedef,)
        return find_call(key, (step.f,), carry, items.tensors, run, trees)

    def after(self, steps: int) -> _EagerScan:
        """The scan that remains after some steps."""
        part = slice(None, -steps) if self.reverse else slice(steps, None)
        items = self.items._replace(tensors=[x[part] for x in self.items.tensors])
        lower = self.lower if self.lower is None or self.reverse else self.lower + steps
        return self._replace(items=items, length=self.length - steps, lower=lower)


def _run_eager_scan(loop: _EagerScan, carry: Leaves) -> tuple[Any, Any]:
    """Run a scan as compiled code if it is hot, else as a Python loop."""
    call = loop.find_call(carry) if loop.length > 1 else None
    result = None if call is None else call.run_compiled()
    return _run_python_scan(loop, carry, call) if result is None else (result[0], result[1])


def _run_python_scan(loop: _EagerScan, carry: Leaves, call: LoopCall | None) -> tuple[Any, Any]:
    """Run a scan as a Python loop, or some steps of it if compiled code can run the others."""
    step, items, steps = loop.step, loop.items.tensors, range(loop.length)
    rows: list[list[Tensor]] = []
    state, rest = carry.tensors, None
    for index in reversed(steps) if loop.reverse else steps:
        item, own = [x[index] for x in items], _OwnCarry(state)
        try:
            next_carry, row, dtypes = _take_step(step.name, step, carry, own.copies, item)
        except BodyDTypeError:
            if call is not None:
                call.note_time()
            raise
        if dtypes is not None:  # of numbers in the carry: begin again
            return _run_python_scan(loop, cast_numbers(carry, dtypes), call)
        state = own.restore_unwritten(cast_to_carry(carry, next_carry))
        rows.append(own.restore_unwritten(row))
        if call is not None and call.is_due(len(rows), loop.length):
            rest = call.run_rest(loop.after(len(rows)).find_call(_replace_numbers(carry, state)))
            if rest is not None:
                break
            call = None
    if call is not None:
        call.note_time()
    columns = zip(*(rows[::-1] if loop.reverse else rows))
    stacked = [by_name("stack")(column) for column in columns]
    if rest is None:
        return carry.treedef.unflatten(state), step.results.unflatten(stacked)
    pairs = zip(stacked, pytree.leaves(rest[1]))
    joined = [by_name("concat")(pair[::-1] if loop.reverse else pair) for pair in pairs]
    return rest[0], step.results.unflatten(joined)


def _take_step(
    name: str, step: Step, carry: Leaves, state: Sequence[Tensor], item: Sequence[Tensor]
) -> tuple[Leaves, list[Tensor], list[DType | None] | None]:
    """Run one step of a Python loop: the next carry, the results, and what :func:`find_wider_dtypes` returns."""
    try:
        next_carry, row = step(carry, state, item)
        return next_carry, row, find_wider_dtypes(name, carry, next_carry)
    except BodyDTypeError:
        dtypes = run_with_numbers(name, step, carry, item)
        if dtypes is None:
            raise
        return carry, [], dtypes


def _replace_numbers(carry: Leaves, state: list[Tensor]) -> Leaves:
    """The carry after some steps, which has no numbers."""
    return carry._replace(tensors=state, weak=[False] * len(carry.weak))


class _OwnCarry:
    """Copies of the carry of one step of a Python loop, which its body may write into.

    The carry may share memory with other values: the argument of the loop, results of earlier steps, captured tensors.
    """

    def __init__(self, tensors: Sequence[Tensor]):
        clone = by_name("clone")
        self.originals = tensors
        self.copies = [clone(x) for x in tensors]

    def restore_unwritten(self, results: Sequence[Tensor]) -> list[Tensor]:
        """Replace the copies among some results by their originals, except those that were written."""
        known = {
            id(copy): x
            for copy, x in zip(self.copies, self.originals)
            if type(copy) is Tensor and (copy._storage is None or copy._storage.version == 0)
        }
        return [known.get(id(x), x) for x in results]


def _restore_unchanged(closed: ClosedGraph, carry: Leaves, results: Sequence[Tensor]) -> list[Tensor]:
    """Replace the results of invariant carries by their inputs."""
    pairs = zip(closed.graph.inputs, closed.graph.outputs, carry.tensors, results)
    restored = [x if value is out else result for value, out, x, result in pairs]
    return [*restored, *results[len(restored) :]]


# -- fori_loop ---------------------------------------------------------------------------------------------------------
@restore_state_on_error
def fori_loop(lower: object, upper: object, body: Function, init: Pytree) -> Pytree:
    """See :func:`tandem.fori_loop`."""
    if type(lower) is int and (type(upper) is int or _dims.is_symbolic(upper)):
        for parameter, bound in (("lower", lower), ("upper", upper)):
            if type(bound) is int and not -(2**63) <= bound < 2**63:
                raise ScalarOverflowError(f"fori_loop: {parameter}={bound} does not fit the index, an int64")
        steps = max(cast("Dim", upper) - lower, 0)
        if _dims.is_symbolic(steps) or steps <= MAX_SCAN:
            counter = by_name("arange")(lower, lower + steps)
            return scan("fori_loop", lambda val, i: (body(i, val), None), init, counter, steps, False, lower)[
                0
            ]
    low, high = _to_bound("lower", lower), _to_bound("upper", upper)
    dtype = high.dtype if lower.__class__ is int else low.dtype

    def step(state: tuple[Tensor, Tensor, Pytree]) -> tuple[Tensor, Tensor, Pytree]:
        i, stop, val = state
        return i + 1, stop, body(i, val)

    start = (by_name("astype")(low, dtype, copy=False), by_name("astype")(high, dtype, copy=False), init)
    return while_loop(lambda state: state[0] < state[1], step, start, "fori_loop")[2]


def _to_bound(parameter: str, bound: object) -> Tensor:
    tensor = to_tensor(bound)
    if tensor.shape or not tensor.dtype.is_integer:
        raise DTypeError(
            f"fori_loop: {parameter} must be an integer or an integer tensor of shape (), not {describe(bound)}"
        )
    return tensor


# -- while_loop --------------------------------------------------------------------------------------------------------
@restore_state_on_error
def while_loop(condition: Function, body: Function, init: Pytree, name: str = "while_loop") -> Any:
    """See :func:`tandem.while_loop`."""
    carry = flatten_tensors(name, "init", init)
    if not is_tracing():
        call = _find_while_call(name, condition, body, carry)
        result = None if call is None else call.run_compiled()
        return _run_python_while(name, condition, body, carry, call) if result is None else result[0]
    closed, carry = trace_step(name, _as_step(name, body), carry)
    holds = trace_body(
        name,
        lambda *tensors: [check_condition(name, condition(carry.treedef.unflatten(tensors)))],
        specs_of(carry.tensors),
    )
    graphs = unify_inputs(len(carry.tensors), [holds, closed])
    out = WHILE(*graphs, carry.tensors, [*holds.captures, *closed.captures])
    return carry.treedef.unflatten(_restore_unchanged(closed, carry, out))


def check_condition(name: str, value: object) -> Tensor:
    """Convert a condition to a bool tensor of shape ``()``.

    Raises:
        ArgumentError: it is not a bool, or has axes.
    """
    if type(value) is bool:
        return to_tensor(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape == () and dtype is bool_:
        return cast(Tensor, value)
    if type(value) in traced_number_types and cast(TracerScalar, value).python_type is bool:
        return to_tensor(value)
    raise ArgumentError(
        f"{name}: the condition must be a bool or a bool tensor of shape (), not {describe(value)}; compare, x > 0, "
        "and reduce with .any() or .all()"
    )


def _find_while_call(name: str, condition: Function, body: Function, carry: Leaves) -> LoopCall | None:
    """The call of a while_loop as a loop that may be compiled."""

    def run(functions: Sequence[Any], init: Any, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        return (while_loop(functions[0], functions[1], init, name),)

    return find_call((name,), (condition, body), carry, (), run)


def _as_step(name: str, body: Function) -> Step:
    """The body of a while_loop as a step of a loop without items and results."""

    def step(carry: Leaves, tensors: Sequence[Tensor], _: Sequence[Tensor]) -> tuple[Leaves, list[Tensor]]:
        result = body(carry.treedef.unflatten(tensors))
        return flatten_tensors(name, "the value that the body returns", result, carry.treedef), []

    return step


def _run_python_while(
    name: str, condition: Function, body: Function, carry: Leaves, call: LoopCall | None
) -> Pytree:
    """Run a while_loop as a Python loop, or some steps of it if compiled code can run the others.

    In a batch, examples that are done are masked until all are.
    """
    first, state, step = True, carry.tensors, _as_step(name, body)
    for steps in itertools.count():
        if call is not None and not first and call.is_due(steps):
            rest = call.run_rest(_find_while_call(name, condition, body, _replace_numbers(carry, state)))
            if rest is not None:
                return rest[0]
            call = None
        holds = check_condition(name, condition(carry.treedef.unflatten(state)))
        if not _is_any_true(holds):
            break
        differs = is_batched(holds)
        with mark_masked(name if differs else stack.masked):
            masked = _mask_gradients(holds, state) if differs else state
            own = _OwnCarry(masked)
            next_carry, _, dtypes = _take_step(name, step, carry, own.copies, ())
        if dtypes is not None:  # of numbers in the carry: begin again
            return _run_python_while(name, condition, body, cast_numbers(carry, dtypes), call)
        first = False
        new = own.restore_unwritten(cast_to_carry(carry, next_carry))
        if differs:
            new = [x if x is old else by_name("where")(holds, x, old) for x, old in zip(new, state)]
        state = new
    if call is not None:
        call.note_time()
    # without a step it is unknown what the body changes
    return carry.treedef.unflatten(copy_shared_leaves(state, carry.tensors) if first else state)


def _mask_gradients(holds: Tensor, state: list[Tensor]) -> list[Tensor]:
    """Block the gradients of a state for examples that are done: zero times an infinite derivative would be NaN."""
    stop = by_name("stop_gradient")
    return [by_name("where")(holds, x, stop(x)) if may_need_gradient(x) else x for x in state]


def is_batched(x: Tensor) -> bool:
    """Whether a tensor is batched by any level of ``vmap``."""
    while isinstance(x, LevelTensor):
        if isinstance(x, BatchedTensor):
            return True
        x = x._payload
    return False


def _is_any_true(condition: Tensor) -> bool:
    """Whether a condition holds for any example."""
    while isinstance(condition, LevelTensor):
        condition = condition._payload
    return bool(condition.any()) if condition.shape else bool(condition)


def unify_inputs(own: int, parts: Sequence[ClosedGraph]) -> list[Graph]:
    """Make graphs with equal inputs: ``own`` common inputs, then the captured values of each graph in turn."""
    graphs = []
    for index, part in enumerate(parts):
        graph = type(part.graph)()
        graph.nodes, graph.outputs = part.graph.nodes, part.graph.outputs
        graph.inputs = list(part.graph.inputs[:own])
        for other_index, other in enumerate(parts):
            values = other.graph.inputs[own:]
            if other_index == index:
                graph.inputs += values
            else:
                for value in values:
                    graph.add_input(value.spec, value.weak)
        graphs.append(graph)
    return graphs

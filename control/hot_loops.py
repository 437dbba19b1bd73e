"""Compile eager loops that have run for some time, where nothing forbids it.

An eager ``scan``, ``fori_loop`` or ``while_loop`` is a Python loop. Where its functions only compute
(:mod:`.captured_values`), one trace of them stands for all steps, and the loop can run as compiled code. It is
compiled when its Python loops have taken `config.flags.hot_loops` milliseconds, about what a compilation takes, so
that at most twice the time of the better way is spent; a Python loop that lasts longer goes on as compiled code. Later
calls run that code if their functions have the same code, equal captured values, and captured tensors of the same
shapes and dtypes. Loops that autograd records remain Python loops, since compiled gradients may be rounded
differently; so do those that a mode, a trace or a debugger watches.
"""

from __future__ import annotations

import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from .. import config, lazy, pytree
from ..eager.hot_calls import is_watched
from ..eager.layers.level_stack import stack
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..eager.tensor.weak_scalars import is_weak
from ..errors import TandemError
from ..named_tuple import NamedTuple
from ..pytree import TreeDef
from ..registry.dispatch.keys import CPU_KEYS, GRAD_CPU_KEYS
from ..registry.dispatch.precedence import traces
from ..registry.dispatch.state import NO_GRAD, PLAIN, current
from ..registry.dtypes import default_float
from ..tracer.graph import all_nodes
from .captured_objects import is_plain_object
from .captured_values import Captures, NoKey, RecordedTensor, describe_number, is_own, is_pure_class
from .structure import Leaves
from .subgraph import ClosedGraph, body_trace, close_trace, new_input
from .substitution import Substitution

if TYPE_CHECKING:
    from ..jit.guards.versions import Versions
    from ..registry.types import Array
    from ..tracer.graph import Graph
    from ..tracer.trace import Trace

_compiler = lazy.Module(".jit.hot_calls")
_view_outputs = lazy.Module(".jit.view_outputs")
_versions = lazy.Module(".jit.guards.versions")
MOST_LOOPS = 128  # loops whose time is known
MOST_REJECTED = 1024  # codes of functions that are not compiled
# The key sets of tensors of which autograd records no calls.
UNRECORDED = {PLAIN: frozenset((CPU_KEYS,)), NO_GRAD: frozenset((CPU_KEYS, GRAD_CPU_KEYS))}

# A function of functions, a carry and items.
Run = Callable[[Sequence[Any], Any, Sequence[Tensor]], tuple[Any, ...]]


class CompiledLoop(NamedTuple):
    """The compiled form of an eager loop.

    Attributes:
        function: a function of the arrays of the carry, the items, the captured tensors and the constants.
        constants: arrays that its trace has created.
        unchanged: the numbers of results that are arguments, with the numbers of those arguments.
        structure: the structure of its result.
        views: the numbers of results that are returned with their axes in another order, and that order.
        versions: the versions of the operators that it depends on.
    """

    function: Callable[..., tuple[Any, ...]]
    constants: list[Array]
    unchanged: dict[int, int]
    structure: TreeDef
    views: dict[int, tuple[int, ...]]
    versions: Versions


class HotLoop:
    """One eager loop: the time that its Python loops have taken, and its compiled form.

    Attributes:
        seconds: the time.
        function: the compiled form.
        is_rejected: whether it cannot be compiled.
        given: for each result whether it is a tensor that the call was given or captures; for loops there is no list.
        orders: for each result the order of its axes in memory, or None for that of the shape; for loops, whose results
            are contiguous, there is no list.
    """

    def __init__(self, held: list[object]):
        self.seconds = 0.0
        self.function: CompiledLoop | None = None
        self.is_rejected = False
        self.given: list[bool] | None = None
        self.orders: list[tuple[int, ...] | None] | None = None
        self._held = held  # objects whose ids are in the key

    def is_hot(self, seconds: float = 0.0) -> bool:
        """Whether the loop should be compiled, ``seconds`` after the time that is noted."""
        return not self.is_rejected and self.seconds + seconds >= config.flags.hot_loops * 1e-3

    def run(self, given: Sequence[Tensor]) -> tuple[Any, ...] | None:
        """Run the compiled form of the loop; None if there is none.

        Args:
            given: the carry without its numbers, the items and the captured tensors.
        """
        compiled = self.function
        if compiled is None:
            return None
        if not compiled.versions.is_current():
            self.function = self.orders = None  # a kernel has been registered or removed
            return None
        results = [*compiled.function(*[x._array for x in given], *compiled.constants)]
        for number, argument in compiled.unchanged.items():
            results[number] = given[argument]
        for number, order in compiled.views.items():
            results[number] = by_name("permute")(results[number], order)
        result: tuple[Any, ...] = compiled.structure.unflatten(results)
        return result


_loops: OrderedDict[object, HotLoop] = OrderedDict()
_rejected: OrderedDict[object, None] = OrderedDict()


class LoopCall:
    """A call of an eager loop that may be compiled.

    Args:
        loop: the loop.
        functions: its functions.
        captures: the values that they capture.
        carry: the initial carry.
        items: further tensors that the loop takes.
        run: runs the loop with other functions, another carry and other items, for a trace.

    Attributes:
        loop, captures: the same.
        captured: the captured tensors.
    """

    def __init__(
        self,
        loop: HotLoop,
        functions: Sequence[object],
        captures: Captures,
        carry: Leaves,
        items: Sequence[Tensor],
        run: Run,
    ):
        self.loop, self._functions, self.captured = loop, functions, captures.tensors
        self.captures = captures
        self._carry, self._items, self._run = carry, items, run
        self._start, self._next_check = perf_counter(), 0.0

    def run_compiled(self) -> tuple[Any, ...] | None:
        """Run the loop as compiled code, if it is hot or compiled; returns the result, else None."""
        loop, given = self.loop, [*self._find_state(), *self._items, *self.captured]
        result = loop.run(given)
        if result is None and loop.is_hot():
            self._compile()
            result = loop.run(given)
        return result

    def run_rest(self, rest: LoopCall | None) -> tuple[Any, ...] | None:
        """Run what remains of the loop as compiled code; returns the result, or None if that is not possible."""
        if rest is None:
            return None
        rest.loop.seconds += self.loop.seconds + perf_counter() - self._start
        return rest.run_compiled()

    def is_due(self, done: int, steps: int | None = None) -> bool:
        """Whether the remaining steps should be compiled.

        Args:
            done: the number of steps that the Python loop has run.
            steps: the number of all steps, if it is known.
        """
        elapsed = perf_counter() - self._start
        if elapsed < self._next_check or self.loop.is_rejected:
            return False
        limit, self._next_check = config.flags.hot_loops * 1e-3, 1.5 * elapsed
        is_worth_it = steps is None or elapsed / done * (steps - done) >= limit
        return is_worth_it and steps != done and self.loop.is_hot(elapsed)

    def note_time(self) -> None:
        """Add the time since this call began to that of the Python loops."""
        self.loop.seconds += perf_counter() - self._start

    def _compile(self) -> None:
        loop = self.loop
        loop.is_rejected = True  # until it is compiled; an interrupt may come between
        before, keeps = _versions.read_registry_time(), traces.keeps_kernels
        try:
            traces.keeps_kernels = True  # the calls that a Python loop answers by other kernels are recorded
            traced = self._trace()
        except Exception:  # the functions read data of a tensor, for instance, which Python loops do
            return
        finally:
            traces.keeps_kernels = keeps
        if traced is None:
            return
        closed, structure = traced
        versions = _versions.read_versions(closed.graph, before)
        try:
            function = _compiler.compile_graph(closed.graph, "loop")
        except TandemError:
            return
        except Exception as fault:
            text = f"an eager loop runs step by step, for it cannot be compiled: {fault!r}"
            warnings.warn(text, RuntimeWarning, stacklevel=6)
            return
        constants = [x._array for x in closed.captures if type(x) is Tensor]
        if function is not None and len(constants) == len(closed.captures):
            unchanged = _find_unchanged(closed.graph, len(constants))
            if loop.given is not None and loop.given != [n in unchanged for n in range(len(loop.given))]:
                return  # a result is another tensor on the memory of an argument, such as that of detach
            views = {
                number: tuple(sorted(range(len(order)), key=order.__getitem__))
                for number, order in enumerate(loop.orders or ())
                if order is not None and number not in unchanged
            }
            loop.function = CompiledLoop(function, constants, unchanged, structure, views, versions)
            loop.is_rejected = False

    def _trace(self) -> tuple[ClosedGraph, TreeDef] | None:
        """Trace the loop with inputs in place of the carry, the items and the captured tensors.

        Returns:
            The graph, whose captures are constants that the trace has created, and the structure of its results; None
            if the trace depends on more than the graph's inputs.
        """
        carry = self._carry
        groups = (self._find_state(), self._items, self.captured)
        with body_trace("loop") as trace_:
            first, items, captured = ([_add_input(trace_, x) for x in group] for group in groups)
            given = iter(first)
            pairs = zip(carry.originals, carry.weak)
            init = carry.treedef.unflatten([x if is_number else next(given) for x, is_number in pairs])
            substitution = Substitution(dict(zip(map(id, self.captured), captured)), self.captures.objects)
            functions = [substitution.apply(function) for function in self._functions]
            results, structure = pytree.flatten(self._run(functions, init, items))
            is_known = all(isinstance(x, Tensor) and not is_weak(x) for x in results)
            if not is_known or substitution.has_changed_copies():
                return None
            closed = close_trace(trace_, results)
        if trace_.masks or trace_.states or trace_.written:
            return None
        if any(node.kwargs.get("flush") for node in all_nodes(closed.graph)):
            return None  # it would flush denormal numbers
        orders = self.loop.orders
        if orders is not None and not _view_outputs.own_results(closed.graph, orders):
            return None
        return closed, structure

    def _find_state(self) -> list[Tensor]:
        """The carry without its numbers, which are constants of the trace."""
        return [x for x, is_number in zip(self._carry.tensors, self._carry.weak) if not is_number]


def _find_unchanged(graph: Graph, constants: int) -> dict[int, int]:
    """The numbers of outputs that are inputs, except constants, with the numbers of the inputs."""
    inputs = graph.inputs[: len(graph.inputs) - constants]
    return {number: inputs.index(value) for number, value in enumerate(graph.outputs) if value in inputs}


def _add_input(trace_: Trace, x: Tensor) -> Tensor:
    return cast(Tensor, new_input(trace_, x.spec))


def find_call(
    key: tuple[object, ...],
    functions: Sequence[object],
    carry: Leaves,
    items: Sequence[Tensor],
    run: Run,
    trees: Sequence[TreeDef] = (),
) -> LoopCall | None:
    """The call of a loop that may be compiled; None if it has to be a Python loop.

    Args:
        key: what its trace depends on besides the functions, the carry and the items.
        functions: the functions that it calls.
        carry: the initial carry.
        items: further tensors that the loop takes.
        run: runs the loop with other functions, another carry and other items, for a trace.
        trees: the structures of the items.
    """
    if runs_in_python():
        return None
    flags = current().flags
    codes = tuple(code for function in functions for code in _list_codes(function))
    if codes in _rejected:
        return None
    captures = Captures(UNRECORDED[flags])
    try:
        for treedef in (carry.treedef, *trees):
            captures.check_tree(treedef)
        state = [
            describe_number(original) if is_number else captures.describe_input(x)
            for x, is_number, original in zip(carry.tensors, carry.weak, carry.originals)
        ]
        full_key = (key, carry.treedef, *state, *map(captures.describe_input, items), default_float(), flags)
    except NoKey:
        return None
    try:
        full_key += captures.make_key(*functions)
    except RecordedTensor:
        return None
    except (NoKey, RecursionError):  # a list may hold itself
        if None not in codes:  # which would stand for all other callables
            _rejected[codes] = None
        if len(_rejected) > MOST_REJECTED:
            _rejected.popitem(last=False)
        return None
    if captures.compares_objects:
        given = [*carry.originals, *items, *captures.tensors]
        if len({*map(id, given)}) < len(given):
            return None  # inputs of a trace are different objects
    return LoopCall(_find_loop(full_key, captures.held), functions, captures, carry, items, run)


def is_known_to_fail(function: object) -> bool:
    """Whether calls of a function are known to have no compiled form, because of what it does or reads."""
    return type(function) is FunctionType and tuple(_list_codes(function)) in _rejected


def _list_codes(function: object) -> Iterator[CodeType | ref[type] | None]:
    """The code of a function, and of those that the functions of the package around it call.

    Of an object it is its class, and None if that is one of the package or in C.
    """
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType):
        kind = type(function)
        yield ref(kind) if is_plain_object(function, is_pure_class) and not is_pure_class(kind) else None
        return
    yield function.__code__
    if is_own(function):
        for cell in function.__closure__ or ():
            if callable(cell.cell_contents):
                yield from _list_codes(cell.cell_contents)


def _find_loop(key: object, held: list[object]) -> HotLoop:
    """The loop of a key; the loop that was not called for the longest time is forgotten if there are too many."""
    loop = _loops.pop(key, None) or HotLoop(held)
    _loops[key] = loop
    if len(_loops) > MOST_LOOPS:
        _loops.popitem(last=False)
    return loop


def runs_in_python() -> bool:
    """Whether the steps have to run in Python: native code is off, or something would notice that they do not."""
    return bool(
        not config.flags.native
        or is_watched()
        or current().parts
        or stack.recording is not None
        or sys.gettrace() is not None
    )

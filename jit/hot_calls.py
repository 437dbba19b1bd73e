"""Compile hot eager calls of pure functions, for eager/hot_calls.py:HotCalls.

A kind of call becomes a specialization of a jitted function, which the native entry of the eager function runs. It is
used only where every node has a compiled kernel, and where native code can run the call as a whole.
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import config, pytree
from ..eager.autograd.recompute import watch_draws
from ..eager.hot_calls import kinds_of_containers
from ..eager.tensor.tensor import Tensor
from ..errors import TandemError, UnsupportedError
from ..registry.dispatch.keys import CPU_KEYS
from ..registry.schemas.binding import key_types
from .arguments import BoundArguments
from .execute import lower_graph
from .function import JitFunction, Keys
from .graph_function import GraphFunction
from .native_entry import NativeEntry
from .native_results import has_kernels
from .specialization import Specialization
from .variants import PASS
from .view_outputs import copy_contiguous_views

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs
    from ..tracer.graph import Graph
    from .derivatives.autograd_call import Derivative


class NotCompiled(UnsupportedError):
    """A call has no compiled form."""


class HotFunction(JitFunction):
    """The jitted form of an eager function; its native entry is that of the eager function."""

    _as_recorded = True

    def __init__(self, fn: Function, names: tuple[str, ...], native: NativeEntry, writes: bool):
        super().__init__(fn, names)
        self._native, self._writes = native, writes

    def _trace_and_compile(self, bound: BoundArguments, keys: Keys) -> Specialization:
        """Trace and compile a call.

        Raises:
            NotCompiled: it cannot be traced, for instance since another thread has registered a kernel meanwhile; it
                writes something and is not declared to, or is differentiated; it captures a tensor that requires
                gradients; or a node has no compiled kernel.
        """
        try:
            made = self._specialize(bound, keys)
        except TandemError as fault:
            raise NotCompiled(f"{self.__name__} cannot be traced: {fault}") from fault
        derivative: Derivative | None = made.derivative
        split = None if derivative is None else derivative.split
        if split is None:
            copy_contiguous_views(made.program)
        lowered = [
            lower_graph(x) for x in ([made.program] if split is None else [split.forward, split.backward])
        ]
        is_recorded = any(guard.leaf.keys != CPU_KEYS for guard in made.captured)
        is_writing = made.outputs.writes and (derivative is not None or not self._writes)
        if is_writing or is_recorded or not all(map(has_kernels, lowered)):
            raise NotCompiled(f"{self.__name__} has no compiled form")
        if split is None:
            made.executable = lowered[0].compile()  # type: ignore[union-attr]
        return made


class Compiler:
    """Compiles calls of one eager function, and runs them.

    Args:
        function: the callable whose native entry runs what is compiled.
        fall_back: runs the calls that the entry does not take.
        traced: the function to trace.
        recorders: gets the objects that run calls on tensors that require gradients.
        plain: runs a call operator by operator.
        writes: whether the function writes into its arguments, or the states of random generators.
    """

    PASS = PASS

    def __init__(
        self,
        function: Any,
        fall_back: Function,
        traced: Function,
        recorders: list[Any],
        plain: Function,
        writes: bool = False,
    ):
        self._native, self._traced = NativeEntry(function, fall_back), traced
        function.hot_entry = self._native  # the function keeps alive what its entry reads
        self._compiled: dict[frozenset[str], HotFunction] = {}
        self._recorders, self._plain, self._writes = recorders, plain, writes

    def run(self, args: Args, kwargs: Kwargs, numbers: frozenset[str] = frozenset()) -> object:
        """Run a call of a compiled kind; :data:`PASS` if it cannot be compiled any more."""
        jitted = self._compile(args, kwargs, numbers)
        try:
            return PASS if jitted is None else jitted._bind_and_call(args, kwargs)
        except NotCompiled:  # what it depends on, such as the default dtype, has changed since
            return PASS

    def compile(self, args: Args, kwargs: Kwargs, numbers: frozenset[str] = frozenset()) -> bool:
        """Compile a call and link it to the native entry; returns whether that is possible.

        Args:
            args, kwargs: the call.
            numbers: the parameters whose numbers are arguments of the compiled code, and not constants in it.
        """
        return self._compile(args, kwargs, numbers) is not None

    def is_canonical(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether a call is spelled as the schema spells it; others are translated and call the function again."""
        try:
            inspect.signature(self._traced).bind(*args, **kwargs)
        except TypeError:
            return False
        return True

    def _compile(self, args: Args, kwargs: Kwargs, numbers: frozenset[str]) -> HotFunction | None:
        jitted = self._jitted(args, kwargs, numbers)
        try:
            bound = jitted._arguments.bind(args, kwargs)
            value, _ = jitted._find_or_add(bound, jitted._keys(bound))
            if numbers and value.repeats is None:
                value.repeats = self._repeats(jitted, value, args, kwargs, numbers)
            if value.repeats is False:
                return None
            return jitted if self._link(jitted, value, args, kwargs) else None
        except TandemError:  # its result depends on data, or the call is wrong
            return None
        except Exception as fault:
            if numbers:  # it computes with them in Python
                return None
            text = f"{jitted.__name__} runs operator by operator, for it cannot be compiled: {fault!r}"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
            return None

    def _repeats(
        self, jitted: HotFunction, value: Specialization, args: Args, kwargs: Kwargs, numbers: frozenset[str]
    ) -> bool:
        """Whether compiled code has the results of the function for several values of each number.

        The function may check a number, or have cases of it, that a trace does not see.
        """
        for case in _change_numbers(jitted, args, kwargs, numbers):
            case_args, case_kwargs = _copy_tensors(case) if self._writes else case
            bound = jitted._arguments.bind(case_args, case_kwargs)
            known, scalars = jitted._find(bound, jitted._keys(bound))
            if known is not value:
                continue  # its guards fail, and Python runs such calls
            derivative = value.derivative
            if derivative is None:
                run = functools.partial(value.run, bound.leaves, scalars or ())
            else:
                run = functools.partial(jitted._recorder.run, value, bound, scalars or (), None)
            plain_args, plain_kwargs = _copy_tensors(case) if self._writes else case
            plain = functools.partial(self._plain, *plain_args, **plain_kwargs)
            if not _are_same(_result_or_none(run), _result_or_none(plain)):
                return False
        return True

    def _jitted(self, args: Args, kwargs: Kwargs, numbers: frozenset[str]) -> HotFunction:
        """The jitted form for calls whose arguments without tensors are the same: those are static."""
        given = inspect.signature(self._traced).bind(*args, **kwargs).arguments
        static = frozenset(
            name for name, value in given.items() if not (_has_tensor(value) or name in numbers)
        )
        known = self._compiled.get(static)
        if known is None:
            names = tuple(inspect.signature(self._traced).parameters)
            names = tuple(name for name in names if name in static or name not in given)
            known = HotFunction(self._traced, names, self._native, self._writes)
            self._compiled[static] = known
        return known

    def _link(self, jitted: HotFunction, value: Specialization, args: Args, kwargs: Kwargs) -> bool:
        form = (len(args), tuple(kwargs))
        value.hits = max(value.hits, config.flags.hot_calls)
        if value.derivative is None:
            jitted._native.link(value, jitted._arguments, form)
            return not isinstance(value.records.get(form, ""), str)
        jitted._recorder.link(value, form)
        if jitted._recorder not in self._recorders:
            self._recorders.append(jitted._recorder)
        return not isinstance(value.derivative.twin.records.get(form, ""), str)


def compile_graph(graph: Graph, name: str) -> GraphFunction | None:
    """Compile a graph to a function of arrays; None if compiled code would call Python."""
    function = GraphFunction(graph, name)
    executable = function.executable
    return function if executable is None or has_kernels(executable.lowered) else None


_TRIED: dict[type, tuple[float, ...]] = {
    float: (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1.5, -0.1, 1e-12, 1e300, math.inf, -math.inf, math.nan),
    int: (0, 1, -1, 2, 3, 7, -128, 255, 300, 1 << 31, -(1 << 40)),
}
"""Values of numbers at which functions often have cases, or raise."""


def _change_numbers(
    jitted: HotFunction, args: Args, kwargs: Kwargs, numbers: frozenset[str]
) -> Iterator[tuple[Args, Kwargs]]:
    """A call, and those in which one of its numbers is another one."""
    yield args, kwargs
    for name in numbers:
        at = -1 if name in kwargs else jitted._arguments._names.index(name)
        for number in _TRIED[type(kwargs[name] if name in kwargs else args[at])]:
            if name in kwargs:
                yield args, {**kwargs, name: number}
            else:
                yield (*args[:at], number, *args[at + 1 :]), kwargs


def _copy_tensors(tree: Any) -> Any:
    """Arguments with copies of the tensors, which a call may write into."""
    return pytree.map_tree(lambda x: x.clone() if isinstance(x, Tensor) else x, tree)


def _result_or_none(call: Callable[[], object]) -> object:
    """The result of a call, None if it raises; the random generators that it draws from are reset."""
    with watch_draws() as states:
        try:
            return call()
        except Exception:
            return None
        finally:
            for state, before in states.values():
                state[...] = before


def _are_same(result: object, expected: object) -> bool:
    """Whether two results are tensors of the same dtypes, shapes and bits in the same containers."""
    leaves, tree = pytree.flatten(result)
    others, other_tree = pytree.flatten(expected)
    return tree == other_tree and all(map(_are_same_tensors, leaves, others))


def _are_same_tensors(one: object, other: object) -> bool:
    if one is None and other is None:
        return True
    if not (type(one) is type(other) is Tensor) or (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    x, y = one._array, other._array
    if x.tobytes() == y.tobytes():
        return True
    is_nan = x != x
    return bool(np.array_equal(is_nan, y != y) and x[~is_nan].tobytes() == y[~is_nan].tobytes())


def _has_tensor(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_tensor, value))
    return isinstance(value, Tensor) or type(value) in kinds_of_containers or type(value) in key_types

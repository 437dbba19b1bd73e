"""Interceptors: functions that may answer a jitted call before the cache of specializations is searched.

A call is offered to each function of ``CALL_INTERCEPTORS`` in order, then, with its arguments bound, to each of
``BOUND_INTERCEPTORS``. The first result that is not ``PASS`` is the result of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..eager.layers import dispatch_mode as modes
from ..eager.layers.level_stack import stack
from ..eager.layers.levels import LevelTensor
from ..eager.tensor.transfer import UNCOMPILED
from ..registry.dispatch import trace
from ..registry.dispatch.observers import current_observer, run_unobserved
from ..registry.values import describe
from ..tracer.trace import is_tracing
from .variants import PASS

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs
    from .arguments import BoundArguments
    from .function import JitFunction

_batching = lazy.Module(".jit.batching")


def run_linked_gradient(function: JitFunction, args: Args, kwargs: Kwargs) -> object:
    """Run a call on tensors that require gradients by the native forward pass, if it is linked and its guards hold."""
    recorder = function._made_recorder  # a local reference: another thread may clear the cache
    values = None if recorder is None else recorder.entry(*args, **kwargs)
    return PASS if values is None else recorder.finish_native_call(values)


def run_uncompiled(function: JitFunction, args: Args, kwargs: Kwargs) -> object:
    """Call the Python function itself during a trace or in a dispatch mode, which must see every operator."""
    return function._fn(*args, **kwargs) if is_tracing() or modes.active() else PASS


def run_observed(function: JitFunction, args: Args, kwargs: Kwargs) -> object:
    """Run a call as a span of the profiler, if one is active; the compiled code is the same as without it."""
    observer = current_observer()
    if observer is None:
        return PASS
    name, inputs = f"jit {function._arguments.name}", (*args, *kwargs.values())
    run = function._call_profiled if observer.kernels else function
    return run_unobserved(lambda: observer.span(name, "jit", lambda: run(*args, **kwargs), inputs))


def print_to_trace(function: JitFunction, args: Args, kwargs: Kwargs) -> object:
    """Run a call and print it to the dispatch trace, if that is on, with the native entry that answered it."""
    if not trace.active:
        return PASS
    arguments = [describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in kwargs.items()]
    line = f"[jit] {function._arguments.name}({', '.join(arguments)})"
    results = function._native.replay(args, kwargs)
    if results is not None:
        trace.write(f"{line} native=jitted")
        return results[0]
    recorder = function._made_recorder
    result = PASS if recorder is None else recorder.replay(args, kwargs)
    if result is not PASS:
        trace.write(f"{line} native=recorded")
        return result
    return trace.run_nested(line, lambda: function._bind_and_call(args, kwargs))


def lift_closures(function: JitFunction, bound: BoundArguments) -> object:
    """Run a call whose closure variables or globals hold values of transforms: pass the values as arguments."""
    return function._lifted.call(bound) if stack.levels or stack.recording else PASS


def dispatch_on_leaves(function: JitFunction, bound: BoundArguments) -> object:
    """Run a call on tensors that cannot be compiled in Python, and a call on values of transforms at their level."""
    for leaf in bound.leaves:
        if type(leaf) in UNCOMPILED:
            return function._run_uncompiled(bound)
        if isinstance(leaf, LevelTensor):
            level = _batching.find_innermost_level(bound.leaves)
            return function._run_or_fall_back(bound, function._call_at, level, bound)
    return PASS


CALL_INTERCEPTORS: tuple[Callable[[JitFunction, Any, Any], object], ...] = (
    run_linked_gradient,
    run_uncompiled,
    run_observed,
    print_to_trace,
)
BOUND_INTERCEPTORS: tuple[Callable[[JitFunction, BoundArguments], object], ...] = (
    lift_closures,
    dispatch_on_leaves,
)

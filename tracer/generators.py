"""Random generators under a trace: their state is a traced tensor, which the caller of the graph writes back."""

from __future__ import annotations

from typing import Any

from ..eager.tensor.generator_state import state_lifters
from ..errors import UnsupportedError
from .aliases import Aliases
from .tensor import TracerTensor, make_tracer
from .trace import current_trace


def trace_state(state: Any) -> Any:
    """The state of a generator, or its traced tensor inside a trace.

    Raises:
        UnsupportedError: the trace does not write states back.
    """
    trace = current_trace()
    if trace is None:
        return state
    if type(state) is TracerTensor and state._trace is trace:
        return state  # the generator is an argument
    if not trace.writes_states or type(state) is TracerTensor:
        raise UnsupportedError(
            f"a Generator draws inside {trace.name}, which is traced without a place for the generator's state; pass "
            "a key instead: make one with gen.key() outside, and td.random.split or fold_in inside"
        )
    held = trace.states.get(id(state))
    if held is None:
        value = trace.capture(state)
        held = trace.states[id(state)] = make_tracer(trace, value)
        Aliases(value, "a generator's state", is_written_back=True).add(held)
    return held


state_lifters.append(trace_state)

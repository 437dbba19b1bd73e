"""Generators under a trace: their state is a tensor of the trace, and whoever runs the graph writes it back."""

from __future__ import annotations

from typing import Any

from ..eager.generator import entrances
from ..errors import UnsupportedError
from .aliases import Aliases
from .tensor import TracerTensor, make_tracer
from .trace import current_trace


def entered(state: Any) -> Any:
    """What stands for a generator's state: itself, or in a trace a tensor of it.

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


entrances.append(entered)

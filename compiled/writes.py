"""What a jitted function writes into its arguments: new values of their memory, copied there after the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..eager.inplace import check_writable
from ..eager.recompute import draws
from ..eager.tensor import Tensor, storage_of
from ..eager.transfer import overwrite
from ..errors import UnsupportedError
from ..tracer.aliases import Aliases
from ..tracer.graph import Graph, Value
from ..tracer.trace import Trace


def written(trace: Trace, memories: Sequence[Aliases | None]) -> dict[Aliases, int]:
    """The memories that were written while tracing, of arguments and of states, and which parameter each is.

    Args:
        trace: the trace.
        memories: the memory of each of the graph's inputs; None for numbers.
    """
    return _written_arguments(trace.graph, memories) | _written_states(trace)


def _written_arguments(graph: Graph, memories: Sequence[Aliases | None]) -> dict[Aliases, int]:
    """The arguments' memories that were written, and which parameter each is."""
    return {
        memory: index
        for index, (memory, value) in enumerate(zip(memories, graph.inputs))
        if memory is not None and memory.root is not value
    }


def _written_states(trace: Trace) -> dict[Aliases, int]:
    """The states of generators that were written, and which parameter each is."""
    places = {value: index for index, value in enumerate(trace.graph.parameters)}
    found = {}
    for key, tensor in trace.states.items():
        value, memory = trace.graph._captured_by_id[key], tensor._aliases
        if memory.root is not value:
            found[memory] = places[value]
    return found


def final_values(written: dict[Aliases, int]) -> list[tuple[int, Value]]:
    """For each written argument the parameter and the value that its memory gets."""
    return [(index, memory.root) for memory, index in written.items()]


def overlaps(parameters: Sequence[Any], written: Sequence[int]) -> bool:
    """Whether the memory of a written parameter is also that of another parameter."""
    tensors = [(index, item) for index, item in enumerate(parameters) if isinstance(item, Tensor)]
    return any(
        index != place and _may_share(item, parameters[place]) for place in written for index, item in tensors
    )


def _may_share(one: Tensor, other: Tensor) -> bool:
    if type(one) is Tensor and type(other) is Tensor:
        return np.may_share_memory(one._array, other._array)
    return storage_of(one).owner is storage_of(other).owner


def check(name: str, parameters: Sequence[Any], written: Sequence[int]) -> None:
    """Refuse to write into read-only memory, or into memory that another argument shares.

    What is written is a generator's state, for example; a checkpointed function that runs again finds it as it was.

    Raises:
        UnsupportedError: it is so.
    """
    for place in written:
        check_writable(name, parameters[place])
    if overlaps(parameters, written):
        raise UnsupportedError(
            f"{name} writes into an argument whose memory another argument, or a tensor that it captures, shares; call "
            "the jitted function itself, which then runs its Python code"
        )
    draws(*[parameters[place] for place in written])


def write_back(parameters: Sequence[Any], values: Sequence[tuple[int, Any]]) -> None:
    """Copy new values into the memory of parameters."""
    for place, value in values:
        target = parameters[place]
        if type(target) is Tensor:
            np.copyto(target._array, value._array)
        else:
            overwrite[type(target)](target, value)
        storage_of(target).version += 1

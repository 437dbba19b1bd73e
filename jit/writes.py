"""Writes of a jitted function into its arguments: new contents, copied into their memory after the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..eager.autograd.recompute import note_draws
from ..eager.tensor.inplace import check_writable
from ..eager.tensor.tensor import Tensor, storage_of
from ..eager.tensor.transfer import overwrite
from ..errors import UnsupportedError
from ..tracer.aliases import Aliases
from ..tracer.graph import Graph, Value
from ..tracer.trace import Trace


def find_written(trace: Trace, memories: Sequence[Aliases | None]) -> dict[Aliases, int]:
    """Find the written memories of arguments and generator states, and the parameter index of each.

    Args:
        trace: the trace.
        memories: the memory of each of the graph's inputs; None for numbers.
    """
    return _find_written_arguments(trace.graph, memories) | _find_written_states(trace)


def _find_written_arguments(graph: Graph, memories: Sequence[Aliases | None]) -> dict[Aliases, int]:
    """Find the written memories of arguments, and the parameter index of each."""
    return {
        memory: index
        for index, (memory, value) in enumerate(zip(memories, graph.inputs))
        if memory is not None and memory.root is not value
    }


def _find_written_states(trace: Trace) -> dict[Aliases, int]:
    """Find the written generator states, and the parameter index of each."""
    indices = {value: index for index, value in enumerate(trace.graph.parameters)}
    result = {}
    for key, tensor in trace.states.items():
        if key in trace.numbers:
            continue  # the function made it, so nobody else sees what is written
        value, memory = trace.graph._captured_by_id[key], tensor._aliases
        if memory.root is not value:
            result[memory] = indices[value]
    return result


def final_values(written: dict[Aliases, int]) -> list[tuple[int, Value]]:
    """For each written argument, the parameter index and the final value of its memory."""
    return [(index, memory.root) for memory, index in written.items()]


def overlaps(parameters: Sequence[Any], written: Sequence[int]) -> bool:
    """Whether the memory of a written parameter is also that of another parameter."""
    tensors = [(index, item) for index, item in enumerate(parameters) if isinstance(item, Tensor)]
    return any(
        index != position and _may_share_memory(item, parameters[position])
        for position in written
        for index, item in tensors
    )


def _may_share_memory(one: Tensor, other: Tensor) -> bool:
    if type(one) is Tensor and type(other) is Tensor:
        return np.may_share_memory(one._array, other._array)
    return storage_of(one).owner is storage_of(other).owner


def check_writes(name: str, parameters: Sequence[Any], written: Sequence[int]) -> None:
    """Raise if a written parameter is read-only or shares memory with another parameter.

    Written generator states are reported, so that a checkpointed function that runs again starts from the old state.

    Raises:
        UnsupportedError: the memory is read-only or shared.

    Native twin: backends/cpu/fastpath/entries/rt_results.py:can_write
    """
    for index in written:
        check_writable(name, parameters[index])
    if overlaps(parameters, written):
        raise UnsupportedError(
            f"{name} writes into an argument whose memory another argument, or a tensor that it captures, shares; call "
            "the jitted function itself, which then runs its Python code"
        )
    note_draws(*[parameters[index] for index in written])


def write_back(parameters: Sequence[Any], values: Sequence[tuple[int, Any]]) -> None:
    """Copy new values into the memory of parameters.

    Native twin: backends/cpu/fastpath/entries/rt_results.py:write_back
    """
    for index, value in values:
        target = parameters[index]
        if type(target) is Tensor:
            np.copyto(target._array, value._array)
        else:
            overwrite[type(target)](target, value)
        storage_of(target).version += 1

"""From a graph to what runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backends.cpu import compile as _cpu_compile  # noqa: F401 - registers the CPU's compiler
from ..eager.storage import owner_of
from ..eager.tensor import Tensor, wrap
from ..lowering.evaluate import interpret
from ..lowering.lowered import Executable, Lowered, lower
from ..tracer.graph import Graph


def lower_graph(program: Graph) -> Lowered | None:
    """A lowered graph; None for one without anything to run."""
    return lower(program) if program.nodes else None


def make_executable(program: Graph) -> Executable | None:
    """Something with ``run(parameters) -> arrays``; None for a graph without anything to run."""
    lowered = lower_graph(program)
    return None if lowered is None else lowered.compile()


def run(executable: Executable, program: Graph, parameters: Sequence[Any]) -> list[Tensor]:
    """The results of an executable as tensors, each with memory of its own.

    Args:
        executable: what to run.
        program: the graph that it was made from.
        parameters: a tensor or a Python scalar for each of the graph's parameters.
    """
    given = [_payload(item) for item in parameters]
    owners = {id(owner_of(array)) for array in given if isinstance(array, np.ndarray)}
    if any(type(item) in (int, complex) and not _fits_machine(item) for item in given):
        results = interpret(program, given)
    else:
        results = executable.run(given)
    return [wrap(_own(array, owners)) for array in results]


def _fits_machine(number: int | complex) -> bool:
    """Whether compiled code takes a number: not a complex one, nor an integer of over 64 bits."""
    return type(number) is int and -(2**63) <= number < 2**63


def _payload(item: Any) -> Any:
    """What the executable takes for a parameter: a C-contiguous array, or the number."""
    if not isinstance(item, Tensor):
        return item
    array = item._array
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _own(array: Any, owners: set[int]) -> Any:
    """The array, copied if it lies in the memory of an argument or of an earlier result.

    The passes may find that ``x * 1`` is ``x``; the caller still gets a tensor that can be written without changing x.
    So does one who gets repeated elements: the interpreter's expanded views are read-only, compiled code writes out.
    """
    if id(owner_of(array)) in owners or not array.flags.writeable:
        array = array.copy()
    owners.add(id(owner_of(array)))
    return array

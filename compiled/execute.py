"""From a graph to what runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lazy
from ..backends.cpu import compile as _cpu_compile  # noqa: F401 - registers the CPU's compiler
from ..eager.storage import owner_of
from ..eager.tensor import Tensor, storage_of, wrap
from ..lowering.evaluate import interpret, payload
from ..lowering.lowered import Executable, Lowered, device_of, lower
from ..tracer.graph import Graph


def lower_graph(program: Graph) -> Lowered | None:
    """A lowered graph; None for one without anything to run."""
    if not program.nodes:
        return None
    device = device_of(program)
    if device.startswith("cuda"):
        lazy.cuda_compiler()
    return lower(program, device)


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
    owners = {_owner(item) for item in given if isinstance(item, (np.ndarray, Tensor))}
    if any(type(item) in (int, complex) and not _fits_machine(item) for item in given):
        results = interpret(program, given)
    else:
        results = executable.run(given)
    return [_own(found, owners) for found in results]


def _fits_machine(number: int | complex) -> bool:
    """Whether compiled code takes a number: not a complex one, nor an integer of over 64 bits."""
    return type(number) is int and -(2**63) <= number < 2**63


def _payload(item: Any) -> Any:
    """What the executable takes for a parameter: a C-contiguous array, a tensor of another device, or the number."""
    item = payload(item)
    return np.ascontiguousarray(item) if type(item) is np.ndarray and not item.flags.c_contiguous else item


def _owner(item: Any) -> int:
    """What identifies the memory of an array or a tensor."""
    return id(storage_of(item).owner if isinstance(item, Tensor) else owner_of(item))


def _own(found: Any, owners: set[int]) -> Tensor:
    """A result as a tensor, copied if it lies in the memory of an argument or of an earlier result.

    The passes may find that ``x * 1`` is ``x``; the caller still gets a tensor that can be written without changing x.
    So does one who gets repeated elements: the interpreter's expanded views are read-only, compiled code writes out.
    """
    if isinstance(found, Tensor):
        if _owner(found) in owners:
            found = found.clone()
    elif id(owner_of(found)) in owners or not found.flags.writeable:
        found = found.copy()
    owners.add(_owner(found))
    return found if isinstance(found, Tensor) else wrap(found)

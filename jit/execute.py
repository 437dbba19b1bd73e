"""Lower, compile and run graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .. import lazy
from ..backends.cpu import compile as _cpu_compile  # noqa: F401 - registers the CPU's compiler
from ..eager.tensor.storage import owner_of
from ..eager.tensor.tensor import Tensor, storage_of, wrap
from ..lowering.interpreter import interpret, to_payload
from ..lowering.lower import Executable, Lowered, device_of, lower
from ..registry.dispatch.observers import Note, kernel_watch
from ..tracer.graph import Graph, Value

_donation = lazy.Module(".jit.donation")


def lower_graph(program: Graph, donated: Sequence[Value] = ()) -> Lowered | None:
    """Lower a graph for its device; None if it has no nodes. Results may be stored in donated parameters."""
    if not program.nodes:
        return None
    device = device_of(program)
    if device.startswith("cuda"):
        lazy.module(".backends.cuda.launches.compile")
    return lower(program, device, donated if device == "cpu" else ())


@runtime_checkable
class InstrumentedExecutable(Protocol):
    """An executable that can report its kernels to a profiler."""

    def run_profiled(self, arrays: list[object], note: Note) -> list[object]:
        """Run the graph and report each kernel."""


def make_executable(program: Graph) -> Executable | None:
    """Compile a graph to an executable; None if it has no nodes."""
    lowered = lower_graph(program)
    return None if lowered is None else lowered.compile()


def run(
    executable: Executable, program: Graph, parameters: Sequence[object], donated: Sequence[int] = ()
) -> list[Tensor]:
    """Run an executable; returns its results as tensors that share no memory.

    Args:
        executable: the executable.
        program: the graph that it was compiled from.
        parameters: a tensor or a Python scalar for each of the graph's parameters.
        donated: the numbers of the parameters whose memory results are stored in; these tensors are deleted.
    """
    given: list[Any] = [
        None if index in donated else _to_executable_argument(item, value)
        for index, (item, value) in enumerate(zip(parameters, program.parameters, strict=True))
    ]
    if donated:
        for index, array in _donation.take_memory(parameters, donated).items():
            given[index] = array
    owners = {
        _memory_id(item)
        for index, item in enumerate(given)
        if isinstance(item, (np.ndarray, Tensor)) and index not in donated
    }
    if any(type(item) in (int, complex) and not _fits_machine(item) for item in given):
        results = interpret(program, given)
    elif kernel_watch.note is not None and isinstance(executable, InstrumentedExecutable):
        results = executable.run_profiled(given, kernel_watch.note)
    else:
        results = executable.run(given)
    return [_to_owned_tensor(value, owners) for value in results]


def _fits_machine(number: int | complex) -> bool:
    """Whether compiled code can take a number: an integer of at most 64 bits, not a complex number."""
    return type(number) is int and -(2**63) <= number < 2**63


def _to_executable_argument(item: object, value: Value) -> Any:
    """Convert a parameter to what an executable takes: a C-contiguous array, a device tensor, or a number."""
    if type(item) is complex and value.weak is None:
        return np.asarray(item)
    item = to_payload(item)
    return np.ascontiguousarray(item) if type(item) is np.ndarray and not item.flags.c_contiguous else item


def _memory_id(item: Any) -> int:
    """The identity of the memory of an array or a tensor."""
    return id(storage_of(item).owner if isinstance(item, Tensor) else owner_of(item))


def _to_owned_tensor(result: Any, owners: set[int]) -> Tensor:
    """Convert a result to a tensor, copied if it shares memory with an argument or an earlier result.

    The passes may replace ``x * 1`` by ``x``; writing the result must not change ``x``. Read-only results, such as
    expanded views from the interpreter, are copied too.
    """
    if isinstance(result, Tensor):
        if _memory_id(result) in owners:
            result = result.clone()
    elif id(owner_of(result)) in owners or not result.flags.writeable:
        result = result.copy()
    owners.add(_memory_id(result))
    return result if isinstance(result, Tensor) else wrap(result)

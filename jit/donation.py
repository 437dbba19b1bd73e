"""Donated arguments: results of a compiled call are stored in their memory, and they are deleted.

Calls that donate run in Python, which costs more than to copy small arrays; so only large ones are donated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lazy
from ..lowering.buffer_assignment import nbytes_of
from ..tracer.graph import Value

if TYPE_CHECKING:
    from ..registry.types import Array
    from .arguments import Arguments
    from .specialization import Specialization

SMALLEST = 1 << 16  # bytes; to allocate and copy as many takes about as long as a call through Python
_deletion = lazy.Module(".eager.tensor.deletion")


def find_donated(specialization: Specialization, arguments: Arguments) -> list[Value]:
    """The inputs of a specialization's program that belong to donated arguments and are large.

    Arguments among the results, and views of them, are not donated. A function that writes into its arguments donates
    none.
    """
    if specialization.outputs.writes:
        return []
    names = [
        name
        for name, child in zip(arguments.dynamic, specialization.treedef.children)
        for _ in range(child.leaf_count)
    ]
    returned = {leaf.number for leaf in specialization.outputs.leaves if leaf.kind == "parameter"}
    return [
        value
        for number, (value, leaf) in enumerate(zip(specialization.program.inputs, specialization.dynamic))
        if names[leaf] in arguments.donated
        and number not in returned
        and value.weak is None
        and nbytes_of(value) >= SMALLEST
    ]


def take_memory(parameters: Sequence[Any], donated: Sequence[int]) -> dict[int, Array]:
    """Delete donated parameters, and return arrays on their memory.

    They are deleted before their memory is written, so that none is half-written. Memory that anything else refers to
    (a view, a NumPy array, another parameter) is copied, and so is that of a tensor that cannot be deleted. The caller
    holds the arrays of all other parameters.

    Args:
        parameters: the tensors and numbers of a call.
        donated: the numbers of the donated ones.

    Returns:
        For each of them a contiguous array that results may be stored in.

    Raises:
        DeletedTensorError: a parameter was deleted, perhaps by another thread meanwhile.
    """
    arrays: dict[int, Array] = {}
    first: dict[int, int] = {}  # the first index of a tensor
    for index in donated:
        given = parameters[index]
        if first.setdefault(id(given), index) != index:
            arrays[index] = arrays[first[id(given)]].copy()
        elif not _deletion.can_delete(given):
            arrays[index] = given._array.copy(order="C")
        else:
            taken = _deletion.move_memory(given)
            is_sole = taken._is_sole_owner()
            arrays[index] = np.ascontiguousarray(taken._array) if is_sole else taken._array.copy(order="C")
    return arrays

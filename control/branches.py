"""``cond`` and ``switch``: Python branches, or the ``switch`` operator with all branches as graphs.

The operator is used while tracing and for batched conditions: its batching rule sees all captured values of a branch,
so that examples get the gradients of their own branch alone, and effects are noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import pytree
from ..eager.tensor.dunders import by_name
from ..errors import ArgumentError, DTypeError, ShapeError
from ..registry.dtypes import bool_
from ..registry.values import describe
from ..tracer.trace import is_tracing
from . import autograd_kernel as autograd_kernel
from .loops import is_batched, unify_inputs
from .ops import SWITCH
from .structure import Leaves, check_structure, flatten_tensors, to_dtype, to_tensor
from .subgraph import trace_body

Branch = Callable[..., Any]


def cond(pred: Any, true_fn: Branch, false_fn: Branch, operands: tuple[Any, ...]) -> Any:
    """See :func:`tandem.cond`."""
    if type(pred) is bool:
        return (true_fn if pred else false_fn)(*operands)
    value = _to_scalar_tensor("cond", "pred", pred)
    if value.dtype is not bool_:
        value = value != 0
    return _choose("cond", value, [false_fn, true_fn], operands)


def switch(index: Any, branches: Sequence[Branch], operands: tuple[Any, ...]) -> Any:
    """See :func:`tandem.switch`."""
    chosen = list(branches)
    if not chosen:
        raise ArgumentError("switch: there are no branches to choose from")
    if type(index) is int:
        return chosen[min(max(index, 0), len(chosen) - 1)](*operands)
    value = _to_scalar_tensor("switch", "index", index)
    if not value.dtype.is_integer:
        raise DTypeError(f"switch: index must be an integer, not {describe(index)}")
    if len(chosen) == 1:
        return chosen[0](*operands)
    return _choose("switch", by_name("clip")(value, 0, len(chosen) - 1), chosen, operands)


def _to_scalar_tensor(name: str, what: str, value: Any) -> Any:
    tensor = to_tensor(value)
    if tensor.shape:
        raise ShapeError(
            f"{name}: {what} must have shape (), not {describe(value)}; reduce it, as with .any()"
        )
    return tensor


def _choose(name: str, index: Any, branches: list[Branch], operands: tuple[Any, ...]) -> Any:
    if not is_tracing() and not is_batched(index):
        return branches[int(index)](*operands)
    leaves, treedef = pytree.flatten(operands)
    places = [place for place, leaf in enumerate(leaves) if not _is_static(leaf)]
    tensors = [to_tensor(leaves[place]) for place in places]

    def inner(branch: Branch, given: Sequence[Any]) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, given):
            filled[place] = tensor
        return branch(*treedef.unflatten(filled))

    return _trace_branches(name, index, [lambda given, b=b: inner(b, given) for b in branches], tensors)  # type: ignore[misc]


def _is_static(leaf: Any) -> bool:
    """Whether a leaf cannot be converted to a tensor: a function, a string."""
    return isinstance(leaf, str) or (callable(leaf) and not hasattr(leaf, "spec"))


def _trace_branches(
    name: str, index: Any, branches: list[Callable[[Sequence[Any]], Any]], tensors: list[Any]
) -> Any:
    """Trace all branches and append a ``switch`` node."""
    specs = [x.spec for x in tensors]
    seen: list[Leaves] = [None] * len(branches)  # type: ignore[list-item]

    def look(place: int) -> Any:
        def run(*given: Any) -> list[Any]:
            seen[place] = flatten_tensors(name, f"the result of branch {place}", branches[place](given))
            return seen[place].tensors

        return trace_body(name, run, specs)

    parts = [look(place) for place in range(len(branches))]
    wanted = _find_common_dtypes(name, seen)
    if any(x.dtype is not dtype for leaves in seen for x, dtype in zip(leaves.tensors, wanted)):
        parts = [trace_body(name, _cast_results(branch, wanted), specs) for branch in branches]
    graphs = unify_inputs(len(tensors), parts)
    reached = [x for part in parts for x in part.reached]
    return seen[0].treedef.unflatten(SWITCH(graphs, index, [*tensors, *reached]))


def _cast_results(branch: Callable[[Sequence[Any]], Any], wanted: list[Any]) -> Callable[..., list[Any]]:
    """Make a branch that casts its results to the given dtypes."""

    def run(*given: Any) -> list[Any]:
        leaves, _ = pytree.flatten(branch(given))
        return [to_dtype(x, dtype) for x, dtype in zip(leaves, wanted)]

    return run


def _find_common_dtypes(name: str, seen: Sequence[Leaves]) -> list[Any]:
    """The common dtypes of the branches' results; a Python number takes the dtype of the other branches.

    Raises:
        ArgumentError: the results differ; the message names the key path.
    """
    first, dtypes = seen[0], []
    for place, other in enumerate(seen[1:], 1):
        check_structure(name, f"the results of branches 0 and {place}", first.treedef, other.treedef)
    for leaf in range(len(first.tensors)):
        strong = [leaves.tensors[leaf] for leaves in seen if not leaves.weak[leaf]]
        model = (strong or [first.tensors[leaf]])[0]
        for place, leaves in enumerate(seen):
            x = leaves.tensors[leaf]
            if x.shape != model.shape or (x.dtype is not model.dtype and not leaves.weak[leaf]):
                path = first.treedef.paths()[leaf]
                raise ArgumentError(
                    f"{name}: the results of the branches differ{f' at {path}' if path else ''}: "
                    f"{describe(model)} and {describe(x)}, of branch {place}; give all the same shape and dtype"
                )
        dtypes.append(model.dtype)
    return dtypes

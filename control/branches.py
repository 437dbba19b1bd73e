"""``cond`` and ``switch``: Python branches, or the ``switch`` operator with all branches as graphs.

The operator is used while tracing and for batched conditions: its batching rule sees all captured values of a branch,
so that examples get the gradients of their own branch alone, and effects are noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import pytree
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, BodyDTypeError, DTypeError, ShapeError
from ..operators.declare.ownership import copy_shared_leaves
from ..pytree import TreeDef
from ..registry.dtypes import DType, bool_
from ..registry.values import describe
from ..tracer.trace import is_tracing
from . import autograd_kernel as autograd_kernel
from .loops import is_batched, unify_inputs
from .number_dtypes import can_hold, rank_of, weaken_inputs, widen_numbers
from .ops import SWITCH
from .structure import (
    Leaves,
    check_structure,
    convert_leaves,
    flatten_like,
    flatten_tensors,
    to_dtype,
    to_tensor,
)
from .subgraph import ClosedGraph, trace_body

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Pytree

    # A branch as a function of its tensor operands.
    Branch = Callable[[Sequence[Tensor]], Pytree]


def cond(pred: object, true_fn: Function, false_fn: Function, operands: Args) -> Pytree:
    """See :func:`tandem.cond`."""
    if type(pred) is bool:
        return copy_shared_leaves((true_fn if pred else false_fn)(*operands), operands)
    index = _to_scalar_tensor("cond", "pred", pred)
    if index.dtype is not bool_:
        index = index != 0
    return _choose("cond", index, [false_fn, true_fn], operands)


def switch(index: object, branches: Sequence[Function], operands: Args) -> Pytree:
    """See :func:`tandem.switch`."""
    functions = list(branches)
    if not functions:
        raise ArgumentError("switch: there are no branches to choose from")
    if type(index) is int:
        return copy_shared_leaves(functions[min(max(index, 0), len(functions) - 1)](*operands), operands)
    tensor = _to_scalar_tensor("switch", "index", index)
    if not tensor.dtype.is_integer:
        raise DTypeError(f"switch: index must be an integer, not {describe(index)}")
    if len(functions) == 1:
        return copy_shared_leaves(functions[0](*operands), operands)
    return _choose("switch", by_name("clip")(tensor, 0, len(functions) - 1), functions, operands)


def _to_scalar_tensor(name: str, parameter: str, value: object) -> Tensor:
    tensor = to_tensor(value)
    if tensor.shape:
        raise ShapeError(
            f"{name}: {parameter} must have shape (), not {describe(value)}; reduce it, as with .any()"
        )
    return tensor


def _choose(name: str, index: Tensor, functions: list[Function], operands: Args) -> Pytree:
    """Call the selected function, or trace all of them if the index is traced or batched."""
    if not is_tracing() and not is_batched(index):
        return copy_shared_leaves(functions[int(index)](*operands), operands)
    leaves, treedef = pytree.flatten(operands)
    indices = [i for i, leaf in enumerate(leaves) if not _is_static(leaf)]
    given = convert_leaves([leaves[i] for i in indices], treedef)

    def make_branch(function: Function) -> Branch:
        def branch(inputs: Sequence[Tensor]) -> Pytree:
            arguments = list(leaves)
            for i, tensor in zip(indices, inputs):
                arguments[i] = tensor
            return function(*treedef.unflatten(arguments))

        return branch

    own = [make_branch(function) for function in functions]
    try:
        return _trace_branches(name, index, own, given.tensors)
    except BodyDTypeError:
        if not any(given.weak):
            raise
    return _trace_branches(
        name, index, [_with_numbers(branch, given.weak) for branch in own], widen_numbers(given)
    )


def _with_numbers(branch: Branch, weak: Sequence[bool]) -> Branch:
    """Make a branch whose numbers, operands in full precision, are weak scalars."""
    return lambda inputs: branch(weaken_inputs(weak, inputs))


def _is_static(leaf: object) -> bool:
    """Whether a leaf cannot be converted to a tensor: a function, a string."""
    return isinstance(leaf, str) or (callable(leaf) and not hasattr(leaf, "spec"))


def _trace_branches(name: str, index: Tensor, branches: list[Branch], tensors: list[Tensor]) -> Pytree:
    """Trace all branches and append a ``switch`` node."""
    specs = [x.spec for x in tensors]
    results: list[Leaves] = []  # of each branch

    def trace_branch(number: int, branch: Branch) -> ClosedGraph:
        def run(*inputs: Tensor) -> list[Tensor]:
            like = results[0].treedef if results else None
            results.append(flatten_tensors(name, f"the result of branch {number}", branch(inputs), like))
            return results[-1].tensors

        return trace_body(name, run, specs)

    parts = [trace_branch(number, branch) for number, branch in enumerate(branches)]
    dtypes = _find_common_dtypes(name, results)
    if any(x.dtype is not dtype for leaves in results for x, dtype in zip(leaves.tensors, dtypes)):
        like = results[0].treedef
        parts = [trace_body(name, _cast_results(branch, dtypes, like), specs) for branch in branches]
    graphs = unify_inputs(len(tensors), parts)
    captures = [x for part in parts for x in part.captures]
    return results[0].treedef.unflatten(SWITCH(graphs, index, [*tensors, *captures]))


def _cast_results(branch: Branch, dtypes: list[DType], like: TreeDef) -> Callable[..., list[Tensor]]:
    """Make a branch that casts its results to the given dtypes."""

    def run(*inputs: Tensor) -> list[Tensor]:
        leaves, _ = flatten_like(like, branch(inputs))
        return [to_dtype(leaf, dtype) for leaf, dtype in zip(leaves, dtypes)]

    return run


def _find_common_dtypes(name: str, results: Sequence[Leaves]) -> list[DType]:
    """The common dtypes of the branches' results; a Python number takes the dtype of the other branches.

    Raises:
        ArgumentError: the results differ; the message names the key path.
        BodyDTypeError: they differ in dtype alone.
    """
    first, dtypes = results[0], []
    for number, other in enumerate(results[1:], 1):
        check_structure(name, f"the results of branches 0 and {number}", first.treedef, other.treedef)
    for i in range(len(first.tensors)):
        strong = [leaves.tensors[i] for leaves in results if not leaves.weak[i]]
        model = strong[0] if strong else max((leaves.tensors[i] for leaves in results), key=rank_of)
        for number, leaves in enumerate(results):
            x = leaves.tensors[i]
            is_number = leaves.weak[i] and can_hold(model.dtype, x.dtype)
            if x.shape != model.shape or (x.dtype is not model.dtype and not is_number):
                path = first.treedef.paths()[i]
                kind = BodyDTypeError if x.shape == model.shape else ArgumentError
                raise kind(
                    f"{name}: the results of the branches differ{f' at {path}' if path else ''}: "
                    f"{describe(model)} and {describe(x)}, of branch {number}; give all the same shape and dtype"
                )
        dtypes.append(model.dtype)
    return dtypes

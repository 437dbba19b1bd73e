"""The dtypes of the Python numbers that loops carry and branches take.

A body is traced with tensors of the default dtypes in place of numbers. If the results then differ in dtype, it is
traced with weak scalars, which take the dtypes of the tensors that they meet.

Source: weakly typed carries of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from ..eager.tensor.tensor import Tensor
from ..eager.tensor.weak_scalars import Traced, number_of, weak_scalar, widest
from ..errors import ArgumentError, BodyDTypeError, TandemError
from ..operators.indexing.slicing import KIND_RANKS
from ..registry.dtypes import DType
from ..registry.values import TensorSpec, describe
from ..tracer.weak import wrap_integers
from .structure import Leaves, check_structure, specs_of, to_dtype
from .subgraph import ClosedGraph, trace_body

Step = Callable[[Leaves, Sequence[Tensor], Sequence[Tensor]], tuple[Leaves, list[Tensor]]]
"""A body as a function of its carry, the tensors in its place, and the items of a step: the next carry, and results."""
CARRIES = "the carry that the body takes and the one that it returns"


def trace_step(
    name: str, step: Step, carry: Leaves, items: Sequence[TensorSpec] = (), counts: bool = False
) -> tuple[ClosedGraph, Leaves]:
    """Trace the body of a loop.

    Args:
        name: the function that the user called, for messages.
        step: the body.
        carry: the first carry.
        items: the specs of the items of a step.
        counts: whether the item is a counter. It is an int64; if the results then differ in dtype from the carry, a
            weak scalar, which takes the dtype of integers that it meets.

    Returns:
        The graph, and the carry with Python numbers cast to the dtypes that the body returns.
    """
    count = len(carry.tensors)
    dtypes: list[DType | None] | None = None

    def run(*tensors: Tensor) -> list[Tensor]:
        nonlocal dtypes
        next_carry, row = step(carry, tensors[:count], tensors[count:])
        dtypes = find_wider_dtypes(name, carry, next_carry)
        return [*(next_carry.tensors if dtypes else cast_to_carry(carry, next_carry)), *row]

    tries_numbers = True
    while True:
        try:
            closed = trace_body(name, run, [*specs_of(carry.tensors), *items], count)
        except BodyDTypeError:
            dtypes = _trace_with_numbers(name, step, carry, items) if tries_numbers else None
            tries_numbers = False
            if dtypes is None and counts:
                with wrap_integers():
                    return trace_step(name, _with_weak_items(step), carry, items)
            if dtypes is None:
                raise
        else:
            if dtypes is None:
                return closed, carry
        carry = cast_numbers(carry, dtypes)


def _with_weak_items(step: Step) -> Step:
    """A body whose items are weak scalars."""
    return lambda carry, tensors, item: step(carry, tensors, weaken_inputs([True] * len(item), item))


def _trace_with_numbers(
    name: str, step: Step, carry: Leaves, items: Sequence[TensorSpec]
) -> list[DType | None] | None:
    """Trace a body with weak scalars for the numbers in its carry; return what :func:`find_wider_dtypes` does."""
    count = len(carry.tensors)
    dtypes: list[DType | None] | None = None

    def run(*tensors: Tensor) -> list[Tensor]:
        nonlocal dtypes
        state = weaken_inputs(carry.weak, tensors[:count])
        next_carry, _ = step(carry, state, tensors[count:])
        dtypes = find_wider_dtypes(name, carry, next_carry)
        return next_carry.tensors

    if any(carry.weak):
        specs = [spec._replace(dtype=widest(spec.dtype)) for spec in specs_of(carry.tensors)]
        specs = [wide if weak else x.spec for wide, weak, x in zip(specs, carry.weak, carry.tensors)]
        with suppress(TandemError):  # the error of the first trace is raised
            trace_body(name, run, [*specs, *items], count)
    return dtypes


def run_with_numbers(
    name: str, step: Step, carry: Leaves, item: Sequence[Tensor]
) -> list[DType | None] | None:
    """Run one step with weak scalars for the numbers in its carry; return what :func:`find_wider_dtypes` does."""
    if not any(carry.weak):
        return None
    triples = zip(carry.tensors, carry.originals, carry.weak)
    state = [weak_scalar(number_of(original)) if weak else x for x, original, weak in triples]
    try:
        return find_wider_dtypes(name, carry, step(carry, state, item)[0])
    except TandemError:
        return None


def weaken_inputs(weak: Sequence[bool], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Replace the inputs of a trace that are numbers, in full precision, by weak scalars."""
    return [cast("Tensor", Traced.weaken(x)) if is_number else x for x, is_number in zip(tensors, weak)]


def widen_numbers(leaves: Leaves) -> list[Tensor]:
    """The tensors of some leaves, with numbers in full precision."""
    triples = zip(leaves.tensors, leaves.originals, leaves.weak)
    return [to_dtype(original, widest(x.dtype)) if weak else x for x, original, weak in triples]


def find_wider_dtypes(name: str, before: Leaves, after: Leaves) -> list[DType | None] | None:
    """Compare the carry that a body returns with its input carry.

    Args:
        name: the function that the user called, for messages.
        before: the input carry.
        after: the carry that the body returns.

    Returns:
        None if they agree; else for each leaf the wider dtype that a Python number in the input carry must have.

    Raises:
        ArgumentError: they differ in structure, shape or dtype; the message names the key path.
        BodyDTypeError: they differ in dtype alone.
    """
    check_structure(name, CARRIES, before.treedef, after.treedef)
    dtypes: list[DType | None] = [None] * len(before.tensors)
    for index, (old, new) in enumerate(zip(before.tensors, after.tensors)):
        if old.shape == new.shape and old.dtype is new.dtype:
            continue
        path = before.treedef.paths()[index]
        if old.shape == new.shape and before.weak[index] and can_hold(new.dtype, old.dtype):
            dtypes[index] = new.dtype
            continue
        if old.shape == new.shape and after.weak[index] and can_hold(old.dtype, new.dtype):
            continue
        kind = BodyDTypeError if old.shape == new.shape else ArgumentError
        raise kind(
            f"{name}: {CARRIES} differ{f' at {path}' if path else ''}: {describe(old)} and {describe(new)}; give both "
            "the same shape and dtype, for example with x.astype(y.dtype)"
        )
    return dtypes if any(dtype is not None for dtype in dtypes) else None


def can_hold(dtype: DType, number: DType) -> bool:
    """Whether ``dtype`` can hold a Python number of the dtype ``number``; bools and numbers do not mix."""
    return (dtype.kind == "b") is (number.kind == "b") and KIND_RANKS[dtype.kind] >= KIND_RANKS[number.kind]


def rank_of(x: Tensor) -> int:
    """The rank of the kind of a tensor's dtype, which can hold numbers of lower kinds."""
    return KIND_RANKS[x.dtype.kind]


def cast_numbers(leaves: Leaves, dtypes: Sequence[DType | None]) -> Leaves:
    """Cast the Python numbers among leaves to other dtypes."""
    tensors = [
        x if dtype is None else to_dtype(original, dtype)
        for original, x, dtype in zip(leaves.originals, leaves.tensors, dtypes)
    ]
    return leaves._replace(tensors=tensors)


def cast_to_carry(before: Leaves, after: Leaves) -> list[Tensor]:
    """Cast the Python numbers that a body returns to the dtypes of the carry."""
    return [
        x if x.dtype is old.dtype else to_dtype(original, old.dtype)
        for old, x, original in zip(before.tensors, after.tensors, after.originals)
    ]

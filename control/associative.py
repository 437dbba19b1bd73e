"""``associative_scan``: all prefixes in a logarithmic number of steps.

Combine neighbours, scan the halved sequence, and combine its results with the items in between.

Source: G. E. Blelloch, "Prefix Sums and Their Applications" (1990).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..errors import ShapeError, ValueArgumentError
from ..operators.declare.ownership import copy_shared_leaves
from ..operators.declare.shape_rules import normalize_axis
from .structure import check_structure, flatten_tensors

if TYPE_CHECKING:
    from ..registry.types import Function, Pytree

# For each leaf, items along the first axis.
Items = list[Tensor]


def associative_scan(fn: Function, elems: Pytree, reverse: bool, axis: int) -> Pytree:
    """See :func:`tandem.associative_scan`."""
    leaves = flatten_tensors("associative_scan", "elems", elems)
    if not leaves.tensors:
        raise ValueArgumentError("associative_scan: elems has no leaves")
    axes = [normalize_axis("associative_scan", axis, len(x.shape)) for x in leaves.tensors]
    lengths = {x.shape[leaf_axis] for x, leaf_axis in zip(leaves.tensors, axes)}
    if len(lengths) > 1:
        raise ShapeError(f"associative_scan: the leaves of elems have different lengths: {sorted(lengths)}")

    def combine(one: Items, other: Items) -> Items:
        combined = fn(leaves.treedef.unflatten(one), leaves.treedef.unflatten(other))
        result = flatten_tensors("associative_scan", "the result of fn", combined)
        check_structure("associative_scan", "elems and the result of fn", leaves.treedef, result.treedef)
        for item, x in zip(one, result.tensors):
            if x.shape != item.shape:
                raise ShapeError(
                    f"associative_scan: fn returns shape {x.shape} for items of shape {item.shape} (their first "
                    "axis counts items); it has to keep the shape"
                )
        return result.tensors

    items = [_move_axis_to_front(x, leaf_axis) for x, leaf_axis in zip(leaves.tensors, axes)]
    if reverse:
        items = [x[::-1] for x in items]
    prefixes = _compute_prefixes(combine, items) if next(iter(lengths)) else items
    if reverse:
        prefixes = [x[::-1] for x in prefixes]
    results = [_move_axis_back(x, leaf_axis) for x, leaf_axis in zip(prefixes, axes)]
    return copy_shared_leaves(leaves.treedef.unflatten(results), leaves.tensors)  # of one item: the item


def _move_axis_to_front(x: Tensor, axis: int) -> Tensor:
    order = (axis, *(i for i in range(len(x.shape)) if i != axis))
    return by_name("permute")(x, order) if axis else x


def _move_axis_back(x: Tensor, axis: int) -> Tensor:
    order = (*range(1, axis + 1), 0, *range(axis + 1, len(x.shape)))
    return by_name("permute")(x, order) if axis else x


def _compute_prefixes(combine: Callable[[Items, Items], Items], items: Items) -> Items:
    """Compute the combinations of the first item, the first two, ..., all items."""
    count = items[0].shape[0]
    if count < 2:
        return items
    even = count - count % 2
    pairs = combine([x[0:even:2] for x in items], [x[1:even:2] for x in items])
    odd = _compute_prefixes(combine, pairs)
    if count == 2:
        between: Items = [x[:0] for x in items]
    else:
        before = odd if count % 2 else [x[:-1] for x in odd]
        between = combine(before, [x[2::2] for x in items])
    first = [by_name("concat")((x[:1], y), 0) for x, y in zip(items, between)]
    return [_interleave(x, y, count) for x, y in zip(first, odd)]


def _interleave(one: Tensor, two: Tensor, count: int) -> Tensor:
    """Interleave the items of two sequences, starting with the first sequence."""
    if count % 2:
        last = one[-1:]
        head = _interleave(one[:-1], two, count - 1)
        return by_name("concat")((head, last), 0)
    joined = by_name("stack")((one, two), 1)
    return by_name("reshape")(joined, (count, *one.shape[1:]))

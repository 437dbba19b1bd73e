"""``associative_scan``: all prefixes in a logarithmic number of steps.

Neighbours are combined, the halved sequence is scanned, and what lies between is combined once more.

Source: G. E. Blelloch, "Prefix Sums and Their Applications" (1990).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..eager.dunders import by_name
from ..errors import ShapeError, ValueArgumentError
from ..operators.rules import normalize_axis
from .structure import check_structure, take_apart

Items = list[Any]


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool, axis: int) -> Any:
    """See :func:`tandem.associative_scan`."""
    given = take_apart("associative_scan", "elems", elems)
    if not given.tensors:
        raise ValueArgumentError("associative_scan: elems has no leaves")
    axes = [normalize_axis("associative_scan", axis, len(x.shape)) for x in given.tensors]
    sizes = {x.shape[at] for x, at in zip(given.tensors, axes)}
    if len(sizes) > 1:
        raise ShapeError(f"associative_scan: the leaves of elems have different lengths: {sorted(sizes)}")

    def combine(one: Items, other: Items) -> Items:
        found = fn(given.treedef.unflatten(one), given.treedef.unflatten(other))
        result = take_apart("associative_scan", "the result of fn", found)
        check_structure("associative_scan", "elems and the result of fn", given.treedef, result.treedef)
        for item, combined in zip(one, result.tensors):
            if combined.shape != item.shape:
                raise ShapeError(
                    f"associative_scan: fn gives shape {combined.shape} for items of shape {item.shape} (their first "
                    "axis counts items); it has to keep the shape"
                )
        return result.tensors

    items = [_front(x, at) for x, at in zip(given.tensors, axes)]
    if reverse:
        items = [x[::-1] for x in items]
    found = _prefixes(combine, items) if next(iter(sizes)) else items
    if reverse:
        found = [x[::-1] for x in found]
    return given.treedef.unflatten([_back(x, at) for x, at in zip(found, axes)])


def _front(x: Any, axis: int) -> Any:
    order = (axis, *(i for i in range(len(x.shape)) if i != axis))
    return by_name("permute")(x, order) if axis else x


def _back(x: Any, axis: int) -> Any:
    order = (*range(1, axis + 1), 0, *range(axis + 1, len(x.shape)))
    return by_name("permute")(x, order) if axis else x


def _prefixes(combine: Callable[[Items, Items], Items], items: Items) -> Items:
    """The combinations of the first one, the first two, ..., of all items."""
    count = items[0].shape[0]
    if count < 2:
        return items
    even = count - count % 2
    pairs = combine([x[0:even:2] for x in items], [x[1:even:2] for x in items])
    odd = _prefixes(combine, pairs)
    if count == 2:
        between: Items = [x[:0] for x in items]
    else:
        before = odd if count % 2 else [x[:-1] for x in odd]
        between = combine(before, [x[2::2] for x in items])
    first = [by_name("concat")((x[:1], y), 0) for x, y in zip(items, between)]
    return [_interleaved(x, y, count) for x, y in zip(first, odd)]


def _interleaved(one: Any, two: Any, count: int) -> Any:
    """Items of the one and the other in turn, starting with the one."""
    if count % 2:
        last = one[-1:]
        head = _interleaved(one[:-1], two, count - 1)
        return by_name("concat")((head, last), 0)
    joined = by_name("stack")((one, two), 1)
    return by_name("reshape")(joined, (count, *one.shape[1:]))

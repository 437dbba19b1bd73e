"""``map``: a scan without a carry, over items or batches of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.layers.vmap.mapping import make_batch_function as batched
from ..eager.tensor.dunders import by_name
from ..errors import ArgumentError
from .loops import count_steps, scan
from .structure import flatten_tensors


def map_items(f: Callable[..., Any], xs: Any, batch_size: int | None) -> Any:
    """See :func:`tandem.map`."""
    if batch_size is None:
        return scan("map", lambda _, x: (None, f(x)), None, xs, None, False)[1]
    if type(batch_size) is not int or batch_size < 1:
        raise ArgumentError(f"map: batch_size is a number of items, at least 1, not {batch_size!r}")
    items = flatten_tensors("map", "xs", xs)
    steps = count_steps("map", items, None)
    whole = steps - steps % batch_size
    whole_batch = batched(f, 0, 0, None, None)

    def part(first: int, stop: int, *shape: int) -> Any:
        rows = [by_name("reshape")(x[first:stop], (*shape, *x.shape[1:])) for x in items.tensors]
        return items.treedef.unflatten(rows)

    def flat(x: Any) -> Any:
        return by_name("reshape")(x, (whole, *x.shape[2:]))

    batches = part(0, whole, whole // batch_size, batch_size)
    result = pytree.tree_map(flat, map_items(whole_batch, batches, None)) if whole or not steps else None
    if whole == steps:
        return result
    rest = whole_batch(part(whole, steps, steps - whole))
    return (
        rest if result is None else pytree.tree_map(lambda x, y: by_name("concat")((x, y), 0), result, rest)
    )

"""``map``: a scan without a carry, over items or batches of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import pytree
from ..eager.layers.vmap.mapping import make_batch_function
from ..eager.tensor.dunders import by_name
from ..errors import ArgumentError
from .loops import count_steps, scan
from .structure import flatten_tensors

if TYPE_CHECKING:
    from ..registry.types import Function, Pytree, Tensor


def map_items(f: Function, xs: Pytree, batch_size: int | None) -> Pytree:
    """See :func:`tandem.map`."""
    if batch_size is None:
        return scan("map", lambda _, x: (None, f(x)), None, xs, None, False)[1]
    if type(batch_size) is not int or batch_size < 1:
        raise ArgumentError(f"map: batch_size is a number of items, at least 1, not {batch_size!r}")
    items = flatten_tensors("map", "xs", xs)
    steps = count_steps("map", items, None)
    stop = steps - steps % batch_size  # the number of items in whole batches
    run_batch = make_batch_function(f, 0, 0, None, None)

    def select(start: int, end: int, *shape: int) -> Pytree:
        rows = [by_name("reshape")(x[start:end], (*shape, *x.shape[1:])) for x in items.tensors]
        return items.treedef.unflatten(rows)

    def join_batches(x: Tensor) -> Tensor:
        return by_name("reshape")(x, (stop, *x.shape[2:]))

    batches = select(0, stop, stop // batch_size, batch_size)
    result = pytree.tree_map(join_batches, map_items(run_batch, batches, None)) if stop or not steps else None
    if stop == steps:
        return result
    rest = run_batch(select(stop, steps, steps - stop))
    return (
        rest if result is None else pytree.tree_map(lambda x, y: by_name("concat")((x, y), 0), result, rest)
    )

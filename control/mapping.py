"""``map``: a scan without a carry, of items or of batches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.batched.mapping import mapped as batched
from ..eager.dunders import by_name
from ..errors import ArgumentError
from .loops import scan, steps_of
from .structure import take_apart


def mapped(f: Callable[..., Any], xs: Any, batch_size: int | None) -> Any:
    """See :func:`tandem.map`."""
    if batch_size is None:
        return scan("map", lambda _, x: (None, f(x)), None, xs, None, False)[1]
    if type(batch_size) is not int or batch_size < 1:
        raise ArgumentError(f"map: batch_size is a number of items, at least 1, not {batch_size!r}")
    items = take_apart("map", "xs", xs)
    steps = steps_of("map", items, None)
    whole = steps - steps % batch_size
    whole_batch = batched(f, 0, 0, None, None)

    def part(first: int, stop: int, *shape: int) -> Any:
        rows = [by_name("reshape")(x[first:stop], (*shape, *x.shape[1:])) for x in items.tensors]
        return items.treedef.unflatten(rows)

    def flat(x: Any) -> Any:
        return by_name("reshape")(x, (whole, *x.shape[2:]))

    batches = part(0, whole, whole // batch_size, batch_size)
    found = pytree.tree_map(flat, mapped(whole_batch, batches, None)) if whole or not steps else None
    if whole == steps:
        return found
    rest = whole_batch(part(whole, steps, steps - whole))
    return rest if found is None else pytree.tree_map(lambda x, y: by_name("concat")((x, y), 0), found, rest)

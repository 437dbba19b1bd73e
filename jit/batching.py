"""Calls of a jitted function with batched values of ``vmap``: jit the batched function, call it on the payloads."""

from __future__ import annotations

from typing import Any

from .. import pytree
from ..eager.layers.levels import Level, LevelTensor, check_open
from ..eager.layers.vmap.kernel import open_batch
from ..eager.layers.vmap.tensor import BatchedTensor, wrap_batched
from .arguments import BoundArguments
from .variants import Variants, split_leaves


class BatchedVariants(Variants):
    """The batched variants of one jitted function."""

    def call(self, level: Level, bound: BoundArguments) -> Any:
        """Call the batched function if ``level``, of ``vmap``, is the innermost level among the arguments.

        Results that differ between examples become values of that level.
        """
        dynamic, form = split_leaves(bound)
        own = [i for i in dynamic if _is_of_level(bound.leaves[i], level)]
        key = form, tuple(own), level.axis_name, level.batch_size
        made = self._get_variant(key, bound, dynamic, own, level)
        given = [bound.leaves[i]._payload if i in own else bound.leaves[i] for i in dynamic]
        result, batched = made(*given)
        leaves, treedef = pytree.flatten(result)
        return treedef.unflatten([wrap_batched(level, x) if own else x for x, own in zip(leaves, batched)])

    def _make_function(
        self, bound: BoundArguments, dynamic: tuple[int, ...], own: list[int], level: Level
    ) -> object:
        of_one = self._bind_static_leaves(bound, dynamic)
        name, size, axis_name = f"vmap({self._arguments.name})", level.batch_size, level.axis_name
        prepared: dict[Any, Any] = {}

        def of_batch(*leaves: Any) -> object:
            with open_batch(name, size, prepared, axis_name) as inner:
                given = [wrap_batched(inner, x) if n in own else x for n, x in zip(dynamic, leaves)]
                value, outdef = pytree.flatten(of_one(given))
            batched = [_is_of_level(leaf, inner) for leaf in value]
            return outdef.unflatten([x._payload if own else x for x, own in zip(value, batched)]), batched

        return self._mark_variant(of_batch, name, is_part=True)


def _is_of_level(leaf: object, level: Level) -> bool:
    return type(leaf) is BatchedTensor and leaf._level is level


def find_innermost_level(leaves: list[object]) -> Level:
    """The innermost level among the leaves of a call.

    Raises:
        LeakedTracerError: a leaf belongs to a level that has ended.
    """
    items = [leaf for leaf in leaves if isinstance(leaf, LevelTensor)]
    for leaf in items:
        check_open(leaf)
    levels: list[Level] = [leaf._level for leaf in items]
    return max(levels, key=lambda level: level.depth)

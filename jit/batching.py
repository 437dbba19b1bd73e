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
        dynamic, static_key = split_leaves(bound)
        batched_indices = [i for i in dynamic if _is_of_level(bound.leaves[i], level)]
        key = static_key, tuple(batched_indices), level.axis_name, level.batch_size
        variant = self._get_variant(key, bound, dynamic, batched_indices, level)
        payloads = [bound.leaves[i]._payload if i in batched_indices else bound.leaves[i] for i in dynamic]
        result, batched_flags = variant(*payloads)
        leaves, treedef = pytree.flatten(result)
        return treedef.unflatten(
            [wrap_batched(level, x) if is_batched else x for x, is_batched in zip(leaves, batched_flags)]
        )

    def _make_function(
        self, bound: BoundArguments, dynamic: tuple[int, ...], batched_indices: list[int], level: Level
    ) -> object:
        function = self._bind_static_leaves(bound, dynamic)
        name, size, axis_name = f"vmap({self._arguments.name})", level.batch_size, level.axis_name
        prepared: dict[Any, Any] = {}

        def batched_function(*leaves: Any) -> object:
            with open_batch(name, size, prepared, axis_name) as inner:
                args = [
                    wrap_batched(inner, x) if n in batched_indices else x for n, x in zip(dynamic, leaves)
                ]
                value, outdef = pytree.flatten(function(args))
            batched = [_is_of_level(leaf, inner) for leaf in value]
            payloads = [x._payload if is_batched else x for x, is_batched in zip(value, batched)]
            return outdef.unflatten(payloads), batched

        return self._mark_variant(batched_function, name, is_part=True)


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

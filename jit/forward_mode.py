"""Calls of a jitted function with dual values of ``jvp``: jit the function of primals and tangents, call it on both."""

from __future__ import annotations

from typing import Any

from .. import pytree
from ..eager.autograd.forward_mode import ForwardMeta, forward, tangent_at
from ..eager.layers.levels import Level, open_level, unwrap, wrap_level
from .arguments import BoundArguments
from .variants import Variants, split_leaves


class ForwardVariants(Variants):
    """The forward-mode variants of one jitted function."""

    def call(self, level: Level, bound: BoundArguments) -> Any:
        """Call the forward-mode function if ``level``, of ``jvp``, is the innermost level among the arguments."""
        dynamic, form = split_leaves(bound)
        given = [unwrap(level, bound.leaves[i]) for i in dynamic]
        tangents = [tangent_at(level, bound.leaves[i]) for i in dynamic]
        own = tuple(tangent is not None for tangent in tangents)
        made = self._get_variant((form, own), bound, dynamic, own)
        values, value = made(given, [tangent for tangent in tangents if tangent is not None])
        leaves, treedef = pytree.flatten(values)
        return treedef.unflatten(
            [x if t is None else wrap_level(level, x, ForwardMeta(t)) for x, t in zip(leaves, value)]
        )

    def _make_function(
        self, bound: BoundArguments, dynamic: tuple[int, ...], own: tuple[bool, ...]
    ) -> object:
        of_values, name = self._bind_static_leaves(bound, dynamic), f"jvp({self._arguments.name})"

        def of_both(given: list[Any], tangents: list[Any]) -> Any:
            rest = iter(tangents)
            with open_level(name, "", forward) as level:
                pairs = zip(given, own)
                duals = [
                    wrap_level(level, x, ForwardMeta(next(rest))) if is_own else x for x, is_own in pairs
                ]
                result = of_values(duals)
            items = [tangent_at(level, leaf) for leaf in pytree.leaves(result)]
            return pytree.map_tree(lambda leaf: unwrap(level, leaf), result), items

        return self._mark_variant(of_both, name, is_part=True)

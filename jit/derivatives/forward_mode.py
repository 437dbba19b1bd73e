"""Calls of a jitted function with dual values of ``jvp``: jit the function of primals and tangents, call it on both."""

from __future__ import annotations

from typing import Any

from ... import pytree
from ...eager.autograd.forward_mode import ForwardMeta, forward, tangent_at
from ...eager.layers.levels import Level, open_level, unwrap, wrap_level
from ..arguments import BoundArguments
from ..variants import Variants, split_leaves


class ForwardVariants(Variants):
    """The forward-mode variants of one jitted function."""

    def call(self, level: Level, bound: BoundArguments) -> Any:
        """Call the forward-mode function if ``level``, of ``jvp``, is the innermost level among the arguments."""
        dynamic, static_key = split_leaves(bound)
        primals = [unwrap(level, bound.leaves[i]) for i in dynamic]
        tangents = [tangent_at(level, bound.leaves[i]) for i in dynamic]
        has_tangent = tuple(tangent is not None for tangent in tangents)
        variant = self._get_variant((static_key, has_tangent), bound, dynamic, has_tangent)
        result, result_tangents = variant(primals, [tangent for tangent in tangents if tangent is not None])
        leaves, treedef = pytree.flatten(result)
        return treedef.unflatten(
            [
                x if t is None else wrap_level(level, x, ForwardMeta(t))
                for x, t in zip(leaves, result_tangents)
            ]
        )

    def _make_function(
        self, bound: BoundArguments, dynamic: tuple[int, ...], has_tangent: tuple[bool, ...]
    ) -> object:
        function, name = self._bind_static_leaves(bound, dynamic), f"jvp({self._arguments.name})"

        def jvp_function(primals: list[Any], tangents: list[Any]) -> Any:
            remaining_tangents = iter(tangents)
            with open_level(name, "", forward) as level:
                pairs = zip(primals, has_tangent)
                duals = [
                    wrap_level(level, x, ForwardMeta(next(remaining_tangents))) if is_dual else x
                    for x, is_dual in pairs
                ]
                result = function(duals)
            result_tangents = [tangent_at(level, leaf) for leaf in pytree.leaves(result)]
            return pytree.map_tree(lambda leaf: unwrap(level, leaf), result), result_tangents

        return self._mark_variant(jvp_function, name, is_part=True)

"""A jitted function met by values of ``jvp``: the function of values and tangents is jitted, and called on both."""

from __future__ import annotations

from typing import Any

from .. import pytree
from ..eager.forward import ForwardMeta, forward, tangent_at
from ..eager.levels import Level, open_level, unwrap, wrap_level
from .arguments import Bound
from .variants import Variants, data_of


class Forwards(Variants):
    """The functions of values and tangents that belong to one jitted function."""

    def call(self, level: Level, bound: Bound) -> Any:
        """Call the function where ``level``, one of ``jvp``, is the innermost among its arguments."""
        moving, form = data_of(bound)
        given = [unwrap(level, bound.leaves[i]) for i in moving]
        tangents = [tangent_at(level, bound.leaves[i]) for i in moving]
        own = tuple(tangent is not None for tangent in tangents)
        made = self._variant((form, own), bound, moving, own)
        values, found = made(given, [tangent for tangent in tangents if tangent is not None])
        leaves, treedef = pytree.flatten(values)
        return treedef.unflatten(
            [x if t is None else wrap_level(level, x, ForwardMeta(t)) for x, t in zip(leaves, found)]
        )

    def _function(self, bound: Bound, moving: tuple[int, ...], own: tuple[bool, ...]) -> Any:
        of_values, name = self._of_moving(bound, moving), f"jvp({self._arguments.name})"

        def of_both(given: list[Any], tangents: list[Any]) -> Any:
            rest = iter(tangents)
            with open_level(name, "", forward) as level:
                pairs = zip(given, own)
                duals = [
                    wrap_level(level, x, ForwardMeta(next(rest))) if is_own else x for x, is_own in pairs
                ]
                result = of_values(duals)
            found = [tangent_at(level, leaf) for leaf in pytree.leaves(result)]
            return pytree.map_tree(lambda leaf: unwrap(level, leaf), result), found

        return self._marked(of_both, name, is_part=True)

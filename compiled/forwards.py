"""A jitted function met by values of ``jvp``: the function of values and tangents is jitted, and called on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.forward import ForwardMeta, forward, tangent_at
from ..eager.levels import Level, open_level, unwrap, wrap_level
from .arguments import Arguments, Bound
from .batches import MOST, is_data
from .leaves import leaf_key


class Forwards:
    """The functions of values and tangents that belong to one jitted function.

    Args:
        fn: the function that was jitted.
        arguments: how its calls are normalised.
        jit: makes a jitted function.
    """

    def __init__(self, fn: Callable[..., Any], arguments: Arguments, jit: Callable[..., Any]):
        self._fn, self._arguments, self._jit = fn, arguments, jit
        self._made: dict[Any, Any] = {}

    def call(self, level: Level, bound: Bound) -> Any:
        """Call the function where ``level``, one of ``jvp``, is the innermost among its arguments."""
        moving = tuple(i for i, leaf in enumerate(bound.leaves) if is_data(leaf))
        given = [unwrap(level, bound.leaves[i]) for i in moving]
        tangents = [tangent_at(level, bound.leaves[i]) for i in moving]
        own = tuple(tangent is not None for tangent in tangents)
        fixed = tuple(leaf_key(leaf, identity=True) for leaf in bound.leaves if not is_data(leaf))
        key = bound.treedef, moving, own, fixed, bound.static_keys
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= MOST:
                self._made.clear()
            made = self._made[key] = self._jit(self._function(bound, moving, own))
        values, found = made(given, [tangent for tangent in tangents if tangent is not None])
        leaves, treedef = pytree.flatten(values)
        return treedef.unflatten(
            [x if t is None else wrap_level(level, x, ForwardMeta(t)) for x, t in zip(leaves, found)]
        )

    def _function(self, bound: Bound, moving: tuple[int, ...], own: tuple[bool, ...]) -> Any:
        template, treedef, statics = list(bound.leaves), bound.treedef, bound.statics
        for place in moving:
            template[place] = None

        def of_both(given: list[Any], tangents: list[Any]) -> Any:
            filled, rest = list(template), iter(tangents)
            with open_level(f"jvp({self._arguments.name})", "", forward) as level:
                for place, leaf, is_own in zip(moving, given, own):
                    filled[place] = wrap_level(level, leaf, ForwardMeta(next(rest))) if is_own else leaf
                result = self._arguments.call(self._fn, treedef.unflatten(filled), statics)
            found = [tangent_at(level, leaf) for leaf in pytree.leaves(result)]
            return pytree.map_tree(lambda leaf: unwrap(level, leaf), result), found

        of_both.__name__ = of_both.__qualname__ = f"jvp({self._arguments.name})"
        of_both.stands_for = self._fn  # type: ignore[attr-defined]
        of_both.is_part = True  # type: ignore[attr-defined]
        return of_both

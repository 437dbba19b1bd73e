"""A jitted function met by values of ``vmap``: that of whole batches is jitted, and called on what they wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import pytree
from ..eager.batched.tensor import BatchedTensor, wrap_batched
from ..eager.levels import Level, LevelTensor, check_open
from ..eager.tensor import Tensor
from ..registry.values import SCALARS
from ..vmap import vmap
from .arguments import Arguments, Bound
from .leaves import leaf_key

MOST = 64  # functions of batches that one jitted function keeps


class Batches:
    """The functions of batches that belong to one jitted function.

    Args:
        fn: the function that was jitted.
        arguments: how its calls are normalised.
        jit: makes a jitted function.
    """

    def __init__(self, fn: Callable[..., Any], arguments: Arguments, jit: Callable[..., Any]):
        self._fn, self._arguments, self._jit = fn, arguments, jit
        self._made: dict[Any, Any] = {}

    def call(self, level: Level, bound: Bound) -> Any:
        """Call the function where ``level``, one of ``vmap``, is the innermost among its arguments.

        Everything in the result becomes a value of that level.
        """
        moving = tuple(i for i, leaf in enumerate(bound.leaves) if is_data(leaf))
        own = [i for i in moving if _belongs(bound.leaves[i], level)]
        fixed = tuple(leaf_key(leaf, identity=True) for leaf in bound.leaves if not is_data(leaf))
        axis = level.axis_name, level.batch_size
        key = bound.treedef, moving, tuple(own), fixed, bound.static_keys, axis
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= MOST:
                self._made.clear()
            made = self._made[key] = self._jit(self._function(bound, moving, own, level))
        given = [bound.leaves[i]._payload if i in own else bound.leaves[i] for i in moving]
        return pytree.map_tree(lambda found: wrap_batched(level, found), made(*given))

    def _function(self, bound: Bound, moving: tuple[int, ...], own: list[int], level: Level) -> Any:
        template = list(bound.leaves)
        for place in moving:
            template[place] = None

        def of_one(*leaves: Any) -> Any:
            filled = list(template)
            for place, leaf in zip(moving, leaves):
                filled[place] = leaf
            return self._arguments.call(self._fn, bound.treedef.unflatten(filled), bound.statics)

        of_one.__name__ = of_one.__qualname__ = self._arguments.name
        axes, size = tuple(0 if place in own else None for place in moving), level.batch_size
        mapped = vmap(of_one, axes, axis_name=level.axis_name, axis_size=size)

        def of_batch(*leaves: Any) -> Any:
            return mapped(*leaves)

        of_batch.__name__ = of_batch.__qualname__ = f"vmap({self._arguments.name})"
        of_batch.stands_for = self._fn  # type: ignore[attr-defined]
        return of_batch


def is_data(leaf: Any) -> bool:
    """Whether a leaf is given at run time; the others are part of the function."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic)) or type(leaf) in SCALARS


def _belongs(leaf: Any, level: Level) -> bool:
    return type(leaf) is BatchedTensor and leaf._level is level


def innermost(leaves: list[Any]) -> Level:
    """The innermost level among the leaves of a call.

    Raises:
        LeakedTracerError: a leaf belongs to a level that has ended.
    """
    found = [leaf for leaf in leaves if isinstance(leaf, LevelTensor)]
    for leaf in found:
        check_open(leaf)
    levels: list[Level] = [leaf._level for leaf in found]
    return max(levels, key=lambda level: level.depth)

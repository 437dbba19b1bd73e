"""A jitted function met by values of ``vmap``: that of whole batches is jitted, and called on what they wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import pytree
from ..eager.batched.kernel import open_batch
from ..eager.batched.tensor import BatchedTensor, wrap_batched
from ..eager.levels import Level, LevelTensor, check_open
from ..eager.tensor import Tensor
from ..registry.values import SCALARS
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

        What differs from example to example in the result becomes a value of that level.
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
        result, batched = made(*given)
        leaves, treedef = pytree.flatten(result)
        return treedef.unflatten([wrap_batched(level, x) if own else x for x, own in zip(leaves, batched)])

    def _function(self, bound: Bound, moving: tuple[int, ...], own: list[int], level: Level) -> Any:
        template, treedef, statics = list(bound.leaves), bound.treedef, bound.statics
        for place in moving:
            template[place] = None

        def of_one(*leaves: Any) -> Any:
            filled = list(template)
            for place, leaf in zip(moving, leaves):
                filled[place] = leaf
            return self._arguments.call(self._fn, treedef.unflatten(filled), statics)

        name, size, axis_name = f"vmap({self._arguments.name})", level.batch_size, level.axis_name
        prepared: dict[Any, Any] = {}

        def of_batch(*leaves: Any) -> Any:
            with open_batch(name, size, prepared, axis_name) as inner:
                given = [wrap_batched(inner, x) if n in own else x for n, x in zip(moving, leaves)]
                found, outdef = pytree.flatten(of_one(*given))
            batched = [_belongs(leaf, inner) for leaf in found]
            return outdef.unflatten([x._payload if own else x for x, own in zip(found, batched)]), batched

        of_batch.__name__ = of_batch.__qualname__ = name
        of_batch.stands_for = self._fn  # type: ignore[attr-defined]
        of_batch.is_part = True  # type: ignore[attr-defined]
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

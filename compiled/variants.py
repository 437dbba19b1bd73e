"""Functions that stand for a jitted one in calls of another kind: of batches, of tangents, of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..eager.tensor import Tensor
from ..registry.values import SCALARS
from .arguments import Arguments, Bound
from .leaves import leaf_key

MOST = 64  # functions of a kind that one jitted function keeps


class Variants:
    """The jitted functions of one kind that belong to a jitted function; ``_function`` says how one is made.

    Args:
        fn: the function that was jitted.
        arguments: how its calls are normalised.
        jit: makes a jitted function.
    """

    _function: Callable[..., Any]

    def __init__(self, fn: Callable[..., Any], arguments: Arguments, jit: Callable[..., Any]):
        self._fn, self._arguments, self._jit = fn, arguments, jit
        self._made: dict[Any, Any] = {}

    def _variant(self, key: Any, *what: Any) -> Any:
        """The jitted function for a key; what it is made of where there is none yet."""
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= MOST:
                self._made.clear()
            made = self._made[key] = self._jit(self._function(*what))
        return made

    def _of_moving(self, bound: Bound, moving: tuple[int, ...]) -> Callable[[Sequence[Any]], Any]:
        """The function of the leaves in these places; the others are a part of it."""
        template, treedef, statics = list(bound.leaves), bound.treedef, bound.statics
        for place in moving:
            template[place] = None

        def call(given: Sequence[Any]) -> Any:
            filled = list(template)
            for place, leaf in zip(moving, given, strict=True):
                filled[place] = leaf
            return self._arguments.call(self._fn, treedef.unflatten(filled), statics)

        return call

    def _marked(self, function: Any, name: str, **marks: Any) -> Any:
        """A function that stands for the one that was jitted, with a name and what tracing should know of it."""
        function.__name__ = function.__qualname__ = name
        vars(function).update(marks, stands_for=self._fn)
        return function


def is_data(leaf: Any) -> bool:
    """Whether a leaf is given at run time; the others are part of the function."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic)) or type(leaf) in SCALARS


def data_of(bound: Bound) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The places of the leaves that are given at run time, and the key of calls that differ in these alone."""
    moving = tuple(n for n, leaf in enumerate(bound.leaves) if is_data(leaf))
    fixed = tuple(leaf_key(leaf, identity=True) for leaf in bound.leaves if not is_data(leaf))
    return moving, (bound.treedef, moving, fixed, bound.static_keys)

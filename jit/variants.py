"""Variants of a jitted function: its batched, forward-mode, closure-lifted and gradient functions, jitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor.tensor import Tensor
from ..registry.values import SCALARS
from .arguments import Arguments, BoundArguments
from .guards.leaves import leaf_key

if TYPE_CHECKING:
    from ..registry.types import Function

PASS: object = object()
"""The result of an interceptor that leaves a call to the next one (:mod:`.interceptors`)."""
MAX_VARIANTS = 64  # cached variants of one kind for one jitted function


class Variants:
    """A cache of variants of one kind for a jitted function; subclasses define ``_make_function``, which makes one.

    Args:
        fn: the function that was jitted.
        arguments: how its calls are normalised.
        jit: makes a jitted function.
    """

    _make_function: Function

    def __init__(self, fn: Function, arguments: Arguments, jit: Function):
        self._fn, self._arguments, self._jit = fn, arguments, jit
        self._cache: dict[object, object] = {}

    def _get_variant(self, key: object, *args: object) -> Any:
        """Look up the variant for a key; make it by ``_make_function(*args)`` if there is none."""
        variant = self._cache.get(key)
        if variant is None:
            if len(self._cache) >= MAX_VARIANTS:
                self._cache.clear()
            variant = self._cache[key] = self._jit(self._make_function(*args))
        return variant

    def _bind_static_leaves(
        self, bound: BoundArguments, dynamic: tuple[int, ...]
    ) -> Callable[[Sequence[object]], object]:
        """Make a function of the dynamic leaves; the static leaves are bound."""
        template, treedef, statics = list(bound.leaves), bound.treedef, bound.statics
        for index in dynamic:
            template[index] = None

        def call(dynamic_leaves: Sequence[Any]) -> Any:
            leaves = list(template)
            for index, leaf in zip(dynamic, dynamic_leaves, strict=True):
                leaves[index] = leaf
            return self._arguments.call(self._fn, treedef.unflatten(leaves), statics)

        return call

    def _mark_variant(self, function: Any, name: str, **marks: object) -> object:
        """Set the name and the tracing attributes of a variant's function."""
        function.__name__ = function.__qualname__ = name
        vars(function).update(marks, replaces=self._fn)
        return function


def is_data(leaf: object) -> bool:
    """Whether a leaf is dynamic; static leaves are part of the function."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic)) or type(leaf) in SCALARS


def split_leaves(bound: BoundArguments) -> tuple[tuple[int, ...], tuple[object, ...]]:
    """The indices of the dynamic leaves, and a key that is equal for calls that differ only in these."""
    dynamic = tuple(n for n, leaf in enumerate(bound.leaves) if is_data(leaf))
    static = tuple(leaf_key(leaf, identity=True) for leaf in bound.leaves if not is_data(leaf))
    return dynamic, (bound.treedef, dynamic, static, bound.static_keys)

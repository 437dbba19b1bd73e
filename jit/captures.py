"""Calls of a jitted function whose variables hold values of transforms: jit a function that takes them as arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import pytree
from ..eager.layers.levels import LevelTensor
from .arguments import BoundArguments
from .guards.externals import ExternalGuard, find_externals
from .variants import PASS, Variants, split_leaves


class CaptureVariants(Variants):
    """The variants of one jitted function that take captured values of transforms as arguments."""

    def call(self, bound: BoundArguments) -> Any:
        """Call the function with the values of transforms in its variables passed as arguments.

        Returns:
            The result; ``PASS`` if the variables hold no such values.
        """
        held = [CapturedVariable(guard) for guard in find_externals(self._fn)]
        held = [item for item in held if item.values]
        if not held:
            return PASS
        reached = [item.values for item in held]
        dynamic, form = split_leaves(bound)
        made = self._get_variant((form, *(item.key for item in held)), bound, dynamic, held)
        return made(reached, [bound.leaves[i] for i in dynamic])

    def _make_function(
        self, bound: BoundArguments, dynamic: tuple[int, ...], held: list[CapturedVariable]
    ) -> object:
        of_given = self._bind_static_leaves(bound, dynamic)
        for item in held:
            item.release()

        def with_reached(reached: list[Any], given: list[object]) -> object:
            with substitute_values(held, reached):
                return of_given(given)

        assigned = frozenset(item.variable for item in held)
        return self._mark_variant(with_reached, self._arguments.name, assigned=assigned)


class CapturedVariable:
    """A variable that holds values of transforms, itself or in a container.

    Attributes:
        guard: the variable.
        variable: the identity of the variable.
        values: the values.
        key: the cache key: contents with equal keys can use the same function.
    """

    def __init__(self, guard: ExternalGuard):
        self.guard, self.variable = guard, (id(guard.holder), guard.name)
        self._leaves, self._treedef = pytree.flatten(guard.value)
        self._own = [n for n, leaf in enumerate(self._leaves) if _is_open_level_value(leaf)]
        self.values = [self._leaves[n] for n in self._own]
        others = tuple(id(leaf) for leaf in self._leaves if not _is_open_level_value(leaf))
        self.key = self.variable, self._treedef, tuple(self._own), others

    def release(self) -> None:
        """Drop the references to the values; the other leaves stay."""
        self.guard = ExternalGuard(self.guard.kind, self.guard.name, self.guard.holder, None)
        for n in self._own:
            self._leaves[n] = None
        self.values = []

    def make_content(self, values: Sequence[object]) -> object:
        """The content of the variable with other values."""
        leaves = list(self._leaves)
        for n, value in zip(self._own, values, strict=True):
            leaves[n] = value
        return self._treedef.unflatten(leaves)


def _is_open_level_value(leaf: object) -> bool:
    """Whether a leaf is a value of a transform that is still active; using others raises."""
    return isinstance(leaf, LevelTensor) and leaf._level.is_open


@contextmanager
def substitute_values(
    held: Sequence[CapturedVariable], reached: Sequence[Sequence[object]]
) -> Iterator[None]:
    """Assign other values to variables while a function is traced."""
    before = [(item.guard, item.guard.get_value()) for item in held]
    contents = [item.make_content(values) for item, values in zip(held, reached, strict=True)]
    try:
        for item, content in zip(held, contents):
            item.guard.assign(content)
        yield
    finally:
        for (guard, old), content in zip(before, contents):
            if guard.get_value() is content:  # the function has not assigned to it
                guard.assign(old)

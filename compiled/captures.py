"""Jitted functions that reach values of transforms by their variables: functions that take these are jitted instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import pytree
from ..eager.levels import LevelTensor
from .arguments import Bound
from .externals import ExternalGuard, externals_of
from .variants import Variants, data_of

NOTHING = object()


class Captures(Variants):
    """The functions of arguments and reached values that belong to one jitted function."""

    def call(self, bound: Bound) -> Any:
        """Call the function with the values of transforms that its variables hold as arguments.

        Returns:
            The result; ``NOTHING`` if the variables hold none.
        """
        held = [Held(guard) for guard in externals_of(self._fn)]
        held = [item for item in held if item.values]
        if not held:
            return NOTHING
        reached = [item.values for item in held]
        moving, form = data_of(bound)
        made = self._variant((form, *(item.key for item in held)), bound, moving, held)
        return made(reached, [bound.leaves[i] for i in moving])

    def _function(self, bound: Bound, moving: tuple[int, ...], held: list[Held]) -> Any:
        of_given = self._of_moving(bound, moving)
        for item in held:
            item.forget()

        def with_reached(reached: list[Any], given: list[Any]) -> Any:
            with in_place(held, reached):
                return of_given(given)

        taken = frozenset(item.place for item in held)
        return self._marked(with_reached, self._arguments.name, taken=taken)


class Held:
    """A variable that holds values of transforms, itself or in a container.

    Attributes:
        guard: the variable.
        place: what identifies it.
        values: the values.
        key: what two contents have in common for which one function serves.
    """

    def __init__(self, guard: ExternalGuard):
        self.guard, self.place = guard, (id(guard.place), guard.name)
        self._leaves, self._treedef = pytree.flatten(guard.value)
        self._own = [n for n, leaf in enumerate(self._leaves) if _is_open(leaf)]
        self.values = [self._leaves[n] for n in self._own]
        others = tuple(id(leaf) for leaf in self._leaves if not _is_open(leaf))
        self.key = self.place, self._treedef, tuple(self._own), others

    def forget(self) -> None:
        """Let the values go; the other leaves stay."""
        self.guard = ExternalGuard(self.guard.kind, self.guard.name, self.guard.place, None)
        for n in self._own:
            self._leaves[n] = None
        self.values = []

    def content(self, values: Sequence[Any]) -> Any:
        """What the variable holds with other values."""
        leaves = list(self._leaves)
        for n, value in zip(self._own, values, strict=True):
            leaves[n] = value
        return self._treedef.unflatten(leaves)


def _is_open(leaf: Any) -> bool:
    """Whether a leaf is a value of a transform that still runs; others raise where they are used, if they are."""
    return isinstance(leaf, LevelTensor) and leaf._level.is_open


@contextmanager
def in_place(held: Sequence[Held], reached: Sequence[Sequence[Any]]) -> Iterator[None]:
    """Have the variables hold other values while a function is traced."""
    before = [(item.guard, item.guard.now()) for item in held]
    put = [item.content(values) for item, values in zip(held, reached, strict=True)]
    try:
        for item, content in zip(held, put):
            item.guard.put(content)
        yield
    finally:
        for (guard, old), content in zip(before, put):
            if guard.now() is content:  # the function has not assigned to it
                guard.put(old)

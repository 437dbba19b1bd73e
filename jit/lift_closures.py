"""Lambda lifting: jit a function whose free variables hold values of transforms as a function of these values.

A closure cell or a global of the function may hold a value of an enclosing ``vmap``, ``jvp`` or ``grad``. The variant
takes such values as arguments, so its specializations are valid for the next values too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import pytree
from ..eager.layers.levels import LevelTensor, stack
from .arguments import BoundArguments
from .guards.externals import ExternalGuard, find_externals
from .variants import PASS, Variants, split_leaves


class LiftedVariants(Variants):
    """The variants of one jitted function that take values of transforms in its free variables as arguments."""

    def call(self, bound: BoundArguments) -> Any:
        """Call the function with the values of transforms in its variables passed as arguments.

        Returns:
            The result; ``PASS`` if the variables hold no such values.
        """
        variables = [FreeVariable(guard) for guard in find_externals(self._fn)]
        variables = [variable for variable in variables if variable.values]
        if not variables:
            return PASS
        values = [variable.values for variable in variables]
        dynamic, static_key = split_leaves(bound)
        key = static_key, *(variable.key for variable in variables)
        variant = self._get_variant(key, bound, dynamic, variables)
        return variant(values, [bound.leaves[i] for i in dynamic])

    def _make_function(
        self, bound: BoundArguments, dynamic: tuple[int, ...], variables: list[FreeVariable]
    ) -> object:
        function = self._bind_static_leaves(bound, dynamic)
        for variable in variables:
            variable.release()

        def lifted(values: list[Any], leaves: list[object]) -> object:
            with substitute_values(variables, values):
                return function(leaves)

        assigned = frozenset(variable.identity for variable in variables)
        return self._mark_variant(lifted, self._arguments.name, assigned=assigned)


class FreeVariable:
    """A closure cell or global that holds values of transforms, itself or in a container.

    Attributes:
        guard: the variable.
        identity: the object that holds the variable, by id, and the name.
        values: the values.
        key: the cache key: contents with equal keys can use the same function.
    """

    def __init__(self, guard: ExternalGuard):
        self.guard, self.identity = guard, (id(guard.holder), guard.name)
        self._leaves, self._treedef = pytree.flatten(guard.value)
        self._own = [n for n, leaf in enumerate(self._leaves) if _is_open_level_value(leaf)]
        self.values = [self._leaves[n] for n in self._own]
        others = tuple(id(leaf) for leaf in self._leaves if not _is_open_level_value(leaf))
        self.key = self.identity, self._treedef, tuple(self._own), others

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
    if isinstance(leaf, LevelTensor):
        return leaf._level.is_open
    return stack.recording is not None and stack.recording.owns(leaf)


@contextmanager
def substitute_values(
    variables: Sequence[FreeVariable], values: Sequence[Sequence[object]]
) -> Iterator[None]:
    """Assign other values to variables while a function is traced."""
    before = [(variable.guard, variable.guard.get_value()) for variable in variables]
    contents = [variable.make_content(own) for variable, own in zip(variables, values, strict=True)]
    try:
        for variable, content in zip(variables, contents):
            variable.guard.assign(content)
        yield
    finally:
        for (guard, old), content in zip(before, contents):
            if guard.get_value() is content:  # the function has not assigned to it
                guard.assign(old)

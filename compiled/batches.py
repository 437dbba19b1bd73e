"""A jitted function met by values of ``vmap``: that of whole batches is jitted, and called on what they wrap."""

from __future__ import annotations

from typing import Any

from .. import pytree
from ..eager.batched.kernel import open_batch
from ..eager.batched.tensor import BatchedTensor, wrap_batched
from ..eager.levels import Level, LevelTensor, check_open
from .arguments import Bound
from .variants import Variants, data_of


class Batches(Variants):
    """The functions of batches that belong to one jitted function."""

    def call(self, level: Level, bound: Bound) -> Any:
        """Call the function where ``level``, one of ``vmap``, is the innermost among its arguments.

        What differs from example to example in the result becomes a value of that level.
        """
        moving, form = data_of(bound)
        own = [i for i in moving if _belongs(bound.leaves[i], level)]
        key = form, tuple(own), level.axis_name, level.batch_size
        made = self._variant(key, bound, moving, own, level)
        given = [bound.leaves[i]._payload if i in own else bound.leaves[i] for i in moving]
        result, batched = made(*given)
        leaves, treedef = pytree.flatten(result)
        return treedef.unflatten([wrap_batched(level, x) if own else x for x, own in zip(leaves, batched)])

    def _function(self, bound: Bound, moving: tuple[int, ...], own: list[int], level: Level) -> Any:
        of_one = self._of_moving(bound, moving)
        name, size, axis_name = f"vmap({self._arguments.name})", level.batch_size, level.axis_name
        prepared: dict[Any, Any] = {}

        def of_batch(*leaves: Any) -> Any:
            with open_batch(name, size, prepared, axis_name) as inner:
                given = [wrap_batched(inner, x) if n in own else x for n, x in zip(moving, leaves)]
                found, outdef = pytree.flatten(of_one(given))
            batched = [_belongs(leaf, inner) for leaf in found]
            return outdef.unflatten([x._payload if own else x for x, own in zip(found, batched)]), batched

        return self._marked(of_batch, name, is_part=True)


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

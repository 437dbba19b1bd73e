"""The autograd kernel of control flow: records a loop whose body also returns its residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..eager.autograd.kernel import autograd
from ..eager.layers.levels import LevelTensor, highest_level, record_at
from ..registry.operator import Operator
from .forward import run_forward
from .ops import LIBRARY, SCAN, SWITCH, WHILE
from .reverse import get_split
from .reverse_branches import get_branch_split

if TYPE_CHECKING:
    from ..registry.types import Kwargs


def run_autograd(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: Kwargs) -> object:
    """Record a loop or a branch, at the innermost level among its arguments if there is one."""
    items = [x for arg in args for x in (arg if type(arg) is tuple else (arg,))]
    level = highest_level(op, args, kwargs) if any(isinstance(x, LevelTensor) for x in items) else None
    if level is not None and level.forward is not None:
        return run_forward(op, level, args, kwargs)
    count = None
    if op is SCAN:
        count = len(args[0].outputs)
        args = (get_split(args[0], len(args[1]), len(args[2])).forward, *args[1:])
    if op is SWITCH:
        count = len(args[0][0].outputs)
        args = (get_branch_split(args[0]).forward, *args[1:])
    out = autograd(op, keyset, args, kwargs) if level is None else record_at(op, level, args, kwargs)
    return out[:count]


for _op in (SCAN, WHILE, SWITCH):
    LIBRARY.impl(_op.schema.name, run_autograd, "Autograd", boxed=True)

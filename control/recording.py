"""The Autograd keys' kernel of control flow: it records the loop whose body saves what its derivative needs."""

from __future__ import annotations

from typing import Any

from ..eager.levels import LevelTensor, highest_level, record_at
from ..eager.record import autograd
from ..registry.operator import Operator
from .forward import run_forward
from .ops import LIBRARY, SCAN, SWITCH, WHILE
from .reverse import split_of
from .reverse_branches import branches_split


def recorded(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a loop or a branch, at the innermost of the levels among its arguments if there are any."""
    given = [x for arg in args for x in (arg if type(arg) is tuple else (arg,))]
    level = highest_level(op, args, kwargs) if any(isinstance(x, LevelTensor) for x in given) else None
    if level is not None and level.forward is not None:
        return run_forward(op, level, args, kwargs)
    count = None
    if op is SCAN:
        count = len(args[0].outputs)
        args = (split_of(args[0], len(args[1]), len(args[2])).forward, *args[1:])
    if op is SWITCH:
        count = len(args[0][0].outputs)
        args = (branches_split(args[0]).forward, *args[1:])
    out = autograd(op, keyset, args, kwargs) if level is None else record_at(op, level, args, kwargs)
    return out[:count]


for _op in (SCAN, WHILE, SWITCH):
    LIBRARY.impl(_op.schema.name, recorded, "Autograd", boxed=True)

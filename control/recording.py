"""The Autograd keys' kernel of control flow: it records the loop whose body saves what its derivative needs."""

from __future__ import annotations

from typing import Any

from ..eager.levels import LevelTensor, highest_level, record_at
from ..eager.record import autograd
from ..registry.operator import Operator
from .ops import LIBRARY, SCAN
from .reverse import split_of


def _record(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if any(isinstance(x, LevelTensor) for arg in args if type(arg) is tuple for x in arg):
        return record_at(op, highest_level(op, args, kwargs), args, kwargs)
    return autograd(op, keyset, args, kwargs)


def recorded_scan(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a scan."""
    body, carry, xs, _ = args
    split = split_of(body, len(carry), len(xs))
    out = _record(op, keyset, (split.forward, *args[1:]), kwargs)
    return out[: len(body.outputs)]


LIBRARY.impl(SCAN.schema.name, recorded_scan, "Autograd", boxed=True)

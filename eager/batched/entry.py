"""The Batched key's fallback; what it stands for is loaded with the first ``vmap``."""

from __future__ import annotations

from typing import Any

from ... import lazy
from ...operators.declare import LIBRARY
from ...registry.keys import DispatchKey


def batched(op: Any, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator on a batch: the kernel of :mod:`.kernel`."""
    return lazy.batched_layer().batched(op, keyset, args, kwargs)


LIBRARY.fallback(batched, DispatchKey.Batched)

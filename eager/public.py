"""The functions that the package offers under its own name, read off the declarations."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ..operators.aliases import SECOND_NAMES
from ..operators.declare import declared
from ..registry.function import functions
from ..registry.operator import Operator

# Families that are in td.random, td.linalg, ...
ELSEWHERE = ("random_", "linalg_", "fft_", "special_")
# Parts that other operators are made of, reached as td.ops.td.<name>.
INTERNAL = frozenset(
    "basic_index basic_put cast clip_max clip_min gelu_erf gelu_tanh index index_put random_bits".split()
)


def public_functions() -> dict[str, Any]:
    """Name to function: every declared operator that is not a part of others, with second names."""
    found: dict[str, Any] = {}
    for op in declared():
        publish(op, found)
    return found


def publish(op: Operator, namespace: dict[str, Any], taken: Container[str] = ()) -> None:
    """Put an operator's function into a namespace, under its name and its second names that are not taken."""
    for name in public_names(op.schema.name):
        if name not in taken:
            namespace.setdefault(name, functions[op.name])


def public_names(name: str) -> tuple[str, ...]:
    """The names that the package offers an operator under: none for a part of others."""
    if name in INTERNAL or name.startswith(ELSEWHERE) or name.endswith("_"):
        return ()
    return (name, *SECOND_NAMES.get(name, ()))

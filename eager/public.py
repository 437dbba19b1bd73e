"""The functions that the package offers under its own name, read off the declarations."""

from __future__ import annotations

from typing import Any

from ..operators.aliases import ALIASES
from ..operators.declare import declared
from ..registry.function import functions

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
        if op.schema.name not in INTERNAL and not op.schema.name.startswith(ELSEWHERE):
            found.setdefault(op.schema.name, functions[op.name])
    return found | {alias: found[name] for alias, name in ALIASES.items() if name in found}

"""The operator functions in the namespace ``td``, made from the declarations."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from ...operators.declare.declaration import declared_operators
from ...operators.declare.lazy_modules import ALIASES_OF
from ...registry.function import functions
from ...registry.operator import Operator

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

# Name prefixes of operators in td.random, td.linalg, ...
NAMESPACED = ("random_", "linalg_", "fft_", "special_")
# Operators used by composites only, available as td.ops.td.<name>.
INTERNAL = frozenset(
    "basic_index basic_put cast clip_max clip_min gelu_erf gelu_tanh index index_put random_bits".split()
)


def public_functions() -> dict[str, OperatorFunction[Tensor]]:
    """Name to function, for every public operator, with second names."""
    result: dict[str, OperatorFunction[Tensor]] = {}
    for op in declared_operators():
        publish(op, result)
    return result


def publish(op: Operator, namespace: dict[str, OperatorFunction[Tensor]], taken: Container[str] = ()) -> None:
    """Add an operator's function to a namespace, under its name and second names that are not taken."""
    for name in public_names(op.schema.name):
        if name not in taken:
            namespace.setdefault(name, functions[op.name])


def public_names(name: str) -> tuple[str, ...]:
    """The public names of an operator; none for internal operators."""
    if name in INTERNAL or name.startswith(NAMESPACED) or name.endswith("_"):
        return ()
    return (name, *ALIASES_OF.get(name, ()))

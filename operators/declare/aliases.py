"""Other names of operators, from the field ``aliases`` of the declarations.

``python -m tandem.eager.tensor.type_stubs`` writes the table below, because names must be known before the modules with
the declarations are imported.
"""

from __future__ import annotations

from collections.abc import Iterable

# name: the registered name
ALIASES: dict[str, str] = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "bitwise_invert": "bitwise_not",
    "cat": "concat",
    "clamp": "clip",
    "concatenate": "concat",
    "conjugate": "conj",
    "copy": "clone",
    "degrees": "rad2deg",
    "divide": "div",
    "equal": "eq",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "mod": "remainder",
    "movedim": "moveaxis",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "permute_dims": "permute",
    "power": "pow",
    "radians": "deg2rad",
    "ravel": "flatten",
    "repeat_interleave": "repeat",
    "right_shift": "bitwise_right_shift",
    "row_stack": "vstack",
    "sgn": "sign",
    "subtract": "sub",
    "swapdims": "swapaxes",
    "take_along_dim": "take_along_axis",
    "true_divide": "div",
    "unbind": "unstack",
    "unsqueeze": "expand_dims",
}
# registered name: its other names
NAMES_OF: dict[str, list[str]] = {}
for _alias, _name in ALIASES.items():
    NAMES_OF.setdefault(_name, []).append(_alias)


def aliases_of(name: str) -> list[str]:
    """The other names of an operator."""
    return NAMES_OF.get(name, [])


def add_aliases(name: str, aliases: Iterable[str]) -> None:
    """Enter other names of an operator that is being declared."""
    for alias in aliases:
        if alias not in ALIASES:
            ALIASES[alias] = name
            NAMES_OF.setdefault(name, []).append(alias)

"""Second names of operators: those of the Array API and NumPy, where the registered name is PyTorch's."""

from __future__ import annotations

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
    "divide": "div",
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "permute_dims": "permute",
    "power": "pow",
    "ravel": "flatten",
    "right_shift": "bitwise_right_shift",
    "subtract": "sub",
    "swapaxes": "transpose",
    "true_divide": "div",
    "unsqueeze": "expand_dims",
}
"""alias: registered name."""
SECOND_NAMES: dict[str, list[str]] = {}
"""registered name: its aliases."""
for _alias, _name in ALIASES.items():
    SECOND_NAMES.setdefault(_name, []).append(_alias)

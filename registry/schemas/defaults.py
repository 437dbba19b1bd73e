"""Default values in schemas: their literals, parsing and checks.

Each type has its own literals. Numbers, strings, ``True``, ``False`` and ``None`` are written as in Python; a list in
brackets, or for a sized list as the one value that is repeated; a dtype, a layout and a memory format by name
(``float``, ``strided``, ``contiguous_format``).
"""

from __future__ import annotations

import re

from ..dtypes import ALL
from ..layouts import LAYOUTS
from .schema import Type

# Patterns, which :mod:`re` compiles at their first use.
_NUMBER = r"(?:-\s*)?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|(?:inf|nan)\b)j?(?!\w)"
_STRING = r"'(?:[^'\\]|\\['\"\\abfnrtv])*'|\"(?:[^\"\\]|\\['\"\\abfnrtv])*\""
_ESCAPE = r"\\(.)"
_ESCAPES = dict(zip("'\"\\abfnrtv", "'\"\\\a\b\f\n\r\t\v"))
_WORDS: dict[str, object] = {"None": None, "True": True, "False": False}

# PyTorch's names of the dtypes that tandem has; their own names are understood as well.
DTYPE_NAMES = {
    "half": "float16", "float": "float32", "double": "float64", "uint8": "uint8", "short": "int16",
    "int": "int32", "long": "int64", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
MEMORY_FORMATS = frozenset("contiguous_format preserve_format channels_last channels_last_3d".split())
REDUCTIONS = {"Mean": 1}  # the only name of an int that PyTorch's schemas use


def read_number(text: str, at: int) -> tuple[object, int] | None:
    """The number that starts at a position of a text, and the position after it; None if there is none."""
    match = re.compile(_NUMBER, re.ASCII).match(text, at)
    return None if match is None else (_parse_number(match.group().replace(" ", "")), match.end())


def read_string(text: str, at: int) -> tuple[object, int] | None:
    """The quoted string that starts at a position of a text, and the position after it; None if it has no end."""
    match = re.compile(_STRING).match(text, at)
    if match is None:
        return None
    return re.sub(_ESCAPE, lambda escape: _ESCAPES[escape.group(1)], match.group()[1:-1]), match.end()


def _parse_number(text: str) -> object:
    if text.endswith("j"):
        return complex(text)
    try:
        return int(text)
    except ValueError:
        return float(text)


def resolve_word(kind: Type, word: str) -> tuple[bool, object]:
    """Whether a word is a default of a type, and its value."""
    if word in _WORDS:
        return True, _WORDS[word]
    core = kind.core
    if core in ("int", "SymInt"):
        return word in REDUCTIONS, REDUCTIONS.get(word)
    if core == "ScalarType":
        name = DTYPE_NAMES.get(word, word)
        return name in _DTYPES, name
    names = {"Layout": frozenset(LAYOUTS), "MemoryFormat": MEMORY_FORMATS}.get(core, frozenset())
    return word in names, word


_DTYPES = frozenset(dtype.name for dtype in ALL)
_INT64 = range(-(2**63), 2**63)
_TAKES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "SymInt": (int,),
    "DeviceIndex": (int,),
    "float": (int, float),
    "bool": (bool,),
    "SymBool": (bool,),
    "str": (str,),
    "Dimname": (str,),
    "Scalar": (bool, int, float, complex),
    "complex": (int, float, complex),
    "ScalarType": (str,),
    "Device": (str,),
    "Layout": (str,),
    "MemoryFormat": (str,),
    "Any": (bool, int, float, complex, str, type(None)),
}


def is_valid_default(kind: Type, value: object) -> bool:
    """Whether a value can be the default of an argument of a type."""
    if kind.form == "optional" and kind.element is not None:
        return value is None or is_valid_default(kind.element, value)
    if kind.form == "list" and kind.element is not None:
        if isinstance(value, tuple):
            return kind.core in _TAKES and all(is_valid_default(kind.element, item) for item in value)
        return kind.size is not None and is_valid_default(kind.element, value)
    accepted = _TAKES.get(kind.base, ())
    if isinstance(value, bool) and bool not in accepted:
        return False
    if isinstance(value, int) and kind.base in ("int", "SymInt", "DeviceIndex") and value not in _INT64:
        return False
    return isinstance(value, accepted)

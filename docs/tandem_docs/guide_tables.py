"""Write the tables of the guides that follow from the declarations.

``python docs/tandem_docs/guide_tables.py`` rewrites each text between ``<!-- table: NAME -->`` and ``<!-- end -->`` in
docs/guides; a test checks that they are current.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import tandem as td
from tandem.debug.differences import DEFAULT_DTYPES, DIFFERENCES
from tandem.eager.compiled import HotFunction
from tandem.operators.declare.aliases import NAMES_OF
from tandem.registry.native_type import NativeFunction
from tandem.registry.schemas.spellings import SPELLINGS
from tandem.spellings.synonyms import SYNONYMS

GUIDES = Path(__file__).resolve().parents[1] / "guides"
_BLOCK = re.compile(r"(<!-- table: ([\w ]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def differences_for_numpy() -> str:
    """Calls whose meaning differs, for users of NumPy or JAX."""
    rows = [(row.calls, row.numpy, row.torch, row.write) for row in (*DIFFERENCES, *DEFAULT_DTYPES)]
    return format_table(("call", "NumPy, JAX, tandem", "PyTorch", "one meaning only"), rows)


def differences_for_pytorch() -> str:
    """Calls whose meaning differs, for users of PyTorch."""
    rows = [(row.calls, row.torch, row.numpy, row.write) for row in (*DIFFERENCES, *DEFAULT_DTYPES)]
    return format_table(("call", "PyTorch, `tandem.torch`", "tandem", "one meaning only"), rows)


def second_names() -> str:
    """Operators that have several names."""
    rows = [(f"`td.{name}`", _code(others)) for name, others in sorted(NAMES_OF.items()) if hasattr(td, name)]
    return format_table(("operator", "also called"), rows)


def argument_names() -> str:
    """Arguments that have several names."""
    return format_table(
        ("argument", "also called"), [(f"`{name}`", _code(also)) for name, also in SPELLINGS.items()]
    )


def other_spellings() -> str:
    """Names of other libraries that tandem spells otherwise: those that the error for an unknown name suggests."""
    rows = [(f"`{name}`", f"`{write}`") for name, write in sorted(SYNONYMS.items()) if not hasattr(td, name)]
    return format_table(("name elsewhere", "with tandem"), rows)


def _is_function(value: object) -> bool:
    """Whether a value is a function written in Python, perhaps with a native entry."""
    return inspect.isfunction(
        value.__wrapped__ if isinstance(value, (HotFunction, NativeFunction)) else value
    )


def _own_functions(module: ModuleType) -> str:
    """The functions that a namespace has in place of those of ``td``."""
    rows = []
    for name in dir(module):  # with names that are imported at their first use
        value = getattr(module, name, None)
        if (
            _is_function(value)
            and not name.startswith("_")
            and not (name.endswith("_") and hasattr(td.Tensor, name))  # an in-place method
            and value.__module__.startswith(module.__name__)
            and inspect.unwrap(value)
            is not inspect.unwrap(getattr(td, name, None))  # the same, for lists too
        ):
            first = (value.__doc__ or "").strip().partition("\n")[0]
            rows.append((f"`{module.__name__}.{name}`", first.replace("``", "`")))
    return format_table(("function", "meaning"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "differences for numpy": differences_for_numpy,
    "differences for pytorch": differences_for_pytorch,
    "second names": second_names,
    "argument names": argument_names,
    "other spellings": other_spellings,
    "functions of tandem numpy": lambda: _own_functions(td.numpy),
    "functions of tandem torch": lambda: _own_functions(td.torch),
}


def fill_tables(text: str) -> str:
    """A guide with its tables written again."""
    return _BLOCK.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n\n{match[4]}", text)


def main() -> None:
    """Write the guides whose tables have changed."""
    for path in sorted(GUIDES.glob("*.md")):
        text = path.read_text()
        if fill_tables(text) != text:
            path.write_text(fill_tables(text))
            sys.stdout.write(f"wrote {path.name}\n")


if __name__ == "__main__":
    main()

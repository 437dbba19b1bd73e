"""Where in the user's code something happens."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_USER_FOLDERS = ("tests", "examples", "benchmarks")
_inside: dict[str, bool] = {
    contextlib.__file__: True
}  # file name of a code object -> whether to pass it over


def is_inside(filename: str) -> bool:
    """Whether a file belongs to the package, and so is not the user's code."""
    found = _inside.get(filename)
    if found is None:
        path = Path(filename)
        found = path.is_relative_to(_ROOT) and path.relative_to(_ROOT).parts[0] not in _USER_FOLDERS
        _inside[filename] = found
    return found


def source_line() -> str:
    """``file:line`` of the innermost frame outside of the package; empty if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        inside = _inside.get(filename)
        if not (is_inside(filename) if inside is None else inside):
            return f"{filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""

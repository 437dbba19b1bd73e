"""Where in the user's code something happens."""

from __future__ import annotations

import contextlib
import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_USER_FOLDERS = ("tests", "examples", "benchmarks")
_inside: dict[str, bool] = {
    contextlib.__file__: True
}  # file name of a code object -> whether to pass it over


def is_inside(filename: str) -> bool:
    """Whether a file belongs to the package, and so is not the user's code."""
    found = _inside.get(filename)
    if found is None:
        rest = filename[len(_ROOT) :] if filename.startswith(_ROOT) else ""
        found = bool(rest) and rest.split(os.sep)[0] not in _USER_FOLDERS
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

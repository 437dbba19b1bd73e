"""Source locations in the user's code."""

from __future__ import annotations

import contextlib
import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_package_file: dict[str, bool] = {
    contextlib.__file__: True
}  # file name of a code object -> whether to pass it over


def is_package_file(filename: str) -> bool:
    """Whether a file belongs to the package and therefore is not the user's code."""
    result = _is_package_file.get(filename)
    if result is None:
        first, _, below = filename.removeprefix(_ROOT).partition(os.sep)
        # In a clone the root also has folders that are not packages: tests, examples, documents, virtual environments.
        is_packaged = not below or os.path.exists(os.path.join(_ROOT, first, "__init__.py"))
        result = _is_package_file[filename] = filename.startswith(_ROOT) and is_packaged
    return result


def source_line() -> str:
    """``file:line`` of the innermost frame outside the package; empty if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        inside = _is_package_file.get(filename)
        if not (is_package_file(filename) if inside is None else inside):
            return f"{filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""

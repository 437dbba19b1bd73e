"""The files of the package, and their syntax trees, for tests of the source itself."""

import ast
import functools
import gc
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_PACKAGED = {"tests", "benchmarks", "examples", "docs", "build", "dist", "venv"}


@functools.cache
def source_files() -> list[Path]:
    """The package's modules: everything at the root but tests, environments and hidden folders."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        top = path.relative_to(ROOT).parts[0]
        if top not in NOT_PACKAGED and not top.startswith(".") and not (ROOT / top / "pyvenv.cfg").exists():
            found.append(path)
    return found


def documentation_pages() -> list[Path]:
    """README and the pages that are written by hand: docs/*.md and docs/guides/*.md."""
    return [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs/guides").glob("*.md")),
    ]


def module_parts(path: Path) -> tuple[str, ...]:
    """("registry", "keys") for registry/keys.py, and ("numpy", "__init__") for spellings/numpy/__init__.py."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1:] if parts[0] == "spellings" and len(parts) > 2 else parts


@functools.cache
def syntax_trees() -> dict[Path, ast.Module]:
    """The syntax tree of each module of the package; without garbage collection, which takes most of the time."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(), str(path)) for path in source_files()}
    finally:
        if is_enabled:
            gc.enable()

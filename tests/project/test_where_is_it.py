"""Every `file.py:name` and path in the documentation exists."""

import ast
import functools
import re
from pathlib import Path

import pytest
from source_tree import documentation_pages, source_files

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", *documentation_pages()]
REFERENCE = re.compile(r"([\w./-]+\.py):([A-Za-z_][\w.]*)")
SOURCE_PATH = re.compile(r"`([\w-]+(?:/[\w-]+)*/[\w-]+\.(?:pyi?|cu|c|hpp))`")


def bound_names(statement: ast.stmt) -> list[str]:
    """The names that a statement binds: of a definition, an assignment, or what is inside an `if`, `try` or `with`."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    inner = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
    return [name for child in inner for name in bound_names(child)]


def member_names(definition: ast.ClassDef) -> set[str]:
    """Methods and annotated or assigned attributes of a class, also those set on `self` and listed in `__slots__`."""
    names = {name for statement in definition.body for name in bound_names(statement)}
    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            names.add(node.value)
    return names


@functools.cache
def names_in(path: str) -> frozenset[str]:
    """What `file.py:name` may name in a file: `function`, `CLASS`, `Class.method`."""
    tree = ast.parse((ROOT / path).read_text())
    names = {name for statement in tree.body for name in bound_names(statement)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{member}" for member in member_names(node)}
    return frozenset(names)


def references(page: Path) -> list[tuple[str, str]]:
    """Each (file, name) that a page mentions; a diff's `+++ b/file` is not one."""
    return [(path, name.rstrip(".")) for path, name in REFERENCE.findall(page.read_text())]


def missing(page: Path) -> list[str]:
    return [
        f"{path}:{name}"
        for path, name in references(page)
        if not (ROOT / path).is_file() or name not in names_in(path)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_functions_exist(page):
    assert not missing(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page):
    assert not [path for path in SOURCE_PATH.findall(page.read_text()) if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_page_names_its_functions(page):
    assert references(page), "name the file and function of each mechanism that the page describes"


def test_missing_function_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("`config.py:override` and `config.py:nothing`, `nowhere.py:f`, `config.py:Flags.nothing`")
    assert missing(page) == ["config.py:nothing", "nowhere.py:f", "config.py:Flags.nothing"]


def test_table_has_thirty_tasks():
    text = (ROOT / "docs" / "architecture.md").read_text().partition("## Where is it")[2]
    rows = [line for line in text.splitlines() if line.startswith("| ") and REFERENCE.search(line)]
    assert len(rows) >= 30


@pytest.mark.parametrize(
    "package", sorted({path.parent for path in source_files()} - {ROOT}), ids=lambda path: path.name
)
def test_package_docstring_maps_its_modules(package):
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = [path.name for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
    folders = [path.parent.name for path in sorted(package.glob("*/__init__.py"))]
    assert not [name for name in modules if name not in doc], "name each module and say what it holds"
    assert not [name for name in folders if not re.search(rf"\b{name}\b", doc, re.IGNORECASE)]

"""A docstring's references (``:class:`Node```, ``:mod:`.graph```) name things that exist."""

import ast
import builtins
import functools
import importlib
import re
import sys

import pytest
import tandem
from source_tree import ROOT, syntax_trees

pytestmark = pytest.mark.once

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc|obj):`([^`]+)`")
FOREIGN = {"backward", "forward", "setup_context"}  # methods that users write


@functools.cache
def names_of(path):
    """What the docstrings of a file may name without a module: what it binds or imports, and members of its classes."""
    tree, names = syntax_trees()[path], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("tandem", *parts)).removesuffix(".__init__")


def is_object(dotted):
    """Whether a dotted name is a module, or an attribute of one."""
    parts = dotted.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        try:
            functools.reduce(getattr, parts[size:], found)
        except AttributeError:
            continue
        return True
    return False


def is_found(path, target):
    target = target.removeprefix("~").removesuffix("()")
    if "{" in target or target in FOREIGN:
        return True
    if target.startswith("."):
        package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
        rest = target.lstrip(".")
        above = len(target) - len(rest) - 1
        base = package.split(".")[: len(package.split(".")) - above]
        return is_object(".".join([*base, rest]))
    if target.startswith("tandem."):
        return is_object(target)
    first, _, rest = target.partition(".")
    if first in names_of(path):
        return not rest or rest in names_of(path) or is_object(f"{module_name(path)}.{target}")
    return hasattr(builtins, first) or first in sys.stdlib_module_names or is_object(f"tandem.{target}")


def test_references_exist():
    missing = sorted(
        f"{path.relative_to(ROOT)} names {target}"
        for path, tree in syntax_trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for target in set(ROLE.findall(node.value))
        if not is_found(path, target)
    )
    assert not missing, "references to what does not exist:\n" + "\n".join(missing)


def test_missing_reference_is_found():
    path = ROOT / "tracer" / "graph.py"
    assert tandem.__version__ and is_found(path, "Graph") and is_found(path, ".printer.print_graph")
    assert not is_found(path, "CallPlan") and not is_found(path, ".schema_parser")

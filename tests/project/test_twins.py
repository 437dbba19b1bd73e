"""Python functions and their native twins name each other in their docstrings."""

import ast
import re
from pathlib import Path

import pytest
import tandem

ROOT = Path(tandem.__file__).parent
TWIN = re.compile(r"(Native|Python) twin[^:\n]*:\s+([\w/]+\.py):([\w.]+)")


def docstrings(tree, prefix=""):
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield prefix + node.name, ast.get_docstring(node) or ""
            yield from docstrings(node, f"{prefix}{node.name}.")


def find_twins():
    """The twins that each function names: {(path, function): {(path, function)}}."""
    twins = {}
    for folder in ("backends/cpu", "eager", "jit", "operators", "registry"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if "twin" in text:
                for name, doc in docstrings(ast.parse(text)):
                    named = {(file, function.rstrip(".")) for _, file, function in TWIN.findall(doc)}
                    if named:
                        twins[str(path.relative_to(ROOT)), name] = named
    return twins


TWINS = find_twins()


def test_there_are_twins():
    assert len(TWINS) > 70


@pytest.mark.parametrize("function", TWINS, ids=":".join)
def test_twins_name_each_other(function):
    for twin in TWINS[function]:
        assert function in TWINS.get(twin, ()), f"{':'.join(twin)} does not name {':'.join(function)}"

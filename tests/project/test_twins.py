"""Python functions and their native twins name each other in their docstrings."""

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
TWIN = re.compile(r"(Native|Python) twin[^:\n]*:\s+([\w/]+\.py):([\w.]+)")


TWIN_LINE = re.compile(r"^\s*(Native|Python) twin.*", re.MULTILINE)


def docstrings(tree, prefix=""):
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield prefix + node.name, ast.get_docstring(node) or ""
            yield from docstrings(node, f"{prefix}{node.name}.")


def find_twins():
    """The twins that each function names: {(path, function): {(path, function)}}."""
    twins = {}
    for folder in ("backends", "eager", "jit", "operators", "registry", "spellings"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if "twin" in text:
                for name, doc in docstrings(ast.parse(text)):
                    for line in TWIN_LINE.finditer(doc):
                        assert TWIN.search(line[0]), f"{path}:{name}: write 'Native twin: file.py:function'"
                    named = {(file, function.rstrip(".")) for _, file, function in TWIN.findall(doc)}
                    if named:
                        twins[str(path.relative_to(ROOT)), name] = named
    return twins


def test_twins_name_each_other():
    twins = find_twins()
    assert len(twins) > 80
    one_way = [
        f"{':'.join(twin)} does not name {':'.join(function)}"
        for function, named in twins.items()
        for twin in named
        if function not in twins.get(twin, ())
    ]
    assert one_way == []

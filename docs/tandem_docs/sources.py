"""The source text of functions and lambdas, without decorators and docstrings."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import tandem

ROOT = Path(tandem.__file__).parent
Definition = ast.FunctionDef | ast.Lambda


@functools.cache
def _parse(filename: str) -> tuple[str, ast.Module]:
    text = Path(filename).read_text()
    return text, ast.parse(text)


def unwrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """The Python function behind partial objects and decorators."""
    while True:
        inner = getattr(function, "func", None) or getattr(function, "__wrapped__", None)
        if inner is None:
            return function
        function = inner


def location(function: Callable[..., Any]) -> str:
    """``file:line`` of a function, relative to the package; empty for one without Python code."""
    code = getattr(unwrap(function), "__code__", None)
    if code is None or not Path(code.co_filename).is_relative_to(ROOT):
        return ""
    return f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_firstlineno}"


@functools.cache
def _definitions(filename: str) -> dict[int, list[Definition]]:
    """The functions and lambdas of a file by their first lines, decorators included."""
    result: dict[int, list[Definition]] = {}
    for node in ast.walk(_parse(filename)[1]):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            result.setdefault(first, []).append(node)
        elif isinstance(node, ast.Lambda):
            result.setdefault(node.lineno, []).append(node)
    return result


def _find_definition(code: CodeType) -> Definition | None:
    """The syntax tree of a code object: a definition by its name, a lambda by the position of its body."""
    nodes = _definitions(code.co_filename).get(code.co_firstlineno, [])
    if code.co_name != "<lambda>":
        return next((n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == code.co_name), None)
    spots = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
    around = [
        node
        for node in nodes
        if isinstance(node, ast.Lambda)
        and all(
            (node.lineno, node.col_offset) <= spot <= (node.end_lineno, node.end_col_offset) for spot in spots
        )
    ]
    return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)


def _free_values(function: Callable[..., Any]) -> list[str]:
    """``name = value`` for the values that a partial object binds and that the function's closure holds."""
    bound = getattr(function, "keywords", {}) if isinstance(function, functools.partial) else {}
    inner = unwrap(function)
    return [
        f"{name} = {_show(value)}"
        for name, value in {**bound, **inspect.getclosurevars(inner).nonlocals}.items()
    ]


def _show(value: object) -> str:
    """A value as a page names it: numbers and strings as they are, functions by name."""
    if isinstance(value, (bool, int, float, complex, str, tuple, type(None))):
        return repr(value)
    if inspect.isfunction(value) and value.__name__ == "<lambda>":
        return source_of(value)
    return str(getattr(value, "__name__", None) or getattr(value, "name", None) or type(value).__name__)


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function: a definition without decorators and docstring, or ``lambda x: ...``.

    Values of its closure follow as comments. Empty for a function without Python source.
    """
    node, text = _node_of(function)
    if node is None:
        return ""
    values = [f"# {line}" for line in _free_values(function)]
    if isinstance(node, ast.Lambda):
        head = (ast.get_source_segment(text, node) or "").partition(":")[0]
        return "\n".join([f"{' '.join(head.split())}: {_expression(node.body, text)}", *values])
    lines = text.splitlines()
    doc = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    hidden = range(doc.lineno, (doc.end_lineno or 0) + 1) if doc else range(0)
    kept = [
        lines[number - 1] for number in range(node.lineno, (node.end_lineno or 0) + 1) if number not in hidden
    ]
    return "\n".join([textwrap.dedent("\n".join(kept)), *values])


def body_of(function: Callable[..., Any]) -> str:
    """A lambda's expression without ``lambda x:``, its closure as comments; other functions as :func:`source_of`."""
    node, text = _node_of(function)
    if not isinstance(node, ast.Lambda):
        return source_of(function)
    return "\n".join([_expression(node.body, text), *(f"# {line}" for line in _free_values(function))])


def _node_of(function: Callable[..., Any]) -> tuple[Definition | None, str]:
    code = getattr(unwrap(function), "__code__", None)
    if code is None or not Path(code.co_filename).is_file():
        return None, ""
    return _find_definition(code), _parse(code.co_filename)[0]


def _expression(node: ast.expr, text: str) -> str:
    """An expression in one line, or in parentheses with the lines of the source."""
    segment = ast.get_source_segment(text, node) or ""
    flat = " ".join(line.strip() for line in segment.splitlines()).replace("( ", "(").replace(", )", ")")
    flat = flat.replace(" )", ")")
    if len(flat) <= 100:
        return flat
    return f"(\n{textwrap.indent(textwrap.dedent(' ' * node.col_offset + segment), '    ')}\n)"


def source_with_helpers(function: Callable[..., Any], limit: int = 4) -> str:
    """The source of a function, and of the private functions of its module that it calls, directly or not."""
    queue, sources = [unwrap(function)], []
    for current in queue:
        sources.append(source_of(function if current is queue[0] else current))
        names = vars(inspect.getmodule(current)) if inspect.getmodule(current) else {}
        for name in getattr(getattr(current, "__code__", None), "co_names", ()):
            helper = names.get(name)
            if (
                name.startswith("_")
                and inspect.isfunction(helper)
                and helper not in queue
                and len(queue) < limit
            ):
                queue.append(helper)
    return "\n\n\n".join(source for source in sources if source)

"""The documented operators: one entry for each name, with its overloads, public spellings, family and neighbours."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tandem as td
from tandem.eager.tensor.inplace import functional
from tandem.operators.declare.declaration import Declaration
from tandem.registry.function import OperatorFunction, initialize
from tandem.registry.lazy_operators import materialize_all
from tandem.registry.operator import Operator, operators

from .sources import ROOT, location

NAMESPACES = ("", "linalg", "fft", "special", "random")
"""The modules of tandem that have operators; a name is documented under the first that has it."""
FOLDERS = ("operators", "linalg", "fft", "special", "eager", "transforms")


@dataclass
class Entry:
    """One page.

    Attributes:
        name: the operator's name in the registry, with its namespace if that is not ``td``.
        overloads: the operators of that name, the default one first.
        spellings: public names, such as ``td.clip`` and ``td.clamp``.
        module: the file that declares it, relative to the package; empty if it is unknown.
        calls: names of the operators that the body of a composite calls.
        callers: names of the composites that call it.
    """

    name: str
    overloads: list[Operator]
    spellings: list[str] = field(default_factory=list)
    module: str = ""
    calls: list[str] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The name under which users call it, or that of an internal operator."""
        namespace, _, name = self.overloads[0].name.partition("::")
        return self.spellings[0] if self.spellings else f"td.ops.{namespace}.{name.partition('.')[0]}"

    @property
    def page(self) -> str:
        """The file name of the page, without its ending."""
        return self.title.removeprefix("td.")

    @property
    def family(self) -> str:
        """The group of the index: the folder and file of the declaration, such as ``elementwise/activation``."""
        return self.module.removeprefix("operators/").removesuffix(".py") or "other"


def _modules() -> Iterator[tuple[str, str]]:
    """(module name, path relative to the package) of all files that may declare operators."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            relative = path.relative_to(ROOT)
            name = ".".join(("tandem", *relative.with_suffix("").parts))
            yield name.removesuffix(".__init__"), str(relative)


def _bound_names(path: Path) -> set[str]:
    """The names that a module defines itself: assignments and functions at its top level."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            names |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return names


def _declaring_modules() -> dict[str, str]:
    """Full name of an operator -> the file that declares it: that where a variable of its name is its function."""
    own: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, path in _modules():
        module = sys.modules.get(name)
        for variable in sorted(_bound_names(ROOT / path)) if module else ():
            value = vars(module).get(variable)
            if isinstance(value, OperatorFunction):
                same = value.operator.schema.name.endswith(variable.strip("_"))
                (own if same else others).setdefault(value.operator.name, path)
    return others | own


def _module_of(op: Operator, modules: dict[str, str]) -> str:
    """The file that declares an operator; else that of the functions in its declaration."""
    functions = (op.decl.body, op.decl.kernel, op.decl.shape_rule)
    places = (location(function).partition(":")[0] for function in functions if function is not None)
    return modules.get(op.name) or next(filter(None, places), "")


def _spellings() -> dict[str, list[str]]:
    """Name of an operator -> its public names, the shortest module first."""
    result: dict[str, list[str]] = {}
    for namespace in NAMESPACES:
        module = operator.attrgetter(namespace)(td) if namespace else td
        for name in sorted(dir(module)):
            op = None if name.startswith("_") else getattr(getattr(module, name), "operator", None)
            if isinstance(op, Operator):
                result.setdefault(_key(op), []).append(".".join(filter(None, ("td", namespace, name))))
    return result


def _wrapper(key: str) -> list[str]:
    """The public function around an operator that users do not call directly, such as ``td.einsum``."""
    for namespace in NAMESPACES:
        prefix = f"{namespace}_" * bool(namespace)
        name = key.removeprefix(prefix)
        module = operator.attrgetter(namespace)(td) if namespace else td
        if key.startswith(prefix) and inspect.isfunction(getattr(module, name, None)):
            return [".".join(filter(None, ("td", namespace, name)))]
    return []


def _key(op: Operator) -> str:
    return op.name.removeprefix("td::").partition(".")[0]


def _rank(key: str, spelling: str) -> tuple[bool, int, str]:
    """The operator's own name before its aliases, then short modules first."""
    own = key.removeprefix("td::")
    parts = spelling.split(".")
    return (own not in (parts[-1], "_".join(parts[1:])), len(parts), spelling)


def _called(op: Operator) -> set[str]:
    """The operators that a composite's body names, and those that its private helpers name."""
    queue = [op.decl.body] if op.decl.body is not None else []
    result: set[str] = set()
    seen: set[object] = set()
    while queue:
        body = queue.pop()
        while getattr(body, "__wrapped__", None) is not None:
            body = body.__wrapped__
        code = getattr(body, "__code__", None)
        if code is None or code in seen:
            continue
        seen.add(code)
        for name in code.co_names:
            value = body.__globals__.get(name)
            if isinstance(value, OperatorFunction):
                result.add(_key(value.operator))
            elif (
                name.startswith("_")
                and callable(value)
                and getattr(value, "__module__", "") == body.__module__
            ):
                queue.append(value)
    return result - {_key(op)}


@functools.cache
def entries() -> dict[str, Entry]:
    """All operators with a declaration, by name; in-place variants are on the pages of the others."""
    initialize()
    materialize_all()
    modules, spellings = _declaring_modules(), _spellings()
    result: dict[str, Entry] = {}
    for op in list(operators.values()):
        module = _module_of(op, modules) if isinstance(op.decl, Declaration) and op not in functional else ""
        if module:  # operators that a program has declared have no page
            entry = result.setdefault(_key(op), Entry(_key(op), []))
            entry.overloads.append(op)
            entry.module = entry.module or module
    for key, entry in result.items():
        entry.spellings = sorted(spellings.get(key) or _wrapper(key), key=functools.partial(_rank, key))
        entry.overloads.sort(key=lambda op: op.schema.overload == "dim")
        called = {name for op in entry.overloads for name in _called(op)}
        entry.calls = sorted(name for name in called if name in result)
    for key, entry in result.items():
        for name in entry.calls:
            result[name].callers.append(key)
    return result


@functools.cache
def families() -> dict[str, list[Entry]]:
    """The entries by family, both in alphabetical order."""
    result: dict[str, list[Entry]] = {}
    for entry in sorted(entries().values(), key=lambda entry: entry.title.lower()):
        result.setdefault(entry.family, []).append(entry)
    return dict(sorted(result.items()))

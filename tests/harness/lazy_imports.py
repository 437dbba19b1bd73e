"""The lazy imports that the source declares (``lazy.py``), read from syntax trees."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

# The functions of lazy.py that import. Position of an argument with modules: a name, or the keys or values of a table.
NAMES_IN = {
    "module": {0: "name"},
    "Module": {0: "name"},
    "Functions": {0: "name"},
    "attach": {1: "keys", 2: "values"},
    "loaders": {0: "keys"},
}
IMPORTERS = {"import_module", "__import__", "spec_from_file_location", "LazyLoader"}
MAY_IMPORT = {"lazy.py", "background.py"}


class LazyImport(NamedTuple):
    """A module's name in a call of lazy.py."""

    path: Path
    line: int
    name: str

    @property
    def is_internal(self) -> bool:
        return self.name.startswith(".")

    @property
    def parts(self) -> tuple[str, ...]:
        """("control", "loops") for ``.control.loops``, and for the names that lack the dot."""
        return tuple(self.name.removeprefix("tandem").removeprefix(".").split("."))

    def exists(self, root: Path) -> bool:
        stems = [root.joinpath(*self.parts)]
        stems += [root.joinpath("spellings", *self.parts)] if self.is_internal else []
        return any(stem.with_suffix(".py").is_file() or (stem / "__init__.py").is_file() for stem in stems)


class Source:
    """The package's syntax trees by path."""

    def __init__(self, root: Path, trees: Mapping[Path, ast.Module]):
        self.root, self.trees = root, trees

    def lazy_imports(self) -> Iterator[LazyImport]:
        """Every lazy import; raises ValueError for a use of lazy.py whose names are not literals."""
        for path, tree in self.trees.items():
            aliases = lazy_aliases(tree)
            uses = {id(n) for n in ast.walk(tree) if importing_function(n, aliases)}
            for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
                for position, function in enumerate((call.func, *call.args)):
                    if id(function) in uses and not call.keywords:
                        uses.discard(id(function))
                        given = call.args[
                            position:
                        ]  # those of `partial(lazy.module, name)` follow the function
                        for name in self.names(path, importing_function(function, aliases), given):
                            yield LazyImport(path, call.lineno, name)
            if uses:
                raise ValueError(f"{path}: pass the functions of lazy.py their names by position")

    def names(self, path: Path, function: str, arguments: list[ast.expr]) -> Iterator[str]:
        """The names of modules in the arguments of a function of lazy.py."""
        for position, part in NAMES_IN[function].items():
            if position < len(arguments):
                yield from map(ast.literal_eval, self.resolve(path, arguments[position], part))

    def resolve(self, path: Path, node: ast.expr, part: str) -> list[ast.expr]:
        """The literals of an argument: itself, or those of a table, which this or another module may hold."""
        if part == "name" and isinstance(node, ast.Constant):
            return [node]
        if part == "name" and isinstance(node, ast.Subscript):
            return self.resolve(path, node.value, "values")
        if isinstance(node, ast.Name):
            node = self.assigned(path, node.id)
        if not isinstance(node, ast.Dict):
            raise ValueError(f"{path}: lazy imports take literals, not {ast.unparse(node)}")
        return node.keys if part == "keys" else node.values

    def assigned(self, path: Path, name: str) -> ast.expr:
        """The expression that a module assigns to a variable, or the module that it is imported from."""
        for node in self.trees[path].body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return node.value
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                if name == (alias.asname or alias.name):
                    folder = path.parents[node.level - 1]
                    return self.assigned(
                        folder.joinpath(*node.module.split(".")).with_suffix(".py"), alias.name
                    )
        return ast.Name(name)

    def other_mechanisms(self) -> Iterator[str]:
        """Imports by name, ``__getattr__`` of modules, and names imported from lazy.py, as ``path:line``."""
        for path, tree in self.trees.items():
            own = path.relative_to(self.root).as_posix()
            nodes = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "__getattr__"]
            bad = nodes if own != "__init__.py" else []  # which passes on to `lazy.attach`
            for node in ast.walk(tree):
                word = getattr(node, "attr", getattr(node, "id", None))
                from_lazy = isinstance(node, ast.ImportFrom) and node.module in ("lazy", "importlib")
                if own not in MAY_IMPORT and (from_lazy or word in IMPORTERS):
                    bad.append(node)
            yield from (f"{own}:{node.lineno}" for node in bad)


def lazy_aliases(tree: ast.Module) -> set[str]:
    """The names by which a module knows lazy.py."""
    imports = [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level and not node.module
    ]
    return {a.asname or a.name for node in imports for a in node.names if a.name == "lazy"}


def importing_function(node: ast.AST, aliases: set[str]) -> str:
    """The function of lazy.py that an expression such as ``lazy.Module`` is, or an empty text."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
        return node.attr if node.attr in NAMES_IN else ""
    return ""

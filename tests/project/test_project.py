"""Rules of the project: packaging, import layers, lengths of files and functions, the README."""

import ast
import importlib.metadata
import re
import shlex
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
import tandem
from lazy_imports import Source
from source_tree import NOT_PACKAGED, ROOT, documentation_pages, module_parts, source_files, syntax_trees
from tandem.cli import commands as cli

pytestmark = pytest.mark.once

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
README = (ROOT / "README.md").read_text()

# Each part may import those of a lower rank and its own; `__init__` is the public face.
RANK = {
    "background": 0,
    "deprecated_names": 1,
    "errors": 0,
    "lazy": 0,
    "locks": 0,
    "named_tuple": 0,
    "units": 0,
    "config": 1,
    "pytree": 1,
    "tree": 1,
    "registry": 2,
    "operators": 3,
    "eager": 4,
    "profiler": 5,
    "tracer": 5,
    "lowering": 6,
    "backends": 7,
    "control": 8,
    "custom": 8,
    "debug": 8,
    "fft": 8,
    "jit": 8,
    "linalg": 8,
    "nn": 9,
    "optim": 9,
    "special": 8,
    "transforms": 8,
    "__init__": 9,
    "spellings": 9,
    "jax": 9,
    "numpy": 9,
    "torch": 9,
    "cli": 12,
    "__main__": 13,
}
# The lazy imports of a higher part (lazy.py). Another one needs a reason: can the higher part register itself below?
UPWARD = {
    (
        "eager",
        "backends",
    ): "CUDA at the first tensor on it; CPU kernels at the first sparse or quantized tensor",
    (
        "eager",
        "control",
    ): "a Function that is called in the body of a loop becomes a node of the body's graph",
    ("eager", "jit"): "the compiler of hot calls at the first one",
    ("eager", "numpy"): "`np.mean` of a tensor, and `x.sum(where=mask)`",
    ("eager", "special"): "SciPy's ufuncs of a tensor",
    ("eager", "spellings"): "the error for an attribute that arrays of another library have",
    ("eager", "torch"): "methods and keywords that PyTorch alone has are its functions, which need td.linalg",
    ("eager", "transforms"): "`td.autograd.gradcheck` is `td.check_grads` under PyTorch's name",
    (
        "backends",
        "control",
    ): "compiled code contains the nodes of a decomposition, whose body is traced at lowering",
    ("operators", "backends"): "CUDA when a device is named; the native generator of random bits",
    ("pytree", "transforms"): "`td.tree.ravel` converts leaves to tensors",
}
HEAVY = {
    "llvmlite",
    "scipy",
    "networkx",
    "cupy",
    "matplotlib",
    "rich",
    "safetensors",
    "sklearn",
    "torch",
    "jax",
    "numba",
}


def imported_parts(path: Path, node: ast.ImportFrom) -> list[tuple[str, ...]]:
    """Where the names of a relative import come from, as parts below the root."""
    package = module_parts(path)[:-1]
    named = tuple(node.module.split(".")) if node.module else ()
    base = package[: len(package) - (node.level - 1)] + named
    if base:
        return [base]
    modules = {*RANK} | {p.stem for p in ROOT.glob("*.py")}
    return [(alias.name,) if alias.name in modules else ("__init__",) for alias in node.names]


def upward_lazy_imports(source: Source) -> dict[tuple[str, str], list[str]]:
    """(part, higher part) -> the lazy imports from one to the other; raises ValueError for a module that is missing."""
    result: dict[tuple[str, str], list[str]] = {}
    for entry in source.lazy_imports():
        name = f"{entry.path.relative_to(source.root)}:{entry.line} imports {entry.name}"
        if entry.is_internal != entry.exists(source.root):
            raise ValueError(f"{name}, which is not a module of the package by that name")
        own = entry.path.relative_to(source.root).with_suffix("").parts[0]
        if entry.is_internal and RANK[entry.parts[0]] > RANK[own]:
            result.setdefault((own, entry.parts[0]), []).append(name)
    return result


def where(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def functions() -> list[tuple[str, int]]:
    """(where, lines) of every function; the docstring is not counted, a nested function is."""
    found = []
    for path, tree in syntax_trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                doc = ast.get_docstring(node, clean=False) is not None
                skipped = (first.end_lineno - first.lineno + 1) if doc else 0
                found.append(
                    (f"{where(path, node)} {node.name}", node.end_lineno - node.lineno + 1 - skipped)
                )
    return found


# --- what is packed ---------------------------------------------------------------------------------------


def test_package_list_is_complete():
    packages = {".".join(("tandem", *module_parts(p)[:-1])) for p in source_files()}
    assert sorted(packages) == sorted(PYPROJECT["tool"]["setuptools"]["packages"])


def test_every_package_has_an_init():
    missing = {p.parent for p in source_files() if not (p.parent / "__init__.py").exists()}
    assert not missing


def test_installed_distribution_holds_the_package_only():
    try:
        files = importlib.metadata.files("tandem-dispatch")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("run from the tree, not installed")
    packed = {p.parts[1] for p in files if p.parts[0] == "tandem"}
    assert "py.typed" in packed
    assert not packed & NOT_PACKAGED


def test_root_shadows_no_standard_module():
    """`python -m venv` run in the clone puts the root first on the path: a random.py there would break it."""
    assert not {p.stem for p in ROOT.glob("*.py")} & sys.stdlib_module_names
    assert not {p.parent.name for p in ROOT.glob("*/__init__.py")} & sys.stdlib_module_names


def test_version_is_written_in_one_place():
    """`__version__` is the one source: the build reads it, and the CHANGELOG has a section for it."""
    assert "version" not in PYPROJECT["project"]
    assert "version" in PYPROJECT["project"]["dynamic"]
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "tandem.__version__"}
    assert f"## {tandem.__version__.partition('.dev')[0]}" in (ROOT / "CHANGELOG.md").read_text()


def test_installed_version_is_that_of_the_package():
    try:
        installed = importlib.metadata.version("tandem-dispatch")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("run from the tree, not installed")
    assert installed == tandem.__version__


def test_hosted_ci_runs_the_check_on_each_python():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "run: .ci/run python" in text
    assert re.findall(r'"(3\.\d+)"', text) == ["3.11", "3.12", "3.13", "3.14"]
    assert PYPROJECT["project"]["requires-python"] == ">=3.11"


def test_changelog_has_dates():
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    wrong = [
        head for head in heads if not re.fullmatch(r"\d+\.\d+\.\d+ \((unreleased|\d{4}-\d\d-\d\d)\)", head)
    ]
    assert heads and not wrong


# --- imports ----------------------------------------------------------------------------------------------


def test_imports_inside_the_package_are_relative():
    bad = []
    for path, tree in syntax_trees().items():
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            bad += [where(path, node) for name in names if name.split(".")[0] == "tandem"]
    assert not bad


def test_imports_run_one_way():
    bad = []
    for path, tree in syntax_trees().items():
        own = RANK.get(module_parts(path)[0])
        assert own is not None, f"{path.name}: give it a place in RANK"
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                for parts in imported_parts(path, node):
                    if RANK[parts[0]] > own:
                        bad.append(f"{where(path, node)} names {'.'.join(parts)}")
    assert not bad
    upward = upward_lazy_imports(Source(ROOT, syntax_trees()))
    assert not {edge: names for edge, names in upward.items() if edge not in UPWARD}
    assert not {edge: reason for edge, reason in UPWARD.items() if edge not in upward}, "no longer imported"


def write_source(root: Path, files: dict[str, str]) -> Source:
    for name, text in {"control/loops.py": "", "control/__init__.py": "", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Source(root, {path: ast.parse(path.read_text()) for path in root.rglob("*.py")})


@pytest.mark.parametrize(
    "use",
    [
        'loops = lazy.Module(".control.loops")',
        'call = lazy.Functions(".control.loops").scan',
        'def load(): return lazy.module(".control.loops")',
        'load = partial(lazy.module, ".control.loops")',
        '__getattr__, __dir__ = lazy.attach(__name__, {".control.loops": "scan"})',
        '__getattr__, __dir__ = lazy.attach(__name__, {}, {"control": ".control"})',
        'TABLE = {".control.loops": "scan"}\nfor load, names in lazy.loaders(TABLE): pass',
        "from .tables import TABLE\nfor load, names in lazy.loaders(TABLE): pass",
        'TABLE: dict[str, str] = {"x": ".control.loops"}\nload = lambda x: lazy.module(TABLE[x])',
    ],
)
def test_upward_lazy_import_is_seen(tmp_path, use):
    tables = 'TABLE = {".control.loops": "scan"}'
    source = write_source(tmp_path, {"eager/x.py": f"from .. import lazy\n{use}", "eager/tables.py": tables})
    assert [*upward_lazy_imports(source)] == [("eager", "control")]


@pytest.mark.parametrize(
    "use",
    [
        'lazy.Module(".control.missing")',
        'lazy.Module("control.loops")',
        'lazy.Module("tandem.control.loops")',
        'lazy.module(f".control.{part}")',
        "lazy.module(part)",
        'lazy.module(name=".control.loops")',
        "load = lazy.module",
    ],
)
def test_lazy_import_of_no_known_module_is_refused(tmp_path, use):
    source = write_source(tmp_path, {"eager/x.py": f"from .. import lazy\n{use}"})
    with pytest.raises(ValueError, match=r"eager.x\.py"):
        upward_lazy_imports(source)


@pytest.mark.parametrize(
    "use",
    [
        'importlib.import_module("tandem.control.loops")',
        "from ..lazy import Module",
        "def __getattr__(name): return 3",
    ],
)
def test_other_lazy_imports_are_refused(tmp_path, use):
    assert [*write_source(tmp_path, {"eager/x.py": use}).other_mechanisms()] == ["eager/x.py:1"]


def test_functions_of_code_keep_the_first_result():
    """With functools.cache, code that one of several threads has compiled is freed while its callers run it."""
    for path, tree in syntax_trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                caches = {ast.unparse(d) for d in node.decorator_list} & {"cache", "functools.cache"}
                returns_code = "engine.Code" in ast.unparse(
                    node.returns
                )  # executables hold that of lru_cache
                assert not (returns_code and caches), f"{path}: {node.name}"


def test_lazy_imports_have_one_mechanism():
    assert not [*Source(ROOT, syntax_trees()).other_mechanisms()]


def test_no_import_inside_a_function():
    bad = []
    for path, tree in syntax_trees().items():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                inner = ast.walk(function)
                bad += [where(path, n) for n in inner if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not bad


def test_no_assert_outside_of_tests():
    bad = [
        where(path, n)
        for path, tree in syntax_trees().items()
        for n in ast.walk(tree)
        if isinstance(n, ast.Assert)
    ]
    assert not bad


def test_heavy_packages_go_through_lazy():
    bad = []
    for path, tree in syntax_trees().items():
        checked_only = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            heavy = {name.split(".")[0] for name in names} & HEAVY
            if heavy and id(node) not in checked_only:
                bad.append(f"{where(path, node)} {heavy}")
    assert not bad


def test_import_tandem_loads_nothing_heavy():
    code = f"import sys, tandem; print(sorted({HEAVY!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd="/")
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


# --- sizes ------------------------------------------------------------------------------------------------


def test_files_are_short():
    lines = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in source_files()}
    assert not {name: n for name, n in lines.items() if n > 450}
    assert statistics.median(lines.values()) <= 170


def test_functions_are_short():
    lengths = functions()
    assert not [(name, n) for name, n in lengths if n > 50]
    assert statistics.median(n for _, n in lengths) < 8


# --- what the README says ---------------------------------------------------------------------------------


def commands(text: str) -> list[str]:
    """The lines of the text's ```bash blocks, without their comments."""
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def pages() -> list[Path]:
    return [ROOT / "CONTRIBUTING.md", *documentation_pages()]


SIMPLE = sorted(
    {part.strip() for p in pages() for line in commands(p.read_text()) for part in line.split("&&")}
)


def check_tandem(words: list[str]) -> None:
    context = click.Context(cli.main)
    command = cli.main.get_command(context, words[0])
    assert command is not None, words
    command.make_parser(click.Context(command)).parse_args(list(words[1:]))


def check_python(words: list[str]) -> None:
    if words[0] == "-m":
        file = ROOT / f"{words[1].removeprefix('tandem.').replace('.', '/')}.py"
        assert words[1] in {"venv", "pytest", "tandem"} or file.is_file(), words
        if words[1] == "tandem":
            check_tandem(words[2:])
    elif words[0] != "-c":
        script = ROOT / words[0]
        assert script.is_file(), words
        text = script.read_text()
        assert not [w for w in words[1:] if w.startswith("--") and f'"{w}"' not in text], words


def check_pip(words: list[str]) -> None:
    extras = {e for w in words for m in re.findall(r"\[(.*?)\]", w) for e in m.split(",")}
    assert extras <= set(PYPROJECT["project"]["optional-dependencies"]), words


def check_pytest(words: list[str]) -> None:
    assert all((ROOT / w).exists() for w in words if w.startswith(("tests", "benchmarks"))), words


@pytest.mark.parametrize("line", SIMPLE)
def test_documented_command_exists(line):
    words = [w for w in shlex.split(line) if not re.match(r"[A-Z_]+=", w)]
    program = Path(words[0]).name
    checks = {
        "tandem": check_tandem,
        "python": check_python,
        "python3": check_python,
        "pip": check_pip,
        "pytest": check_pytest,
        "git": lambda words: None,
        "cd": lambda words: None,
        "ruff": lambda words: None,
        "mypy": lambda words: None,
        "sphinx-build": lambda words: None,
        "run": lambda words: None,
    }
    checks[program](words[1:])


def test_readme_has_two_set_up_commands():
    lines = [line for line in commands(README) if line.startswith("python3 -m venv")]
    assert len(lines) == 2
    assert lines[0].endswith("tandem overhead")
    assert "pytest" in lines[1]
    assert "TANDEM_NATIVE=0" in lines[1]


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    assert not [t for t in targets if "://" not in t and not (page.parent / t).exists()]

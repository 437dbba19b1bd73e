"""Every example in a docstring, the README and the docs runs and prints what it shows."""

import contextlib
import doctest
import importlib
import io
import re
from pathlib import Path

import pytest
from source_tree import documentation_pages
from tandem import config

ROOT = Path(__file__).resolve().parents[2]
NOT_PACKAGED = {"tests", "benchmarks", "examples", "docs", "build", "dist", "venv"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# They show emitted code, and TANDEM_NATIVE=0 emits none.
SHOW_CODE = {"tandem.jit.stages", "cuda.md", "lowering.md"}


def modules_with_examples() -> list[str]:
    names = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in NOT_PACKAGED or parts[0].startswith(".") or (ROOT / parts[0] / "pyvenv.cfg").exists():
            continue
        if ">>> " in path.read_text():
            parts = parts[1:] if parts[0] == "spellings" and len(parts) > 2 else parts
            names.append(".".join(("tandem", *parts)).removesuffix(".__init__"))
    return names


def pages_with_programs() -> list[Path]:
    return [page for page in documentation_pages() if "```python" in page.read_text()]


def skip_without_code(name: str) -> None:
    if name in SHOW_CODE and not config.flags.native:
        pytest.skip("native code is off, so there is no emitted code to show")


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstrings(name):
    skip_without_code(name)
    module = importlib.import_module(name)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(example, out=report.write)
    # the operators' docs are data of their declarations: test_ops_table runs those examples
    assert runner.tries or name.split(".")[1] in ("operators", "fft", "linalg", "special"), (
        f"{name} shows an example that no docstring holds"
    )
    assert not runner.failures, report.getvalue()


def test_operator_docs():
    """The operators' docs are data, not functions' docstrings: doctest does not find them by itself."""
    import tandem as td

    runner, parser, report = doctest.DocTestRunner(optionflags=FLAGS), doctest.DocTestParser(), io.StringIO()
    for name in dir(td):
        doc = getattr(getattr(td, name), "__doc__", None)
        if isinstance(doc, str) and ">>> " in doc:
            runner.run(parser.get_doctest(doc, {"td": td}, name, None, 0), out=report.write)
    assert not runner.failures, report.getvalue()


@pytest.mark.parametrize("page", pages_with_programs(), ids=lambda page: page.name)
def test_programs_in_pages(page, tmp_path, monkeypatch):
    skip_without_code(page.name)
    monkeypatch.chdir(tmp_path)  # some write files
    for program in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(program, str(page), "exec"), {"__name__": "page"})
        assert "print(" not in program or printed.getvalue()

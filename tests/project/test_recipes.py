"""The recipes of CONTRIBUTING.md and the example of docs/native_language.md apply to a copy of the tree and pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
COPIED = shutil.ignore_patterns(
    ".*", "benchmarks", "examples", "build", "_build", "dist", "venv", "*.egg-info"
)
RECIPE = re.compile(
    r"^### ([^\n]+)\n(.*?)^````diff\n(.*?)^````\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
RECIPES = {
    title: (diff, check) for title, _, diff, check in RECIPE.findall((ROOT / "CONTRIBUTING.md").read_text())
}
LANGUAGE = (ROOT / "docs" / "native_language.md").read_text()
EXPECTED = [
    "An elementwise operator",
    "A composite operator",
    "A fold",
    "A view",
    "An operator with an array kernel",
    "A native entry",
    "A CUDA kernel",
    "A dispatch key",
    "A graph pass",
]


def run(folder: Path, *command: str) -> None:
    """Run Python in a copy of the tree, which is the package that it imports."""
    path = os.pathsep.join([str(folder.parent), str(folder / "tests" / "harness")])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.fixture
def changed_tree(tmp_path):
    """Apply a diff to a copy of the tree; the copy's folder is the package `tandem`."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed, and applies the diffs")

    def apply(diff: str) -> Path:
        folder = tmp_path / "tandem"
        shutil.copytree(ROOT, folder, ignore=COPIED)
        command = ["git", "apply", "-C1", "--recount", "-"]
        done = subprocess.run(command, cwd=folder, input=diff, capture_output=True, text=True)
        assert done.returncode == 0, f"the recipe's diff does not apply any more: {done.stderr}"
        return folder

    return apply


def test_every_recipe_is_found():
    assert list(RECIPES) == EXPECTED


@pytest.mark.parametrize("title", EXPECTED)
def test_recipe_applies_and_its_check_passes(title, changed_tree):
    diff, check = RECIPES[title]
    folder = changed_tree(diff)
    (folder.parent / "check.py").write_text(check)
    run(folder, str(folder.parent / "check.py"))


def test_entry_of_native_language_page_works(changed_tree):
    example = re.search(r"^````diff\n(.*?)^````\n\n```py\n(.*?)^```$", LANGUAGE, re.MULTILINE | re.DOTALL)
    folder = changed_tree(example[1])
    (folder.parent / "check.py").write_text(example[2])
    run(folder, str(folder.parent / "check.py"))


def test_struct_of_native_language_page_works(tmp_path):
    (tmp_path / "histogram.py").write_text(
        re.search(r"^```py\n(.*?)^```$", LANGUAGE, re.MULTILINE | re.DOTALL)[1]
    )
    run(ROOT, str(tmp_path / "histogram.py"))


@pytest.mark.full
@pytest.mark.parametrize("title", EXPECTED[:5])
def test_recipe_passes_the_rows_of_its_operator(title, changed_tree):
    """As CONTRIBUTING says: write the stubs again, then run the operator's rows by its name."""
    diff, _ = RECIPES[title]
    name = re.search(r'^\+ +"(\w+)[("]', diff, re.MULTILINE)[1]
    folder = changed_tree(diff)
    run(folder, "-m", "tandem.eager.tensor.type_stubs")
    assert f"def {name}(" in (folder / "__init__.pyi").read_text()
    run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "-k", name)

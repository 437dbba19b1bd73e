"""The generated pages: sections, executed examples, tables of the guides; with `-m full` the whole site, by Sphinx."""

import re
import subprocess
import sys
from operator import attrgetter

import pytest
import tandem as td
from source_tree import ROOT
from tandem import lazy
from tandem.debug.differences import DEFAULT_DTYPES, DIFFERENCES
from tandem_docs import docstrings, examples, formulas, guide_tables, sources
from tandem_docs.function_pages import PARTS, part_page
from tandem_docs.inventory import entries
from tandem_docs.operator_page import SECTIONS, operator_page
from tandem_docs.reference import GROUPS, group_of, write_reference

pytestmark = pytest.mark.once

GUIDES = sorted((ROOT / "docs" / "guides").glob("from_*.md"))
# One operator of each form of declaration, and what its page says of it.
PAGES = {
    "tanh": ("`tanh_`", "tanh(self) = tanh(self)", "d tanh / d self = "),
    "clip": ("Other names: `td.clamp`.", "def clip(self", "That of the operators in its body."),
    "sum": ("| `axis` | `dim`, `axes`, `dims`, `dimension`", "combine a and b as: a + b", "compensated"),
    "max": ("Overload `max.dim`", "Libraries differ in `max(x, 1)`", "`td.torch.max`"),
    "permute": ("ViewLayout(tuple(x.sizes[a] for a in axes)", "`td.permute_dims`"),
    "argmax": ("None: ", "the first index of an element"),
    "linalg_svd": (
        "# td.linalg.svd",
        "`numpy_linalg_svd`",
        ">>> td.linalg.svd(td.eye(2) * 3)[1].tolist()\n[3.0, 3.0]",
    ),
    "sparse::spmm": ("# td.ops.sparse.spmm",),
}


@pytest.mark.parametrize("name", PAGES)
def test_operator_page(name):
    page = operator_page(entries()[name])
    assert not [section for section in SECTIONS if f"\n## {section}\n" not in page]
    assert not [text for text in PAGES[name] if text not in page]
    assert page.count("```") % 2 == 0


def test_every_declared_operator_has_one_page():
    pages = [entry.page for entry in entries().values()]
    assert len(pages) == len({page.lower() for page in pages})
    assert {group_of(entry.family) for entry in entries().values()} == {*GROUPS}
    assert all(entry.module for entry in entries().values())
    public = {spelling for entry in entries().values() for spelling in entry.spellings}
    assert {"td.clamp", "td.linalg.svd", "td.random.normal", "td.einsum", "td.special.erf"} <= public


def test_formula_has_needed_parentheses_and_shared_terms():
    def body(x, y):
        shared = x * y + 1.5
        return -(x - (y - x)) / (shared * shared) ** x

    def show(body):
        return formulas.print_expression(formulas.instantiate(body, [td.float32, td.float32]), ["x", "y"])

    assert show(body) == ["t0 = x * y + 1.5", "-(x - (y - x)) / (t0 * t0) ** x"]
    assert show(lambda x, y: (x**y) ** x) == ["(x ** y) ** x"]


def test_source_of_lambda_and_closure():
    factor = 3
    functions = [lambda x: x + 1, lambda x: x * factor]
    assert [sources.body_of(function) for function in functions] == ["x + 1", "x * factor\n# factor = 3"]


def test_docstring_becomes_markdown():
    doc = docstrings.parse(
        "Sum *all*; see :func:`.api.grad`.\n\nArgs:\n    x, y: ``float_32``,\n        a*b.\n\n>>> 1 + 1\n2\n"
    )
    assert docstrings.to_markdown(doc.summary) == r"Sum \*all\*; see `api.grad`."
    assert docstrings.format_section("Args", doc.sections["Args"]) == "- `x`, `y`: `float_32`,\n  a\\*b."
    assert examples.run_example("doc", doc.example) == ">>> 1 + 1\n2"
    with pytest.raises(RuntimeError, match="documented is '3"):
        examples.run_example("doc", ">>> 1 + 1\n3\n")


def test_function_page():
    page = part_page(next(part for part in PARTS if part.slug == "transforms"))
    assert "## td.grad\n" in page and "**Raises**" in page and ">>> td.grad(" in page


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_guide_tables_are_current(guide):
    text = guide.read_text()
    assert guide_tables.fill_tables(text) == text, "run `python docs/tandem_docs/guide_tables.py`"
    assert not [row.calls for row in (*DIFFERENCES, *DEFAULT_DTYPES) if f"| {row.calls} |" not in text]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_guide_names_exist(guide):
    """The names in code of the tables and the text, such as `td.vmap(f)`."""
    code = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", guide.read_text(), flags=re.DOTALL))
    names = {name for span in code for name in re.findall(r"\btd\.([A-Za-z_][\w.]*\w)", span)}
    assert len(names) > 30
    for name in sorted(names):
        attrgetter(name)(td)  # an AttributeError names it


@pytest.mark.full
@pytest.mark.skipif(not lazy.is_installed("furo"), reason="the docs extra is not installed")
def test_site_builds_without_warnings(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", str(ROOT / "docs"), str(tmp_path / "site")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "site" / "reference" / "operators" / "tanh.html").is_file()


@pytest.mark.full
def test_every_page_is_written(tmp_path):
    assert write_reference(tmp_path) == len([*tmp_path.rglob("*.md")]) > len(entries())

"""Write the reference: a page for each operator and each part of the package, and their indices."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from . import docstrings
from .function_pages import PARTS, part_page
from .inventory import Entry, entries, families
from .name_pages import installed_libraries, name_page
from .operator_page import first_sentence, link, operator_page, table
from .sources import ROOT

GROUPS = {
    "elementwise": "Elementwise operators",
    "reductions": "Reductions, sorting and statistics",
    "shape": "Shapes and views",
    "indexing": "Indexing, gathering and scattering",
    "creation": "Creation",
    "contraction": "Products of matrices and tensors",
    "nn": "Neural networks",
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "special": "Special functions",
    "random": "Random numbers",
    "sparse_quantized": "Sparse and quantized tensors",
    "other": "Devices, checkpoints and collectives",
}
"""Folder of the declarations -> title of its index."""
REPOSITORY = Path(__file__).resolve().parents[2]
INCLUDED = ("README", "CONTRIBUTING", "CHANGELOG")
"""Pages in the root of the repository that the site includes."""


def group_of(family: str) -> str:
    """The group that a family belongs to."""
    folder = family.partition("/")[0]
    return folder if folder in GROUPS else "other"


def pages() -> Iterator[tuple[str, str]]:
    """(path relative to the reference, text) of every page."""
    for entry in entries().values():
        # no page of a table of contents: the themes print the whole table into each page
        trail = f"[Operators](index.md) / {_group_link(group_of(entry.family))}"
        yield f"operators/{entry.page}.md", f"---\norphan: true\n---\n\n{trail}\n\n{operator_page(entry)}"
    for group, title in GROUPS.items():
        yield f"operators/{group}_operators.md", _group_page(group, title)
    yield "operators/index.md", _operators_index()
    for part in PARTS:
        yield f"functions/{part.slug}.md", part_page(part)
    yield "functions/index.md", f"# Functions and classes\n\n{_toctree([part.slug for part in PARTS])}\n"
    libraries = installed_libraries()
    for library in libraries:
        yield f"names/{library}.md", name_page(library)
    yield "names/index.md", f"# Names of other libraries\n\n{_toctree(libraries)}\n"
    for name in INCLUDED:
        yield f"{name.lower()}.md", _included_page(name)


def _included_page(name: str) -> str:
    """A page of the root, with its links as they are in the folder of the reference."""
    text = (REPOSITORY / f"{name}.md").read_text().replace("](docs/", "](../")
    for other in INCLUDED:
        text = text.replace(f"]({other}.md", f"]({other.lower()}.md")
    return text.replace("[Apache-2.0](LICENSE)", "Apache-2.0")


def _group_page(group: str, title: str) -> str:
    blocks = [f"# {title}"]
    for family, members in families().items():
        if group_of(family) == group:
            blocks += [f"## {_family_title(members[0])}", _rows(members)]
    return "\n\n".join(blocks) + "\n"


def _group_link(group: str) -> str:
    return f"[{GROUPS[group]}]({group}_operators.md)"


def _family_title(entry: Entry) -> str:
    """The first sentence of the docstring of the file that declares the operators."""
    path = ROOT / entry.module
    doc = ast.get_docstring(ast.parse(path.read_text())) if path.is_file() else None
    first = docstrings.parse(doc or entry.family).summary.replace("\n", " ").partition(". ")[0].rstrip(".")
    return docstrings.to_markdown(first)


def _rows(members: list[Entry]) -> str:
    return table(("operator", "summary"), [(link(entry.name), first_sentence(entry)) for entry in members])


def _toctree(names: list[str]) -> str:
    return "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```"])


def _operators_index() -> str:
    count = len(entries())
    text = f"# Operators\n\nThe {count} operators of tandem, each on a page made from its declaration. "
    text += "`td.ops.td.name` are internal ones that others are composed of.\n"
    return f"{text}\n{_toctree([f'{group}_operators' for group in GROUPS])}\n"


def write_reference(folder: Path) -> int:
    """Write the pages that changed into a folder, and remove those of operators that are gone.

    Returns:
        The number of pages.
    """
    texts = dict(pages())
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
    for path in folder.rglob("*.md"):
        if str(path.relative_to(folder)) not in texts:
            path.unlink()
    return len(texts)

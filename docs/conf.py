"""Sphinx: the site of README, the guides, docs/*.md and the reference; ``sphinx-build -W -b html docs docs/_build``."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import tandem  # noqa: E402
from tandem_docs.reference import write_reference  # noqa: E402

project = "tandem"
copyright = "the authors of tandem, Apache-2.0"
version = release = tandem.__version__
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
myst_fence_as_directive = ["mermaid"]
exclude_patterns = ["_build"]
nitpicky = True
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"tandem {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
smartquotes = False  # a quoted argument is copied from the page
highlight_language = "python"

write_reference(HERE / "reference")

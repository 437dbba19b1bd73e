"""Docstrings as Markdown: Google's sections become lists, reStructuredText's markup becomes Markdown's."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

HEADINGS = (
    "Args",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Note",
    "Notes",
    "Example",
    "Examples",
    "Source",
)
LISTS = ("Args", "Attributes", "Raises")
_ITEM = re.compile(r"^([\w*`., ]+?)(?: \(([^)]*)\))?: (.*)$", re.DOTALL)
_CODE = re.compile(r":\w+:`[^`]*`|``.+?``|`[^`\n]+`", re.DOTALL)
_ROLE = re.compile(r":(?P<role>\w+):`~?\.*(?P<target>[^`]*)`")


class Docstring(NamedTuple):
    """A parsed docstring.

    Attributes:
        summary: its first paragraph.
        text: the paragraphs before the first section, without the summary.
        sections: heading -> its text, dedented.
        example: the lines of its doctests.
    """

    summary: str
    text: str
    sections: dict[str, str]
    example: str


def parse(doc: str) -> Docstring:
    """Split a docstring of Google's style."""
    blocks: dict[str, list[str]] = {"": []}
    example: list[str] = []
    current, in_example = "", False
    for line in inspect.cleandoc(doc).splitlines():
        heading = line.removesuffix(":")
        if line.endswith(":") and heading in HEADINGS:
            current, in_example = heading, False
            blocks[current] = []
        elif line.lstrip().startswith(">>> ") or in_example:
            in_example = bool(line.strip())
            example.append(line.strip() if line.lstrip().startswith(">>>") else line)
        else:
            if line and not line.startswith(" ") and current:
                current = ""  # text after a section
            blocks[current].append(line)
    summary, _, text = "\n".join(blocks.pop("")).strip().partition("\n\n")
    sections = {name: inspect.cleandoc("\n".join(["", *lines])) for name, lines in blocks.items()}
    return Docstring(summary, text.strip(), sections, inspect.cleandoc("\n".join(example)))


def to_markdown(text: str) -> str:
    """Inline markup of a docstring as Markdown; what Markdown would take for markup is escaped."""
    parts, end = [], 0
    for match in _CODE.finditer(text):
        parts += [_escape(text[end : match.start()]), _format_code(match.group())]
        end = match.end()
    return "".join([*parts, _escape(text[end:])]).replace("::\n\n    ", ":\n\n    ")


def _format_code(code: str) -> str:
    role = _ROLE.fullmatch(code)
    if role is not None:
        return f"`{role['target'].rpartition('<')[2].rstrip('>')}`"
    inner = code.strip("`")
    return f"`{' '.join(inner.split())}`"


def _escape(text: str) -> str:
    return re.sub(r"([*_<>\[\]|$#\\])", r"\\\1", text)


def items(section: str) -> list[tuple[str, str]]:
    """The items of a section ``name: text``, whose further lines are indented: (name, text) each."""
    result: list[tuple[str, str]] = []
    for line in section.splitlines():
        match = _ITEM.match(line) if not line.startswith(" ") else None
        if match is not None:
            result.append((match[1], match[3]))
        elif result:
            result[-1] = (result[-1][0], f"{result[-1][1]}\n{line.strip()}".rstrip())
        else:
            result.append(("", line))
    return result


def format_section(name: str, section: str) -> str:
    """A section as Markdown: a list of items for arguments and errors, else paragraphs."""
    if name not in LISTS:
        return to_markdown(section)
    lines = []
    for item, text in items(section):
        head = ", ".join(f"`{part.strip('` ')}`" for part in item.split(",")) + ": " if item else ""
        lines.append("- " + (head + to_markdown(text)).replace("\n", "\n  "))
    return "\n".join(lines)

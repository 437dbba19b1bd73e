"""The text of the device functions that kernels share."""

from __future__ import annotations

from collections.abc import Iterable

from . import helper_complex, helper_memory, helper_scalars, helper_sort

SOURCES = helper_scalars.SOURCES | helper_memory.SOURCES | helper_complex.SOURCES | helper_sort.SOURCES


def define_helper(name: str, needs: Iterable[str], text: str) -> None:
    """Define a helper that is generated; its name determines its text.

    Args:
        name: its name.
        needs: the names of the helpers that it needs.
        text: its text.

    Raises:
        ValueError: another text has this name.
    """
    if SOURCES.setdefault(name, (tuple(needs), text))[1] != text:
        raise ValueError(f"two folds with different bodies are called {name}")


def helper_sources(names: Iterable[str]) -> str:
    """The text of helpers, each once, after the helpers that it needs."""
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in texts:
            needs, text = SOURCES[name]
            for other in needs:
                add(other)
            texts[name] = text

    for name in names:
        add(name)
    return "\n".join(texts.values())

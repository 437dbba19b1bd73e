"""The text of the device functions that kernels share."""

from __future__ import annotations

from collections.abc import Iterable

from . import helper_complex, helper_memory, helper_scalars

TEXTS = helper_scalars.TEXTS | helper_memory.TEXTS | helper_complex.TEXTS


def helpers_text(names: Iterable[str]) -> str:
    """The text of helpers, each once, after the helpers that it needs."""
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in texts:
            needs, text = TEXTS[name]
            for other in needs:
                add(other)
            texts[name] = text

    for name in names:
        add(name)
    return "\n".join(texts.values())

"""How values are shown in messages about them."""

from __future__ import annotations

_LENGTH = 200


def shown(value: object) -> str:
    """The ``repr`` of a value, of a bounded length; also of one that has none.

    Python refuses to print integers of thousands of digits and lists nested as deep, and classes from outside may have
    a ``__repr__`` that raises; a message about such a value is to say what is wrong with it all the same.

    >>> from tandem.registry.text import shown
    >>> shown("CPU"), shown(10**5000)
    ("'CPU'", '<int that cannot be printed>')
    """
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be printed>"
    return text if len(text) <= _LENGTH else text[: _LENGTH - 3] + "..."

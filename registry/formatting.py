"""Text of values in error messages."""

from __future__ import annotations

_LENGTH = 200


def short_repr(value: object) -> str:
    """The ``repr`` of a value, truncated to a bounded length; never raises.

    ``repr`` raises for integers of thousands of digits, for deeply nested lists, and for classes with a faulty
    ``__repr__``. An error message about such a value must not fail because of it.

    >>> from tandem.registry.formatting import short_repr
    >>> short_repr("CPU"), short_repr(10**5000)
    ("'CPU'", '<int that cannot be printed>')
    """
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be printed>"
    return text if len(text) <= _LENGTH else text[: _LENGTH - 3] + "..."

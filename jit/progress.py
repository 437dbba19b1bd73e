"""Report compilations that take long on the standard error."""

from __future__ import annotations

import sys


def report_slow(name: str, seconds: int) -> None:
    """Report a compilation that has not ended after some seconds."""
    _print_line(f"compiling {name} takes more than {seconds} s")


def report_end(name: str, seconds: float, operators: int) -> None:
    """Report the end of a compilation that has been reported."""
    _print_line(f"compiled {name} in {seconds:.1f} s ({operators:,} operators)")


def _print_line(text: str) -> None:
    if sys.stderr is not None:  # None under pythonw, and while the interpreter ends
        print(f"tandem: {text}", file=sys.stderr, flush=True)

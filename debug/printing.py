"""``debug.print``: print values at run time."""

from __future__ import annotations

import builtins
import functools
import string
import sys
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import pytree
from ..errors import ArgumentError, ValueArgumentError
from .callbacks import run_callback
from .host_calls import make_host_call

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs


class _FormatChecker(string.Formatter):
    """Checker of format strings: each field needs a value, and each value needs a field."""

    def check_unused_args(
        self, used: Set[int | str], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> None:
        unused = [str(index) for index in range(len(args)) if index not in used]
        unused += [repr(name) for name in kwargs if name not in used]
        if unused:
            raise ArgumentError(f"the format has no place for the value {', '.join(unused)}")

    def get_field(
        self, name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[None, int | str]:
        first = name.partition(".")[0].partition("[")[0]
        key = int(first) if first.isdigit() else first
        if key >= len(args) if isinstance(key, int) else key not in kwargs:
            raise ArgumentError(f"the format asks for the value {first}, which is not given")
        return None, key

    def format_field(self, value: object, spec: str) -> str:
        return ""

    def convert_field(self, value: object, conversion: str | None) -> object:
        return value

    def check(self, what: str, fmt: object, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        """Raise ArgumentError if a format does not match the values.

        Raises:
            ArgumentError: a field has no value, a value has no field, or the format is not a string.
            ValueArgumentError: the format string is malformed.
        """
        if not isinstance(fmt, str):
            raise ArgumentError(f"{what} takes a format first, such as 'x = {{x}}', not {fmt!r}")
        try:
            self.vformat(fmt, args, kwargs)
        except ValueError as fault:
            raise ValueArgumentError(f"{what}: {fmt!r} is no format: {fault}") from None
        except ArgumentError as fault:
            raise ArgumentError(f"{what}: {fmt!r}: {fault}") from None


check_format = _FormatChecker().check


def format_values(fmt: str, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Format values; arrays of shape () are formatted as numbers."""
    return fmt.format(
        *map(_to_printable, args), **{name: _to_printable(value) for name, value in kwargs.items()}
    )


def _to_printable(value: object) -> object:
    return pytree.tree_map(lambda leaf: leaf[()] if isinstance(leaf, np.ndarray) else leaf, value)


def _write_line(options: Mapping[str, Any], fmt: str, /, *args: object, **kwargs: object) -> None:
    with np.printoptions(**options):
        builtins.print(format_values(fmt, args, kwargs))
    sys.stdout.flush()


def print_later(fmt: object, args: Args, kwargs: Kwargs) -> None:
    """Implementation of :func:`tandem.debug.print`."""
    check_format("debug.print", fmt, args, kwargs)
    # use the NumPy print options of the call of print, not those of the run
    write = functools.partial(_write_line, np.get_printoptions())
    run_callback(*make_host_call(write, (fmt, *args), kwargs, "debug.print"))

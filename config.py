"""Every flag and every TANDEM_* environment variable, with default, meaning and validator.

A variable is read when the package is imported. After that a flag is read as ``config.flags.hot_calls``, set by
assignment, and changed for a while with ``with config.override(hot_calls=3): ...``. Four flags do at import most of
what they do: with ``native`` off no eager call gets a native entry (later it only decides what new lowerings run on),
``show_dispatch_trace`` starts the trace (later :func:`tandem.show_dispatch_trace` does), ``debug_nans`` opens what
:func:`tandem.debug.nans` opens later, and ``default_dtype`` is what :func:`tandem.set_default_dtype` sets later.

>>> from tandem import config
>>> with config.override(hot_calls=3):
...     config.flags.hot_calls
3
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .errors import ValueArgumentError
from .named_tuple import NamedTuple

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("expected 1 or 0")


def _parse_non_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError("must be at least 0")
    return number


def _parse_positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("expected a positive integer")
    return number


def _parse_error_or_warn(text: str) -> str:
    if text not in ("error", "warn"):
        raise ValueError("expected error or warn")
    return text


def _parse_float_dtype(text: str) -> str:
    if text not in ("float16", "bfloat16", "float32", "float64"):
        raise ValueError("expected float16, bfloat16, float32 or float64")
    return text


def _parse_auto_or_count(text: str) -> object:
    return text if text == "auto" else _parse_non_negative(text)


class Flag(NamedTuple):
    """One flag: its attribute name, environment variable, default, meaning, and the parser that checks its text.

    ``others`` are accepted types of values other than the default's.
    """

    name: str
    variable: str
    default: Any
    doc: str
    parse: Callable[[str], object]
    others: tuple[type, ...] = ()


FLAGS: tuple[Flag, ...] = (
    Flag(
        "native",
        "TANDEM_NATIVE",
        True,
        "emit and run machine code; 0 is the portable NumPy path",
        _parse_bool,
    ),
    Flag(
        "hot_calls",
        "TANDEM_HOT_CALLS",
        32,
        "calls of an operator after which its stub is compiled",
        _parse_positive,
    ),
    Flag(
        "hot_composites",
        "TANDEM_HOT_COMPOSITES",
        256,
        "calls of a composite operator or a function of td.nn on arguments of one kind after which they are compiled",
        _parse_positive,
    ),
    Flag(
        "hot_loops",
        "TANDEM_HOT_LOOPS",
        30,
        "milliseconds that an eager scan, fori_loop, while_loop, vmap or jvp takes in Python before it is compiled",
        _parse_non_negative,
    ),
    Flag(
        "default_dtype",
        "TANDEM_DEFAULT_DTYPE",
        "float32",
        "the dtype of Python floats, and of floats computed from integers; later td.set_default_dtype changes it",
        _parse_float_dtype,
    ),
    Flag("cache", "TANDEM_CACHE", True, "keep compiled code on disk", _parse_bool),
    Flag(
        "cache_dir",
        "TANDEM_CACHE_DIR",
        "",
        "directory of the disk cache; empty: the user's cache directory",
        str,
    ),
    Flag(
        "show_dispatch_trace",
        "TANDEM_SHOW_DISPATCH_TRACE",
        False,
        "print every call and redispatch",
        _parse_bool,
    ),
    Flag(
        "debug_nans",
        "TANDEM_DEBUG_NANS",
        False,
        "raise at the first operator that gives a NaN, in the thread that imports tandem",
        _parse_bool,
    ),
    Flag(
        "compile_progress",
        "TANDEM_COMPILE_PROGRESS",
        2,
        "seconds after which a compilation that still runs is reported on the standard error; 0: never",
        _parse_non_negative,
    ),
    Flag("verify", "TANDEM_VERIFY", False, "verify the graph after each pass", _parse_bool),
    Flag(
        "missing_derivative",
        "TANDEM_MISSING_DERIVATIVE",
        "error",
        "what backward does at an operator without a derivative: error, or warn and go on without that gradient",
        _parse_error_or_warn,
    ),
    Flag(
        "specializations",
        "TANDEM_SPECIALIZATIONS",
        64,
        "limit of specializations of a jitted function; a new one evicts the least recently used",
        _parse_positive,
    ),
    Flag(
        "cuda_caching",
        "TANDEM_CUDA_CACHING",
        True,
        "recycle device memory; 0 gives every block back at once, for compute-sanitizer",
        _parse_bool,
    ),
    Flag(
        "cuda_graphs",
        "TANDEM_CUDA_GRAPHS",
        "auto",
        "kernels of a compiled function from which it is replayed as one CUDA graph; 0: never; auto: where that is "
        "measured to be faster",
        _parse_auto_or_count,
        (int,),
    ),
)


class Flags:
    """The current values of the flags, as attributes."""

    native: bool
    hot_calls: int
    hot_composites: int
    hot_loops: int
    default_dtype: str
    cache: bool
    cache_dir: str
    show_dispatch_trace: bool
    debug_nans: bool
    compile_progress: int
    verify: bool
    missing_derivative: str
    specializations: int
    cuda_caching: bool
    cuda_graphs: int | str

    def __init__(self) -> None:
        for flag in FLAGS:
            object.__setattr__(self, flag.name, _read_initial(flag))

    def __setattr__(self, name: str, value: object) -> None:
        known = {flag.name: flag for flag in FLAGS}
        if name not in known:
            raise ValueArgumentError(f"config has no flag {name!r}; the flags are {', '.join(sorted(known))}")
        kinds = (type(known[name].default), *known[name].others)
        if type(value) not in kinds:
            words = " or ".join(kind.__name__ for kind in kinds)
            raise ValueArgumentError(f"config.{name} takes a value of type {words}, not {value!r}")
        try:
            known[name].parse(str(value))
        except ValueError as fault:
            raise ValueArgumentError(f"config.{name}={value!r}: {fault} ({known[name].doc})") from None
        object.__setattr__(self, name, value)


def _read_initial(flag: Flag) -> object:
    text = os.environ.get(flag.variable)
    if text is None:
        return flag.default
    try:
        return flag.parse(text)
    except ValueError as fault:
        raise ValueArgumentError(f"{flag.variable}={text!r}: {fault} ({flag.doc})") from None


flags = Flags()


@contextmanager
def override(**values: object) -> Iterator[Flags]:
    """Set flags inside a ``with`` block and restore them after it.

    Args:
        values: flag names and their values.

    Returns:
        A context manager that yields the flags.

    Raises:
        ValueArgumentError: a flag is unknown, or takes no such value.

    >>> import tandem as td
    >>> with td.config.override(specializations=8) as flags:
    ...     flags.specializations
    8
    """
    before = {name: getattr(flags, name, None) for name in values}
    try:
        for name, value in values.items():
            setattr(flags, name, value)
        yield flags
    finally:
        for name, value in before.items():
            if value is not None:
                object.__setattr__(flags, name, value)

"""Registrations: one kernel each, with the key that it serves and the place that it came from."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..errors import NoKernelError
from .dtypes import DType
from .keys import DispatchKey
from .source import is_inside
from .text import shown

Kernel = Callable[..., Any]
KeyName = DispatchKey | str

OWN = "td"  # the namespace of tandem's own operators

# File names of code that people type in and run again: IPython's and Jupyter's cells, `<stdin>`, `<string>`.
_TYPED = r"^<.*>$|[/\\]ipykernel_\d+[/\\]"


def fallthrough(*args: Any, **kwargs: Any) -> Any:
    """The kernel that means "not here": the dispatcher passes on to the next lower key.

    Raises:
        NoKernelError: it is called, instead of registered.

    >>> import tandem as td
    >>> with td.Library("td", "IMPL") as lib:
    ...     _ = lib.impl("exp", td.fallthrough, "Mode")
    ...     td.dispatch_table("exp")["Mode"].kind
    'fallthrough'
    """
    raise NoKernelError("fallthrough is a mark for registration, not a kernel to call")


class Place(NamedTuple):
    """Where something was registered.

    Attributes:
        origin: ``file:line``.
        module: the code of the module (or cell) that was being run, if the registration is a part of it: running the
            module again makes another code object.
        typed: whether the code was typed into a notebook or a prompt, where a file name says little.
        own: whether it is one of tandem's own registrations.
        imported: whether ``module`` is what an import of the file runs, and not a text compiled under its name.
    """

    origin: str
    module: CodeType | None = None
    typed: bool = False
    own: bool = False
    imported: bool = False

    def run_again(self, other: Place) -> bool:
        """Whether the two places are of one module or cell that was run again, and edited meanwhile perhaps."""
        if self.module is None or other.module is None or self.module is other.module:
            return False
        if (self.typed and other.typed) or self.origin == other.origin:
            return True
        return self.imported and other.imported and self.module.co_filename == other.module.co_filename


def caller(namespace: str) -> Place:
    """The place that called into this package to register something in a namespace.

    Of tandem's own operators it is the line in the package.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_REGISTRY):
        frame = frame.f_back
    nearest = frame
    while frame is not None and is_inside(frame.f_code.co_filename):
        if namespace == OWN:
            return Place(f"{frame.f_code.co_filename}:{frame.f_lineno}", own=True)
        frame = frame.f_back
    frame = frame or nearest
    if frame is None:
        return Place("an unknown place")
    filename, line = frame.f_code.co_filename, frame.f_lineno
    typed = frame.f_globals.get("__name__") == "__main__" and bool(re.search(_TYPED, filename))
    while frame is not None and frame.f_code.co_filename == filename:
        if frame.f_code.co_name == "<module>" or frame.f_code.co_name.startswith(
            "<cell line"
        ):  # the latter by IPython
            imported = frame.f_globals.get("__file__") == filename
            return Place(f"{filename}:{line}", frame.f_code, typed, imported=imported)
        frame = frame.f_back
    return Place(f"{filename}:{line}", None, typed)


_REGISTRY = __file__.rpartition("registration.py")[0]


class Registration:
    """One kernel as it was registered.

    Attributes:
        operator: full name of the operator; ``"*"`` for a fallback, which serves all.
        fn: the kernel.
        key: its dispatch key or alias key.
        boxed: whether the dispatcher calls it as ``fn(op, keyset, args, kwargs)``.
        with_keyset: whether the key set is its first argument.
        dtypes: what it is specialised for; None serves every dtype.
        place: where it was registered.
        library: kind and namespace of the library, such as ``"IMPL td"``.
        alive: False once it has been removed.
        call: what the dispatcher calls, and whether as a boxed kernel.
    """

    __slots__ = (
        "alive", "boxed", "call", "dtypes", "fn", "key", "library", "operator", "place", "with_keyset"
    )  # fmt: skip

    def __init__(
        self,
        operator: str,
        fn: Kernel,
        key: KeyName,
        place: Place,
        library: str = "",
        *,
        boxed: bool = False,
        with_keyset: bool = False,
        dtypes: frozenset[DType] | None = None,
    ):
        self.operator, self.fn, self.key, self.place, self.library = operator, fn, key, place, library
        self.boxed, self.with_keyset, self.dtypes = boxed, with_keyset, dtypes
        self.alive = True
        self.call: tuple[Kernel, bool] = (_taking_keyset(fn), True) if with_keyset else (fn, boxed)

    @property
    def name(self) -> str:
        """The kernel's name for people."""
        name: str | None = getattr(self.fn, "__qualname__", None)
        return shown(self.fn) if name is None else name

    @property
    def key_name(self) -> str:
        """The name of the key or alias."""
        return self.key if isinstance(self.key, str) else self.key.name

    @property
    def origin(self) -> str:
        """``file:line`` of the registration."""
        return self.place.origin

    def overlaps(self, other: Registration) -> bool:
        """Whether both are for the same key and at least one dtype in common."""
        if self.key != other.key or (self.dtypes is None) != (other.dtypes is None):
            return False
        return self.dtypes is None or other.dtypes is None or bool(self.dtypes & other.dtypes)

    def is_rerun_of(self, other: Registration, override: bool) -> bool:
        """Whether this registration is the other one, made again by running its module, cell or function again."""
        if self.name != other.name or self.dtypes != other.dtypes:
            return False
        if self.place.run_again(other.place):
            return True
        # One line may register several kernels: that of a function to which they are given.
        same = getattr(self.fn, "__code__", None) is getattr(other.fn, "__code__", None)
        return not override and same and self.origin == other.origin

    def __repr__(self) -> str:
        dtypes = f" for {', '.join(sorted(d.name for d in self.dtypes))}" if self.dtypes else ""
        return f"<kernel {self.name} of {self.operator} [{self.key_name}]{dtypes}, {self.library}, {self.origin}>"


def _taking_keyset(fn: Kernel) -> Kernel:
    return lambda op, bits, args, kwargs: fn(bits, *args, **kwargs)

"""Registrations: one kernel each, with the key that it serves and the code that made it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import NoKernelError
from ..named_tuple import NamedTuple
from .dispatch.keys import DispatchKey
from .dtypes import DType
from .formatting import short_repr
from .source import is_package_file

if TYPE_CHECKING:
    from .operator import Operator

Kernel = Callable[..., Any]
KeyName = DispatchKey | str

OWN = "td"  # the namespace of tandem's own operators

# File names of interactive code, which may be run again: IPython and Jupyter cells, `<stdin>`, `<string>`.
_INTERACTIVE = r"^<.*>$|[/\\]ipykernel_\d+[/\\]"


def fallthrough(*args: object, **kwargs: object) -> object:
    """The fallthrough kernel: the dispatcher skips the key and goes on with the next lower one.

    Raises:
        NoKernelError: it is called instead of registered.

    >>> import tandem as td
    >>> with td.Library("td", "IMPL") as lib:
    ...     _ = lib.impl("exp", td.fallthrough, "Mode")
    ...     td.dispatch_table("exp")["Mode"].kind
    'fallthrough'
    """
    raise NoKernelError("fallthrough can be registered as a kernel, but not called")


class RegistrationSite(NamedTuple):
    """The code that made a registration.

    Attributes:
        origin: ``file:line``.
        module: the code object of the module (or cell) that was running, if the registration is part of it; running the
            module again creates another code object.
        typed: whether the code was typed into a notebook or a prompt, whose file names do not identify it.
        own: whether the registration is one of tandem's own.
        imported: whether ``module`` is the code of an import of the file, not other text compiled under its name.
    """

    origin: str
    module: CodeType | None = None
    typed: bool = False
    own: bool = False
    imported: bool = False

    def run_again(self, other: RegistrationSite) -> bool:
        """Whether both sites are in one module or cell that was run again, possibly after an edit."""
        if self.module is None or other.module is None or self.module is other.module:
            return False
        if (self.typed and other.typed) or self.origin == other.origin:
            return True
        return self.imported and other.imported and self.module.co_filename == other.module.co_filename


def find_caller(namespace: str) -> RegistrationSite:
    """Find the code that called into this package to register in a namespace.

    For tandem's own operators this is the line in the package.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_REGISTRY):
        frame = frame.f_back
    nearest = frame
    while frame is not None and is_package_file(frame.f_code.co_filename):
        if namespace == OWN:
            return RegistrationSite(f"{frame.f_code.co_filename}:{frame.f_lineno}", own=True)
        frame = frame.f_back
    frame = frame or nearest
    if frame is None:
        return RegistrationSite("an unknown location")
    filename, line = frame.f_code.co_filename, frame.f_lineno
    typed = frame.f_globals.get("__name__") == "__main__" and bool(re.search(_INTERACTIVE, filename))
    while frame is not None and frame.f_code.co_filename == filename:
        if frame.f_code.co_name == "<module>" or frame.f_code.co_name.startswith(
            "<cell line"
        ):  # the latter by IPython
            imported = frame.f_globals.get("__file__") == filename
            return RegistrationSite(f"{filename}:{line}", frame.f_code, typed, imported=imported)
        frame = frame.f_back
    return RegistrationSite(f"{filename}:{line}", None, typed)


_REGISTRY = __file__.rpartition("registration.py")[0]


class Registration:
    """One registered kernel.

    Attributes:
        operator: full name of the operator; ``"*"`` for a fallback, which serves all operators.
        fn: the kernel.
        source: the registered object: the kernel, or a factory whose ``bind(operator)`` returns it (``td.c_kernel``).
        key: its dispatch key or alias key.
        boxed: whether the dispatcher calls it as ``fn(op, keyset, args, kwargs)``.
        with_keyset: whether the key set is its first argument.
        dtypes: the dtypes that it is specialized for; None: every dtype.
        site: the code that registered it.
        library: kind and namespace of the library, such as ``"IMPL td"``.
        alive: False after its removal.
        is_trusted: whether it is tandem's own: arguments and results are not checked, and key sets are passed as int.
        cpu_kernel: for CompositeImplicit: the function that the CPU key calls in place of the body; None: the body.
        call: the function that the dispatcher calls, and whether it is boxed; :mod:`.contract` wraps other kernels.
    """

    __slots__ = (
        "alive", "boxed", "call", "cpu_kernel", "dtypes", "fn", "is_trusted", "key", "library", "operator", "site",
        "source", "with_keyset"
    )  # fmt: skip

    def __init__(
        self,
        operator: str,
        fn: Kernel,
        key: KeyName,
        site: RegistrationSite,
        library: str = "",
        *,
        boxed: bool = False,
        with_keyset: bool = False,
        dtypes: frozenset[DType] | None = None,
        trusted: bool = False,
    ):
        self.source = fn
        self.cpu_kernel: Kernel | None = None
        self.operator, self.fn, self.key, self.site, self.library = operator, fn, key, site, library
        self.boxed, self.with_keyset, self.dtypes = boxed, with_keyset, dtypes
        self.alive, self.is_trusted = True, trusted or site.own
        self.call: tuple[Kernel, bool] = (_pass_keyset(fn), True) if with_keyset else (fn, boxed)

    @property
    def name(self) -> str:
        """The kernel's name in messages."""
        name: str | None = getattr(self.fn, "__qualname__", None)
        return short_repr(self.fn) if name is None else name

    def bind(self, operator: Operator) -> None:
        """Create the kernel for an operator if ``source`` is a factory."""
        if hasattr(self.source, "bind"):
            self.fn = self.source.bind(operator)
            self.call = self.fn, False

    @property
    def key_name(self) -> str:
        """The name of the key or alias."""
        return self.key if isinstance(self.key, str) else self.key.name

    @property
    def origin(self) -> str:
        """``file:line`` of the registration."""
        return self.site.origin

    def overlaps(self, other: Registration) -> bool:
        """Whether both have the same key and at least one dtype in common."""
        if self.key != other.key or (self.dtypes is None) != (other.dtypes is None):
            return False
        return self.dtypes is None or other.dtypes is None or bool(self.dtypes & other.dtypes)

    def is_rerun_of(self, other: Registration, override: bool) -> bool:
        """Whether this registration repeats the other one because its module, cell or function was run again."""
        if self.name != other.name or self.dtypes != other.dtypes:
            return False
        if self.site.run_again(other.site):
            return True
        # One line may register several kernels, if it is in a function that is called with each.
        same = getattr(self.fn, "__code__", None) is getattr(other.fn, "__code__", None)
        return not override and same and self.origin == other.origin

    def __repr__(self) -> str:
        dtypes = f" for {', '.join(sorted(d.name for d in self.dtypes))}" if self.dtypes else ""
        return f"<kernel {self.name} of {self.operator} [{self.key_name}]{dtypes}, {self.library}, {self.origin}>"


def _pass_keyset(fn: Kernel) -> Kernel:
    return lambda op, bits, args, kwargs: fn(bits, *args, **kwargs)


class Handle:
    """The handle of a registration: ``remove()``, or the end of a ``with`` block, removes the registration.

    Deleting the handle does not remove the registration.
    """

    __slots__ = ("_owner", "_undo")

    def __init__(self, undo: Callable[[], None], owner: dict[Handle, None] | None = None):
        self._undo: Callable[[], None] | None = undo
        self._owner = owner
        if owner is not None:
            owner[self] = None

    def remove(self) -> None:
        """Remove the registration; a second call does nothing."""
        undo, self._undo = self._undo, None
        if self._owner is not None:
            self._owner.pop(self, None)
        if undo is not None:
            undo()

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self.remove()


def remove_all(handles: dict[Handle, None]) -> None:
    """Remove the registrations of all handles, newest first."""
    while handles:
        try:
            handle, _ = handles.popitem()
        except KeyError:  # another thread has removed the last one
            return
        handle.remove()

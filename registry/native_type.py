"""NativeCallable: the base type of callables that may have a native entry.

The type adds two C fields to its instances: CPython's vectorcall entry, and a pointer to the entry's data. Python
subclasses add attributes, pickling, weak references and garbage collection. While the entry is NULL, calls go to
`__call__`. This module does not need LLVM; with native code off the base is a plain class without fields.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, TypeVar, cast

from .. import config

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

TESTED_MINORS = (11, 12, 13)
# Offsets in a type object; those of tables of slots are of the address of the table.
TP_DEALLOC, AS_NUMBER, AS_SEQUENCE, AS_MAPPING, AS_BUFFER = 48, 96, 104, 112, 160
TP_FLAGS, TP_RICHCOMPARE, TP_ITER, TP_DESCR_GET = 168, 200, 216, 272
# Offsets of slots in the table of numbers.
NB_BOOL, NB_INT, NB_FLOAT = 72, 128, 144
ENTRY, DATA = 16, 24  # offsets in an instance
_HAVE_VECTORCALL, _METHOD_DESCRIPTOR, _BASETYPE = 1 << 11, 1 << 17, 1 << 10
_PY_TP_MEMBERS, _T_PYSSIZET, _READONLY = 72, 19, 1


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


class _PlainBase:
    """The base without native code."""

    __slots__ = ()


def find_build_fault() -> str:
    """The reason why this interpreter cannot run native code; empty if it can."""
    if sys.implementation.name != "cpython" or sys.maxsize < 2**62 or sys.byteorder != "little":
        return "native code needs 64-bit little-endian CPython"
    if "t" in getattr(sys, "abiflags", ""):  # Windows has none
        return "this is a free-threaded build of Python"
    if hasattr(sys, "getobjects") or hasattr(sys, "gettotalrefcount"):
        return "this is a debug build of Python"
    if sys.version_info[0] != 3 or sys.version_info[1] not in TESTED_MINORS:
        return f"Python {sys.version_info[0]}.{sys.version_info[1]} has never been tested with native code"
    if not sys.platform.startswith("linux"):
        return f"native code is tested on Linux, not on {sys.platform}"
    if ctypes.c_uint64.from_address(id(dict) + TP_FLAGS).value != dict.__flags__:
        return "the layout of type objects is not the expected one"
    return ""


_alive: list[object] = []  # the type refers to its name and member table by address


def _make_native_base() -> type:
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", _T_PYSSIZET, ENTRY, _READONLY, None))
    slots = (_Slot * 2)(_Slot(_PY_TP_MEMBERS, ctypes.cast(members, ctypes.c_void_p).value))
    spec = _Spec(b"tandem.NativeCallable", DATA + 8, 0, _BASETYPE | _HAVE_VECTORCALL, slots)
    _alive.extend([members, slots, spec])
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_Spec)]
    base: type = make(ctypes.byref(spec))
    return base


fault = find_build_fault() if config.flags.native else "TANDEM_NATIVE=0"
runtime: Any = None  # the compiled entries of this process (`Runtime`), from when they are installed
NativeCallable: Any = _PlainBase if fault else _make_native_base()


def accept_entries(cls: C) -> C:
    """Class decorator for subclasses of ``NativeCallable``: set the vectorcall flag, which enables native entries.

    CPython clears the flag in classes that define ``__call__``; here ``__call__`` serves calls with a NULL entry.
    """
    if not fault:
        flags = ctypes.c_uint64.from_address(id(cls) + TP_FLAGS)
        flags.value |= _HAVE_VECTORCALL | _METHOD_DESCRIPTOR
    return cls


def bind_natively(cls: C) -> C:
    """Class decorator: instances in classes bind as functions do, without a call of ``__get__``, which is the same."""
    if not fault:
        slots = [ctypes.c_void_p.from_address(id(one) + TP_DESCR_GET) for one in (cls, FunctionType)]
        slots[0].value = slots[1].value
    return cls


@bind_natively
@accept_entries
class NativeFunction(NativeCallable):  # type: ignore[misc]
    """A Python function that may have a native entry, which leaves to the function what it refuses.

    Attributes:
        target: the function.
        kind: which entry serves it, and the operators that the entry may call; the arguments of :func:`accept_entry`.
    """

    def __init__(self, fn: Callable[..., Any], *kind: str):
        self.__dict__.update(vars(fn))
        self.__name__, self.__qualname__, self.__module__ = fn.__name__, fn.__qualname__, fn.__module__
        self.__doc__, self.__wrapped__, self.target = fn.__doc__, fn, fn
        self.kind, self.python_calls = kind, 0

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Run a call that the native entry does not take; after some, install native code if no operator has."""
        self.python_calls += 1
        if self.python_calls == config.flags.hot_calls:
            for initialize in initializers:
                initialize()
        return self.target(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)

    def __repr__(self) -> str:
        return f"<function {self.__module__}.{self.__qualname__}>"


initializers: list[Callable[[], object]] = []  # what the first call of an operator also runs
accepting: list[tuple[NativeFunction, str, tuple[str, ...]]] = []  # functions, kinds of entries, operators
accept_listeners: list[Callable[[NativeFunction, str, tuple[str, ...]], object]] = []  # of new ones


def accept_entry(kind: str, *operators: str) -> Callable[[F], F]:
    """Function decorator: make the function an object that may have a native entry, if native code is on.

    Args:
        kind: which entry serves it (backends/cpu/fastpath/glue/runtime.py:KINDS).
        *operators: the operators that the entry may call.
    """

    def decorate(fn: F) -> F:
        if fault:
            return fn
        function = NativeFunction(fn, kind, *operators)
        accepting.append((function, kind, operators))
        for listener in accept_listeners:
            listener(function, kind, operators)
        return cast(F, function)

    return decorate


def deallocator_slot(cls: type) -> ctypes.c_void_p:
    """The slot ``tp_dealloc`` of a class; its ``value`` is the address of the function."""
    return ctypes.c_void_p.from_address(id(cls) + TP_DEALLOC)


def buffer_slot(cls: type) -> ctypes.c_void_p:
    """The slot ``bf_getbuffer`` of a class that is defined in Python; its ``value`` is the address of the function."""
    return find_slot(cls, AS_BUFFER, 0)


def find_slot(cls: type, protocol: int, offset: int) -> ctypes.c_void_p:
    """A slot of a class that is defined in Python; its ``value`` is the address of the function.

    Args:
        cls: the class.
        protocol: the offset in a type of the address of a table of slots; 0 for the type itself.
        offset: the offset of the slot in that table.
    """
    table = ctypes.c_void_p.from_address(id(cls) + protocol).value or 0 if protocol else id(cls)
    return ctypes.c_void_p.from_address(table + offset)


def add_buffer_protocol(
    base: Any, export: Callable[[Any], object], has_buffer: Callable[[type], bool]
) -> None:
    """Give a class and its subclasses the buffer protocol on Python 3.11, where ``__buffer__`` (PEP 688) is unknown.

    The C slot holds a ctypes callback. A callback cannot raise: where ``export`` raises, Python raises a SystemError
    without the reason. On other builds of Python, do nothing.

    Args:
        base: a class that is defined in Python.
        export: returns the object whose buffer an instance shares.
        has_buffer: whether a class takes part; the others have no buffer protocol.
    """
    if sys.version_info >= (3, 12) or find_build_fault():
        return
    get_buffer = ctypes.pythonapi.PyObject_GetBuffer
    get_buffer.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)

    def fill_view(instance: object, view: int, flags: int) -> int:
        try:
            get_buffer(export(instance), view, flags)
        except Exception:
            return -1
        return 0

    callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(fill_view)
    _alive.append(callback)
    address = ctypes.cast(callback, ctypes.c_void_p).value

    def set_slot(cls: Any) -> None:
        buffer_slot(cls).value = address if has_buffer(cls) else None
        for subclass in type.__subclasses__(cls):
            set_slot(subclass)

    own = base.__init_subclass__.__func__ if "__init_subclass__" in vars(base) else None

    def init_subclass(cls: Any, /, **kwargs: Any) -> None:
        if own is not None:
            own(cls, **kwargs)
        else:
            super(base, cls).__init_subclass__(**kwargs)
        set_slot(cls)

    base.__init_subclass__ = classmethod(init_subclass)
    set_slot(base)


def set_entry(function: object, entry: int, data: int = 0) -> None:
    """Set the native entry of a callable and the address of the entry's data; ``entry=0`` removes the entry.

    The caller keeps code and data alive as long as the callable may be called.

    Raises:
        RuntimeError: native code is off, so instances have no such field.
    """
    if fault:
        raise RuntimeError(f"native code is off: {fault}")
    for callable_ in (function, *getattr(function, "followers", ())):
        if entry:
            ctypes.c_void_p.from_address(id(callable_) + DATA).value = data
        ctypes.c_void_p.from_address(id(callable_) + ENTRY).value = entry or None


def follow(follower: Any, function: Any) -> None:
    """Make a callable share the native entry of another one, now and after each change of it.

    The follower must keep the other callable alive. The caller holds the registry's lock, as for ``set_entry``.
    """
    function.followers.append(follower)
    entry = entry_of(function)
    if entry:
        set_entry(follower, entry, ctypes.c_void_p.from_address(id(function) + DATA).value or 0)


def unfollow(follower: object, function: object) -> None:
    """Remove the shared entry; does nothing if the entry is not shared."""
    followers = getattr(function, "followers", [])
    if follower in followers:
        followers.remove(follower)
        if not fault:
            set_entry(follower, 0)


def entry_of(function: object) -> int:
    """The address of the native entry of a callable, or 0."""
    return 0 if fault else ctypes.c_void_p.from_address(id(function) + ENTRY).value or 0

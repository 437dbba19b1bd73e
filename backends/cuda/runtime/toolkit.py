"""The libraries that the CUDA backend needs: a driver, a compiler of CUDA C and an array library.

A process uses NVIDIA's driver, NVRTC and cupy. :func:`install` replaces them, for example by a test double;
nothing selects another toolkit automatically.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from .... import lazy
from ....named_tuple import NamedTuple
from ....registry.operator import lock
from ....registry.registration import Handle
from .compiler import nvrtc_file
from .driver import LIBRARY, Driver


class Toolkit(NamedTuple):
    """The driver, compiler and libraries of the backend.

    Attributes:
        name: shown to users.
        driver: the driver's functions.
        compile: ``compile(source, arch, options)`` compiles CUDA C for an architecture such as ``"sm_90"`` and returns
            the path of the module's machine code.
        cupy: returns cupy, whose modules, events, memory and DLPack exports are used.
        arrays: returns the array library of :mod:`tandem.backends.cuda.kernels.library`; None means cupy.
        blas: returns the library with cuBLAS's functions; None means the one that cupy has loaded.
    """

    name: str
    driver: Driver
    compile: Callable[[str, str, Sequence[str]], str]
    cupy: Callable[[], Any]
    arrays: Callable[[], Any] | None = None
    blas: Callable[[], Any] | None = None


class _State:
    toolkit: Toolkit | None = None
    missing: list[str] | None = None  # the missing requirements; None before the first look-up


# Functions that clear caches, called when another toolkit has been installed, before it is used.
change_listeners: list[Callable[[], None]] = []


def missing_requirements() -> list[str]:
    """Return what is missing of cupy, the driver and a GPU; empty if CUDA can be used."""
    if _State.toolkit is not None:
        return []
    with lock:
        if _State.missing is None:
            _State.missing = _find_requirements()
        return _State.missing


def toolkit() -> Toolkit:
    """Return the current toolkit; call it only where :func:`missing_requirements` returns an empty list."""
    if _State.toolkit is None:
        raise RuntimeError(f"no CUDA toolkit: {'; '.join(missing_requirements())}")
    return _State.toolkit


def install(other: Toolkit) -> Handle:
    """Replace the current toolkit.

    Returns:
        A handle whose ``remove()`` restores the former one.
    """
    before = _State.toolkit

    def set_toolkit(toolkit: Toolkit | None) -> None:
        with lock:
            _State.toolkit = toolkit
            for listener in change_listeners:
                listener()

    set_toolkit(other)
    return Handle(lambda: set_toolkit(before))


def _find_requirements() -> list[str]:
    """Return what is missing; if nothing is, make NVIDIA's toolkit the current one."""
    driver, result = None, []
    try:
        driver = Driver(ctypes.CDLL(LIBRARY))
    except OSError:
        result = [f"there is no NVIDIA driver ({LIBRARY} cannot be loaded)"]
    if not lazy.is_installed("cupy"):
        return ["the package cupy is not installed", *result]
    if driver is None:
        return result
    try:
        cupy = lazy.module("cupy")
    except Exception as fault:
        return [f"the package cupy cannot be imported ({fault})"]
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as fault:  # the driver may be older than the CUDA that cupy is made for
        return [f"there is no usable GPU ({fault})"]
    if not count:
        return ["there is no GPU (the driver finds none)"]
    _State.toolkit = Toolkit("NVIDIA", driver, nvrtc_file, lambda: lazy.module("cupy"))
    return []

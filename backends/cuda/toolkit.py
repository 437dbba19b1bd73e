"""What the CUDA backend stands on: a driver, a compiler of CUDA C, an array library; and which of them is missing.

A process uses NVIDIA's driver, NVRTC and cupy. Another toolkit can be put in their place, as a test double or a
simulator does; nothing selects one by itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import lazy
from ...registry.handle import Handle
from ...registry.operator import lock
from .compiler import nvrtc_image
from .driver import LIBRARY, Driver, open_library


class Toolkit(NamedTuple):
    """What the backend calls.

    Attributes:
        name: to show.
        driver: the driver's functions.
        compile: ``compile(source, arch, options)``: what ``cuModuleLoadData`` takes of CUDA C for ``"sm_90"``.
        arrays: gives what serves library operators (:mod:`.library`); None: cupy.
        allocator: gives what device memory comes from (:mod:`.memory`), or None: from the driver.
        blas: gives the library with cuBLAS's functions (:mod:`.cublas`); None: the one that cupy has loaded.
    """

    name: str
    driver: Driver
    compile: Callable[[str, str, Sequence[str]], bytes]
    arrays: Callable[[], Any] | None = None
    allocator: Callable[[], Any] | None = None
    blas: Callable[[], Any] | None = None


class _State:
    toolkit: Toolkit | None = None
    missing: list[str] | None = None  # why there is none, once somebody has looked


# Told of a toolkit that is put in another's place, before anything uses it.
changed: list[Callable[[], None]] = []


def missing() -> list[str]:
    """What is missing of the three that CUDA needs: cupy, the driver, a GPU; empty where all are there."""
    if _State.toolkit is not None:
        return []
    with lock:
        if _State.missing is None:
            _State.missing = _look()
        return _State.missing


def toolkit() -> Toolkit:
    """The toolkit in force; call it where :func:`missing` has found nothing."""
    if _State.toolkit is None:
        raise RuntimeError(f"no CUDA toolkit: {'; '.join(missing())}")
    return _State.toolkit


def use(other: Toolkit) -> Handle:
    """Put a toolkit in the place of the present one.

    Returns:
        A handle whose ``remove()`` puts the former one back.
    """
    before = _State.toolkit

    def put(found: Toolkit | None) -> None:
        with lock:
            _State.toolkit = found
            for listener in changed:
                listener()

    put(other)
    return Handle(lambda: put(before))


def _look() -> list[str]:
    found = []
    if not lazy.installed("cupy"):
        found.append("the package cupy is not installed")
    try:
        driver = Driver(open_library())
    except OSError:
        return [*found, f"there is no NVIDIA driver ({LIBRARY} cannot be loaded)"]
    gpus = _gpus(driver)
    if gpus:
        found.append(gpus)
    elif not found:
        found += _faults_of_cupy()
    if not found:
        _State.toolkit = Toolkit("NVIDIA", driver, nvrtc_image, None, lazy.cupy)
    return found


def _faults_of_cupy() -> list[str]:
    """Why cupy cannot be used although it is installed; empty where it can."""
    try:
        cupy = lazy.cupy()
    except Exception as fault:
        return [f"the package cupy cannot be imported ({fault})"]
    try:
        cupy.cuda.runtime.getDeviceCount()
    except Exception as fault:  # the driver may be older than the CUDA that cupy is made for
        return [f"cupy cannot use the driver ({fault})"]
    return []


def _gpus(driver: Driver) -> str:
    """Why no GPU can be used; empty where one can."""
    try:
        driver.cuInit(0)
        count = driver.get("cuDeviceGetCount", ctypes.c_int)
    except Exception as fault:
        return f"there is no usable GPU ({fault})"
    return "" if count else "there is no GPU (the driver finds none)"

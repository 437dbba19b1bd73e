"""The CUDA runtime's functions through cupy, with errors converted to tandem's exceptions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ....errors import OutOfMemoryError
from . import toolkit as tools
from .driver import NOT_READY

TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3  # values of cudaMemcpyKind


class Runtime:
    """The functions and constants of ``cupy.cuda.runtime`` as attributes.

    Args:
        functions: the module ``cupy.cuda.runtime``.

    Raises (each function):
        OutOfMemoryError: there is no memory for it.
        CudaError: any other status.
    """

    def __init__(self, functions: Any):
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        result = getattr(self._functions, name)
        if callable(result):
            result = _wrap_function(name, result)
        setattr(self, name, result)
        return result

    def is_done(self, query: str, handle: int) -> bool:
        """Whether ``streamQuery`` or ``eventQuery`` reports completion; cupy's own properties hide errors."""
        status = getattr(self, query)(handle)
        if status not in (0, NOT_READY):
            self.check_status(status)
        return not status


def runtime() -> Runtime:
    """The runtime of the current toolkit."""
    return Runtime(tools.toolkit().cupy().cuda.runtime)


def _wrap_function(name: str, function: Any) -> Any:
    """A function that calls ``function`` and converts its errors."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except RuntimeError as fault:
            error = _translate_error(name, fault)
            if error is None:
                raise
            try:
                raise error from None
            finally:
                del error  # its traceback refers to this frame: the cycle would keep device memory alive

    return call


@contextlib.contextmanager
def translate_cupy_errors(what: str) -> Iterator[None]:
    """Context manager: convert CUDA errors raised by cupy to tandem's exceptions.

    Args:
        what: the current operation, for the message.

    Raises:
        OutOfMemoryError: there is no memory for it.
        CudaError: any other status of the driver or of the runtime.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as fault:
        error = _translate_error(what, fault)
        if error is None:
            raise
        try:
            raise error from None
        finally:
            del error  # its traceback refers to this frame: the cycle would keep device memory alive


def _translate_error(what: str, fault: Exception) -> Exception | None:
    """tandem's exception for an exception of cupy's; None for any other exception."""
    status = getattr(fault, "status", None)
    if isinstance(fault, MemoryError) and not isinstance(fault, OutOfMemoryError):  # cupy's OutOfMemoryError
        return OutOfMemoryError(f"{what}: {fault}")
    return None if status is None else tools.toolkit().driver.make_error(f"{what}: {fault}", status)

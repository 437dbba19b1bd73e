"""The CUDA runtime's functions through cupy, with errors converted to tandem's exceptions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ....errors import OutOfMemoryError
from . import toolkit as tools
from .driver import NOT_READY

TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3  # values of cudaMemcpyKind


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
        _raise_translated(what, fault)
        raise


def _raise_translated(what: str, fault: Exception) -> None:
    """Raise tandem's exception for an exception of cupy's; return if it is any other exception."""
    if isinstance(fault, MemoryError) and not isinstance(fault, OutOfMemoryError):  # cupy's OutOfMemoryError
        raise OutOfMemoryError(f"{what}: {fault}") from None
    status = getattr(fault, "status", None)
    if status is not None:
        raise tools.toolkit().driver.make_error(f"{what}: {fault}", status) from None


class Runtime:
    """The functions and constants of ``cupy.cuda.runtime`` as attributes; each call makes a device current first.

    Args:
        make_current: makes the device current.

    Raises (each function):
        OutOfMemoryError: there is no memory for it.
        CudaError: any other status.
    """

    def __init__(self, make_current: Any):
        self._make_current, self._functions = make_current, tools.toolkit().cupy().cuda.runtime

    def __getattr__(self, name: str) -> Any:
        result = function = getattr(self._functions, name)
        make_current = self._make_current

        def call(*args: Any) -> Any:
            make_current()
            try:
                return function(*args)
            except (RuntimeError, MemoryError) as fault:
                _raise_translated(name, fault)
                raise

        if callable(function):
            result = call
        setattr(self, name, result)
        return result

    def is_done(self, query: str, handle: int) -> bool:
        """Whether ``streamQuery`` or ``eventQuery`` reports completion; cupy's own properties hide errors."""
        status = getattr(self, query)(handle)
        if status not in (0, NOT_READY):
            self.check_status(status)
        return not status

"""``strict_names``: raise for calls whose meaning differs between NumPy, PyTorch and JAX."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..eager.tensor.tensor import Tensor
from ..errors import AmbiguousNameError
from ..registry.source import is_package_file
from .differences import DEFAULT_DTYPES, DIFFERENCES, Difference

_PACKAGE = __package__.rpartition(".")[0]
_MISSING = object()


def _check(function: Callable[..., Any], name: str, difference: Difference) -> Callable[..., Any]:
    """A function that raises for ambiguous calls by users, and otherwise calls ``function``."""

    @functools.wraps(function, updated=())
    def checked(*args: Any, **kwargs: Any) -> Any:
        is_internal = is_package_file(sys._getframe(1).f_code.co_filename)
        if not is_internal and difference.is_ambiguous(args, kwargs):
            raise AmbiguousNameError(
                f"{name}: libraries differ in what such a call means. NumPy: {difference.numpy}. "
                f"PyTorch: {difference.torch}. Write {difference.write}".replace("`", "")
            )
        return function(*args, **kwargs)

    checked.unchecked = getattr(function, "unchecked", function)  # type: ignore[attr-defined]
    return checked


@contextmanager
def _replaced(owner: Any, name: str, difference: Difference) -> Iterator[None]:
    """Replace a function of the package or a method of Tensor; others that are called so later are left alone."""
    function = getattr(owner, name)
    before = vars(owner).get(name, _MISSING)
    checked = _check(function, name, difference)
    setattr(owner, name, checked)
    try:
        yield
    finally:
        if vars(owner).get(name) is checked:
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


@contextmanager
def check_names(dtypes: bool) -> Iterator[None]:
    """The context of :func:`.api.strict_names`."""
    package = sys.modules[_PACKAGE]
    with ExitStack() as stack:
        for difference in (*DIFFERENCES, *DEFAULT_DTYPES) if dtypes else DIFFERENCES:
            for name in difference.names.split():
                for owner in (package, Tensor):
                    if hasattr(owner, name):
                        stack.enter_context(_replaced(owner, name, difference))
        yield

"""Pickle jitted functions by value, with cloudpickle: lambdas, functions defined in a function or in ``__main__``.

pickle refers to a jitted function by its name, as to any function. cloudpickle, with which joblib and dask send work to
other processes, writes the Python function itself where a name would not be found there; the other process compiles it.
"""

from __future__ import annotations

import sys
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from .api import jit
from .function import JitFunction

if TYPE_CHECKING:
    from ..registry.types import Args, Function


def reduce_function(function: JitFunction) -> str | tuple[Function, Args]:
    """Reduce a jitted function to its name if a module has it, else to the Python function and its options."""
    if is_importable(function):
        return str(function.__qualname__)
    static, donated = (
        tuple(sorted(names)) for names in (function._arguments.static, function._arguments.donated)
    )
    return partial(jit, static_argnames=static, donate_argnames=donated), (function._fn,)


def is_importable(function: JitFunction) -> bool:
    """Whether another process finds the function by its module and name."""
    module: str | None = function.__module__
    if module is None or module == "__main__" or module not in sys.modules:
        return False
    find: Function = attrgetter(function.__qualname__)
    try:
        return find(sys.modules[module]) is function
    except AttributeError:
        return False


def register(name: str) -> None:
    """Register :func:`reduce_function` in the pickler of cloudpickle, a module that has been imported."""
    sys.modules[name].Pickler.dispatch_table[JitFunction] = reduce_function

"""The code of native functions with the calling convention of loops: compiled once for a machine."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

from ....errors import LoweringError
from ..fastpath.compiler import engine, lang
from ..fastpath.runtime import rt_loops

scratch_slot = ctypes.c_void_p()
"""The block of scratch memory that `rt_scratch` keeps."""


def compile_function(
    name: str,
    function: Callable[..., Any],
    types: tuple[tuple[str, str], ...],
    constants: tuple[tuple[str, int], ...],
    imports: tuple[tuple[str, int], ...],
    passes: engine.Passes = engine.Passes.VECTORS,
) -> engine.Code | None:
    """Return the code of a native function, exported as ``loop``; None if it cannot be compiled.

    Args:
        name: tells it from other functions that have the same parameters.
        function: the native function.
        types, constants: its template parameters.
        imports: the addresses of what it calls.
        passes: LLVM's passes.
    """
    return compile_together(name, (("loop", function),), types, constants, imports, passes)


@engine.KeepFirst
def compile_together(
    name: str,
    functions: tuple[tuple[str, Callable[..., Any]], ...],
    types: tuple[tuple[str, str], ...],
    constants: tuple[tuple[str, int], ...],
    imports: tuple[tuple[str, int], ...],
    passes: engine.Passes,
) -> engine.Code | None:
    """Return the code of native functions by their symbols; other arguments are those of `compile_function`."""
    make = functools.partial(lang.emit, dict(functions), dict(constants), dict(types))
    known = {"scratch_slot": ctypes.addressof(scratch_slot), **dict(imports)}
    key = f"loop {name} {types} {constants} {digest_sources()}"
    return engine.build_once(key, make, [symbol for symbol, _ in functions], known, passes=passes)


@functools.cache
def digest_sources() -> str:
    """Return a digest of the native functions of this package, which `build_once` does not know."""
    return engine.source_digest(os.path.dirname(__file__))


@engine.KeepFirst
def compile_driver(name: str) -> engine.Code:
    """Return the code of ``rt_loops.call_loop`` or ``rt_loops.run_plan``.

    Raises:
        LoweringError: it cannot be compiled.
    """
    functions: dict[str, Callable[..., Any]] = {
        "call_loop": rt_loops.call_loop,
        "run_plan": rt_loops.run_plan,
    }
    make = functools.partial(lang.emit, {name: functions[name]}, {"NIN": 1, "NARGS": 2})
    code = engine.build_once(f"{name} {digest_sources()}", make, [name], passes=engine.Passes.FUNCTIONS)
    if code is None:
        raise LoweringError("the function that calls inner loops cannot be compiled")
    return code

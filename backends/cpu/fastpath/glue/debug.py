"""Run a call by its native entry in Python, step by step, and print an entry's LLVM IR (docs/native_language.md)."""

from __future__ import annotations

import ctypes
from typing import Any

from ..compiler.interpret import Interpreter
from . import layout
from .runtime import KINDS, Runtime, runtime_ir
from .stubs import Stub


def entry_ir(runtime: Runtime, kind: str) -> str:
    """Return the LLVM IR of an entry, before optimization."""
    return runtime_ir(kind, runtime.constants)


def run_entry(stub: Stub, *args: Any) -> Any:
    """Run a call of an operator by the Python source of its native entry, under `pdb` if it is active.

    Args:
        stub: of the operator; its entry must be installed: call the operator until it is hot.
        args: positional arguments.

    Returns:
        The result of the call.

    Raises:
        RuntimeError: the entry is not installed.
    """
    if stub.record is None:
        raise RuntimeError(f"{stub.operator.name} has no native entry yet: call it until it is hot")
    kind = stub.patch_points[0].kind
    group = KINDS[kind]
    constants = {**stub.runtime.constants, **group.find_constants()}
    interpreter = Interpreter(constants, symbols=layout.numpy_symbols())
    values = (ctypes.py_object * max(len(args), 1))(*args)
    result = interpreter.call(
        group.find_functions()[kind], id(stub.function), ctypes.addressof(values), len(args), 0
    )
    answer = ctypes.cast(int(result), ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(answer))  # the entry's reference
    return answer

"""Eager calls of the loops that tandem emits, from Python: the same code as in native entries and compiled graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import lazy
from ....eager.tensor.tensor import wrap
from ....registry.operator import Operator
from ....registry.values import TensorSpec
from ..fastpath import why_off

# without native code nothing of it is imported
plans = lazy.Module(".backends.cpu.native_kernels.plans")
providers = lazy.Module(".backends.cpu.native_kernels.providers")


def call(op: Operator, args: Sequence[Any], kwargs: dict[str, Any], declared: Any) -> Any:
    """Call the emitted loop of an operator, or the operators that compose it.

    Args:
        op: the operator.
        args, kwargs: its arguments; no other thread changes the tensors among them.
        declared: the specs of its results.

    Returns:
        The results; None if another kernel computes the call: native code is off, or no emitted loop fits.

    Raises:
        Exception: the loop failed; the error is that of the declaration.

    Native twin: backends/cpu/fastpath/entries/rt_loop_calls.py:loop_call
    """
    if why_off():
        return None
    given, named = plans.take_arrays(args), dict(zip(kwargs, plans.take_arrays(kwargs.values())))
    plan = plans.find_plan(op, given, named)
    if plan is None or not plans.is_emitted(plan):
        known = op.decl.decomposition
        is_composed = known is not None and known.is_eager(*args, **kwargs)
        return known.body(*args, **kwargs) if is_composed else None
    arrays = [value for value in (*given, *named.values()) if isinstance(value, np.ndarray)]
    if len(arrays) != plans.operand_count(plan):
        return None  # an operand is a Python number
    outputs = [declared] if isinstance(declared, TensorSpec) else list(declared)
    results = [np.empty(spec.shape, spec.dtype.np) for spec in outputs]
    arrays += results
    memory = (ctypes.c_void_p * len(arrays))(*[array.__array_interface__["data"][0] for array in arrays])
    scratch = np.empty(max(1, plans.scratch_bytes(plan)), np.uint8)
    if providers.run_plan(plan, memory, scratch.ctypes.data):
        native = op.decl.native
        raise native.error(native.failure)
    return wrap(results[0]) if isinstance(declared, TensorSpec) else tuple(map(wrap, results))

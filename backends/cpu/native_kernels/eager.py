"""Eager calls of the loops that tandem emits: the same code as in compiled graphs, so both return the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import lazy
from ....eager.tensor.tensor import Tensor, wrap
from ....operators.declare.native_kernel import NativeKernel
from ....registry.values import TensorSpec
from ..fastpath import why_off

# without native code nothing of it is imported
calls = lazy.Module(".backends.cpu.native_kernels.calls")
providers = lazy.Module(".backends.cpu.native_kernels.providers")


def call(kernel: NativeKernel, args: Any, kwargs: Any, declared: Any) -> Any:
    """Call the emitted loop of an operator.

    Args:
        kernel: the operator's native kernel.
        args, kwargs: its arguments.
        declared: the specs of its results.

    Returns:
        The results; None if another kernel computes the call: native code is off, or no emitted loop fits.

    Raises:
        Exception: the loop failed; the error is that of the declaration.
    """
    if why_off():
        return None
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    outputs = [declared] if isinstance(declared, TensorSpec) else list(declared)
    specs = [tensor.spec for tensor in tensors]
    given = [value.spec if isinstance(value, Tensor) else value for value in args]
    named = {name: value.spec if isinstance(value, Tensor) else value for name, value in kwargs.items()}
    choice = calls.choose_loop(kernel, given, named, specs, outputs)
    if choice is None or not choice.name.startswith("tandem."):
        return None
    arrays = [tensor._array for tensor in tensors]
    if any(not array.flags.aligned for array in arrays):
        return None
    results = [np.empty(spec.shape, spec.dtype.np) for spec in outputs]
    numbers = [np.array(number, dtype.np) for number, dtype in choice.extra]
    operands = [*arrays, *numbers, *results]
    if choice.axis is not None:
        operands = [np.moveaxis(x, choice.axis, -1) if x.ndim else x for x in operands]
    if any(result.size for result in results) and providers.call_arrays(choice.loop, operands):
        raise choice.error(choice.failure)
    return wrap(results[0]) if isinstance(declared, TensorSpec) else tuple(map(wrap, results))

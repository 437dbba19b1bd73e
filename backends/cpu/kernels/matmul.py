"""The CPU kernel of matrix products: native code if available, so that all calls return the same bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .... import config, lazy
from ....eager.tensor.tensor import Tensor, wrap
from ....operators.declare.quiet import call_quietly
from ....registry.operator import Operator

_fastpath = lazy.Module(".backends.cpu.fastpath")
_native = lazy.Module(".backends.cpu.fastpath.glue.products")


def product_kernel(op: Operator) -> Callable[..., Tensor]:
    """Return the kernel of `matmul`; as for `mul`, operands are first converted to the result's dtype.

    Native twin: backends/cpu/fastpath/entries/rt_matmul.py:matmul
    """
    decl = op.decl

    def kernel(self: Tensor, other: Tensor) -> Tensor:
        spec = decl.shape_rule(self, other)
        dtype = spec.dtype.np
        one, two = (call_quietly(np.asarray, x._array, dtype) for x in (self, other))
        if config.flags.native and not _fastpath.why_off():
            out = np.empty(spec.shape, dtype)
            if _native.multiply(one, two, out):
                return wrap(out)
        return wrap(decl.kernel(np, one, two))

    return kernel

"""Addresses of the inner loops of ufuncs."""

from __future__ import annotations

import numpy as np

from .....operators.scalar_ir.expr import Expr
from .....operators.scalar_ir.numpy_evaluation import UFUNCS
from .layout import find_inner_loop


def find_node_loop(node: Expr) -> tuple[int, int] | None:
    """Return the addresses of the inner loop of NumPy's ufunc for a node and of its data, or None."""
    ufunc = np.power if node.op == "pow" else UFUNCS[node.op]
    if not isinstance(ufunc, np.ufunc):
        return None
    return find_inner_loop(ufunc, [*(a.dtype for a in node.args), node.dtype])

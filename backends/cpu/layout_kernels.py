"""The CPU's kernels of the operators on parts of sparse and quantized tensors."""

from __future__ import annotations

from ...operators import quantized, sparse
from ...operators.declare import Declaration
from ...registry.keys import DispatchKey
from ...registry.library import Library
from ...registry.operator import operators
from .kernels import array_kernel, declared_more


def register(library: Library) -> None:
    """Register the array kernels that a library's declarations describe."""
    for name, op in list(operators.items()):
        namespace, _, rest = name.partition("::")
        if namespace == library.namespace and isinstance(op.decl, Declaration) and op.decl.kernel:
            kernel = array_kernel(op)
            kernel.__qualname__ = f"numpy_{op.schema.name}"
            library.impl(rest, kernel, DispatchKey.CPU)
    for listener in declared_more:
        listener()


register(sparse.LIBRARY)
register(quantized.LIBRARY)

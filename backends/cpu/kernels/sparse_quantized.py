"""CPU kernels of the operators on the components of sparse and quantized tensors."""

from __future__ import annotations

from ....operators.declare.declaration import Declaration
from ....operators.sparse_quantized import quantized, sparse
from ....registry.dispatch.keys import DispatchKey
from ....registry.library import Library
from ....registry.operator import operators
from .register import array_kernel, registration_listeners


def register(library: Library) -> None:
    """Register the array kernels that a library's declarations describe."""
    for name, op in list(operators.items()):
        namespace, _, rest = name.partition("::")
        if namespace == library.namespace and isinstance(op.decl, Declaration) and op.decl.kernel:
            kernel = array_kernel(op)
            kernel.__qualname__ = f"numpy_{op.schema.name}"
            library.impl(rest, kernel, DispatchKey.CPU)
    for listener in registration_listeners:
        listener()


register(sparse.LIBRARY)
register(quantized.LIBRARY)

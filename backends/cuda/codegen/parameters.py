"""The parameters of a fused kernel, and the text of addresses and indices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....lowering.fusion.loop_ir import FusedKernel
from ....operators.scalar_ir.expr import Expr
from ....registry import dtypes as dt
from .kernel import WORKSPACE
from .space import written_buffers
from .text import Text
from .types import CTYPE

SCALARS = {dt.float64: "double", dt.int64: "long long", dt.bool_: "unsigned char"}
"""Dtype of a run-time scalar -> C type of its parameter."""


class Parameters:
    """The parameters of a kernel: data pointers, perhaps the workspace, run-time scalars.

    Attributes:
        indices: the indices of the pointers in the table of data pointers, or ``WORKSPACE``.
        scalars: (slot, C type).
    """

    def __init__(self, kernel: FusedKernel, names: Iterable[str], exprs: Iterable[Expr]):
        names = set(names)
        used = [b for b in kernel.buffers if b.name in names and b.param is not None]
        dtypes = {b.param: b.dtype for b in used if b.param is not None}
        outputs = {b.param for b in used if b.name in written_buffers(kernel)}
        self.indices = sorted(dtypes)
        self._pointers = [
            f"{'' if p in outputs else 'const '}{CTYPE[dtypes[p]]}* __restrict__ p{p}" for p in self.indices
        ]
        slots = {e.payload: SCALARS[e.dtype] for e in exprs if e.op == "scalar"}
        self.scalars = tuple(sorted(slots.items()))

    def add_workspace(self) -> None:
        """Add the workspace pointer."""
        if WORKSPACE not in self.indices:
            self.indices.append(WORKSPACE)
            self._pointers.append("char* __restrict__ workspace")

    def text(self) -> list[str]:
        """The declarations."""
        return [*self._pointers, *(f"{ctype} scalar{slot}" for slot, ctype in self.scalars)]


def scalar_text(e: Expr) -> str:
    """A run-time scalar."""
    return f"(scalar{e.payload} != 0)" if e.dtype is dt.bool_ else f"scalar{e.payload}"


def linear(indices: Sequence[str], strides: Sequence[int]) -> str:
    """The text of a linear index such as ``i0 * 12 + i1``, without zero terms."""
    terms = [
        index if stride == 1 else f"{index} * {stride}"
        for index, stride in zip(indices, strides, strict=True)
        if stride and index != "0"
    ]
    return " + ".join(terms) or "0"


def shift_pointer(pointer: str, offset: str | int) -> str:
    """The text of a pointer plus an offset in elements."""
    return pointer if str(offset) == "0" else f"{pointer} + {offset}"


def decompose(text: Text, ctype: str, index: str, sizes: Sequence[int], stem: str) -> list[str]:
    """Declare the index along each dimension, from a row-major linear ``index``; return their names."""
    if len(sizes) <= 1:
        return [index] if sizes else []
    names, step = [""] * len(sizes), 1
    for d in range(len(sizes) - 1, -1, -1):
        names[d] = f"{stem}{d}"
        quotient = index if step == 1 else f"{index} / {step}"
        text.line(f"const {ctype} {names[d]} = {quotient if d == 0 else f'{quotient} % {sizes[d]}'};")
        step *= sizes[d]
    return names

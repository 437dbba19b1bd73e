"""Kernels of eager elementwise operators; sizes and strides are parameters."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import UnsupportedError
from ....operators.scalar_ir.expr import Expr, cast
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .elementwise import THREADS, VECTOR_BYTES
from .kernel import CudaKernel
from .nodes import write_cast
from .text import Scope, Text, unify
from .types import CTYPE, bare

VARIANTS = ("contiguous", "unaligned", "strided")
_PASSED = {dt.float16: "unsigned short", dt.bfloat16: "unsigned short", dt.complex128: "double"}
"""The parameter types of numbers whose C type cannot be passed by value."""


def write_elementwise(
    name: str,
    body: Expr,
    in_dtypes: Sequence[DType],
    out_dtype: DType,
    variant: str,
    by_value: Sequence[int] = (),
) -> CudaKernel:
    """The kernel of an elementwise operator.

    Args:
        name: of the function.
        body: an expression over ``arg(0)``, ``arg(1)``, ...; operands are converted to the types that it takes.
        in_dtypes: the types of the operands in memory.
        out_dtype: the type of the result.
        variant: ``"contiguous"``: parameters ``(operands..., out, long long count)``, all contiguous and aligned to 16
            bytes; ``"unaligned"``: the same without alignment; ``"strided"``: ``(operands..., out, Layout layout)``,
            where ``layout`` (see ``pack_layout``) has strides for each operand that is a pointer, then for ``out``.
        by_value: the operands that are passed by value, at their index: 16-bit floats as their bits, complex128 as
            the real part; the imaginary parts come after ``out``.

    Returns:
        A kernel; its grid is ``kernel.blocks(count, limit)``.

    Raises:
        UnsupportedError: a dtype or a node that has no CUDA C.
    """
    unable = next((d for d in (*in_dtypes, out_dtype) if d not in CTYPE), None)
    if unable is not None:
        raise UnsupportedError(f"{name}: {unable.name} has no CUDA C")
    return _Eager(name, cast(body, out_dtype), in_dtypes, out_dtype, frozenset(by_value)).write(variant)


class _Eager:
    """The state of writing one kernel."""

    def __init__(
        self, name: str, body: Expr, in_dtypes: Sequence[DType], out_dtype: DType, by_value: frozenset[int]
    ):
        self.name, self.in_dtypes, self.out_dtype, self.by_value = name, in_dtypes, out_dtype, by_value
        self.body = unify([body])[body]
        self.text = Text()
        self.pointers = [k for k in range(len(in_dtypes)) if k not in by_value]

    def write(self, variant: str) -> CudaKernel:
        """The kernel."""
        lanes = 1
        if variant == "contiguous":
            widest = max(d.itemsize for d in (self.out_dtype, *(self.in_dtypes[k] for k in self.pointers)))
            lanes = max(1, VECTOR_BYTES // widest)
        last = "long long count"
        if variant == "strided":
            last = f"const Layout<{len(self.pointers) + 1}> layout"
            self._strided()
        else:
            self._contiguous(lanes)
        source = self.text.function(self.name, [*self._parameters(), last], THREADS, ())
        span = THREADS * lanes
        helpers = tuple(self.text.helpers)
        return CudaKernel(self.name, source, helpers, (0, 1, 1), (THREADS, 1, 1), span=span)

    def _parameters(self) -> list[str]:
        items = []
        for k, dtype in enumerate(self.in_dtypes):
            kind = _PASSED.get(dtype, CTYPE[dtype])
            by_pointer = f"const {CTYPE[dtype]}* __restrict__ p{k}"
            items.append(f"{kind} x{k}" if k in self.by_value else by_pointer)
        wide = [f"double y{k}" for k in sorted(self.by_value) if self.in_dtypes[k] is dt.complex128]
        return [*items, f"{CTYPE[self.out_dtype]}* __restrict__ out", *wide]

    # -- contiguous ------------------------------------------------------------------------------------------------
    def _contiguous(self, lanes: int) -> None:
        text, first = self.text, f"(long long)blockIdx.x * {THREADS} + threadIdx.x"
        step = f"i += (long long)gridDim.x * {THREADS}"
        if lanes > 1:
            with text.block(f"for (long long i = {first}; i < count / {lanes}; {step})"):
                for k in self.pointers:
                    text.line(f"const auto v{k} = load<{lanes}>(p{k} + i * {lanes});")
                text.line(f"Vec<{CTYPE[self.out_dtype]}, {lanes}> result;")
                text.unroll()
                with text.block(f"for (int v = 0; v < {lanes}; ++v)"):
                    text.line(f"result.at[v] = {self._value({k: f'v{k}.at[v]' for k in self.pointers})};")
                text.line(f"store(out + i * {lanes}, result);")
            first = f"count / {lanes} * {lanes} + {first}"
        with text.block(f"for (long long i = {first}; i < count; {step})"):
            text.line(f"out[i] = {self._value({k: f'p{k}[i]' for k in self.pointers})};")

    def _value(self, elements: dict[int, str]) -> str:
        """The text of the body over elements."""

        def leaf(e: Expr) -> str:
            dtype = self.in_dtypes[e.payload]
            where = elements.get(e.payload, f"x{e.payload}")
            if e.payload in self.by_value and dtype in _PASSED:
                more = f", y{e.payload}" if dtype is dt.complex128 else ""
                where = f"{CTYPE[dtype]}{{x{e.payload}{more}}}"
            code = write_cast(where, dtype, e.dtype)
            self.text.need(*code.helpers)
            if code.text == where:
                return where
            name = self.text.fresh()
            self.text.line(f"const {CTYPE[e.dtype]} {name} = {bare(code.text)};")
            return name

        return Scope(self.text, leaf).write([self.body])[0]

    # -- strided ---------------------------------------------------------------------------------------------------
    def _strided(self) -> None:
        text, count = self.text, len(self.pointers) + 1
        text.need("layout")
        with text.block("if (layout.count <= 0x7fffffff)"):
            self._strided_loop("unsigned", count)
        with text.block("else"):
            self._strided_loop("unsigned long long", count)

    def _strided_loop(self, index: str, count: int) -> None:
        """32-bit division is several times as fast as 64-bit division."""
        text = self.text
        first = f"({index})blockIdx.x * {THREADS} + threadIdx.x"
        with text.block(f"for ({index} i = {first}; i < layout.count; i += ({index})gridDim.x * {THREADS})"):
            text.line(f"long long at[{count}];")
            text.line("locate(layout, i, at);")
            elements = {k: f"p{k}[at[{number}]]" for number, k in enumerate(self.pointers)}
            text.line(f"out[at[{count - 1}]] = {self._value(elements)};")

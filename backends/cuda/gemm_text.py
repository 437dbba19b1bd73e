"""Matrix products in the emitted ``main`` of a graph: calls of cuBLAS, with everything but addresses decided before."""

from __future__ import annotations

from ...lowering.steps import NodeStep
from ...registry.dtypes import DType
from ..cpu.compile import loaded
from .cublas import BATCHED, DEFAULT, GEMM, HANDLE, REFUSED, SET_STREAM, gemm_type
from .gemm_plan import Call, Plan, Side, plan_product

MOST = 64  # calls of one product; more come from Python


def plan_of(step: NodeStep) -> Plan | None:
    """The calls that serve a node of a lowered graph; None where Python makes them.

    Args:
        step: a product, whose operands are copied where they have to be.
    """
    (value, one), (_, two) = step.operands
    found = plan_product(one, two, value.spec.dtype.itemsize)
    emitted = found is not None and not any(found.copies) and len(found.calls) <= MOST
    return found if emitted else None


def blas_lines() -> list[str]:
    """Instructions that take what calls need from cuBLAS's record, in ``%blas``."""
    names = {"%blas_handle": HANDLE, "%blas_stream": SET_STREAM, "%blas_gemm": GEMM, "%blas_batched": BATCHED}
    return [line for name, at in names.items() for line in loaded(name, "%blas", at // 8)]


def product_lines(plan: Plan, dtype: DType, places: tuple[str, str, str], prefix: str) -> list[str]:
    """Instructions that call cuBLAS.

    Args:
        plan: what is called.
        dtype: of all matrices.
        places: the registers with the addresses of both operands' buffers and of the result.
        prefix: of the registers and labels that they use.
    """
    kind = gemm_type(dtype)
    lines = [
        f"  {prefix}one = getelementptr i8, ptr %blas, i64 {kind.one}",
        f"  {prefix}zero = getelementptr i8, ptr %blas, i64 {kind.zero}",
        f"  {prefix}set = call i32 %blas_stream(ptr %blas_handle, ptr %stream)",
        *_checked(f"{prefix}set"),
    ]
    for number, call in enumerate(plan.calls):
        own = f"{prefix}{number}"
        for name, place, side in zip("bac", places, (call.b, call.a, call.c), strict=True):
            first = side.first * dtype.itemsize
            lines.append(f"  {own}{name} = getelementptr i8, ptr {place}, i64 {first}")
        lines += [f"  {own}s = {_called(call, own, prefix, kind.kind, kind.compute)}", *_checked(f"{own}s")]
    return lines


def _called(call: Call, own: str, prefix: str, kind: int, compute: int) -> str:
    many = call.matrices > 1

    def side(name: str, one: Side) -> str:
        step = f", i64 {one.step}" if many else ""
        return f"ptr {own}{name}, i32 {kind}, i32 {one.lead}{step}"

    turns = f"i32 {int(call.a.transposed)}, i32 {int(call.b.transposed)}"
    sizes = f"i32 {call.m}, i32 {call.n}, i32 {call.k}"
    count = f"i32 {call.matrices}, " if many else ""
    return (
        f"call i32 {'%blas_batched' if many else '%blas_gemm'}(ptr %blas_handle, {turns}, {sizes}, "
        f"ptr {prefix}one, {side('a', call.a)}, {side('b', call.b)}, "
        f"ptr {prefix}zero, {side('c', call.c)}, {count}i32 {compute}, i32 {DEFAULT})"
    )


def _checked(status: str) -> list[str]:
    """Instructions that return a status other than 0."""
    label = status.removeprefix("%")
    return [
        f"  {status}_bad = icmp ne i32 {status}, 0",
        f"  br i1 {status}_bad, label %{label}_refused, label %{label}_done",
        f"{label}_refused:",
        f"  {status}_code = add i32 {status}, {REFUSED}",
        f"  ret i32 {status}_code",
        f"{label}_done:",
    ]

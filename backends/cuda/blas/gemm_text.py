"""LLVM IR of matrix products in the emitted ``main`` of a graph: calls of cuBLAS with constant sizes and strides."""

from __future__ import annotations

from ....lowering.thunks import NodeThunk
from ....registry.dtypes import DType
from ...cpu.compile import load_from_table
from .cublas import BATCHED, DEFAULT, GEMM, HANDLE, REFUSED, SET_STREAM, gemm_type
from .gemm_plan import Call, GemmCalls, Side, choose_calls

MAX_CALLS = 64  # calls of one product; Python makes more


def calls_of(step: NodeThunk) -> GemmCalls | None:
    """The calls for a node of a lowered graph; None if Python makes them.

    Args:
        step: a product, whose operands have been copied where it is necessary.
    """
    (value, one), (_, two) = step.operands
    result = choose_calls(one, two, value.spec.dtype.itemsize)
    emitted = result is not None and not any(result.copies) and len(result.calls) <= MAX_CALLS
    return result if emitted else None


def write_blas_loads() -> list[str]:
    """Instructions that load the handle and the functions from cuBLAS's struct, ``%blas``."""
    names = {"%blas_handle": HANDLE, "%blas_stream": SET_STREAM, "%blas_gemm": GEMM, "%blas_batched": BATCHED}
    return [line for name, at in names.items() for line in load_from_table(name, "%blas", at // 8)]


def write_product(plan: GemmCalls, dtype: DType, pointers: tuple[str, str, str], prefix: str) -> list[str]:
    """Instructions that call cuBLAS.

    Args:
        plan: what is called.
        dtype: of all matrices.
        pointers: the registers with the addresses of both operands' buffers and of the result.
        prefix: of the registers and labels.
    """
    kind = gemm_type(dtype)
    lines = [
        f"  {prefix}one = getelementptr i8, ptr %blas, i64 {kind.one}",
        f"  {prefix}zero = getelementptr i8, ptr %blas, i64 {kind.zero}",
        f"  {prefix}set = call i32 %blas_stream(ptr %blas_handle, ptr %stream)",
        *_write_status_check(f"{prefix}set"),
    ]
    for number, call in enumerate(plan.calls):
        own = f"{prefix}{number}"
        for name, pointer, side in zip("bac", pointers, (call.b, call.a, call.c), strict=True):
            first = side.first * dtype.itemsize
            lines.append(f"  {own}{name} = getelementptr i8, ptr {pointer}, i64 {first}")
        lines += [
            f"  {own}s = {_write_call(call, own, prefix, kind.kind, kind.compute)}",
            *_write_status_check(f"{own}s"),
        ]
    return lines


def _write_call(call: Call, own: str, prefix: str, kind: int, compute: int) -> str:
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


def _write_status_check(status: str) -> list[str]:
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

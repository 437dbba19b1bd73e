"""Callables that run one call of cuBLAS; all arguments but addresses and the stream are fixed at creation."""

from __future__ import annotations

import functools
from typing import Any

from .... import lazy
from ....registry.dtypes import DType
from ....registry.native_type import NativeCallable, accept_entries, set_entry
from ....registry.operator import lock
from ...cpu.fastpath.compiler import engine
from ...cpu.fastpath.compiler.structs import sizeof
from ...cpu.fastpath.glue.structs import StructMemory
from ..fastpath import gemm_entries as rt
from ..runtime.launcher import native_code
from .cublas import DEFAULT, Cublas, gemm_type
from .gemm_plan import Call, Side


@functools.cache
def _entry_code() -> engine.Code:
    """The native code of all products."""
    return native_code("gemm", {"multiply": rt.multiply})


@accept_entries
class Gemm(NativeCallable):  # type: ignore[misc]
    """``gemm(stream, one, two, out)``: put one call of cuBLAS into a stream and return its status.

    Args:
        blas: cuBLAS on the device.
        call: the sizes and strides.
        dtype: of all matrices.

    Attributes:
        record: the native struct (``Gemm`` of ``fastpath/gemm_entries.py``).
    """

    def __init__(self, blas: Cublas, call: Call, dtype: DType):
        kind, record = gemm_type(dtype), StructMemory(sizeof(rt.Gemm))
        fields = {rt.Gemm.blas: blas.address, rt.Gemm.one: blas.address + kind.one, rt.Gemm.kind: kind.kind}
        fields |= {
            rt.Gemm.zero: blas.address + kind.zero,
            rt.Gemm.compute: kind.compute,
            rt.Gemm.count: call.matrices,
        }
        fields |= {rt.Gemm.sizes + 8 * i: size for i, size in enumerate(call[:3])}
        for at, side in ((rt.Gemm.a, call.a), (rt.Gemm.b, call.b), (rt.Gemm.c, call.c)):
            words = (side.first * dtype.itemsize, int(side.transposed), side.lead, side.step)
            fields |= {at + 8 * i: word for i, word in enumerate(words)}
        for offset, value in fields.items():
            record.set(offset, value)
        record.kept.append(blas)
        self.record, self._code = record, _entry_code()
        set_entry(self, self._code["multiply"], record.address)

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError("a product has a native entry")


def make_gemm(blas: Cublas, call: Call, dtype: DType) -> Any:
    """A :class:`Gemm`, or a Python function that does the same if native code is off."""
    return _make_python_gemm(blas, call, dtype) if lazy.native_layer().why_off() else Gemm(blas, call, dtype)


def _make_python_gemm(blas: Cublas, call: Call, dtype: DType) -> Any:
    """A function that does the same as :class:`Gemm`, without native code.

    Native twin: backends/cuda/fastpath/gemm_entries.py:multiply
    """
    kind, size, many = gemm_type(dtype), dtype.itemsize, call.matrices > 1
    function = blas.functions["cublasGemmStridedBatchedEx" if many else "cublasGemmEx"]
    set_stream = blas.functions["cublasSetStream_v2"]

    def matrices(address: int, side: Side) -> tuple[int, ...]:
        items = address + side.first * size, kind.kind, side.lead, side.step
        return items if many else items[:3]

    def multiply(stream: int, one: int, two: int, out: int) -> int:
        head = int(call.a.transposed), int(call.b.transposed), *call[:3], blas.address + kind.one
        sides = (*matrices(two, call.a), *matrices(one, call.b), blas.address + kind.zero)
        tail = *matrices(out, call.c), *((call.matrices,) if many else ()), kind.compute, DEFAULT
        with lock:  # the stream is the handle's
            return int(set_stream(blas.handle, stream or None) or function(blas.handle, *head, *sides, *tail))

    return multiply

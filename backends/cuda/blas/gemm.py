"""Callables that run one call of cuBLAS; all arguments but addresses and the stream are fixed at creation."""

from __future__ import annotations

from typing import Any

from .... import lazy
from ....registry.dtypes import DType
from ....registry.native_type import NativeCallable, accept_entries, set_entry
from ....registry.operator import lock
from ...cpu.fastpath.glue.structs import StructMemory
from ..fastpath import gemm_entries
from ..runtime.launching import launch_code
from .cublas import DEFAULT, Cublas, gemm_type
from .gemm_plan import Call, Side

fastpath = lazy.Module(".backends.cpu.fastpath")


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
        self.record = StructMemory(gemm_entries.Gemm)
        fields, kind = gemm_entries.Gemm(self.record.address), gemm_type(dtype)
        fields.blas, fields.one, fields.zero = (blas.address + offset for offset in (0, kind.one, kind.zero))
        fields.kind, fields.compute, fields.count = kind.kind, kind.compute, call.matrices
        fields.m, fields.n, fields.k = call[:3]
        for address, side in ((fields.a, call.a), (fields.b, call.b), (fields.c, call.c)):
            matrix = gemm_entries.Matrix(address)
            matrix.first, matrix.transposed = side.first * dtype.itemsize, side.transposed
            matrix.lead, matrix.step = side.lead, side.step
        self.record.kept.append(blas)
        self._code = launch_code(product=True)
        set_entry(self, self._code["launch"], self.record.address)

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError("a product has a native entry")


def make_gemm(blas: Cublas, call: Call, dtype: DType) -> Any:
    """A :class:`Gemm`, or a Python function that does the same if native code is off."""
    return _make_python_gemm(blas, call, dtype) if fastpath.why_off() else Gemm(blas, call, dtype)


def _make_python_gemm(blas: Cublas, call: Call, dtype: DType) -> Any:
    """A function that does the same as :class:`Gemm`, without native code.

    Native twin: backends/cuda/fastpath/launch_entries.py:launch
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

"""Callables that multiply by cuBLAS: everything but addresses and the stream is decided when they are made."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from ... import lazy
from ...registry.dtypes import DType
from ...registry.native_type import NativeCallable, accept_entries, set_entry
from ...registry.operator import lock
from ..cpu.native import dsl, engine, lang, lang_expr, rt_base
from ..cpu.native.records import Record
from . import cublas, rt_launch
from . import rt_gemm as rt
from .cublas import DEFAULT, Cublas, gemm_type
from .gemm_plan import Call, Side

_SOURCES = (dsl, lang, lang_expr, rt_base, rt_launch, cublas, rt)


@functools.cache
def _entry() -> engine.Code:
    """The machine code that all of them share; compiled once, and kept on disk."""
    digest = hashlib.sha256()
    for module in _SOURCES:
        digest.update(Path(str(module.__file__)).read_bytes())
    key = engine.fingerprint("cuda gemm", digest.hexdigest())
    return engine.build(key, lambda: lang.emit({"multiply": rt.multiply}, {}), ["multiply"], level=1)


@accept_entries
class Gemm(NativeCallable):  # type: ignore[misc]
    """``gemm(stream, one, two, out)``: puts one call of cuBLAS into a stream and gives its status.

    Args:
        blas: cuBLAS on the device.
        call: what is called.
        dtype: of all matrices.

    Attributes:
        record: what machine code reads.
    """

    def __init__(self, blas: Cublas, call: Call, dtype: DType):
        kind, record = gemm_type(dtype), Record(rt.G_SIZE)
        fields = {rt.G_BLAS: blas.address, rt.G_ONE: blas.address + kind.one, rt.G_KIND: kind.kind}
        fields |= {rt.G_ZERO: blas.address + kind.zero, rt.G_COMPUTE: kind.compute, rt.G_COUNT: call.matrices}
        fields |= {rt.G_SIZES + 8 * i: size for i, size in enumerate(call[:3])}
        for at, side in ((rt.G_A, call.a), (rt.G_B, call.b), (rt.G_C, call.c)):
            words = (side.first * dtype.itemsize, int(side.transposed), side.lead, side.step)
            fields |= {at + 8 * i: word for i, word in enumerate(words)}
        for offset, value in fields.items():
            record.set(offset, value)
        record.kept.append(blas)
        self.record, self._code = record, _entry()
        set_entry(self, self._code["multiply"], record.address)

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError("a product has a native entry")


def gemm(blas: Cublas, call: Call, dtype: DType) -> Any:
    """A :class:`Gemm`, or a function that does the same without machine code."""
    return _plain(blas, call, dtype) if lazy.native_layer().why_off() else Gemm(blas, call, dtype)


def _plain(blas: Cublas, call: Call, dtype: DType) -> Any:
    kind, size, many = gemm_type(dtype), dtype.itemsize, call.matrices > 1
    function = blas.functions["cublasGemmStridedBatchedEx" if many else "cublasGemmEx"]
    set_stream = blas.functions["cublasSetStream_v2"]

    def matrices(place: int, side: Side) -> tuple[int, ...]:
        found = place + side.first * size, kind.kind, side.lead, side.step
        return found if many else found[:3]

    def multiply(stream: int, one: int, two: int, out: int) -> int:
        head = int(call.a.transposed), int(call.b.transposed), *call[:3], blas.address + kind.one
        sides = (*matrices(two, call.a), *matrices(one, call.b), blas.address + kind.zero)
        tail = *matrices(out, call.c), *((call.matrices,) if many else ()), kind.compute, DEFAULT
        with lock:  # the stream is the handle's
            return int(set_stream(blas.handle, stream or None) or function(blas.handle, *head, *sides, *tail))

    return multiply

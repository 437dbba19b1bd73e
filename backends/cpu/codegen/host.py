"""Properties of this machine for emitted vector code: register width, half conversions, masks, FMA."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..target import find_target


@dataclass(frozen=True)
class Host:
    """Properties of the machine that code is emitted for.

    Attributes:
        vector_bytes: width of a vector register.
        f16c: whether float16 converts in hardware.
        masks: whether vectors of every type are loaded and stored under a mask at full speed (AVX-512).
        fma: whether the processor has fused multiply-add.
    """

    vector_bytes: int
    f16c: bool
    masks: bool = False
    fma: bool = False


@cache
def host() -> Host:
    """Return the machine that this process runs on."""
    has = find_target().has
    wide = all(map(has, ("avx512f", "avx512bw", "avx512dq", "avx512vl")))
    size = 64 if wide else 32 if has("avx2") else 16
    return Host(size, has("f16c"), size == 64, size >= 32 and has("fma"))

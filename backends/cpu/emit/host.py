"""What the machine offers to emitted vector code: register width, half conversions, glibc's vector functions."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

from .... import lazy

# libmvec's variants, widest last: the letter of the ABI, the LLVM feature it needs, its register's bytes
_VARIANTS = (("b", "sse4.1", 16), ("d", "avx2", 32), ("e", "avx512f", 64))


@dataclass(frozen=True)
class Host:
    """A target of emission.

    Attributes:
        vector_bytes: width of a vector register.
        f16c: whether float16 converts in hardware.
        variants: the letters and register bytes of the libmvec variants that may be called.
        masks: whether vectors of every type are loaded and stored under a mask at full speed (AVX-512).
        fma: whether products are added in one instruction.
    """

    vector_bytes: int
    f16c: bool
    variants: tuple[tuple[str, int], ...]
    masks: bool = False
    fma: bool = False


@cache
def host() -> Host:
    """The machine this process runs on."""
    features = lazy.llvmlite_binding().get_host_cpu_features()
    wide = features.get("avx512f") and all(features.get(f) for f in ("avx512bw", "avx512dq", "avx512vl"))
    size = 64 if wide else 32 if features.get("avx2") else 16
    usable = tuple((letter, n) for letter, need, n in _VARIANTS if features.get(need) and n <= size)
    variants = usable if _libmvec() is not None else ()
    return Host(
        size, bool(features.get("f16c")), variants, size == 64, size >= 32 and bool(features.get("fma"))
    )


@cache
def _libmvec() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libmvec.so.1", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return None


@cache
def vector_function(name: str, itemsize: int, arity: int, lanes: int) -> tuple[str, int] | None:
    """The symbol and lane count of libmvec's widest variant of a libm function that fits ``lanes``, or None.

    >>> vector_function("no_such_function", 4, 1, 8) is None
    True
    """
    library, suffix = _libmvec(), "f" if itemsize == 4 else ""
    fitting = []
    for letter, size in host().variants:
        symbol = f"_ZGV{letter}N{size // itemsize}{'v' * arity}_{name}{suffix}"
        if hasattr(library, symbol):
            fitting.append((symbol, size // itemsize))
    narrow = [found for found in fitting if found[1] <= lanes]
    return narrow[-1] if narrow else fitting[0] if fitting else None

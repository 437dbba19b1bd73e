"""The LLVM target of this machine: triple, processor, features, LLVM's version, and the width of vectors.

LLVM finds these out, and importing llvmlite for that takes longer than linking a cached object. The description is
therefore stored in the disk cache. Its key is made from llvmlite's version, the processor's entry in `/proc/cpuinfo`
and the features that NumPy found by asking the processor, which are fewer under an emulator such as valgrind.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform

from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from ... import background, lazy
from ...named_tuple import NamedTuple
from ...registry.dtypes import DType, float16
from . import cache

binding = lazy.Module("llvmlite.binding")

CPUINFO = "/proc/cpuinfo"
IS_X86 = platform.machine() in ("x86_64", "AMD64")
MXCSR_FLUSH = 0x8040  # bits of MXCSR: flush denormal results, and denormal operands, to zero
_SEPARATOR = "\n"


class Target(NamedTuple):
    """The target that code is compiled for.

    Attributes:
        triple: such as "x86_64-unknown-linux-gnu".
        cpu: LLVM's name of the processor, such as "znver4".
        features: LLVM's feature string, such as "+avx2,-avx512f".
        llvm: LLVM's version, such as "22.1.0".
    """

    triple: str
    cpu: str
    features: str
    llvm: str

    def has(self, feature: str) -> bool:
        """Whether the processor has a feature, by LLVM's name of it.

        >>> Target("x86_64", "znver4", "+avx2,-avx512f", "22").has("avx512f")
        False
        """
        return f"+{feature}" in self.features.split(",")


@functools.cache
def find_target() -> Target:
    """Return the target of this machine, from the disk cache if it is stored there."""
    return background.run(_find_target)


class VectorTarget(NamedTuple):
    """Properties of the vector registers that code is emitted for.

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


@functools.cache
def vector_target() -> VectorTarget:
    """Return the vector registers of this machine."""
    has = find_target().has
    wide = all(map(has, ("avx512f", "avx512bw", "avx512dq", "avx512vl")))
    size = 64 if wide else 32 if has("avx2") else 16
    return VectorTarget(size, has("f16c"), size == 64, size >= 32 and has("fma"))


def can_emit(dtype: DType) -> bool:
    """Return whether code can be emitted for a dtype on this machine."""
    return dtype is not float16 or vector_target().f16c


def _find_target() -> Target:
    key = _cache_key()
    stored = cache.read(key) if key else None
    if stored is not None:
        return Target(*stored.decode().split(_SEPARATOR))
    target = _ask_llvm()
    if key:
        cache.write(key, _SEPARATOR.join(target).encode())
    return target


def _ask_llvm() -> Target:
    version = ".".join(map(str, binding.llvm_version_info))
    features = binding.get_host_cpu_features().flatten()
    return Target(binding.get_process_triple(), binding.get_host_cpu_name(), features, version)


def _cache_key() -> str:
    """Return the name of this machine's cache entry; empty if no file describes the processor."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return ""
    try:
        with open(os.path.join(os.path.dirname(spec.origin), "_version.py"), "rb") as file:
            version = file.read()
        processor = _read_processor()
    except OSError:
        return ""
    features = " ".join(name for name, present in _numpy_features().items() if present)
    digest = cache.digest(b"\0".join((version, processor, features.encode())))
    return f"target-{digest.hex()}" if processor and features else ""


def _numpy_features() -> dict[str, bool]:
    """Return the processor's features by NumPy's names, such as "AVX512F"."""
    return dict(getattr(_multiarray_umath, "__cpu_features__", {}))


def _read_processor() -> bytes:
    """Return the first processor's lines of `/proc/cpuinfo` that do not change while the machine runs."""
    changing = (b"cpu MHz", b"bogomips", b"BogoMIPS", b"microcode")
    lines = []
    with open(CPUINFO, "rb") as file:
        for line in file:
            if not line.strip():
                break
            if not line.startswith(changing):
                lines.append(line)
    return b"".join(lines)

"""CUDA C to images of machine code by NVRTC, kept on disk by source, architecture and compiler version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from ... import lazy
from ...errors import BackendUnavailableError, CudaError
from ..cpu.native import cache

FORMAT = "cuda 1"
OPTIONS = ("-std=c++17", "-default-device", "--fmad=false")
"""Without contraction an expression has the same result whatever it is fused with."""
USER_OPTIONS = tuple(option for option in OPTIONS if not option.startswith("--fmad"))
"""Of what users write: products and sums are contracted, as nvcc does it."""


def nvrtc_image(source: str, arch: str, options: Sequence[str] = OPTIONS) -> bytes:
    """The machine code of a module, compiled now or read from the disk cache.

    Args:
        source: CUDA C.
        arch: the architecture, such as ``"sm_90"``.
        options: of the compiler.

    Raises:
        BackendUnavailableError: NVRTC is not there.
        CudaError: the source does not compile; the message has the compiler's log.
    """
    try:
        nvrtc = lazy.nvrtc()
        version = nvrtc.getVersion()
    except (ImportError, AttributeError, OSError, RuntimeError) as fault:
        raise BackendUnavailableError(f"CUDA C cannot be compiled: cupy has no NVRTC: {fault}") from None
    wanted = target_of(arch, nvrtc.getSupportedArchs())
    seed = "\0".join([FORMAT, str(version), wanted, *options, source])
    name = f"{hashlib.sha256(seed.encode()).hexdigest()}.cubin"
    kept = cache.read(name)
    if kept is None:
        kept = _compiled(nvrtc, source, (f"--gpu-architecture={wanted}", *options))
        cache.write(name, kept)
    return kept


def target_of(arch: str, known: Iterable[int]) -> str:
    """What to compile for: the device's architecture, or what runs there of those that NVRTC knows.

    Machine code runs on devices of its generation that are no older; else it is PTX, which the driver compiles.

    Args:
        arch: the device's, such as ``"sm_121"``.
        known: the numbers that NVRTC knows.

    Raises:
        CudaError: the device is older than all of them.

    >>> target_of("sm_121", (90, 120)), target_of("sm_130", (90, 120))
    ('sm_120', 'compute_120')
    """
    number = int(arch.removeprefix("sm_"))
    older = [one for one in known if one <= number]
    if not older:
        raise CudaError(f"NVRTC compiles for sm_{min(known)} and later, and the device is an {arch}")
    newest = max(older)
    return f"{'sm' if newest // 10 == number // 10 else 'compute'}_{newest}"


def _compiled(nvrtc: Any, source: str, options: tuple[str, ...]) -> bytes:
    made = nvrtc.createProgram(source, "tandem.cu", (), ())
    try:
        nvrtc.compileProgram(made, options)
        if "compute_" in options[0]:
            return bytes(nvrtc.getPTX(made)) + b"\0"
        return bytes(nvrtc.getCUBIN(made))
    except nvrtc.NVRTCError:
        log = nvrtc.getProgramLog(made)
        raise CudaError(f"NVRTC refuses a kernel for {options[0]}:\n{log}\n{source}") from None
    finally:
        nvrtc.destroyProgram(made)

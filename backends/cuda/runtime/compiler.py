"""Compile CUDA C with NVRTC; the disk cache's key is the source, the architecture and the compiler version."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from .... import lazy
from ....errors import BackendUnavailableError, CudaError
from ...cpu import cache

FORMAT = "cuda 2"
OPTIONS = ("-std=c++17", "-default-device", "--fmad=false")
"""Contraction is off, so that an expression has the same result in every fused kernel."""
USER_OPTIONS = tuple(option for option in OPTIONS if not option.startswith("--fmad"))
"""For users' sources: products and sums are contracted, as in nvcc."""


def nvrtc_file(source: str, arch: str, options: Sequence[str] = OPTIONS) -> str:
    """The path of a module's machine code, compiled now or found in the disk cache; needs no GPU.

    Args:
        source: CUDA C.
        arch: the architecture, such as ``"sm_90"``.
        options: of the compiler.

    Raises:
        BackendUnavailableError: NVRTC is not installed.
        CudaError: the source does not compile; the message contains the compiler's log.
    """
    try:
        nvrtc = lazy.module("cupy.cuda").nvrtc  # an attribute: no module has this name
        version = nvrtc.getVersion()
    except (ImportError, AttributeError, OSError, RuntimeError) as fault:
        raise BackendUnavailableError(f"CUDA C cannot be compiled: cupy has no NVRTC: {fault}") from None
    target = target_of(arch, nvrtc.getSupportedArchs())
    seed = "\0".join([FORMAT, str(version), target, *options, source])
    name = f"{hashlib.sha256(seed.encode()).hexdigest()}.{'cubin' if target.startswith('sm') else 'ptx'}"
    path = cache.read_file(name)
    if path is None:
        image = _compile(nvrtc, source, (f"--gpu-architecture={target}", *options))
        path = cache.write_file(name, image, lambda: _process_directory().name)
    return path


@functools.cache
def _process_directory() -> tempfile.TemporaryDirectory[str]:
    """The directory of machine code that the disk cache cannot store; deleted when the process ends."""
    return tempfile.TemporaryDirectory(prefix="tandem-cuda-")


def target_of(arch: str, known: Iterable[int]) -> str:
    """The architecture to compile for: the device's, or the newest compatible one that NVRTC supports.

    Machine code runs on devices of the same generation that are not older; for other devices PTX is compiled, which
    the driver translates.

    Args:
        arch: the device's architecture, such as ``"sm_121"``.
        known: the numbers of the architectures that NVRTC supports.

    Raises:
        CudaError: the device is older than all supported architectures.

    >>> target_of("sm_121", (90, 120)), target_of("sm_130", (90, 120))
    ('sm_120', 'compute_120')
    """
    number = int(arch.removeprefix("sm_"))
    older = [one for one in known if one <= number]
    if not older:
        raise CudaError(f"NVRTC compiles for sm_{min(known)} and later, and the device is {arch}")
    newest = max(older)
    return f"{'sm' if newest // 10 == number // 10 else 'compute'}_{newest}"


def _compile(nvrtc: Any, source: str, options: tuple[str, ...]) -> bytes:
    """The cubin, or the PTX, of a source."""
    program = nvrtc.createProgram(source, "tandem.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        if "compute_" in options[0]:
            return bytes(nvrtc.getPTX(program)).rstrip(b"\0")
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError:
        log = nvrtc.getProgramLog(program)
        raise CudaError(f"NVRTC cannot compile a kernel for {options[0]}:\n{log}\n{source}") from None
    finally:
        nvrtc.destroyProgram(program)

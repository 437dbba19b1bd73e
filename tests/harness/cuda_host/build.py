"""Compile generated CUDA C for the CPU, behind the small header beside this file, and launch its kernels there."""

import ctypes
import functools
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")
FLAGS = [
    "-std=c++20",
    "-O1",
    "-w",
    "-ffp-contract=off",
    "-fPIC",
    "-shared",
    "-fwrapv",
    "-fsanitize=alignment",
]
THREADS = ["-DTANDEM_HOST_THREADS", "-fsanitize=thread", "-g"]
_NAME = re.compile(r"__global__ void (?:__launch_bounds__\((\d+)[\d, ]*\) )?(\w+)\(")
_PLACES: dict[str, str] = {}


@functools.cache
def folder() -> Path:
    """Where the libraries of this process lie."""
    kept = tempfile.TemporaryDirectory(prefix="tandem-host-")
    _PLACES["kept"] = kept  # removed when the process ends
    return Path(kept.name)


def host_text(source: str) -> str:
    """The translation unit of a module: the header, the module, and a launcher for each kernel."""
    launchers = [f"TANDEM_LAUNCH({name}, {bound or 0})" for bound, name in _NAME.findall(source)]
    return "\n".join([f'#include "{HERE / "shim.hpp"}"', source, *launchers, ""])


def compile_host(source: str, flags: tuple[str, ...] = ()) -> str:
    """The path of a shared library with ``launch_<name>`` for each kernel of a module.

    Args:
        source: CUDA C, as ``module_source`` gives it.
        flags: more of the compiler's.

    Returns:
        A path. ``void launch_<name>(void **params, unsigned gx, gy, gz, bx, by, bz, size_t shared)`` takes what
        ``cuLaunchKernel`` takes: ``params[i]`` points to the i-th argument.
    """
    text = host_text(source)
    name = hashlib.sha256("\n".join([text, *flags]).encode()).hexdigest()[:20]
    library = folder() / f"{name}.so"
    if not library.exists():
        unit = folder() / f"{name}.cpp"
        unit.write_text(text)
        found = subprocess.run(
            [COMPILER, *FLAGS, *flags, str(unit), "-o", str(library)], capture_output=True, text=True
        )
        if found.returncode:
            raise RuntimeError(f"g++ refused {unit}:\n{found.stderr[:4000]}")
    return str(library)


def compile_program(source: str, main: str) -> str:
    """The path of a program: a module, each CUDA thread a thread of the operating system's, under ThreadSanitizer.

    Args:
        source: CUDA C, as ``module_source`` gives it.
        main: C++ that launches its kernels.
    """
    text = host_text(source) + main
    path = folder() / hashlib.sha256(text.encode()).hexdigest()[:20]
    unit = path.with_suffix(".cpp")
    unit.write_text(text)
    flags = [flag for flag in FLAGS if flag not in ("-fPIC", "-shared")]
    found = subprocess.run(
        [COMPILER, *flags, *THREADS, str(unit), "-o", str(path)], capture_output=True, text=True
    )
    if found.returncode:
        raise RuntimeError(f"g++ refused {unit}:\n{found.stderr[:4000]}")
    return str(path)


def run_program(path: str) -> str:
    """What ThreadSanitizer says of a program."""
    setarch = shutil.which("setarch")  # some kernels place memory where the sanitizer does not expect it
    command = [setarch, "-R", path] if setarch else [path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "data race" in done.stderr or done.returncode == 0, done.stderr[:4000]
    return done.stderr


class HostModule:
    """The kernels of a module, on the CPU."""

    def __init__(self, source: str):
        self.library = ctypes.CDLL(compile_host(source))

    def launch(self, name, grid, block, shared, arguments):
        """Run one kernel; arguments are arrays (their data pointers are passed), bytes, or ctypes values."""
        holders = [_holder(a) for a in arguments]
        table = (ctypes.c_void_p * max(len(holders), 1))(*[ctypes.addressof(h) for h in holders])
        function = getattr(self.library, f"launch_{name}")
        function(table, *[ctypes.c_uint(n) for n in (*grid, *block)], ctypes.c_size_t(shared))


def _holder(argument):
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, bytes):
        return ctypes.create_string_buffer(argument, len(argument))
    return argument


SCALARS = {"double": ctypes.c_double, "long long": ctypes.c_longlong, "unsigned char": ctypes.c_ubyte}


def run_kernels(module, kernels, arrays, scalars=()):
    """Launch the kernels of a fused kernel one after the other on arrays, with run-time scalars by slot.

    Returns the three words in which a kernel reports a position out of bounds: the number of its check, from 1 on, the
    position, and the number of its axis among the indexed ones.
    """
    faults = np.zeros(3, np.int64)
    size = max((k.temporaries for k in kernels), default=0)
    workspace = np.full(size + 16, 0x5A, np.uint8)
    for k in kernels:
        places = [workspace if p < 0 else arrays[p] for p in k.params]
        values = [SCALARS[ctype](scalars[slot]) for slot, ctype in k.scalars]
        values += map(ctypes.c_longlong, k.constants)
        numbers = [ctypes.c_longlong(n) for n in range(1, len(k.checks) + 1)]
        values += [faults, *numbers] if k.checks else []
        module.launch(k.name, k.grid, k.block, k.shared, [*places, *values])
    return faults


def missing() -> str | None:
    """Why kernels cannot be run on this machine's CPU, or None."""
    if COMPILER is None:
        return "g++ is not installed: generated CUDA C cannot be run on the CPU"
    return None if os.name == "posix" else "the host shim needs a POSIX system"


def missing_compiler() -> str | None:
    """Why kernels cannot be compiled for GPUs, or run on this machine's CPU; None if both can be done."""
    return missing() or (None if nvrtc() else "NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")


@functools.cache
def nvrtc():
    """cupy's binding of NVRTC, or None; the module ``cuda`` of this repository's root would hide one of cupy's."""
    elsewhere = [p for p in sys.path if Path(p or ".").resolve() != HERE.parents[2]]
    with mock.patch.object(sys, "path", elsewhere):
        try:
            return importlib.import_module("cupy.cuda").nvrtc
        except ModuleNotFoundError:
            return None

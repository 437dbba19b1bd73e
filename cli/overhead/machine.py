"""Description of the machine and the versions of libraries, for reports."""

import os
import platform
import sys
from functools import cache
from pathlib import Path

from ... import lazy

DISTRIBUTIONS = {
    "tandem": "tandem-dispatch",
    "numpy": "numpy",
    "scipy": "scipy",
    "llvmlite": "llvmlite",
    "torch": "torch",
    "jax": "jax",
    "numba": "numba",
}


@cache
def cpu_model() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """The versions of the interpreter and of every library that is installed."""
    result = {"python": platform.python_version()}
    for name, distribution in DISTRIBUTIONS.items():
        version = lazy.version(distribution)
        if version is not None:
            result[name] = version
    return result


def describe() -> dict[str, object]:
    """Describe the machine of a measurement: processor, cores, system and interpreter."""
    return {
        "cpu": cpu_model(),
        "cores": count_cores(),
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
        "free_threaded": not getattr(sys, "_is_gil_enabled", lambda: True)(),
    }

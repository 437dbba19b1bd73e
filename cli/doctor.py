"""``tandem doctor``: report which features are on or off, and why."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from .. import config, lazy
from ..backends.cpu import blas_pointers, cache, fastpath
from ..backends.cuda.runtime import devices
from ..operators.creation.devices import INSTALL
from ..operators.declare.declaration import declared_operators
from ..registry.function import initialize
from .overhead import coverage, machine

rich_table = lazy.Module("rich.table")
providers = lazy.Module(".backends.cpu.native_kernels.providers")

Findings = dict[str, dict[str, Any]]


def examine() -> Findings:
    """Everything that `tandem doctor` prints, by section."""
    return {
        "machine": machine.describe(),
        "versions": dict(machine.versions()),
        "settings": {flag.variable: getattr(config.flags, flag.name) for flag in config.FLAGS},
        "native": describe_native(),
        "cache": describe_cache(),
        "elementary functions": describe_elementary_functions(),
        "blas": describe_blas(),
        "native kernels": describe_native_kernels(),
        "stubs": describe_stubs(),
        "cuda": describe_cuda(),
    }


def describe_native() -> dict[str, Any]:
    """Whether calls are answered by machine code."""
    fault = fastpath.why_off()
    return {"on": not fault, **({"why not": fault} if fault else {})}


def _stat_entries(folder: str) -> Iterator[os.stat_result]:
    """The status of each entry of the cache; other processes rename files while this one reads the folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file() and entry.name != "key":
                    yield entry.stat()


def describe_cache() -> dict[str, Any]:
    """Describe the cache of compiled code: its folder and size, or the reason why nothing is cached."""
    where, fault = cache.directory(), cache.reason()
    if fault:
        return {"on": False, "why not": fault}
    entries = list(_stat_entries(where))
    return {
        "on": True,
        "directory": where,
        "mode": oct(stat.S_IMODE(os.stat(where).st_mode)),
        "entries": len(entries),
        "size": f"{sum(entry.st_size for entry in entries) / 2**20:.1f} MiB",
    }


def describe_elementary_functions() -> dict[str, Any]:
    """Which code computes exp, sin and the like."""
    if fastpath.why_off():
        return {"computed by": "NumPy and SciPy: native code is off"}
    return {
        "computed by": "emitted code, in eager and in jitted calls",
        "error": "at most 1 ulp (float64), 1.5 ulp (float32)",
    }


def describe_stubs() -> dict[str, Any]:
    """Measure how many rows of the operator table run natively; a row is an operator, a dtype and a layout."""
    initialize()
    rows = list(coverage.rows())
    by_kind = sorted({row.kind for row in rows})
    shares: dict[str, Any] = {"all rows": coverage.share(rows), "rows": len(rows)}
    for kind in by_kind:
        shares[kind] = coverage.share([row for row in rows if row.kind == kind])
    return shares | {f"failed: {name}": why for name, why in fastpath.failures().items()}


def describe_native_kernels() -> dict[str, Any]:
    """Which inner loops of other packages compute operators, and why others are not used."""
    if fastpath.why_off():
        return {"computed by": "NumPy's and SciPy's Python functions: native code is off"}
    counts: dict[str, list[bool]] = {}
    for op in declared_operators():
        for loop in op.decl.native.loops if op.decl.native is not None else ():
            if loop.provider in providers.UFUNC_MODULES:
                counts.setdefault(loop.provider, []).append(providers.has_ufunc(loop.provider, loop.name))
    known = {name: f"{sum(usable)} of {len(usable)} loops" for name, usable in counts.items()}
    return known | {f"not used: {name}": why for name, why in providers.faults.items()}


def describe_blas() -> dict[str, Any]:
    """Which of BLAS's matrix products can be called by pointer."""
    mapping = {
        name.removeprefix("blas_"): hex(at) for name, at in blas_pointers.find_blas_functions().items()
    }
    if not mapping:
        return {
            "by pointer": False,
            "why not": "NumPy has no OpenBLAS; scipy.linalg.cython_blas cannot be imported",
        }
    return {"by pointer": True, **mapping}


def describe_cuda() -> dict[str, Any]:
    """Describe the GPU that CUDA tensors use, or the reason why CUDA is unavailable."""
    fault = devices.why_unavailable()
    if fault:
        return {"available": False, "why not": f"{fault}: {INSTALL}"}
    result: dict[str, Any] = {"available": True, "cupy": lazy.module("cupy").__version__}
    for index in range(devices.device_count()):
        it = devices.get_device_properties(index)
        result[f"cuda:{index}"] = f"{it.name}, sm_{it.major}{it.minor}, {it.total_memory / 2**30:.1f} GiB"
    return result


def show(findings: Mapping[str, Mapping[str, object]], console: Any) -> None:
    """Print the findings as one table."""
    table = rich_table.Table(title="tandem doctor", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_column(overflow="fold")
    for section, facts in findings.items():
        table.add_section()
        for index, (name, value) in enumerate(facts.items()):
            table.add_row(section if index == 0 else "", name, _format_value(value))
    console.print(table)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{100 * value:.1f} %"
    return str(value).replace("[", "\\[")  # a bracket is markup to rich

"""``tandem doctor``: what is on, what is off, and why."""

import os
import stat
from collections.abc import Mapping
from typing import Any

from . import config, lazy
from .backends.cpu import blas_pointers, native
from .backends.cpu.native import cache, engine
from .backends.cuda import info
from .backends.cuda.devices import device_count
from .operators.devices import INSTALL
from .overhead import coverage, machine
from .registry.function import awaken

Findings = dict[str, dict[str, Any]]


def examine() -> Findings:
    """Everything that `tandem doctor` prints, by section."""
    return {
        "machine": machine.describe(),
        "versions": dict(machine.versions()),
        "settings": {flag.variable: getattr(config.flags, flag.name) for flag in config.FLAGS},
        "native": native_path(),
        "cache": disk_cache(),
        "vector math": vector_math(),
        "blas": blas(),
        "stubs": stubs(),
        "cuda": cuda(),
    }


def native_path() -> dict[str, Any]:
    """Whether calls are answered by machine code."""
    fault = native.why_off()
    return {"on": not fault, **({"why not": fault} if fault else {})}


def disk_cache() -> dict[str, Any]:
    """Where compiled code is kept, how much, and why not if it is not."""
    where, fault = cache.directory(), cache.reason()
    if fault:
        return {"on": False, "why not": fault}
    entries = [entry.stat() for entry in os.scandir(where) if entry.is_file() and entry.name != "key"]
    return {
        "on": True,
        "directory": str(where),
        "mode": oct(stat.S_IMODE(where.stat().st_mode)),
        "entries": len(entries),
        "size": f"{sum(entry.st_size for entry in entries) / 2**20:.1f} MiB",
    }


def vector_math() -> dict[str, Any]:
    """Whether loops call glibc's vector functions, or a polynomial."""
    if native.why_off():
        return {"libmvec": "not used: native code is off"}
    return {
        "libmvec": engine.has_symbol("_ZGVdN8v_expf"),
        "otherwise": "polynomials written in the scalar expressions",
    }


def stubs() -> dict[str, Any]:
    """How much of the table of operators is answered natively: rows are operator x dtype x memory layout."""
    awaken()
    rows = list(coverage.rows())
    by_kind = sorted({row.kind for row in rows})
    found: dict[str, Any] = {"all rows": coverage.share(rows), "rows": len(rows)}
    for kind in by_kind:
        found[kind] = coverage.share([row for row in rows if row.kind == kind])
    return found | {f"failed: {name}": why for name, why in native.failures().items()}


def blas() -> dict[str, Any]:
    """Which of BLAS's matrix products can be called by pointer."""
    found = {name.removeprefix("blas_"): hex(at) for name, at in blas_pointers.pointers().items()}
    if not found:
        return {"by pointer": False, "why not": "scipy.linalg.cython_blas cannot be imported"}
    return {"by pointer": True, **found}


def cuda() -> dict[str, Any]:
    """Whether tensors can lie on a GPU, on which, and why not if not."""
    fault = info.why_unavailable()
    if fault:
        return {"available": False, "why not": f"{fault}: {INSTALL}"}
    found: dict[str, Any] = {"available": True, "cupy": lazy.cupy().__version__}
    for index in range(device_count()):
        it = info.get_device_properties(index)
        found[f"cuda:{index}"] = f"{it.name}, sm_{it.major}{it.minor}, {it.total_memory / 2**30:.1f} GiB"
    return found


def show(findings: Mapping[str, Mapping[str, Any]], console: Any) -> None:
    """Print the findings as one table."""
    table = lazy.rich_table().Table(title="tandem doctor", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_column(overflow="fold")
    for section, facts in findings.items():
        table.add_section()
        for index, (name, value) in enumerate(facts.items()):
            table.add_row(section if index == 0 else "", name, _text(value))
    console.print(table)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{100 * value:.1f} %"
    return str(value).replace("[", "\\[")  # a bracket is markup to rich

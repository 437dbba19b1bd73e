"""The native runtime of a process: loads or compiles the entries of the `rt_*` modules on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..... import lazy, locks
from ... import cache
from ..compiler import engine, lang
from ..entries import (
    rt_assign,
    rt_cached_views,
    rt_elementwise,
    rt_fills,
    rt_gathers,
    rt_inplace,
    rt_jit,
    rt_joins,
    rt_kernels,
    rt_matmul,
    rt_reduce,
    rt_scans,
    rt_subscript,
    rt_views,
)
from ..runtime import rt_backward, rt_base
from . import layout
from .structs import StructMemory, make_process_struct

Function = Callable[..., Any]
_lock = locks.make_lock("runtime")
ELEMENTWISE = rt_elementwise.elementwise
ONE = {"NIN": 1, "NARGS": 2}  # constants of entries with one input
VIEWS = {"reshape": rt_views.RESHAPE, "permute": rt_views.PERMUTE, "broadcast_to": rt_views.BROADCAST}
COPIES = {"clone": rt_views.COPY, "contiguous": rt_views.DENSE, "stop_gradient": rt_views.ALIAS}
CASTS = {"cast": 0, "astype": 1}
FILLS = {"full": -1, "zeros": 0, "ones": 1}

LOOP_CALLS: Any = lazy.Module(".backends.cpu.fastpath.entries.rt_loop_calls")

# Modules of entries that are compiled together: the entries by their kinds, and compile-time constants. A lazy module
# has the entry under the name of its kind.
GROUPS: tuple[tuple[dict[str, Function], dict[str, int]], ...] = (
    *(({f"elementwise{n}": ELEMENTWISE}, {"NIN": n, "NARGS": n + 1}) for n in (1, 3)),
    (
        {"elementwise2": ELEMENTWISE, "elementwise2_swapped": rt_elementwise.elementwise_swapped},
        {"NIN": 2, "NARGS": 3},
    ),
    ({"reduction": rt_reduce.reduction}, ONE),
    ({"jitted": rt_jit.jitted_call, "recorded": rt_jit.recorded_call}, {}),
    ({"kernel_call": rt_kernels.kernel_call}, {}),
    ({"array_kernel_call": rt_kernels.array_kernel_call}, {}),
    ({"loop_call": LOOP_CALLS}, ONE | {"LISTS": 1}),
    ({"backward": rt_backward.backward}, {}),
    ({"subscript": rt_subscript.subscript}, ONE | {"VIEW": rt_views.RESHAPE}),
    ({"assign": rt_assign.assign, "put": rt_assign.put}, ONE | {"VIEW": rt_views.RESHAPE}),
    *(({name: rt_views.view}, ONE | {"VIEW": which}) for name, which in VIEWS.items()),
    *(
        ({name: rt_cached_views.cached_view}, ONE | {"VIEW": rt_views.RESHAPE, "LISTS": lists})
        for lists, name in enumerate(("cached_view", "cached_views"))
    ),
    *(({name: rt_views.copy_or_view}, ONE | {"RESULT": kind}) for name, kind in COPIES.items()),
    *(({f"inplace{n}": rt_inplace.inplace}, {"NIN": n, "NARGS": n + 1}) for n in (1, 2, 3)),
    *(({name: rt_elementwise.cast}, ONE | {"HAS_COPY": known}) for name, known in CASTS.items()),
    ({"scan": rt_scans.scan}, ONE),
    *(({name: rt_fills.fill}, ONE | {"VALUE": value}) for name, value in FILLS.items()),
    ({"matmul": rt_matmul.matmul}, {"NIN": 2, "NARGS": 3}),
    *(({name: rt_joins.join}, ONE | {"STACK": int(name == "stack")}) for name in ("concat", "stack")),
    *(({name: rt_gathers.gather}, ONE | {"TAKE": int(name == "take")}) for name in ("index", "take")),
    ({"basic_index": rt_subscript.basic_index}, ONE | {"VIEW": rt_views.RESHAPE}),
)
OPT_LEVEL = 1  # entries gain nothing from the optimizer's slower passes; loops are compiled separately
KINDS = {kind: group for group in GROUPS for kind in group[0]}


def runtime_ir(kind: str, constants: Mapping[str, Any]) -> str:
    """Return LLVM IR of one kind of entry and those that it is compiled with, exported under their names."""
    return lang.emit(functions_of(kind), {**constants, **KINDS[kind][1]})


def functions_of(kind: str) -> dict[str, Function]:
    """Return the functions of the entries that are compiled with one kind of entry, by their kinds."""
    known = KINDS[kind][0]
    return {
        name: getattr(value, name) if isinstance(value, lazy.Module) else value
        for name, value in known.items()
    }


class Runtime:
    """The compiled entries of this process, and the struct of globals that they share.

    Raises:
        RuntimeError: a slot of a class has an unexpected offset.
    """

    def __init__(self) -> None:
        self.constants = layout.class_constants()
        self.process: StructMemory = make_process_struct()
        self.codes: dict[str, engine.Code] = {}

    def _fingerprint(self, kind: str) -> str:
        return engine.fingerprint(
            *KINDS[kind][0], engine.source_digest(), repr(sorted(self.constants.items()))
        )

    def tick(self) -> int:
        """Advance the clock that orders calls of jitted functions, and return its time."""
        time = self.process.get(rt_base.Globals.jit_clock) + 1
        self.process.set(rt_base.Globals.jit_clock, time)
        return time

    def is_available(self, kind: str) -> bool:
        """Return whether an entry needs no compilation: it is loaded, or in the disk cache."""
        return kind in self.codes or cache.read(self._fingerprint(kind)) is not None

    def entry(self, kind: str) -> int:
        """Return the address of the entry of a kind (see `KINDS`), loaded or compiled on demand."""
        with _lock:
            if kind not in self.codes:
                kinds, imports = list(KINDS[kind][0]), layout.numpy_symbols()
                code = engine.build(
                    self._fingerprint(kind),
                    lambda: runtime_ir(kind, self.constants),
                    kinds,
                    imports,
                    level=OPT_LEVEL,
                )
                self.codes.update(dict.fromkeys(kinds, code))
            return self.codes[kind][kind]

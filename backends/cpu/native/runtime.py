"""The native runtime of this process: entries compiled from the `rt_*` modules, made at first need."""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ....eager.storage import Storage
from . import (
    cache,
    dsl,
    engine,
    jit_layout,
    lang,
    lang_expr,
    layout,
    rt_base,
    rt_build,
    rt_elementwise,
    rt_guards,
    rt_jit,
    rt_memory,
    rt_operands,
    rt_reduce,
    rt_subscript,
    rt_views,
)
from .records import Record, process_record
from .threads import ThreadMirror

_SOURCES: tuple[ModuleType, ...] = (
    *(dsl, lang, lang_expr, layout, rt_base, rt_operands),
    *(rt_memory, rt_elementwise, rt_reduce, rt_views, rt_subscript),
    *(jit_layout, rt_guards, rt_build, rt_jit),
)
# kind of entry: the function and its compile-time constants
KINDS: dict[str, tuple[Callable[..., Any], dict[str, int]]] = {
    **{f"elementwise{n}": (rt_elementwise.elementwise, {"NIN": n, "NARGS": n + 1}) for n in (1, 2, 3)},
    "elementwise2_swapped": (rt_elementwise.elementwise, {"NIN": 2, "NARGS": 3, "SWAPPED": 1}),
    "reduction": (rt_reduce.reduction, {}),
    "jitted": (rt_jit.jitted, {}),
    "subscript": (rt_subscript.subscript, {"VIEW": rt_views.RESHAPE}),
    "reshape": (rt_views.view, {"VIEW": rt_views.RESHAPE}),
    "permute": (rt_views.view, {"VIEW": rt_views.PERMUTE}),
    "broadcast_to": (rt_views.view, {"VIEW": rt_views.BROADCAST}),
}


def _source_digest() -> str:
    """Changes with the text of anything that the runtime's code follows from."""
    digest = hashlib.sha256()
    for module in _SOURCES:
        digest.update(inspect.getsource(module).encode())
    return digest.hexdigest()


def runtime_ir(kind: str, constants: Mapping[str, Any]) -> str:
    """LLVM IR of one kind of entry, exported under its name."""
    function, own = KINDS[kind]
    return lang.emit({kind: function}, {**constants, **own})


class Runtime:
    """Entries and the process record.

    Args:
        tensor: the Tensor class.

    Raises:
        RuntimeError: a slot of the class is not where it should be.
    """

    def __init__(self, tensor: type) -> None:
        self.constants = layout.class_constants(tensor, Storage)
        self.process: Record = process_record(tensor)
        self.threads = ThreadMirror(self.process)
        self.codes: dict[str, engine.Code] = {}
        self._lock = threading.Lock()

    def _fingerprint(self, kind: str) -> str:
        return engine.fingerprint(kind, _source_digest(), repr(sorted(self.constants.items())))

    def ready(self, kind: str) -> bool:
        """Whether an entry can be had without compiling: it is loaded, or in the disk cache."""
        return kind in self.codes or cache.read(self._fingerprint(kind)) is not None

    def entry(self, kind: str) -> int:
        """The address of the entry of a kind (see `KINDS`), loaded or compiled at first need."""
        with self._lock:
            if kind not in self.codes:
                imports = layout.numpy_symbols()
                self.codes[kind] = engine.build(
                    self._fingerprint(kind), lambda: runtime_ir(kind, self.constants), [kind], imports
                )
            return self.codes[kind][kind]

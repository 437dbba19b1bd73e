"""LLVM IR to machine code in this process: optimise, emit an object, link it, and keep the object on disk.

`compile_ir(ir, exports)` returns the addresses of the exported functions. Code refers to everything outside itself by
name (CPython, NumPy, libc, libm, libmvec), so that its object is position free and can be cached.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import platform
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .... import lazy
from ..emit.text import NEXT_MODULE
from . import cache, linker

_lock = threading.RLock()
_serial = itertools.count()
_shared: list[Any] = []  # [target machine, libraries kept open]; made at first use
VECTOR_LIBRARIES = ("libm.so.6", "libmvec.so.1")


class Code(dict[str, int]):
    """Addresses of linked functions by name. The code is unloaded when this object goes, or by `release`."""

    def __init__(self, addresses: Mapping[str, int], memory: Any, from_cache: bool) -> None:
        super().__init__(addresses)
        self.memory, self.from_cache = memory, from_cache

    def release(self) -> None:
        """Unload the code now. The caller guarantees that no thread is inside it."""
        with _lock:
            self.clear()
            self.memory = None


def _open_libraries() -> list[Any]:
    """Make libm's and libmvec's functions visible to the linker; a missing one is no error until it is named."""
    found = []
    for name in VECTOR_LIBRARIES:
        try:
            found.append(ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL))
        except OSError:
            continue
    return found


def has_symbol(name: str) -> bool:
    """Whether a C symbol (say `_ZGVdN8v_expf`) can be linked in this process."""
    with _lock:
        _machine()
        return any(hasattr(lib, name) for lib in [*_shared[1], ctypes.pythonapi])


def _machine() -> Any:
    """The target machine of this host (made once, under the lock)."""
    if not _shared:
        binding = lazy.llvmlite_binding()
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        target = binding.Target.from_triple(binding.get_process_triple())
        machine = target.create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            opt=3,
            reloc="pic",
            codemodel="default",
        )
        _shared.extend([machine, _open_libraries()])
    return _shared[0]


def host() -> str:
    """What machine code depends on, as text: processor, its features, versions."""
    binding = lazy.llvmlite_binding()
    features = binding.get_host_cpu_features().flatten()
    versions = f"python {platform.python_version()} numpy {np.__version__} llvm {binding.llvm_version_info}"
    return f"{binding.get_process_triple()} {binding.get_host_cpu_name()} {features} {versions}"


def fingerprint(*parts: str | bytes) -> str:
    """The cache key of code made from these parts on this host."""
    digest = hashlib.sha256()
    for part in (host(), cache.FORMAT, *parts):
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


def _object(ir: str, level: int) -> bytes:
    """Optimise a module and emit its object code."""
    binding, machine = lazy.llvmlite_binding(), _machine()
    module, *others = map(binding.parse_assembly, ir.split(NEXT_MODULE))
    for other in others:
        module.link_in(other)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = level > 1
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    emitted: bytes = machine.emit_object(module)
    return emitted


def _link(image: bytes, exports: Iterable[str], imports: Mapping[str, int], from_cache: bool) -> Code:
    _machine()
    names = list(exports)
    try:
        parts = linker.Object(image)
        memory, found = linker.link(parts, names, _addresses(parts.undefined(), imports))
        return Code(found, memory, from_cache)
    except linker.UnsupportedObjectError:
        tracker = _llvm_link(image, names, imports)
    return Code({name: tracker[name] for name in names}, tracker, from_cache)


def _addresses(names: Iterable[str], imports: Mapping[str, int]) -> dict[str, int]:
    """The addresses of what a module has from outside."""
    found, lost, process = {}, [], ctypes.CDLL(None)
    for name in names:
        try:
            found[name] = imports.get(name) or ctypes.addressof(ctypes.c_char.in_dll(process, name))
        except ValueError:
            lost.append(name)
    if lost:
        raise RuntimeError(f"not found in this process: {', '.join(sorted(lost))}")
    return found


@functools.cache
def _llvm_linker() -> Any:
    """LLVM's linker: for other processors, and for objects with more than code and data."""
    return lazy.llvmlite_binding().create_lljit_compiler(_machine(), use_jit_link=True, suppress_errors=True)


def _llvm_link(image: bytes, exports: list[str], imports: Mapping[str, int]) -> Any:
    """Addresses by name; the code goes with the object."""
    builder = lazy.llvmlite_binding().JITLibraryBuilder().add_object_img(image).add_current_process()
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    return builder.link(_llvm_linker(), f"tandem-{next(_serial)}")


def build(
    key: str,
    make_ir: Callable[[], str],
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
    *,
    level: int = 3,
) -> Code:
    """Link the object stored under `key`, or make it from `make_ir()` and store it.

    Args:
        key: a `fingerprint` of everything that the IR depends on.
        make_ir: returns the module's IR text; called only when the object is not cached.
        exports: functions whose addresses are wanted.
        imports: addresses of symbols that are not found by name in the process.
        level: LLVM optimisation level.

    Returns:
        The addresses, by name. Keep the object as long as the code may run.

    Raises:
        RuntimeError: the IR does not parse or verify, or a symbol is missing.
    """
    with _lock:
        image = cache.read(key)
        if image is not None:
            try:
                return _link(image, exports, imports or {}, True)
            except RuntimeError:
                cache.remove(key)  # made where a symbol existed that is missing here: build it again
        image = _object(make_ir(), level)
        code = _link(image, exports, imports or {}, False)
        cache.write(key, image)
        return code


def compile_ir(
    ir: str, exports: Iterable[str], imports: Mapping[str, int] | None = None, *, level: int = 3
) -> Code:
    """Compile LLVM IR text, or load it from the disk cache.

    Args:
        ir: the module. External functions are named as in C.
        exports: functions whose addresses are wanted.
        imports: addresses of symbols that are not found by name in the process.
        level: LLVM optimisation level.

    Returns:
        The addresses, by name (a dict). The code lives as long as this object; `release()` frees it sooner.

    Raises:
        RuntimeError: the IR does not parse or verify, or a symbol is missing.

    Example:
        >>> from tandem.backends.cpu.native import engine
        >>> code = engine.compile_ir("define i64 @twice(i64 %x) { %y = add i64 %x, %x ret i64 %y }", ["twice"])
        >>> __import__("ctypes").CFUNCTYPE(*[__import__("ctypes").c_int64] * 2)(code["twice"])(21)
        42
    """
    names = list(exports)
    return build(fingerprint(ir, str(level), *names), lambda: ir, names, imports, level=level)

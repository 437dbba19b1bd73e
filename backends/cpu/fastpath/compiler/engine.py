"""LLVM IR to machine code in this process: optimize, emit an object, link it, store the object in the disk cache.

`compile_ir(ir, exports)` returns the addresses of the exported functions. Code refers to external functions by name
(CPython, NumPy, libc, libm), so its object is position independent and can be cached. Emitted code does not call
libmvec: its elementary functions are polynomials (`codegen/functions/table.py`). Users' LLVM kernels may.

LLVM runs on a thread of its own (`background.run`): llvmlite frees a handle twice if an interrupt arrives between
freeing it and recording that. Each module is parsed into its own context, freed with it; the global context would keep
the constants of all modules.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from ..... import background, lazy, locks
from ... import cache, codegen, linker, target

binding = lazy.Module("llvmlite.binding")
_passes = lazy.Module(".backends.cpu.fastpath.compiler.passes")

P = ParamSpec("P")
T = TypeVar("T")
_lock = locks.make_lock("engine")
_serial = itertools.count()
MATH_LIBRARIES = ("libm.so.6", "libmvec.so.1")
FAST_CODE, BEST_CODE = 0, 3  # levels of LLVM's code generators
LAST_BROKEN_COMBINE = 22
"""The last version of LLVM known to end the process where its pass VectorCombine meets a shuffle of two selects of
vectors, one by a scalar and one by a vector: ``concat`` or ``roll`` of what a branch chooses. The pass is off there."""
LAST_CHECKED_OPTIONS = 22
"""The last version of LLVM whose options are known here: it ends the process where it does not know one."""


class Passes(Enum):
    """Names what LLVM does with a module before it emits machine code.

    Attributes:
        QUICK: inline what is marked for it, and emit the code instruction by instruction, without scheduling: a tenth
            of the time. For code that runs a few times in a call and leaves the loops to other functions.
        CLEAN: fold and remove instructions. For micro-kernels, whose registers and loops are written out.
        FUNCTIONS: inline what is marked for it, then simplify each function by itself, with its loops; no vectors.
        MODULE: also inline what is short, and share what functions know; LLVM's level 1 without vectors.
        UNROLL: LLVM's level 2, which also unrolls loops and makes vectors of them.
        VECTORS: LLVM's level 3. For loops over elements that are written for one element at a time.
    """

    QUICK = "quick"
    CLEAN = "clean"
    FUNCTIONS = "functions"
    MODULE = "module"
    UNROLL = "unroll"
    VECTORS = "vectors"


class KeepFirst(Generic[P, T]):
    """A cache like :func:`functools.cache`, in which the result that is stored first stays.

    Where several threads call at once, ``functools.cache`` keeps the last result and drops the others, which their
    callers use already: code would be unloaded under the addresses that were read from it.
    """

    def __init__(self, function: Callable[P, T]) -> None:
        self.function = function
        self.results: dict[tuple[Any, ...], T] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (*args, *kwargs.items())
        if key not in self.results:
            self.results.setdefault(key, self.function(*args, **kwargs))
        return self.results[key]


class Code(dict[str, int]):
    """Addresses of linked functions by name. The code is unloaded when this object is freed, or by `release`."""

    def __init__(self, addresses: Mapping[str, int], memory: Any, from_cache: bool) -> None:
        super().__init__(addresses)
        self.memory, self.from_cache = memory, from_cache

    def release(self) -> None:
        """Unload the code now. The caller guarantees that no thread is inside it."""
        with _lock:
            self.clear()
            self.memory = None


@KeepFirst
def _open_libraries() -> list[Any]:
    """Make the functions of libm, and of libmvec for users' kernels, visible to the linker; skip a missing library."""
    result = []
    for name in MATH_LIBRARIES:
        try:
            result.append(ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL))
        except OSError:
            continue
    return result


def has_symbol(name: str) -> bool:
    """Return whether a user's LLVM kernel can call a C function, such as libmvec's `_ZGVdN8v_expf`."""
    return any(hasattr(lib, name) for lib in [*_open_libraries(), ctypes.pythonapi])


@KeepFirst
def _machine(level: int = BEST_CODE) -> Any:
    """Return LLVM's target machine for this processor; runs in the background, like every call of LLVM.

    Args:
        level: 0 to 3, how much is done for the quality of machine code.
    """
    host = target.find_target()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    if binding.llvm_version_info[0] <= LAST_BROKEN_COMBINE:
        binding.set_option("tandem", "-disable-vector-combine")
    if target.IS_X86 and binding.llvm_version_info[0] <= LAST_CHECKED_OPTIONS:
        # A pass makes branches of conditional moves that a loop waits for; most of them are not predictable.
        binding.set_option("tandem", "-x86-cmov-converter=false")
    return binding.Target.from_triple(host.triple).create_target_machine(
        cpu=host.cpu, features=host.features, opt=level, reloc="pic", codemodel="default"
    )


@functools.cache
def describe_target() -> str:
    """Return everything about this machine that code depends on, as text: processor, features, versions."""
    host = target.find_target()
    versions = f"python {platform.python_version()} numpy {np.__version__} llvm {host.llvm}"
    return f"{host.triple} {host.cpu} {host.features} {versions}"


def parse_ir(ir: str, use: Callable[[Any], Any]) -> Any:
    """Parse and verify a text, return the result of `use(module)`, and free the module.

    Raises:
        RuntimeError: the text does not parse or verify.
    """

    def parse() -> Any:
        with contextlib.ExitStack() as stack:
            context = stack.enter_context(binding.create_context())
            texts = ir.split(linker.NEXT_MODULE)
            module, *others = (stack.enter_context(binding.parse_assembly(t, context)) for t in texts)
            for other in others:
                module.link_in(other)
            module.verify()
            return use(module)

    return background.run(parse)


def fingerprint(*parts: str | bytes) -> str:
    """Return the cache key of code made from these parts on this host."""
    texts = (
        part.encode() if isinstance(part, str) else part for part in (describe_target(), cache.FORMAT, *parts)
    )
    return cache.digest(*(len(text).to_bytes(8, "little") + text for text in texts)).hex()


@functools.cache
def source_digest(*paths: str) -> str:
    """Return a digest of some source files, of those in some folders, and of the compiler and the native functions."""
    folders = (os.path.dirname(os.path.dirname(__file__)), *paths)
    files = (path for name in folders for path in (_source_files(name) if os.path.isdir(name) else [name]))
    return cache.digest(*map(_read_bytes, files)).hex()


def _read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _source_files(folder: str) -> list[str]:
    """Return the paths of the Python files in a folder and in its subfolders, sorted."""
    paths = (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return sorted(path for path in paths if path.endswith(".py"))


def _object(ir: str, passes: Passes) -> bytes:
    """Optimize a module and return its object code."""
    machine = _machine(FAST_CODE if passes is Passes.QUICK else BEST_CODE)

    def emitted(module: Any) -> bytes:
        _passes.run_passes(module, machine, passes)
        return bytes(machine.emit_object(module))

    return bytes(parse_ir(ir, emitted))


def _link(image: bytes, exports: Iterable[str], imports: Mapping[str, int], from_cache: bool) -> Code:
    _open_libraries()
    names = list(exports)
    try:
        parts = linker.Object(image)
        memory, value = linker.link(parts, names, _addresses(parts.undefined(), imports))
        return Code(value, memory, from_cache)
    except linker.UnsupportedObjectError:
        tracker = _llvm_link(image, names, imports)
    return Code({name: tracker[name] for name in names}, tracker, from_cache)


def _addresses(names: Iterable[str], imports: Mapping[str, int]) -> dict[str, int]:
    """Return the addresses of a module's external symbols."""
    result, lost, process = {}, [], ctypes.CDLL(None)
    for name in names:
        try:
            result[name] = imports.get(name) or ctypes.addressof(ctypes.c_char.in_dll(process, name))
        except ValueError:
            lost.append(name)
    if lost:
        raise RuntimeError(f"not found in this process: {', '.join(sorted(lost))}")
    return result


@KeepFirst
def _llvm_linker() -> Any:
    """Return LLVM's linker, for other processors and for objects that `linker` does not support."""
    return binding.create_lljit_compiler(_machine(), use_jit_link=True, suppress_errors=True)


def _llvm_link(image: bytes, exports: list[str], imports: Mapping[str, int]) -> Any:
    """Return addresses by name; the code is freed with the object."""
    builder = binding.JITLibraryBuilder().add_object_img(image).add_current_process()
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
    passes: Passes = Passes.VECTORS,
) -> Code:
    """Link the object stored under `key`, or make it from `make_ir()` and store it.

    Args:
        key: a `fingerprint` of everything that the IR depends on.
        make_ir: returns the module's IR text; called only when the object is not cached.
        exports: functions whose addresses are wanted.
        imports: addresses of symbols that are not found by name in the process.
        passes: what LLVM does before it emits the code.

    Returns:
        The addresses, by name. Keep the object as long as the code may run.

    Raises:
        RuntimeError: the IR does not parse or verify, or a symbol is missing.
    """
    return background.run(_build, key, make_ir, list(exports), imports or {}, passes)


def _build(
    key: str, make_ir: Callable[[], str], exports: list[str], imports: Mapping[str, int], passes: Passes
) -> Code:
    with _lock:
        image = cache.read(key)
        if image is not None:
            try:
                return _link(image, exports, imports, True)
            except RuntimeError:
                cache.remove(key)  # built where a symbol existed that is missing here: rebuild
        image = _object(make_ir(), passes)
        code = _link(image, exports, imports, False)
        cache.write(key, image)
        return code


def compile_ir(
    ir: str,
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
    *,
    passes: Passes = Passes.VECTORS,
) -> Code:
    """Compile LLVM IR text, or load it from the disk cache.

    Args:
        ir: the module. External functions are named as in C.
        exports, imports, passes: as for `build`.

    Returns:
        The addresses, by name (a dict). The code lives as long as this object; `release()` frees it sooner.

    Raises:
        RuntimeError: the IR does not parse or verify, or a symbol is missing.

    Example:
        >>> from tandem.backends.cpu.fastpath.compiler import engine
        >>> code = engine.compile_ir("define i64 @twice(i64 %x) { %y = add i64 %x, %x ret i64 %y }", ["twice"])
        >>> __import__("ctypes").CFUNCTYPE(*[__import__("ctypes").c_int64] * 2)(code["twice"])(21)
        42
    """
    names = list(exports)
    return build(fingerprint(ir, repr(passes), *names), lambda: ir, names, imports, passes=passes)


def build_once(
    name: str,
    make_ir: Callable[[], str],
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
    *,
    passes: Passes = Passes.VECTORS,
) -> Code | None:
    """Return the code of a module that is built once per machine and version, which cold calls need too.

    Its cache key is a digest of its sources, so a process that finds it in the disk cache writes no IR.

    Args:
        name: identifies the module, together with the digest of the sources of emitted code.
        make_ir, exports, imports, passes: as for `build`.

    Returns:
        The code; None, with a warning, if it cannot be built.
    """
    try:
        sources = source_digest(os.path.dirname(str(codegen.__file__)), str(target.__file__))
        return build(fingerprint(name, repr(passes), sources), make_ir, exports, imports, passes=passes)
    except (RuntimeError, OSError, ImportError) as error:
        text = f"{name}: NumPy's code is used, whose last bits may differ from compiled code's: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return None

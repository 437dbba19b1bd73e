"""Lazy imports of heavy packages and of the package's own modules.

``import tandem`` loads NumPy and nothing heavier. Other modules are imported by the function named after the module, at
the first use; later calls are one dictionary lookup:

>>> import tandem.lazy
>>> tandem.lazy.is_installed("numpy"), tandem.lazy.is_installed("no_such_package")
(True, False)
"""

import gc
import importlib
import sys
from _thread import get_ident
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from . import background, locks

_gate = locks.make_lock("imports")  # held for a moment only, by threads that begin an import, and by a fork
_importing: list[int] = []  # the threads that import by themselves, once for each import


@cache
def module(name: str) -> ModuleType:
    """The module called ``name``, imported at the first call; raises ImportError when it is missing.

    The import is not interrupted by signals, so that what it declares is declared as a whole, and a fork waits for it.
    """
    cached = sys.modules.get(name)
    if cached is not None and not _is_loading(cached):
        return cached
    if locks.is_any_owned() or _is_importing():
        return _import_here(name)
    return background.run(importlib.import_module, name)


def _import_here(name: str) -> ModuleType:
    """Import a module in this thread; a fork in another one waits, because the child could never import it."""
    thread = get_ident()
    try:
        with _gate:
            _importing.append(thread)
        return importlib.import_module(name)
    finally:
        if thread in _importing:
            _importing.remove(thread)


def _is_fork_possible() -> bool:
    return all(thread == get_ident() for thread in _importing)


locks.fork_conditions.append(_is_fork_possible)


def _is_loading(known: ModuleType) -> bool:
    return bool(getattr(vars(known).get("__spec__"), "_initializing", False))


def _is_importing() -> bool:
    """Whether some module is being imported, perhaps by this thread, for which another thread would wait."""
    return background.is_idle() and any(
        _is_loading(value) for value in list(sys.modules.values()) if isinstance(value, ModuleType)
    )


@cache
def machinery(name: str) -> ModuleType:
    """A module of the package that loads many others, imported while the garbage collector is off.

    What an import creates stays alive, and the collector would traverse it several times meanwhile.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return module(f"{__package__}.{name}")
    finally:
        if collects:
            gc.enable()


class Functions:
    """The functions of a module of the package, each a stand-in that imports the module when it is called.

    >>> from tandem.lazy import Functions
    >>> Functions("units").format_size(2048)
    '2 KiB'
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(module(f"{__package__}.{self._name}"), name)(*args, **kwargs)

        call.__name__ = call.__qualname__ = name
        return call


@cache
def is_installed(name: str) -> bool:
    """Whether a package called ``name`` could be imported; nothing is imported to find out."""
    return module("importlib.util").find_spec(name) is not None


@cache
def version(distribution: str) -> str | None:
    """The installed version of a distribution, or None; nothing is imported to find out."""
    metadata = module("importlib.metadata")  # it brings the email package along
    try:
        return str(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return None


def jit_machinery() -> ModuleType:
    """The implementation of ``jit``: tracer, lowering and the CPU's compiler."""
    return machinery("jit.function")


def batched_layer() -> ModuleType:
    """The implementation of ``vmap``."""
    return machinery("eager.layers.vmap.mapping")


def recomputation() -> ModuleType:
    """The implementation of ``checkpoint``."""
    return module(f"{__package__}.eager.autograd.recompute")


def control_machinery(part: str) -> ModuleType:
    """``loops``, ``mapping``, ``branches`` or ``associative`` of control flow; tracer and lowering come along."""
    jit_machinery()
    return module(f"{__package__}.control.{part}")


def functionalize_machinery() -> ModuleType:
    """The implementation of ``functionalize``: the Functionalize key's kernel."""
    return module(f"{__package__}.eager.layers.functionalize_kernel")


def batching_rules() -> ModuleType:
    """The registry of custom batching rules."""
    return module(f"{__package__}.eager.layers.vmap.rules")


def native_layer() -> ModuleType:
    """The native call path."""
    return machinery("backends.cpu.fastpath")


def native_random_bits() -> ModuleType:
    """Random bits from native code."""
    return module(f"{__package__}.backends.cpu.kernels.random_bits")


def custom_machinery() -> ModuleType:
    """The implementation of ``custom_op``."""
    return module(f"{__package__}.custom.define")


def user_kernels() -> ModuleType:
    """Kernels in other languages."""
    return module(f"{__package__}.custom.kernels")


def debug_machinery(part: str) -> ModuleType:
    """``callbacks``, ``printing``, ``nan_mode`` or ``checks`` of debugging."""
    return module(f"{__package__}.debug.{part}")


def op_extensions() -> Any:
    """Registrations for any operator by its name."""
    return module(f"{__package__}.custom.extend")


def op_checker() -> ModuleType:
    """``opcheck``."""
    return module(f"{__package__}.custom.opcheck")


def sparse_machinery(part: str) -> ModuleType:
    """``construct`` or ``kernels`` of sparse tensors."""
    module(f"{__package__}.backends.cpu.kernels.sparse_quantized")
    return module(f"{__package__}.eager.sparse.{part}")


def quantized_machinery(part: str) -> ModuleType:
    """``construct`` or ``kernels`` of quantized tensors."""
    module(f"{__package__}.backends.cpu.kernels.sparse_quantized")
    return module(f"{__package__}.eager.quantized.{part}")


def scipy_sparse() -> ModuleType:
    """The module ``scipy.sparse``."""
    return module("scipy.sparse")


def llvmlite_binding() -> ModuleType:
    """The module ``llvmlite.binding``."""
    return module("llvmlite.binding")


def llvmlite_ir() -> ModuleType:
    """The module ``llvmlite.ir``."""
    return module("llvmlite.ir")


def cffi_backend() -> ModuleType:
    """The module ``_cffi_backend``."""
    return module("_cffi_backend")


def nvrtc() -> ModuleType:
    """cupy's binding of NVRTC; it is an attribute of ``cupy.cuda`` and cannot be imported by that name."""
    result: ModuleType = module("cupy.cuda").nvrtc
    return result


def cupy() -> ModuleType:
    """The module ``cupy``."""
    return module("cupy")


def cupy_cublas() -> ModuleType:
    """cupy's binding of cuBLAS.

    The attribute of ``cupy.cuda`` loads the libcublas that pip has installed first; ``import_module`` of the binding by
    its dotted name would not, and fails unless the system's loader finds the library.
    """
    result: ModuleType = module("cupy.cuda").cublas
    return result


def cuda_backend() -> ModuleType:
    """The CUDA backend."""
    return module(f"{__package__}.backends.cuda.load")


def cuda_compiler() -> ModuleType:
    """The compiler of graphs for ``"cuda"``."""
    return module(f"{__package__}.backends.cuda.launches.compile")


def cuda_user_kernels() -> ModuleType:
    """Kernels that users write in CUDA C."""
    return module(f"{__package__}.backends.cuda.kernels.foreign")


def networkx() -> ModuleType:
    """The module ``networkx``."""
    return module("networkx")


def special_functions(xp: Any) -> Any:
    """SciPy's special functions for the arrays of a module with NumPy's functions, which may bring its own."""
    return getattr(xp, "special", None) or scipy_special()


def scipy_special() -> ModuleType:
    """The module ``scipy.special``."""
    return module("scipy.special")


def scipy_cython_blas() -> ModuleType:
    """The module ``scipy.linalg.cython_blas``."""
    return module("scipy.linalg.cython_blas")


def matplotlib_figure() -> ModuleType:
    """matplotlib.figure: pictures go to files, so neither pyplot nor a display is needed."""
    return module("matplotlib.figure")


def matplotlib_patches() -> ModuleType:
    """The module ``matplotlib.patches``."""
    return module("matplotlib.patches")


def rich_console() -> ModuleType:
    """The module ``rich.console``."""
    return module("rich.console")


def rich_table() -> ModuleType:
    """The module ``rich.table``."""
    return module("rich.table")


def rich_progress() -> ModuleType:
    """The module ``rich.progress``."""
    return module("rich.progress")

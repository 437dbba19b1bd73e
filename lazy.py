"""Heavy packages, loaded at first use.

``import tandem`` loads NumPy and nothing heavier.  Whoever needs more calls the function named after the
module, at the moment of use, and every later call is one dictionary lookup:

>>> import tandem.lazy
>>> tandem.lazy.installed("numpy"), tandem.lazy.installed("no_such_package")
(True, False)
"""

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any


@cache
def module(name: str) -> ModuleType:
    """The module called ``name``, imported at the first call; raises ImportError when it is missing."""
    return importlib.import_module(name)


class Functions:
    """The functions of a module of the package, each a stand-in that imports the module when it is called.

    >>> from tandem.lazy import Functions
    >>> Functions("units").size(2048)
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
def installed(name: str) -> bool:
    """Whether a package called ``name`` could be imported; nothing is imported to find out."""
    return importlib.util.find_spec(name) is not None


@cache
def version(distribution: str) -> str | None:
    """The installed version of a distribution, or None; nothing is imported to find out."""
    metadata = module("importlib.metadata")  # it brings the email package along
    try:
        return str(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return None


def jit_machinery() -> ModuleType:
    """What ``jit`` runs on: tracer, lowering and the CPU's compiler."""
    return module(f"{__package__}.compiled.function")


def batched_layer() -> ModuleType:
    """What ``vmap`` runs on."""
    return module(f"{__package__}.eager.batched.mapping")


def recomputation() -> ModuleType:
    """What ``checkpoint`` runs on."""
    return module(f"{__package__}.eager.recompute")


def control_machinery(part: str) -> ModuleType:
    """``loops``, ``mapping``, ``branches`` or ``associative`` of control flow; tracer and lowering come along."""
    module(f"{__package__}.compiled.function")
    return module(f"{__package__}.control.{part}")


def functionalize_machinery() -> ModuleType:
    """What ``functionalize`` runs on: the Functionalize key's kernel."""
    return module(f"{__package__}.eager.functionalize_run")


def batching_rules() -> ModuleType:
    """Where batching rules from outside are registered."""
    return module(f"{__package__}.eager.batched.rules")


def native_layer() -> ModuleType:
    """The native call path."""
    return module(f"{__package__}.backends.cpu.native")


def native_words() -> ModuleType:
    """Random words in machine code."""
    return module(f"{__package__}.backends.cpu.words_eager")


def custom_machinery() -> ModuleType:
    """What makes operators of users' functions."""
    return module(f"{__package__}.custom.define")


def user_kernels() -> ModuleType:
    """Kernels in other languages."""
    return module(f"{__package__}.custom.kernels")


def debug_machinery(part: str) -> ModuleType:
    """``callbacks``, ``printing``, ``nan_mode`` or ``checks`` of debugging."""
    return module(f"{__package__}.debug.{part}")


def op_checker() -> ModuleType:
    """``opcheck``."""
    return module(f"{__package__}.custom.opcheck")


def sparse_machinery(part: str) -> ModuleType:
    """``make`` or ``ops`` of sparse tensors."""
    module(f"{__package__}.backends.cpu.layout_kernels")
    return module(f"{__package__}.eager.sparse_{part}")


def quantized_machinery(part: str) -> ModuleType:
    """``make`` or ``ops`` of quantized tensors."""
    module(f"{__package__}.backends.cpu.layout_kernels")
    return module(f"{__package__}.eager.quantized_{part}")


def scipy_sparse() -> ModuleType:
    return module("scipy.sparse")


def llvmlite_binding() -> ModuleType:
    return module("llvmlite.binding")


def llvmlite_ir() -> ModuleType:
    return module("llvmlite.ir")


def cffi_backend() -> ModuleType:
    return module("_cffi_backend")


def nvrtc() -> ModuleType:
    """cupy's binding of NVRTC, an attribute of ``cupy.cuda`` that is no module by that name."""
    found: ModuleType = module("cupy.cuda").nvrtc
    return found


def cupy() -> ModuleType:
    return module("cupy")


def cuda_backend() -> ModuleType:
    """What tensors on ``"cuda"`` run on."""
    return module(f"{__package__}.backends.cuda.load")


def cuda_compiler() -> ModuleType:
    """What compiles graphs for ``"cuda"``."""
    return module(f"{__package__}.backends.cuda.compile")


def cuda_user_kernels() -> ModuleType:
    """What runs kernels that users write in CUDA C."""
    return module(f"{__package__}.backends.cuda.user_kernels")


def networkx() -> ModuleType:
    return module("networkx")


def special_functions(xp: Any) -> Any:
    """SciPy's special functions for the arrays of a module with NumPy's functions, which may bring its own."""
    return getattr(xp, "special", None) or scipy_special()


def scipy_special() -> ModuleType:
    return module("scipy.special")


def scipy_cython_blas() -> ModuleType:
    return module("scipy.linalg.cython_blas")


def matplotlib_figure() -> ModuleType:
    """matplotlib.figure: pictures go to files, so neither pyplot nor a display is needed."""
    return module("matplotlib.figure")


def matplotlib_patches() -> ModuleType:
    return module("matplotlib.patches")


def rich_console() -> ModuleType:
    return module("rich.console")


def rich_table() -> ModuleType:
    return module("rich.table")


def rich_progress() -> ModuleType:
    return module("rich.progress")

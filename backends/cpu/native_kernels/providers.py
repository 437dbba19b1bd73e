"""Providers of inner loops: NumPy's and SciPy's ufunc objects, and loops that tandem emits.

The modules of NumPy and SciPy are private and differ between versions. A loop is used only if the fields of its ufunc
object are where they were found in other versions, and if it computes the same bits as the ufunc for a small call;
otherwise :func:`find_loop` returns None and notes the reason, which ``tandem doctor`` prints.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .... import lazy
from ....lowering.layout import contiguous
from ....named_tuple import NamedTuple
from ....registry.dtypes import DType, complex128, float64
from ..fastpath.compiler.engine import KeepFirst
from ..fastpath.glue.layout import find_inner_loop, find_ufunc_fault
from ..fastpath.runtime.rt_loops import Failures
from .tables import CoreShapes, make_call_table, parse_signature

convolutions = lazy.Module(".backends.cpu.native_kernels.convolutions")
emitted = lazy.Module(".backends.cpu.native_kernels.emitted")
loop_code = lazy.Module(".backends.cpu.native_kernels.loop_code")


class Loop(NamedTuple):
    """An inner loop in memory.

    Attributes:
        symbol: its name in emitted code; loops of one name are the same code.
        address: its address.
        data: the address that is passed to it, or 0; it is valid as long as the process lives.
        signature: the names of the core sizes of each operand.
        failures: how it reports that it failed, a member of ``Failures``.
        may_raise: whether it may set a Python exception: of a failed allocation, or of ``special.errstate``.
        words: the integers whose address is passed to it instead of `data`; each caller has a copy of them.
    """

    symbol: str
    address: int
    data: int
    signature: CoreShapes
    failures: int
    may_raise: bool
    words: tuple[int, ...] = ()


class UfuncProvider(NamedTuple):
    """A module that has ufuncs.

    Attributes:
        name: its name.
        module: the module, imported when it is first used.
        failures: how its loops report that they failed.
        is_double: whether its functions convert operands to double precision, so that its other loops are not used.
    """

    name: str
    module: Any
    failures: int = Failures.NEVER
    is_double: bool = False

    def find(self, name: str, dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> Loop | str | None:
        """Return the loop of a ufunc for operands and results of these dtypes; without one, None or the reason."""
        try:
            ufunc = getattr(self.module, name, None)
        except ImportError as error:
            return f"{self.name} cannot be imported: {error}"
        if not isinstance(ufunc, np.ufunc):
            return f"{self.name} has no ufunc of that name"
        fault = find_ufunc_fault(ufunc)
        if fault or (self.is_double and dtypes[0] not in (float64, complex128)):
            return fault or None
        addresses = find_inner_loop(ufunc, dtypes)
        if addresses is None:
            return None
        signature = parse_signature(ufunc.signature or "()" * (ufunc.nin + ufunc.nout))
        symbol = re.sub(r"\W", "_", f"{self.name}_{name}_{'_'.join(dtype.name for dtype in dtypes)}")
        loop = Loop(symbol, *addresses, signature, self.failures, True)
        return (
            loop
            if _computes_the_same(ufunc, loop, dtypes)
            else "its loop computes something else than it does"
        )


class EmittedProvider:
    """Loops of this package, in the native language."""

    def find(self, name: str, dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> Loop | str | None:
        """Return a loop for operands and results of these dtypes and core sizes; None, or the reason, without one."""
        result: Loop | str | None = emitted.find(name, dtypes, sizes)
        return result


class FoldProvider:
    """The loops of eager reductions."""

    def find(self, name: str, dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> Loop | str | None:
        """Return the loop of a fold over rows or columns; the reason without one."""
        result: Loop | str = emitted.find_fold(name, dtypes)
        return result


class ConvolutionProvider:
    """Convolutions, a loop for each number of axes."""

    def find(self, name: str, dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> Loop | str | None:
        """Return the loop for a number of axes; None, or the reason, without one."""
        result: Loop | str | None = convolutions.find(name, dtypes)
        return result


PROVIDERS: dict[str, Any] = {
    "tandem": EmittedProvider(),
    "folds": FoldProvider(),
    "convolution": ConvolutionProvider(),
    "numpy": UfuncProvider("numpy", np),
    "numpy.linalg": UfuncProvider(
        "numpy.linalg._umath_linalg", lazy.Module("numpy.linalg._umath_linalg"), Failures.FLAG, is_double=True
    ),
    "numpy.fft": UfuncProvider("numpy.fft._pocketfft_umath", lazy.Module("numpy.fft._pocketfft_umath")),
    "scipy.special": UfuncProvider("scipy.special", lazy.Module("scipy.special"), is_double=True),
    "scipy.special._ufuncs": UfuncProvider(
        "scipy.special._ufuncs", lazy.Module("scipy.special._ufuncs"), is_double=True
    ),
}


SPLIT_NAMES: dict[str, Callable[[str], tuple[str, tuple[int, ...]]]] = {
    "convolution": lambda name: convolutions.split_name(name)
}
"""How to split names that have the sizes of a call into the name of a loop and the words that are passed to it.

There are as many of these names as calls, so nothing is kept for them."""

UFUNC_MODULES = frozenset(name for name, provider in PROVIDERS.items() if isinstance(provider, UfuncProvider))
"""The providers that are modules of other packages."""


def has_ufunc(provider: str, name: str) -> bool:
    """Return whether a provider's module has a ufunc whose fields are where they are expected."""
    try:
        ufunc = getattr(PROVIDERS[provider].module, name, None)
    except ImportError:
        return False
    return isinstance(ufunc, np.ufunc) and not find_ufunc_fault(ufunc)


faults: dict[str, str] = {}
"""Why loops that were asked for cannot be used, by provider and name."""


def find_loop(
    provider: str, name: str, dtypes: tuple[DType, ...], sizes: tuple[int, ...] = ()
) -> Loop | None:
    """Return a verified loop, or None; then `faults` has the reason.

    Args:
        provider: a key of `PROVIDERS`.
        name: the loop's name there.
        dtypes: those of the operands, then of the results.
        sizes: the core sizes; only loops that are emitted for one size depend on them.
    """
    is_sized = provider == "tandem" and emitted.needs_sizes(name)
    if provider not in SPLIT_NAMES:
        return _find(provider, name, dtypes, sizes if is_sized else ())
    name, words = SPLIT_NAMES[provider](name)
    loop = _find(provider, name, dtypes, ())
    return None if loop is None else loop._replace(words=words)


@KeepFirst
def _find(provider: str, name: str, dtypes: tuple[DType, ...], sizes: tuple[int, ...]) -> Loop | None:
    result = PROVIDERS[provider].find(name, dtypes, sizes)
    if isinstance(result, str):
        faults[f"{provider}.{name}"] = result
        return None
    loop: Loop | None = result
    return loop


# -- calls from Python -------------------------------------------------------------------------------------------------
@KeepFirst
def _driver() -> tuple[Any, Any, Any]:
    """Return ``rt_loops.call_loop`` and ``rt_loops.run_plan`` as functions of addresses; calls release the GIL."""
    codes = [loop_code.compile_driver(name) for name in ("call_loop", "run_plan")]
    call_loop = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)(codes[0]["call_loop"])
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, *[ctypes.c_void_p] * 2)(codes[1]["run_plan"])
    return call_loop, run, codes  # the codes live as long as the functions


def run_plan(plan: bytes, memory: Any, scratch: int) -> bool:
    """Run a plan of ``plans.py`` on the addresses of arrays; return whether the loop failed."""
    return bool(_driver()[1](plan, memory, scratch))


def call_arrays(loop: Loop, arrays: Sequence[Any]) -> bool:
    """Call a loop on arrays, as compiled code calls it.

    Args:
        loop: the loop.
        arrays: operands and results, aligned to their elements; results have memory of their own.

    Returns:
        Whether the loop failed.
    """
    layouts = [array_layout(array) for array in arrays]
    words = make_call_table(loop.signature, layouts, [a.itemsize for a in arrays], loop.failures)
    table = (ctypes.c_int64 * len(words))(*words)
    operands = (ctypes.c_void_p * len(arrays))(*(a.__array_interface__["data"][0] for a in arrays))
    own = (ctypes.c_int64 * len(loop.words))(*loop.words)
    data = ctypes.addressof(own) if loop.words else loop.data
    failed = _driver()[0](loop.address, data, ctypes.addressof(operands), ctypes.addressof(table))
    return bool(failed)


def array_layout(array: Any) -> Any:
    """Return the sizes and strides of an array, in elements."""
    layout = contiguous(array.shape)
    return layout._replace(strides=tuple(step // array.itemsize for step in array.strides))


def _computes_the_same(ufunc: np.ufunc, loop: Loop, dtypes: Sequence[DType]) -> bool:
    """Return whether a loop, called as compiled code calls it, computes the same bits as its ufunc in a small call."""
    size = 1 if ufunc.__name__.endswith("_odd") else 2
    arrays = [
        _make_example(size, len(names), dtype) for names, dtype in zip(loop.signature, dtypes, strict=True)
    ]
    wanted = [np.empty_like(array) for array in arrays[ufunc.nin :]]
    with np.errstate(all="ignore"):
        ufunc(*arrays[: ufunc.nin], out=tuple(wanted), signature=tuple(dtype.np for dtype in dtypes))
    call_arrays(loop, arrays)
    return all(a.tobytes() == b.tobytes() for a, b in zip(arrays[ufunc.nin :], wanted, strict=True))


def _make_example(size: int, rank: int, dtype: DType) -> Any:
    """Return an operand of a small call: a well-conditioned matrix, or 0.5."""
    shape = (size,) * rank
    diagonal = np.eye(size) if rank == 2 else np.zeros(shape)
    return np.array(diagonal + 0.5, dtype.np)

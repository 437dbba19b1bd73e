"""Other libraries in a comparison, imported only if they are requested."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import asarray, lazy
from ...jit.api import jit

Function = Callable[..., Any]


def _identity(function: Function) -> Function:
    return function


@dataclass(frozen=True)
class Contender:
    """One way to run a function of arrays.

    Attributes:
        name: how the reports call it.
        array: makes its array from a NumPy array.
        prepare: compiles the function, or returns it as it is.
        finish: what a timed statement must append to wait for the result.
    """

    name: str
    array: Function
    prepare: Function = _identity
    finish: str = ""

    @property
    def compiles(self) -> bool:
        return self.prepare is not _identity


EAGER = Contender("tandem eager", asarray)
JIT = Contender("tandem jit", asarray, jit)
NUMPY = Contender("NumPy", np.asarray)
PEERS = ("torch", "jax", "numba")


def list_installed() -> tuple[str, ...]:
    """The peers that could be imported here."""
    return tuple(name for name in PEERS if lazy.is_installed(name))


def _load_torch() -> Contender:
    torch = lazy.module("torch")
    torch.set_num_threads(1)
    return Contender("PyTorch", torch.from_numpy)


def import_jax() -> Any:
    """Import JAX so that it computes on the CPU with one thread, as its peers do.

    XLA reads these variables when it is first used. Its flag concerns products and convolutions; ``NPROC`` is the size
    of the pool that runs the parts of its other loops.
    """
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    os.environ.setdefault("NPROC", "1")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    return lazy.module("jax")


def _load_jax() -> Contender:
    jax = import_jax()
    return Contender("jax.jit", lazy.module("jax.numpy").asarray, jax.jit, ".block_until_ready()")


def _load_numba() -> Contender:
    return Contender("numba", np.asarray, lazy.module("numba").njit)


LOADERS: dict[str, Callable[[], Contender]] = {"torch": _load_torch, "jax": _load_jax, "numba": _load_numba}


def contenders(names: tuple[str, ...] = ()) -> list[Contender]:
    """tandem twice, NumPy, and the named peers.

    Raises:
        ImportError: a named peer is not installed.
    """
    return [EAGER, JIT, NUMPY, *(LOADERS[name]() for name in names)]

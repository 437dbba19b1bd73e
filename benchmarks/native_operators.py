"""Benchmarks of operators with native kernels, jitted and eager: linear algebra, sorting, scans, FFT, complex numbers.

One thread each: run with ``OPENBLAS_NUM_THREADS=1``. Ratios are to the fastest peer unless a row names its peer.
"""

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, beside, beside_best, peer
from tandem import config, lazy
from tandem.cli.overhead.measure import Case
from tandem.cli.overhead.peers import import_jax

SIZES = (16, 10_000, 1_000_000)
STEPS, BATCH = 100, 10_000
RANDOM = np.random.default_rng(0)
EXACT = {"jax": 0.7, "NumPy": 0.3}
BESIDE_NUMPY = ("fft", "rfft")  # operators that are compared with NumPy's alone

Call = Callable[..., Any]
"""A function of arrays; those named ``*_of`` take a library's functions first."""


def case(function: Call, arrays: list[Any], wait: Call | None = None, warm: int = 3) -> Case:
    statement = "f(*given)" if wait is None else "wait(f(*given))"
    names = Case(statement, {"f": function, "given": arrays, "wait": wait})
    names.timer().timeit(300 if len(arrays[0]) < SIZES[-1] // 10 else warm)
    return names


def jax_case(function: Call, arrays: list[np.ndarray]) -> Case | None:
    """The function of jax.numpy, compiled."""
    if not lazy.is_installed("jax"):
        return None
    jax = import_jax()
    compiled = jax.jit(partial(function, jax.numpy, jax.lax))
    return case(compiled, [jax.numpy.asarray(x) for x in arrays], jax.block_until_ready)


def ours(function: Call, arrays: list[np.ndarray]) -> dict[str, Case]:
    """The same function jitted and eager."""
    placed = [td.asarray(x) for x in arrays]
    given = function.of(td) if isinstance(function, Plain) else partial(function, td, td)
    calls = 2 * config.flags.hot_calls + 1  # until native code runs
    return {"jitted": case(td.jit(given), placed, warm=calls), "eager": case(given, placed, warm=calls)}


# --- linear algebra of small matrices -----------------------------------------------------------------------


def apply_inv(np_: Any, a: Any) -> Any:
    return np_.linalg.inv(a)


def apply_solve(np_: Any, a: Any) -> Any:
    return np_.linalg.solve(a, a[..., :1])


def apply_cholesky(np_: Any, a: Any) -> Any:
    return np_.linalg.cholesky(a)


def definite(count: int, size: int) -> np.ndarray:
    a = RANDOM.standard_normal((count, size, size)).astype(np.float32)
    return a @ a.mT + size * np.eye(size, dtype=np.float32)


def scanned(apply: Call, np_: Any, lax: Any, stack: Any) -> Any:
    return lax.scan(lambda c, a: (c + apply(np_, a).sum(), None), stack[0, 0, 0] * 0, stack)[0]


def scan_of(apply: Call, size: int, seconds: float) -> list[Finding]:
    stack = definite(STEPS, size)

    def by_numpy(stack: np.ndarray) -> np.ndarray:
        total = np.float32(0)
        for a in stack:
            total = total + apply(np, a).sum()
        return total

    theirs = {"jax": jax_case(partial(scanned, apply), [stack]), "NumPy": case(by_numpy, [stack])}
    mine = case(td.jit(partial(scanned, apply, td, td)), [td.asarray(stack)])
    return beside(mine, theirs, EXACT, seconds)


def batch_of(apply: Call, size: int, seconds: float) -> list[Finding]:
    stack = definite(BATCH, size)
    theirs = {
        "jax": jax_case(lambda np_, _, a: apply(np_, a), [stack]),
        "NumPy": case(partial(apply, np), [stack]),
    }
    mine = ours(lambda np_, _, a: apply(np_, a), [stack])["jitted"]
    return beside(mine, theirs, EXACT, seconds)


def linear_algebra() -> Iterator[Row]:
    for name, apply in (("inv", apply_inv), ("solve", apply_solve), ("cholesky", apply_cholesky)):
        for size in (2, 3, 4, 8):
            label = f"{name} of {size}x{size}"
            yield Row(f"scan of {STEPS} {label}", partial(scan_of, apply, size))
            yield Row(f"batch of {BATCH} {label}", partial(batch_of, apply, size))


# --- operators of arrays ------------------------------------------------------------------------------------


def floats(size: int) -> list[np.ndarray]:
    return [RANDOM.standard_normal(size).astype(np.float32)]


def complexes(size: int) -> list[np.ndarray]:
    return [(floats(size)[0] + 1j * floats(size)[0]).astype(np.complex64) for _ in range(2)]


def plane(size: int) -> list[np.ndarray]:
    points = RANDOM.uniform(-2, 0.5, size) + 1j * RANDOM.uniform(-1.2, 1.2, size)
    return [points.astype(np.complex64)]


def arithmetic(np_: Any, lax: Any, a: Any, b: Any) -> Any:
    return a * b + a


SEVERAL_OPERATORS = (arithmetic,)  # jax.jit fuses them, so eager calls are compared with NumPy and PyTorch


def mandelbrot(np_: Any, lax: Any, c: Any) -> Any:
    def step(_: Any, state: Any) -> Any:
        z, count = state
        inside = z.real * z.real + z.imag * z.imag < 4
        return np_.where(inside, z * z + c, z), count + inside

    return lax.fori_loop(0, 20, step, (c * 0, np_.zeros(c.shape, dtype=np_.int32)))[1]


def numba_mandelbrot(c: Any) -> Any:
    z = c * 0
    count = np.zeros(c.shape, np.int32)
    for _ in range(20):
        inside = z.real * z.real + z.imag * z.imag < 4
        z = np.where(inside, z * z + c, z)
        count = count + inside
    return count


class Plain:
    """A function that all libraries have under one name, perhaps in ``fft``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, np_: Any) -> Call:
        """The function of one library."""
        result: Call = attrgetter(self.name)(np_)
        return result

    def __call__(self, np_: Any, lax: Any, x: Any) -> Any:
        return self.of(np_)(x)


def topk_of(np_: Any, lax: Any, x: Any) -> Any:
    return np_.topk(x, 8) if np_ is lax else lax.top_k(x, 8)


OPERATORS: dict[str, tuple[Call, Call, Call | None, Call | None, Call | None]] = {
    # name: inputs, function of (np, lax, *arrays), NumPy's, PyTorch's and numba's where they are others
    "sort": (
        floats,
        Plain("sort"),
        lambda x: np.sort(x, kind="stable"),
        lambda x: lazy.module("torch").sort(x, stable=True).values,
        None,
    ),
    "argsort": (
        floats,
        Plain("argsort"),
        lambda x: np.argsort(x, kind="stable"),
        lambda x: lazy.module("torch").argsort(x, stable=True),
        None,
    ),
    "cumsum": (floats, lambda np_, _, x: np_.cumsum(x, 0), np.cumsum, lambda x: x.cumsum(0), np.cumsum),
    "argmax": (floats, Plain("argmax"), np.argmax, lambda x: x.argmax(), np.argmax),
    "top_k": (floats, topk_of, None, lambda x: x.topk(8), None),
    "fft": (
        lambda size: complexes(size)[:1],
        Plain("fft.fft"),
        np.fft.fft,
        None,
        None,
    ),
    "rfft": (floats, Plain("fft.rfft"), np.fft.rfft, None, None),
    "complex a * b + a": (complexes, arithmetic, lambda a, b: a * b + a, lambda a, b: a * b + a, None),
    "complex abs": (
        lambda size: complexes(size)[:1],
        Plain("abs"),
        np.abs,
        lambda x: x.abs(),
        np.abs,
    ),
    "complex exp": (
        lambda size: complexes(size)[:1],
        Plain("exp"),
        np.exp,
        lambda x: x.exp(),
        np.exp,
    ),
}


def compile_call(function: Call) -> Call:
    """The function as numba compiles it; a ufunc is called by a function of its own."""
    name = getattr(function, "__name__", "")
    code = f"def call(x):\n    return np.{name}(x)" if hasattr(np, name) else ""
    namespace: dict[str, Any] = {"np": np, "call": function}
    exec(code, namespace)
    compiled: Call = lazy.module("numba").njit(namespace["call"])
    return compiled


def operator_of(name: str, size: int, seconds: float) -> list[Finding]:
    """The jitted and the eager time as multiples of the fastest peer's."""
    inputs, function, by_numpy, by_torch, by_numba = OPERATORS[name]
    arrays = inputs(size)
    theirs: dict[str, Case | None] = {} if by_numpy is None else {"NumPy": case(by_numpy, arrays)}
    if name not in BESIDE_NUMPY:
        theirs |= {"jax": jax_case(function, arrays), "torch": None}
    torch = peer("torch")
    if torch is not None and by_torch is not None:
        theirs["torch"] = case(by_torch, [torch.array(x) for x in arrays])
    if by_numba is not None and lazy.is_installed("numba"):
        theirs["numba"] = case(compile_call(by_numba), arrays)
    result = []
    stepwise = {name: theirs[name] for name in ("NumPy", "torch") if name in theirs}
    for way, mine in ours(function, arrays).items():
        peers = stepwise if way == "eager" and function in SEVERAL_OPERATORS else theirs
        for found in beside_best(mine, peers, 1.1, seconds):
            result.append(Finding(f"{way}, {found.beside}", found.ratio, found.bound, found.note))
    return result


def unstable_sort(size: int, seconds: float) -> list[Finding]:
    arrays = floats(size)
    mine = ours(lambda np_, _, x: np_.sort(x, stable=False), arrays)["jitted"]
    return beside(mine, {"NumPy": case(np.sort, arrays)}, {"NumPy": 1.1}, seconds)


def mandelbrot_of(size: int, seconds: float) -> list[Finding]:
    arrays = plane(size)
    theirs = {"jax": jax_case(mandelbrot, arrays), "numba": None}
    if lazy.is_installed("numba"):
        theirs["numba"] = case(lazy.module("numba").njit(numba_mandelbrot), arrays)
    mine = case(td.jit(partial(mandelbrot, td, td)), [td.asarray(x) for x in arrays])
    return beside_best(mine, theirs, 1.1, seconds)


def operators() -> Iterator[Row]:
    for size in SIZES:
        for name in OPERATORS:
            yield Row(f"{name} of {size}", partial(operator_of, name, size))
        yield Row(f"sort(stable=False) of {size}", partial(unstable_sort, size))
        yield Row(f"mandelbrot of {size}, 20 steps", partial(mandelbrot_of, size))


ROWS = [*linear_algebra(), *operators()]

"""Benchmarks with bounds on a GPU: each row measures tandem and, if they are installed, its peers."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gpu_models
import numpy as np
import tandem as td
from tandem import lazy
from tandem.backends.cuda.runtime import copies

Run = Callable[[], Any]
Time = float | str | None  # seconds; why a peer has none; None: it has no GPU here
SIZES: dict[str, Any] = {
    "elements": 1 << 28,
    "softmax": (8192, 8192),
    "layer_norm": (16384, 4096),
    "matmul": 8192,
}


class Finding(NamedTuple):
    """One measurement and its bound.

    Attributes:
        what: the row.
        beside: the peer.
        value: the ratio; None if it could not be measured.
        bound: the bound of the ratio; None if the row has failed.
        at_least: whether the bound is a lower one.
        note: the times.
    """

    what: str
    beside: str
    value: float | None
    bound: float | None
    at_least: bool
    note: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether the bound is met; None if nothing could be measured."""
        if self.value is None or self.bound is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


class Peer(NamedTuple):
    """A library: functions that move an ndarray to the device, compile a function, and wait for the device."""

    array: Callable[[Any], Any]
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]]
    wait: Callable[[], Any]


def seconds(run: Run, wait: Callable[[], Any], budget: float = 0.4, rounds: int = 5) -> float:
    """The time of one call: many calls between two waits for the device; the median of several rounds."""
    for _ in range(3):
        run()
    wait()
    begin = time.perf_counter()
    run()
    wait()
    count = max(3, min(20000, int(budget / rounds / max(time.perf_counter() - begin, 1e-7))))
    items = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(count):
            run()
        wait()
        items.append((time.perf_counter() - begin) / count)
    return statistics.median(items)


def host_seconds(run: Run, wait: Callable[[], Any], count: int = 200, rounds: int = 25) -> float:
    """The host time of one call: few calls between waits, so that the device's queue does not fill."""
    for _ in range(50):
        run()
    items = []
    for _ in range(rounds):
        wait()
        begin = time.perf_counter()
        for _ in range(count):
            run()
        items.append((time.perf_counter() - begin) / count)
    return statistics.median(items)


# -- peers -------------------------------------------------------------------------------------------------------------
def torch_peer() -> Peer | None:
    if not lazy.is_installed("torch") or not lazy.module("torch").cuda.is_available():
        return None
    torch = lazy.module("torch")
    return Peer(
        lambda a: torch.from_numpy(np.ascontiguousarray(a)).cuda(), torch.compile, torch.cuda.synchronize
    )


def jax_peer() -> Peer | None:
    if not lazy.is_installed("jax") or not any(d.platform == "gpu" for d in lazy.module("jax").devices()):
        return None
    jax = lazy.module("jax")
    return Peer(jax.numpy.asarray, jax.jit, lambda: jax.block_until_ready(jax.numpy.zeros(1) + 1))


def cupy_peer() -> Peer:
    cupy = lazy.module("cupy")
    return Peer(cupy.asarray, lambda f: f, lambda: cupy.cuda.Device().synchronize())


def wait() -> None:
    td.synchronize("cuda")


def cuda(array: Any) -> Any:
    return td.asarray(array, device="cuda")


def of_peer(peer: Peer | None, run: Callable[[Peer], float]) -> Time:
    """A peer's time, or the reason why it failed: a peer's error does not fail tandem's row."""
    try:
        return None if peer is None else run(peer)
    except Exception as fault:
        return f"{type(fault).__name__}: {fault}".splitlines()[0]


def compare(what: str, name: str, ours: float, theirs: Time, bound: float) -> Finding:
    """tandem's time as a multiple of a peer's."""
    if not isinstance(theirs, float):
        why = f"{name} has no GPU here" if theirs is None else f"{name} failed: {theirs}"
        return Finding(what, name, None, bound, False, f"tandem {ours * 1e6:.1f} us; {why}")
    note = f"tandem {ours * 1e6:.1f} us, {name} {theirs * 1e6:.1f} us"
    return Finding(what, name, ours / theirs, bound, False, note)


# -- bandwidth ---------------------------------------------------------------------------------------------------------
def copy_bandwidth() -> float:
    """The bandwidth (bytes read and written in a second) of the driver's copy of a large array."""
    size = SIZES["elements"]
    source, target = td.ones(size, device="cuda"), td.empty(size, device="cuda")
    return 8 * size / seconds(lambda: copies.copy_bytes(target._data.ptr, source._data), wait)


def share(what: str, run: Run, nbytes: int, bandwidth: float, bound: float) -> tuple[Finding, float]:
    took = seconds(run, wait)
    note = f"{took * 1e3:.3f} ms, {nbytes / took / 1e9:.0f} GB/s of {bandwidth / 1e9:.0f}"
    return Finding(what, "copy bandwidth", nbytes / took / bandwidth, bound, True, note), took


def fused_gelu(bandwidth: float) -> list[Finding]:
    """``w`` and ``b`` as numbers on the device, and as long as ``x``."""
    size = SIZES["elements"]
    x = cuda(np.float32(0.5)) * td.ones(size, device="cuda")
    f = td.jit(lambda x, w, b: td.gelu(x * w + b))
    result = []
    for shape, nbytes in (((), 8 * size), ((size,), 16 * size)):
        w, b = (td.full(shape, s, dtype=td.float32, device="cuda") for s in (2.0, 0.1))
        what = f"gelu(x*w+b), {size} float32, w and b of shape {shape}"
        result.append(share(what, lambda w=w, b=b: f(x, w, b), nbytes, bandwidth, 0.9)[0])  # type: ignore[misc]
    return result


def rows_of_a_matrix(
    what: str, shape: tuple[int, int], dtype: str, bandwidth: float, ours: Any, torchs: Any, jaxs: Any
) -> list[Finding]:
    """Measure a function of the rows of a matrix: its bandwidth, and its ratio to compilers."""
    array = np.random.default_rng(0).standard_normal(shape).astype("f4")
    x = cuda(array).astype(getattr(td, dtype))
    f = td.jit(ours)
    nbytes = 2 * array.size * (4 if dtype == "float32" else 2)
    value, took = share(f"{what}, {dtype}", lambda: f(x), nbytes, bandwidth, 0.8)

    def of_torch(peer: Peer) -> float:
        y, g = peer.array(array).to(getattr(lazy.module("torch"), dtype)), peer.compiled(torchs)
        return seconds(lambda: g(y), peer.wait)

    def of_jax(peer: Peer) -> float:
        y, g = peer.array(array).astype(dtype), peer.compiled(jaxs)
        return seconds(lambda: g(y), peer.wait)

    times = {"torch.compile": of_peer(torch_peer(), of_torch), "jax.jit": of_peer(jax_peer(), of_jax)}
    return [value, *(compare(value.what, name, took, other, 1.0) for name, other in times.items())]


def softmax(bandwidth: float) -> list[Finding]:
    functions = (
        lambda x: td.softmax(x, axis=-1),
        lambda x: lazy.module("torch").softmax(x, -1),
        lambda x: lazy.module("jax").nn.softmax(x),
    )
    result, shape = [], SIZES["softmax"]
    for dtype in ("float32", "bfloat16"):
        result += rows_of_a_matrix(f"softmax {shape[0]}x{shape[1]}", shape, dtype, bandwidth, *functions)
    return result


def _jax_norm(x: Any) -> Any:
    jnp = lazy.module("jax.numpy")
    wide = x.astype("float32")
    centred = wide - jnp.mean(wide, -1, keepdims=True)
    return (centred / jnp.sqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5)).astype(x.dtype)


def layer_norm(bandwidth: float) -> list[Finding]:
    rows, columns = SIZES["layer_norm"]
    functions = (
        lambda x: td.layer_norm(x, (columns,)),
        lambda x: lazy.module("torch").nn.functional.layer_norm(x, (columns,)),
        _jax_norm,
    )
    result, what = [], f"layer_norm {rows}x{columns}"
    for dtype in ("float32", "bfloat16"):
        result += rows_of_a_matrix(what, (rows, columns), dtype, bandwidth, *functions)
    return result


# -- products ----------------------------------------------------------------------------------------------------------
def matmul() -> list[Finding]:
    result, size = [], SIZES["matmul"]
    array = np.random.default_rng(0).standard_normal((size, size)).astype("f4")
    for dtype in ("bfloat16", "float32"):
        x = cuda(array).astype(getattr(td, dtype))
        f = td.jit(lambda x: x @ x)
        ours = seconds(lambda f=f, x=x: f(x), wait)

        def of_torch(peer: Peer, dtype: str = dtype) -> float:
            y = peer.array(array).to(getattr(lazy.module("torch"), dtype))
            return seconds(lambda: y @ y, peer.wait)

        theirs = of_peer(torch_peer(), of_torch)
        speed = theirs / ours if isinstance(theirs, float) else None
        note = f"{2 * size**3 / ours / 1e12:.0f} TFLOP/s; " + compare("", "PyTorch", ours, theirs, 1).note
        result.append(Finding(f"matmul {size}^3, {dtype}: speed", "PyTorch", speed, 0.97, True, note))
    return result


# -- calls -------------------------------------------------------------------------------------------------------------
def chain(tanh: Callable[[Any], Any]) -> Callable[..., Any]:
    def thirty(x: Any, w: Any) -> Any:
        for _ in range(15):
            x = tanh(x * w)
        return x

    return thirty


def jitted_chain() -> list[Finding]:
    array = np.linspace(0.1, 1.0, 16, dtype="f4")
    what, f, x = "jitted 30-op chain on 16 elements: host time", td.jit(chain(td.tanh)), cuda(array)
    ours = host_seconds(lambda: f(x, x), wait)

    def of_jax(peer: Peer) -> float:
        g, y = peer.compiled(chain(lazy.module("jax.numpy").tanh)), peer.array(array)
        return host_seconds(lambda: g(y, y), peer.wait)

    def of_torch(peer: Peer) -> float:
        g = lazy.module("torch").compile(chain(lazy.module("torch").tanh), mode="reduce-overhead")
        y = peer.array(array)
        return host_seconds(lambda: g(y, y), peer.wait)

    return [
        compare(what, "jax.jit", ours, of_peer(jax_peer(), of_jax), 0.3),
        compare(what, "torch.compile with CUDA graphs", ours, of_peer(torch_peer(), of_torch), 0.5),
    ]


def eager_add() -> list[Finding]:
    array = np.ones(16, "f4")
    what, x = "eager add on 16 elements: host time", cuda(array)
    ours = host_seconds(lambda: x + x, wait)

    def of_both(peer: Peer) -> float:
        y = peer.array(array)
        return host_seconds(lambda: y + y, peer.wait)

    return [
        compare(what, "PyTorch", ours, of_peer(torch_peer(), of_both), 1.0),
        compare(what, "cupy", ours, of_peer(cupy_peer(), of_both), 0.5),
    ]


# -- models ------------------------------------------------------------------------------------------------------------
def leaves(tree: Any) -> list[Any]:
    return list(td.pytree.leaves(tree))


def model(name: str) -> list[Finding]:
    """Forward and backward: the results compared with the CPU's, and the time compared with jax.jit."""
    make, arguments = gpu_models.MODELS[name]
    given, loss = arguments(), make(gpu_models.tandem_names())
    f = td.jit(td.value_and_grad(loss))
    there = td.pytree.map_tree(cuda, given)
    value, slopes = f(*there)
    want, exact = td.value_and_grad(loss)(*td.pytree.map_tree(td.asarray, given))
    pairs = zip([value, *leaves(slopes)], [want, *leaves(exact)], strict=True)
    wrong = max(_distance(a.to("cpu").numpy(), b.numpy()) for a, b in pairs)
    right = Finding(f"{name}, forward and backward: largest error", "the CPU", wrong, 2e-3, False)
    ours = seconds(lambda: f(*there), wait)

    def of_jax(peer: Peer) -> float:
        jax = lazy.module("jax")
        with jax.default_matmul_precision("float32"):  # no TF32, as in tandem
            g = peer.compiled(jax.value_and_grad(make(gpu_models.jax_names())))
            others = jax.tree.map(peer.array, given)
            return seconds(lambda: g(*others), peer.wait)

    theirs = of_peer(jax_peer(), of_jax)
    return [right, compare(f"{name}, forward and backward", "jax.jit", ours, theirs, 1.0)]


def _distance(one: Any, other: Any) -> float:
    return float(np.abs(one - other).max() / max(float(np.abs(other).max()), 1e-30))


def rows() -> dict[str, Callable[[], list[Finding]]]:
    """The rows by name; calling a row measures it."""
    bandwidth = functools.cache(copy_bandwidth)
    mapping: dict[str, Callable[[], list[Finding]]] = {
        "gelu(x*w+b)": lambda: fused_gelu(bandwidth()),
        "softmax": lambda: softmax(bandwidth()),
        "layer_norm": lambda: layer_norm(bandwidth()),
        "matmul": matmul,
        "jitted 30-op chain": jitted_chain,
        "eager add": eager_add,
    }
    return mapping | {name: functools.partial(model, name) for name in gpu_models.MODELS}

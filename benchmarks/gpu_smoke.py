"""Smoke tests on a GPU, in about a minute: each row passes or raises an error that names the fault."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tandem as td
from tandem import lazy

RNG = np.random.default_rng(0)
SHAPES = {
    "elementwise": (16, 1 << 20),  # small, large
    "reductions": (513, 1030),
    "positions": (1000, 64, 50000),  # rows, columns, positions
    "jitted": (128, 512),
}


def _there(array: np.ndarray) -> td.Tensor:
    return td.asarray(array, device="cuda")


def _same(found: td.Tensor, want: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found.to("cpu").numpy(), want, rtol=tolerance, atol=tolerance)


def _check(is_right: bool, fault: str) -> None:
    if not is_right:
        raise RuntimeError(fault)


def transfers() -> None:
    """Copies to the device and back, with pinned memory too."""
    x = RNG.standard_normal((100, 33)).astype("f4")
    _same(_there(x), x, 0)
    _same(td.asarray(x).pin_memory().to("cuda", non_blocking=True), x, 0)


def elementwise() -> None:
    """Repeated eager calls, small and large."""
    for size in SHAPES["elementwise"]:
        x = RNG.standard_normal(size).astype("f4")
        y = _there(x)
        for _ in range(200):
            z = td.exp(y) + y
        _same(z, np.exp(x) + x)


def reductions() -> None:
    """Sums of rows, columns and everything."""
    x = RNG.standard_normal(SHAPES["reductions"]).astype("f4")
    for axis in (0, 1, None):
        _same(td.sum(_there(x), axis), x.sum(axis, dtype="f8"), 1e-3)


def product() -> None:
    """cuBLAS."""
    a, b = RNG.standard_normal((70, 50)).astype("f4"), RNG.standard_normal((50, 30)).astype("f4")
    _same(_there(a) @ _there(b), a @ b, 1e-4)


def positions() -> None:
    """Gather, scatter and scatter-add; the same bits in two runs."""
    rows, columns, count = SHAPES["positions"]
    x, i = RNG.standard_normal((rows, columns)).astype("f4"), RNG.integers(-rows, rows, count)
    v = RNG.standard_normal((count, columns)).astype("f4")
    a, b, c = _there(x), _there(i), _there(v)
    _same(a[b], x[i], 0)
    want = x.astype("f8")
    np.add.at(want, i, v)
    items = [a.at[b].add(c).to("cpu").numpy() for _ in range(3)]
    np.testing.assert_allclose(items[0], want, rtol=1e-3, atol=1e-3)
    _check(len({one.tobytes() for one in items}) == 1, "three runs gave other bits")


def jitted() -> None:
    """A fused function and its gradient, called repeatedly."""
    x = RNG.standard_normal(SHAPES["jitted"]).astype("f4")
    f = td.jit(td.value_and_grad(lambda x: td.sum(td.softmax(x, axis=-1) ** 2)))
    value, slope = td.value_and_grad(lambda x: td.sum(td.softmax(x, axis=-1) ** 2))(td.asarray(x))
    for _ in range(100):
        result = f(_there(x))
    _same(result[0], value.numpy(), 1e-4)
    _same(result[1], slope.numpy(), 1e-4)


def streams() -> None:
    """Work in a stream of its own, and an event."""
    with td.cuda.Stream() as stream:
        y = td.ones(1 << 16, dtype=td.float32, device="cuda") * 3
        event = stream.record_event()
    event.synchronize()
    td.cuda.current_stream().wait_stream(stream)
    _same(y, np.full(1 << 16, 3.0), 0)


def sharing() -> None:
    """DLPack both ways with cupy."""
    cupy = lazy.module("cupy")
    x = td.arange(12, dtype=td.float32, device="cuda").reshape((3, 4)).T
    y = cupy.from_dlpack(x)
    _check(y.shape == (4, 3), f"cupy has the shape {y.shape}, not (4, 3)")
    _check(float(y.sum()) == 66.0, f"cupy sums to {float(y.sum())}, not 66")
    _same(td.from_dlpack(y * 2), 2 * np.arange(12.0).reshape(3, 4).T)


def memory() -> None:
    """Large blocks are used again; running out of memory is an error after which all goes on."""
    for _ in range(50):
        td.empty(1 << 24, dtype=td.float32, device="cuda")
    misses = td.cuda.memory_stats()["misses"]
    _check(misses < 40, f"{misses} requests needed the driver: large blocks are not used again")
    try:
        td.empty(1 << 50, dtype=td.uint8, device="cuda")
    except td.errors.OutOfMemoryError:
        elementwise()
    else:
        raise RuntimeError("a petabyte was given")


ROWS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (transfers, elementwise, reductions, product, positions, jitted, streams, sharing, memory)
}

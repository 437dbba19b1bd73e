"""Long native loops release the GIL, so that other threads run meanwhile."""

import sys
import threading
import time

import numpy as np
import pytest
import tandem as td
from tandem import config

N = 6 << 20
INNER = 500_000 if config.flags.native else 200  # iterations of an inner loop


@pytest.fixture(autouse=True)
def rare_switches():
    """The interpreter itself never takes the GIL from a thread: only code that releases it lets others run."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60.0 if config.flags.native else 1e-4)
    yield
    sys.setswitchinterval(before)


class Ticks:
    """A thread that counts milliseconds, for which it needs the GIL."""

    def __init__(self):
        self.count, self.stop = 0, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stop:
            time.sleep(0.001)
            self.count += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.thread.join()

    def rate(self, call):
        """Ticks per second during a call."""
        first, start = self.count, time.perf_counter()
        call()
        return (self.count - first) / (time.perf_counter() - start)


def assert_releases_gil(call):
    with Ticks() as ticks:
        free = ticks.rate(lambda: time.sleep(0.1))
        # other processes may take the processor meanwhile; a call that holds the GIL lets no tick through
        assert any(ticks.rate(call) > 0.1 * free for _ in range(5))


def counted(steps):
    start = np.int64(0), td.asarray(1.0)
    return td.while_loop(lambda s: s[0] < steps, lambda s: (s[0] + 1, s[1] * 0.999), start)


def in_fori(steps):
    return td.fori_loop(0, steps, lambda i, c: c * 0.999 + i, td.asarray(1.0))


def in_nested(steps):
    def outer(i, c):
        return td.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 1, td.sin(s[1])), (np.int64(0), c))[1]

    return td.fori_loop(0, steps // 50, outer, td.asarray(1.0))


def in_branch(steps):
    def body(i, c):
        return td.cond(c > 0.5, lambda c: c * 0.999, lambda c: c + 0.1, c)

    return td.fori_loop(0, steps, body, td.asarray(1.0))


def with_large_body(steps):
    x = td.asarray(np.ones((300, 300), np.float32))
    return td.fori_loop(0, 50, lambda i, c: td.tanh(c @ x), x)


@pytest.mark.parametrize("loop", [counted, in_fori, in_nested, in_branch, with_large_body])
def test_compiled_loops_release_the_gil(loop):
    compiled, steps = td.jit(loop), 20_000_000 if config.flags.native else 2_000
    compiled(np.int64(100))
    assert_releases_gil(lambda: compiled(np.int64(steps)))


def test_scan_and_map_release_the_gil():
    x = td.asarray(np.ones(N if config.flags.native else 1000, np.float32))
    scan = td.jit(lambda x: td.scan(lambda c, v: (c * 0.5 + v, c), td.asarray(np.float32(0)), x))
    mapped = td.jit(lambda x: td.map(lambda v: td.sin(v) * 2, x))
    scan(x), mapped(x)
    assert_releases_gil(lambda: (scan(x), scan(x), scan(x)))
    assert_releases_gil(lambda: (mapped(x), mapped(x), mapped(x)))


KERNELS = {
    "fused": lambda x: td.exp(td.sin(x) * 2) + td.log(x + 1) * td.cos(x),
    "reduction": lambda x: (td.tanh(x) * x).sum(),
    "blas": lambda x: x[: 1 << 20].reshape(1024, 1024) @ x[: 1 << 20].reshape(1024, 1024),
    "copy": lambda x: x.reshape(-1, 1024).T.reshape(-1),
    "rows": lambda x: x.reshape(-1, 1)[(x * 100).astype(td.int64)],
}


@pytest.mark.parametrize("name", KERNELS)
def test_large_compiled_kernels_release_the_gil(name):
    compiled = td.jit(KERNELS[name])
    x = td.asarray(np.random.default_rng(0).random(N, np.float32))
    for _ in range(2):
        compiled(x)
    assert_releases_gil(lambda: [compiled(x) for _ in range(8)])


def test_callbacks_in_released_loops_hold_the_gil():
    seen = []

    def note(i, c):
        seen.append((int(i), float(c)))
        return c

    def body(i, c):
        c = td.fori_loop(0, INNER, lambda j, c: c * 0.5 + 1, c)
        return td.pure_callback(note, td.ShapeDtypeStruct((), td.float64), i, c)

    compiled = td.jit(lambda c: td.fori_loop(0, 20, body, c))
    with Ticks() as ticks:
        before = ticks.count
        result = compiled(td.asarray(0.0, dtype=td.float64))
        assert ticks.count > before
    assert [i for i, _ in seen] == list(range(20))
    assert float(result) == seen[-1][1] == 2.0


def test_failing_callback_leaves_a_released_loop():
    def fail(i):
        if i == 3:
            raise KeyError("stop")

    def body(i, c):
        c = td.fori_loop(0, INNER, lambda j, c: c * 0.5 + 1, c)
        td.debug.callback(fail, i, ordered=True)
        return c

    compiled = td.jit(lambda c: td.fori_loop(0, 20, body, c))
    for _ in range(3):
        with pytest.raises(KeyError, match="stop"):
            compiled(td.asarray(0.0))


EAGER = {
    "elementwise": td.exp,
    "strided": lambda x: td.tanh(x.reshape(-1, 2)[:, 0]),
    "broadcast": lambda x: td.exp(x.reshape(-1, 1024)) * x[:1024],
    "reduction": lambda x: td.sum(x.reshape(2, -1), 0),
    "scan": lambda x: td.cumsum(x, 0),
    "in place": lambda x: x.sin_(),
    "matmul": lambda x: x[: 1 << 20].reshape(1024, 1024) @ x[: 1 << 20].reshape(1024, 1024),
    "copy": lambda x: x.reshape(-1, 1024).T.clone(),
    "concat": lambda x: td.concat([x, x]),
    "gather": lambda x: td.take(x, (x * 100).astype(td.int64)),
    "cast": lambda x: x.astype(td.float64),
}


@pytest.mark.parametrize("name", EAGER)
def test_large_eager_calls_release_the_gil(name):
    call = EAGER[name]
    with config.override(hot_calls=1):
        for _ in range(4):
            call(td.asarray(np.random.default_rng(0).random(1 << 20, np.float32)))
        x = td.asarray(np.random.default_rng(0).random(N, np.float32))
        assert_releases_gil(lambda: [call(x) for _ in range(4)])

"""Benchmarks of loops: the gradient of a recurrent network by a scan of 1,000 steps, compared with ``jax.jit``.

One thread each: run with ``OPENBLAS_NUM_THREADS=1``.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, beside, warmed
from tandem import lazy
from tandem.cli.overhead.measure import Case
from tandem.cli.overhead.peers import import_jax

STEPS, SIZE, BATCH = 1000, 64, 32

Loss = Callable[..., Any]
"""A loss: of NumPy's functions, those of control flow, and then its arrays; the first is differentiated."""


def arrays(gates: int = 1, columns: bool = False) -> list[np.ndarray]:
    """The weight, the first state, the inputs of all steps, and a bias."""
    random = np.random.default_rng(0)
    shape = (SIZE, BATCH) if columns else (BATCH, SIZE)
    weight = random.standard_normal((SIZE, gates * SIZE)) * 0.1
    bias = random.standard_normal((SIZE, 1) if columns else SIZE)
    items = [weight, np.zeros(shape), random.standard_normal((STEPS, *shape)), bias]
    return [array.astype(np.float32) for array in items]


def rows_by_weight(np_: Any, control: Any, w: Any, h: Any, xs: Any, b: Any) -> Any:
    last, _ = control.scan(lambda h, x: (np_.tanh(h @ w + x), None), h, xs)
    return (last * last).sum()


def weight_by_columns(np_: Any, control: Any, w: Any, h: Any, xs: Any, b: Any) -> Any:
    last, _ = control.scan(lambda h, x: (np_.tanh(w @ h + x), None), h, xs)
    return (last * last).sum()


def all_steps(np_: Any, control: Any, w: Any, h: Any, xs: Any, b: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np_.tanh(w @ h + x + b)
        return h, h.sum()

    return control.scan(step, h, xs)[1].sum()


def counted(np_: Any, control: Any, w: Any, h: Any, xs: Any, b: Any) -> Any:
    last = control.fori_loop(0, STEPS, lambda i, h: np_.tanh(h @ w + xs[i] + b), h)
    return (last * last).sum()


def lstm(np_: Any, control: Any, w: Any, h: Any, xs: Any, b: Any) -> Any:
    def gate(x: Any) -> Any:
        return 1 / (1 + np_.exp(-x))

    def step(state: Any, x: Any) -> Any:
        h, c = state
        i, f, o, u = ((h @ w)[:, n * SIZE : (n + 1) * SIZE] + x + b for n in range(4))
        c = gate(f) * c + gate(i) * np_.tanh(u)
        return (gate(o) * np_.tanh(c), c), None

    (last, _), _ = control.scan(step, (h, h), xs)
    return (last * last).sum()


def case(function: Callable[..., Any], given: list[Any], wait: Callable[[Any], Any]) -> Case:
    return warmed(Case("wait(f(*given))", {"f": function, "given": given, "wait": wait}), 5)


def gradient(loss: Loss, found: list[np.ndarray], seconds: float) -> list[Finding]:
    """The time of the compiled gradient as a multiple of JAX's."""
    theirs = None
    if lazy.is_installed("jax"):
        jax = import_jax()
        function = jax.jit(jax.grad(functools.partial(loss, jax.numpy, jax.lax)))
        theirs = case(function, [jax.numpy.asarray(x) for x in found], jax.block_until_ready)
    ours = case(
        td.jit(td.grad(lambda *args: loss(td, td, *args))), [td.asarray(x) for x in found], lambda x: x
    )
    return beside(ours, {"jax": theirs}, {"jax": 0.7}, seconds)


def row(name: str, loss: Loss, **options: Any) -> Row:
    return Row(name, lambda seconds: gradient(loss, arrays(**options), seconds))


ROWS = [
    row("gradient through a scan of 1,000 steps of tanh(h @ W + x), W 64x64, batch 32", rows_by_weight),
    row("the same of tanh(W @ h + x)", weight_by_columns, columns=True),
    row("the same with a bias, all steps in the loss", all_steps, columns=True),
    row("the same by fori_loop", counted),
    row("the same of an LSTM", lstm, gates=4),
]

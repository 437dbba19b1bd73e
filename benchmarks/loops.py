"""Rows of loops: the gradient of a recurrent network by a scan of 1,000 steps, beside ``jax.jit``.

One thread each: run with ``OPENBLAS_NUM_THREADS=1``.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, beside, warmed
from tandem import lazy
from tandem.overhead.measure import Case

STEPS, SIZE, BATCH = 1000, 64, 32
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def arrays(shape: tuple[int, int]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    weight = random.standard_normal((SIZE, SIZE)) * 0.1
    found = [weight, np.zeros(shape), random.standard_normal((STEPS, *shape))]
    return [array.astype(np.float32) for array in found]


def loss_with(scan: Callable[..., Any], step: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    def loss(w: Any, h: Any, xs: Any) -> Any:
        last, _ = scan(lambda h, x: (step(w, h, x), None), h, xs)
        return (last * last).sum()

    return loss


def case(function: Callable[..., Any], given: list[Any], wait: Callable[[Any], Any]) -> Case:
    return warmed(Case("wait(f(*given))", {"f": function, "given": given, "wait": wait}), 5)


def gradient(product: Callable[[Any, Any], Any], shape: tuple[int, int], seconds: float) -> list[Finding]:
    found = arrays(shape)
    ours = td.jit(td.grad(loss_with(td.scan, lambda w, h, x: td.tanh(product(w, h) + x))))
    theirs = None
    if lazy.installed("jax"):
        os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
        jax = lazy.module("jax")
        step = lambda w, h, x: jax.numpy.tanh(product(w, h) + x)  # noqa: E731
        function = jax.jit(jax.grad(loss_with(jax.lax.scan, step)))
        theirs = case(function, [jax.numpy.asarray(x) for x in found], jax.block_until_ready)
    given = [td.asarray(x) for x in found]
    return beside(case(ours, given, lambda x: x), {"jax": theirs}, {"jax": 0.7}, seconds)


ROWS = [
    Row(
        "gradient through a scan of 1,000 steps of tanh(h @ W + x), W 64x64, batch 32",
        functools.partial(gradient, lambda w, h: h @ w, (BATCH, SIZE)),
    ),
    Row(
        "the same of tanh(W @ h + x)",
        functools.partial(gradient, lambda w, h: w @ h, (SIZE, BATCH)),
    ),
]

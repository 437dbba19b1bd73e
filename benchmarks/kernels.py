"""Benchmarks of kernels on large arrays, with one thread."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, beside_best, peer, warmed
from tandem import lazy
from tandem.cli.overhead.compare import make_call_case
from tandem.cli.overhead.measure import Case

ELEMENTS, SIDE = 10_000_000, 1024


def large(array: Callable[[Any], Any]) -> tuple[Any, ...]:
    """x, w, b for the fused expression."""
    random = np.random.default_rng(0)
    x, w, b = random.standard_normal((3, ELEMENTS), dtype=np.float32)
    return array(x), array(w), array(b)


def numpy_gelu(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    z = x * w + b
    return np.float32(0.5) * z * (1 + lazy.module("scipy.special").erf(z * np.float32(math.sqrt(0.5))))


def numba_gelu(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    for i in range(x.size):
        z = x[i] * w[i] + b[i]
        out[i] = np.float32(0.5) * z * (np.float32(1) + math.erf(z * np.float32(0.7071067811865476)))
    return out


def fused_gelu(seconds: float) -> list[Finding]:
    torch, jax, numba = (peer(name) for name in ("torch", "jax", "numba"))
    theirs: dict[str, Case | None] = {
        "NumPy": make_call_case(numpy_gelu, large(np.asarray)),
        "torch": None,
        "jax": None,
    }
    if torch is not None:
        gelu = lazy.module("torch.nn.functional").gelu
        theirs["torch"] = make_call_case(lambda x, w, b: gelu(x * w + b), large(torch.array))
    if jax is not None:
        exact = lazy.module("jax.nn").gelu
        function = jax.prepare(lambda x, w, b: exact(x * w + b, approximate=False))
        theirs["jax"] = make_call_case(function, large(jax.array), jax.finish)
    theirs["numba"] = (
        make_call_case(numba.prepare(numba_gelu), large(numba.array)) if numba is not None else None
    )
    ours = make_call_case(td.jit(lambda x, w, b: td.gelu(x * w + b)), large(td.asarray))
    for case in (ours, *theirs.values()):
        if case is not None:
            warmed(case, 2)
    return beside_best(ours, theirs, 1.1, seconds)


def square(array: Callable[[Any], Any]) -> Any:
    return array(np.random.default_rng(0).standard_normal((SIDE, SIDE), dtype=np.float32))


def softmax(seconds: float) -> list[Finding]:
    torch, jax = peer("torch"), peer("jax")
    theirs: dict[str, Case | None] = {"torch": None, "jax": None}
    if torch is not None:
        theirs["torch"] = warmed(make_call_case(lazy.module("torch").softmax, (square(torch.array), -1)), 5)
    if jax is not None:
        function = jax.prepare(lazy.module("jax.nn").softmax)
        theirs["jax"] = warmed(make_call_case(function, (square(jax.array),), jax.finish), 5)
    ours = warmed(make_call_case(td.jit(lambda x: td.softmax(x, axis=-1)), (square(td.asarray),)), 5)
    return beside_best(ours, theirs, 1.2, seconds)


def jax_layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = ((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) ** -0.5
    return centred * scale * weight + bias


def layer_norm(seconds: float) -> list[Finding]:
    torch, jax = peer("torch"), peer("jax")
    weight, bias = np.ones(SIDE, np.float32), np.zeros(SIDE, np.float32)
    theirs: dict[str, Case | None] = {"torch": None, "jax": None}
    if torch is not None:
        args = square(torch.array), (SIDE,), torch.array(weight), torch.array(bias)
        theirs["torch"] = warmed(make_call_case(lazy.module("torch.nn.functional").layer_norm, args), 5)
    if jax is not None:
        args = square(jax.array), jax.array(weight), jax.array(bias)
        theirs["jax"] = warmed(make_call_case(jax.prepare(jax_layer_norm), args, jax.finish), 5)
    args = square(td.asarray), td.asarray(weight), td.asarray(bias)
    ours = warmed(make_call_case(td.jit(lambda x, w, b: td.layer_norm(x, (SIDE,), w, b)), args), 5)
    return beside_best(ours, theirs, 1.2, seconds)


def polynomial(x: Any, w: Any, b: Any) -> Any:
    return ((x * 2 + w) * x - b) * x + w


def eager_chain(seconds: float) -> list[Finding]:
    """NumPy computes the intermediate results in the memory of the first one."""
    torch = peer("torch")
    theirs: dict[str, Case | None] = {"torch": None}
    random = np.random.default_rng(0).standard_normal((3, 1_000_000), dtype=np.float32)
    theirs["NumPy"] = warmed(make_call_case(polynomial, tuple(random)), 10)
    if torch is not None:
        theirs["torch"] = warmed(make_call_case(polynomial, tuple(map(torch.array, random))), 10)
    return beside_best(
        warmed(make_call_case(polynomial, tuple(map(td.asarray, random))), 40), theirs, 1.1, seconds
    )


ROWS = [
    Row("eager ((x*2 + w)*x - b)*x + w, 10^6 float32", eager_chain),
    Row("fused gelu(x*w+b), 10M float32, jitted", fused_gelu),
    Row("softmax 1024 x 1024, jitted", softmax),
    Row("layer_norm 1024 x 1024, jitted", layer_norm),
]

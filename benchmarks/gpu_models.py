"""Two small models, written once for tandem and for jax.numpy: a classifier of digits, a block of a language model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tandem as td
from tandem import lazy

Tree = Any


class Names(NamedTuple):
    """The functions of a library that the models call.

    Attributes:
        gelu, softmax: along the last axis.
        where, mean, sqrt, exp, log, sum, max: as in NumPy.
        positions: ``positions(n, like)``: 0 to n-1, on the device of ``like``.
        take: ``take(x, indices)``: rows of a matrix.
        picked: ``picked(rows, labels)``: of each row the element that its label names.
    """

    gelu: Callable[[Any], Any]
    softmax: Callable[[Any], Any]
    log_softmax: Callable[[Any], Any]
    relu: Callable[[Any], Any]
    where: Callable[..., Any]
    mean: Callable[..., Any]
    sqrt: Callable[[Any], Any]
    positions: Callable[[int, Any], Any]
    picked: Callable[[Any, Any], Any]
    permute: Callable[[Any, tuple[int, ...]], Any]


def tandem_names() -> Names:
    def picked(rows: Any, labels: Any) -> Any:
        return td.take_along_axis(rows, labels[:, None], 1)

    return Names(
        td.gelu,
        lambda x: td.softmax(x, axis=-1),
        lambda x: td.log_softmax(x, axis=-1),
        td.relu,
        td.where,
        lambda x, keep: td.mean(x, axis=-1 if keep else None, keepdims=keep),
        td.sqrt,
        lambda n, like: td.arange(n, device=like.device),
        picked,
        td.permute,
    )


def jax_names() -> Names:
    jax, jnp = lazy.module("jax"), lazy.module("jax.numpy")
    return Names(
        lambda x: jax.nn.gelu(x, approximate=False),
        jax.nn.softmax,
        jax.nn.log_softmax,
        jax.nn.relu,
        jnp.where,
        lambda x, keep: jnp.mean(x, axis=-1 if keep else None, keepdims=keep),
        jnp.sqrt,
        lambda n, like: jnp.arange(n),
        lambda rows, labels: jnp.take_along_axis(rows, labels[:, None], 1),
        jnp.transpose,
    )


def digits(names: Names) -> Callable[..., Any]:
    """The loss of a multi-layer perceptron."""

    def loss(params: Tree, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = names.relu(x @ w + b)
        w, b = params[-1]
        return -names.mean(names.picked(names.log_softmax(x @ w + b), y), False)

    return loss


def digits_arguments(seed: int = 0) -> tuple[Tree, Any, Any]:
    rng = np.random.default_rng(seed)
    sizes = [(64, 256), (256, 256), (256, 10)]
    params = [(rng.standard_normal(s).astype("f4") / s[0] ** 0.5, np.zeros(s[1], "f4")) for s in sizes]
    return params, rng.random((1024, 64)).astype("f4"), rng.integers(0, 10, 1024)


def block(names: Names) -> Callable[..., Any]:
    """The loss of a transformer block: masked attention, then a wide layer, each after a normalization."""

    def normal(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - names.mean(x, True)
        return centred / names.sqrt(names.mean(centred * centred, True) + 1e-5) * scale + shift

    def loss(p: Tree, x: Any, y: Any) -> Any:
        n, t, c = x.shape
        heads, size = 8, c // 8
        z = normal(x, p["g1"], p["b1"])
        q, k, v = (names.permute((z @ p[w]).reshape((n, t, heads, size)), (0, 2, 1, 3)) for w in "qkv")
        at = names.positions(t, x)
        scores = q @ names.permute(k, (0, 1, 3, 2)) * size**-0.5
        a = names.softmax(names.where(at[:, None] >= at, scores, -1e9)) @ v
        h = x + names.permute(a, (0, 2, 1, 3)).reshape((n, t, c)) @ p["o"]
        h = h + names.gelu(normal(h, p["g2"], p["b2"]) @ p["up"]) @ p["down"]
        logits = (h @ p["out"]).reshape((n * t, p["out"].shape[1]))
        return -names.mean(names.picked(names.log_softmax(logits), y.reshape((n * t,))), False)

    return loss


def block_arguments(
    seed: int = 0, batch: int = 8, length: int = 128, width: int = 512, vocabulary: int = 1024
) -> tuple[Tree, Any, Any]:
    rng, c = np.random.default_rng(seed), width
    shapes = {"up": (c, 4 * c), "down": (4 * c, c), "out": (c, vocabulary)} | dict.fromkeys("qkvo", (c, c))
    params = {name: rng.standard_normal(s).astype("f4") / s[0] ** 0.5 for name, s in shapes.items()}
    params |= {
        "g1": np.ones(c, "f4"),
        "g2": np.ones(c, "f4"),
        "b1": np.zeros(c, "f4"),
        "b2": np.zeros(c, "f4"),
    }
    x, y = rng.standard_normal((batch, length, c)), rng.integers(0, vocabulary, (batch, length))
    return params, x.astype("f4"), y


MODELS = {"digits": (digits, digits_arguments), "GPT block": (block, block_arguments)}

"""Workloads: chains of small operations, and one training step of a small network.

A chain has one source for every library: all of them spell ``x * a`` and ``x + b`` alike.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lazy, tanh, value_and_grad

LENGTHS = (1, 3, 10, 30, 100)
SIZES = (16, 1_000, 100_000, 1_000_000)
RATE = 0.01


def chain(length: int, variant: int = 0) -> Callable[..., Any]:
    """A new function ``chain(x, a, b)`` of ``length`` additions and products; they alternate in variant 0.

    Another variant is another program: no cache of compiled code can know it.
    """
    turns = [(i + (i // (variant + 1) if variant else 0)) % 2 for i in range(length)]
    body = [f"    x = x {'* a' if turn else '+ b'}" for turn in turns]
    source = "\n".join(["def chain(x, a, b):", *body, "    return x", ""])
    name = f"<chain {variant} of {length}>"
    # Known to the line cache, so that what reads source lines (tracebacks, graphs, numba) finds them.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {}
    exec(compile(source, name, "exec"), scope)
    function: Callable[..., Any] = scope["chain"]
    return function


def chain_arrays(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, a, b in float32, chosen so that no chain overflows."""
    random = np.random.default_rng(0)
    x, b = random.standard_normal((2, size), dtype=np.float32)
    return x, np.full(size, 0.5, np.float32), b


def step_arrays(
    batch: int = 32, sizes: tuple[int, int, int] = (64, 128, 10)
) -> tuple[dict[str, Any], Any, Any]:
    """Parameters, inputs and targets of the training step, as NumPy arrays."""
    random = np.random.default_rng(0)
    inner, hidden, outer = sizes
    params = {
        "w1": (random.standard_normal((inner, hidden)) / np.sqrt(inner)).astype(np.float32),
        "b1": np.zeros(hidden, np.float32),
        "w2": (random.standard_normal((hidden, outer)) / np.sqrt(hidden)).astype(np.float32),
        "b2": np.zeros(outer, np.float32),
    }
    x = random.standard_normal((batch, inner)).astype(np.float32)
    y = random.standard_normal((batch, outer)).astype(np.float32)
    return params, x, y


def _loss_with(tanh: Callable[[Any], Any]) -> Callable[..., Any]:
    def loss(params: dict[str, Any], x: Any, y: Any) -> Any:
        hidden = tanh(x @ params["w1"] + params["b1"])
        off = hidden @ params["w2"] + params["b2"] - y
        return (off * off).mean()

    return loss


def _step_with(value_and_grad: Callable[..., Any], loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(params: dict[str, Any], x: Any, y: Any) -> Any:
        value, grads = value_and_grad(loss)(params, x, y)
        return value, {name: params[name] - RATE * grads[name] for name in params}

    return step


def tandem_step() -> Callable[..., Any]:
    """One step of gradient descent, for eager use or for jit."""
    return _step_with(value_and_grad, _loss_with(tanh))


def numpy_step(params: dict[str, Any], x: Any, y: object) -> Any:
    """The same step with its gradient written out by hand."""
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    off = hidden @ params["w2"] + params["b2"] - y
    value = (off * off).mean()
    d_out = off * np.float32(2 / off.size)
    d_hidden = (d_out @ params["w2"].T) * (1 - hidden * hidden)
    grads = {
        "w1": x.T @ d_hidden,
        "b1": d_hidden.sum(axis=0),
        "w2": hidden.T @ d_out,
        "b2": d_out.sum(axis=0),
    }
    return value, {name: params[name] - RATE * grads[name] for name in params}


def torch_step() -> Callable[..., Any]:
    """The same step as PyTorch's users write it without an optimizer object."""
    torch = lazy.module("torch")
    loss = _loss_with(torch.tanh)

    def step(params: dict[str, Any], x: Any, y: Any) -> Any:
        leaves = {name: value.requires_grad_() for name, value in params.items()}
        value = loss(leaves, x, y)
        grads = torch.autograd.grad(value, list(leaves.values()))
        with torch.no_grad():
            return value, {name: p - RATE * g for (name, p), g in zip(leaves.items(), grads, strict=True)}

    return step


def jax_step() -> Callable[..., Any]:
    """The same step, compiled by JAX."""
    jax = lazy.module("jax")
    step: Callable[..., Any] = jax.jit(
        _step_with(jax.value_and_grad, _loss_with(lazy.module("jax.numpy").tanh))
    )
    return step

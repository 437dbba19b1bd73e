"""Workloads: chains of small operations, and one training step of a small network.

A chain is the same Python source for every library, since ``x * a`` and ``x + b`` are spelled alike in all of them.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lazy, tanh, value_and_grad

LENGTHS = (1, 3, 10, 30, 100)
SIZES = (16, 1_000, 100_000, 1_000_000)
LEARNING_RATE = 0.01


def chain(length: int, variant: int = 0) -> Callable[..., Any]:
    """Define a function ``chain(x, a, b)`` of ``length`` additions and products, which alternate in variant 0.

    Other variants are other programs, so that they miss in every cache of compiled code.
    """
    is_product = [(i + (i // (variant + 1) if variant else 0)) % 2 for i in range(length)]
    body = [f"    x = x {'* a' if product else '+ b'}" for product in is_product]
    source = "\n".join(["def chain(x, a, b):", *body, "    return x", ""])
    name = f"<chain {variant} of {length}>"
    # linecache serves the source lines to tracebacks, graphs and numba
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {}
    exec(compile(source, name, "exec"), namespace)
    function: Callable[..., Any] = namespace["chain"]
    return function


def chain_arrays(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arguments x, a, b of a chain in float32, chosen so that no chain overflows."""
    random = np.random.default_rng(0)
    x, b = random.standard_normal((2, size), dtype=np.float32)
    return x, np.full(size, 0.5, np.float32), b


def step_arrays(
    batch: int = 32, sizes: tuple[int, int, int] = (64, 128, 10)
) -> tuple[dict[str, Any], Any, Any]:
    """Return parameters, inputs and targets of the training step, as NumPy arrays."""
    random = np.random.default_rng(0)
    inputs, hidden, outputs = sizes
    params = {
        "w1": (random.standard_normal((inputs, hidden)) / np.sqrt(inputs)).astype(np.float32),
        "b1": np.zeros(hidden, np.float32),
        "w2": (random.standard_normal((hidden, outputs)) / np.sqrt(hidden)).astype(np.float32),
        "b2": np.zeros(outputs, np.float32),
    }
    x = random.standard_normal((batch, inputs)).astype(np.float32)
    y = random.standard_normal((batch, outputs)).astype(np.float32)
    return params, x, y


def _make_loss(tanh: Callable[[Any], Any]) -> Callable[..., Any]:
    def loss(params: dict[str, Any], x: Any, y: Any) -> Any:
        hidden = tanh(x @ params["w1"] + params["b1"])
        error = hidden @ params["w2"] + params["b2"] - y
        return (error * error).mean()

    return loss


def _make_step(value_and_grad: Callable[..., Any], loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(params: dict[str, Any], x: Any, y: Any) -> Any:
        value, grads = value_and_grad(loss)(params, x, y)
        return value, {name: params[name] - LEARNING_RATE * grads[name] for name in params}

    return step


def tandem_step() -> Callable[..., Any]:
    """Return a function that takes one step of gradient descent, to be run eagerly or under jit."""
    return _make_step(value_and_grad, _make_loss(tanh))


def numpy_step(params: dict[str, Any], x: Any, y: object) -> Any:
    """Take the same step, with a gradient that is written by hand."""
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    error = hidden @ params["w2"] + params["b2"] - y
    value = (error * error).mean()
    d_out = error * np.float32(2 / error.size)
    d_hidden = (d_out @ params["w2"].T) * (1 - hidden * hidden)
    grads = {
        "w1": x.T @ d_hidden,
        "b1": d_hidden.sum(axis=0),
        "w2": hidden.T @ d_out,
        "b2": d_out.sum(axis=0),
    }
    return value, {name: params[name] - LEARNING_RATE * grads[name] for name in params}


def torch_step() -> Callable[..., Any]:
    """Return the same step in PyTorch, without an optimizer object."""
    torch = lazy.module("torch")
    loss = _make_loss(torch.tanh)

    def step(params: dict[str, Any], x: Any, y: Any) -> Any:
        leaves = {name: value.requires_grad_() for name, value in params.items()}
        value = loss(leaves, x, y)
        grads = torch.autograd.grad(value, list(leaves.values()))
        with torch.no_grad():
            return value, {
                name: p - LEARNING_RATE * g for (name, p), g in zip(leaves.items(), grads, strict=True)
            }

    return step


def jax_step() -> Callable[..., Any]:
    """Return the same step in JAX, under jit."""
    jax = lazy.module("jax")
    step: Callable[..., Any] = jax.jit(
        _make_step(jax.value_and_grad, _make_loss(lazy.module("jax.numpy").tanh))
    )
    return step

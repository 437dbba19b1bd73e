"""Benchmarks of whole programs under jit, compared with ``jax.jit``: filters, regressions, mechanics, samplers.

One thread each: run with ``OPENBLAS_NUM_THREADS=1``. A program is given a library's functions and its float32 arrays.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import tandem as td
from loops import case
from rows import Finding, Row, beside
from tandem import lazy
from tandem.cli.overhead.peers import import_jax

BOUND = 0.8
RANDOM = np.random.default_rng(0)

Program = Callable[..., Any]
"""A function of a library (NumPy's functions as ``np``, control flow as ``lax``, and the transforms) and arrays."""


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def library(module: Any, np_: Any, lax: Any, solve_triangular: Any) -> SimpleNamespace:
    transforms = ("grad", "value_and_grad", "hessian", "jacfwd", "jvp", "vmap", "jit")
    return SimpleNamespace(
        np=np_,
        lax=lax,
        linalg=np_.linalg,
        solve_triangular=solve_triangular,
        **{name: getattr(module, name) for name in transforms},
    )


def kalman(of: Any, observed: Any, transition: Any, reading: Any, drift: Any, noise: Any) -> Any:
    """A filter with 4 states and 2 readings a step; the log likelihood and the estimates."""
    identity = of.np.eye(4, dtype=of.np.float32)

    def step(state: Any, y: Any) -> Any:
        mean, covariance = state
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + drift
        innovation = y - reading @ mean
        spread = reading @ covariance @ reading.T + noise
        gain = covariance @ reading.T @ of.linalg.inv(spread)
        mean = mean + gain @ innovation
        covariance = (identity - gain @ reading) @ covariance
        score = innovation @ of.linalg.solve(spread, innovation) + of.linalg.slogdet(spread)[1]
        return (mean, covariance), (mean, score)

    start = of.np.zeros(4, dtype=of.np.float32), identity
    _, (means, scores) = of.lax.scan(step, start, observed)
    return means, -0.5 * scores.sum()


def kalman_arrays() -> list[np.ndarray]:
    transition = np.eye(4) + 0.1 * np.eye(4, k=2)
    reading, drift, noise = np.eye(2, 4), 0.01 * np.eye(4), 0.1 * np.eye(2)
    return [normal(200, 2), *(array.astype(np.float32) for array in (transition, reading, drift, noise))]


def gaussian_process(of: Any, x: Any, y: Any, parameters: Any) -> Any:
    """The log marginal likelihood of 128 points and its gradient by length, amplitude and noise."""

    def negative_likelihood(parameters: Any) -> Any:
        length, amplitude, noise = (of.np.exp(parameters[i]) for i in range(3))
        square = ((x[:, None, :] - x[None, :, :]) / length) ** 2
        kernel = amplitude * of.np.exp(-0.5 * square.sum(-1))
        factor = of.linalg.cholesky(kernel + noise * of.np.eye(x.shape[0], dtype=of.np.float32))
        white = of.solve_triangular(factor, y[:, None])
        return 0.5 * (white * white).sum() + of.np.log(of.np.diagonal(factor)).sum()

    return of.value_and_grad(negative_likelihood)(parameters)


def pendulum(of: Any, state: Any) -> Any:
    """A double pendulum from its Lagrangian: 100 steps of Runge-Kutta."""

    def lagrangian(angle: Any, speed: Any) -> Any:
        first = 0.5 * speed[0] ** 2
        cross = speed[0] * speed[1] * of.np.cos(angle[0] - angle[1])
        second = 0.5 * (speed[0] ** 2 + speed[1] ** 2) + cross
        height = -2 * of.np.cos(angle[0]) - of.np.cos(angle[1])
        return first + second - 9.81 * height

    def slope(state: Any) -> Any:
        angle, speed = state
        mass = of.hessian(lagrangian, 1)(angle, speed)
        coupling = of.jacfwd(of.grad(lagrangian, 1), 0)(angle, speed)
        force = of.grad(lagrangian, 0)(angle, speed) - coupling @ speed
        return speed, of.linalg.solve(mass, force)

    def moved(state: Any, by: Any, time: float) -> Any:
        return state[0] + time * by[0], state[1] + time * by[1]

    def step(state: Any, _: Any) -> Any:
        k1 = slope(state)
        k2 = slope(moved(state, k1, 0.005))
        k3 = slope(moved(state, k2, 0.005))
        k4 = slope(moved(state, k3, 0.01))
        total = tuple(a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        state = moved(state, total, 0.01 / 6)
        return state, state[0]

    return of.lax.scan(step, (state[0], state[1]), None, length=100)[1]


def cartpole(of: Any, starts: Any, actions: Any) -> Any:
    """256 carts for 200 steps, each put back when its pole falls."""

    def step(state: Any, action: Any) -> Any:
        x, v, angle, spin = (state[i] for i in range(4))
        force = of.np.where(action > 0, 10.0, -10.0)
        cosine, sine = of.np.cos(angle), of.np.sin(angle)
        push = (force + 0.05 * spin**2 * sine) / 1.1
        torque = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
        thrust = push - 0.05 * torque * cosine / 1.1
        new = of.np.stack([x + 0.02 * v, v + 0.02 * thrust, angle + 0.02 * spin, spin + 0.02 * torque])
        fell = (of.np.abs(new[0]) > 2.4) | (of.np.abs(new[2]) > 0.2095)
        return of.np.where(fell, of.np.zeros_like(new), new), of.np.where(fell, 0.0, 1.0)

    def episode(start: Any, actions: Any) -> Any:
        return of.lax.scan(step, start, actions)

    return of.vmap(episode)(starts, actions)


def hmc(of: Any, x: Any, y: Any, start: Any, momenta: Any, uniforms: Any) -> Any:
    """50 samples of a logistic regression's posterior with 10 leapfrog steps each."""

    def energy(w: Any) -> Any:
        return of.np.log1p(of.np.exp(-y * (x @ w))).sum() + 0.5 * (w * w).sum()

    gradient = of.grad(energy)

    def leapfrog(_: Any, state: Any) -> Any:
        w, p = state
        p = p - 0.025 * gradient(w)
        w = w + 0.05 * p
        return w, p - 0.025 * gradient(w)

    def sample(w: Any, noise: Any) -> Any:
        p, uniform = noise
        new, q = of.lax.fori_loop(0, 10, leapfrog, (w, p))
        change = energy(w) + 0.5 * (p * p).sum() - energy(new) - 0.5 * (q * q).sum()
        w = of.np.where(of.np.log(uniform) < change, new, w)
        return w, w

    return of.lax.scan(sample, start, (momenta, uniforms))[1]


def linear_regression(of: Any, x: Any, y: Any, w: Any) -> Any:
    """100 steps of gradient descent."""
    gradient = of.grad(lambda w: ((x @ w - y) ** 2).mean())
    return of.lax.fori_loop(0, 100, lambda i, w: w - 0.1 * gradient(w), w)


def per_example(of: Any, w1: Any, w2: Any, x: Any, y: Any) -> Any:
    """The gradients of a network of two layers, one for each of 64 examples."""

    def loss(w1: Any, w2: Any, x: Any, y: Any) -> Any:
        return ((of.np.tanh(x @ w1) @ w2 - y) ** 2).sum()

    return of.vmap(of.grad(loss, (0, 1)), (None, None, 0, 0))(w1, w2, x, y)


def tandem_library() -> Any:
    return library(td, td, td, lambda a, b: td.linalg.solve_triangular(a, b, upper=False))


def jax_library() -> Any:
    jax = import_jax()
    triangular = lazy.module("jax.scipy.linalg").solve_triangular
    return library(jax, jax.numpy, jax.lax, lambda a, b: triangular(a, b, lower=True))


def compare(program: Program, arrays: list[np.ndarray], bound: float, seconds: float) -> list[Finding]:
    """The time as a multiple of that of ``jax.jit``; their results must agree."""
    mine = tandem_library()
    function, given = td.jit(lambda *xs: program(mine, *xs)), [td.asarray(x) for x in arrays]
    theirs = None
    if lazy.is_installed("jax"):
        other, jax = jax_library(), lazy.module("jax")
        compiled = jax.jit(lambda *xs: program(other, *xs))
        placed = [jax.numpy.asarray(x) for x in arrays]
        results = td.tree.leaves(function(*given)), jax.tree.leaves(compiled(*placed))
        for ours, expected in zip(*results, strict=True):
            np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), rtol=2e-2, atol=2e-3)
        theirs = case(compiled, placed, jax.block_until_ready)
    return beside(case(function, given, lambda x: x), {"jax": theirs}, {"jax": bound}, seconds)


def row(name: str, program: Program, *arrays: np.ndarray, bound: float = BOUND) -> Row:
    return Row(name, lambda seconds: compare(program, list(arrays), bound, seconds))


ROWS = [
    row("Kalman filter, 200 steps of 4 states", kalman, *kalman_arrays()),
    row(
        "Gaussian process of 128 points with its gradient",
        gaussian_process,
        normal(128, 3),
        normal(128),
        np.float32([0.0, 0.0, -1.0]),
    ),
    row("double pendulum from its Lagrangian, 100 steps", pendulum, np.float32([[0.4, 0.3], [0.0, 0.0]])),
    row("256 vmapped cartpoles, 200 steps", cartpole, 0.05 * normal(256, 4), normal(256, 200)),
    row(
        "HMC, 50 samples of 10 leapfrog steps",
        hmc,
        normal(100, 8),
        np.sign(normal(100)),
        normal(8),
        normal(50, 8),
        RANDOM.random(50, dtype=np.float32),
    ),
    row(
        "linear regression, 100 gradient steps",
        linear_regression,
        normal(100, 10),
        normal(100),
        normal(10),
    ),
    row(
        "gradients of 64 examples, 32 -> 64 -> 8",
        per_example,
        0.1 * normal(32, 64),
        0.1 * normal(64, 8),
        normal(64, 32),
        normal(64, 8),
    ),
]

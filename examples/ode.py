"""The Lorenz system by fourth-order Runge-Kutta: ten thousand steps of a few operations on three numbers each.

    python examples/ode.py

With arrays this small the arithmetic is nothing and the calls are everything.  ``rk4`` is written once and runs
on NumPy arrays, on tandem's tensors eagerly, and compiled, one call per step.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tandem as td
from rich.console import Console
from rich.progress import track
from rich.table import Table

SIGMA, RHO, BETA = 10.0, 28.0, 8.0 / 3.0
DT = 0.01


@dataclass
class Point:
    """A point of the phase space; its coordinates are arrays, one entry per trajectory."""

    x: Any
    y: Any
    z: Any


def lorenz(p: Point) -> Point:
    """The time derivative at a point."""
    return Point(SIGMA * (p.y - p.x), p.x * (RHO - p.z) - p.y, p.x * p.y - BETA * p.z)


def along(p: Point, v: Point, t: float) -> Point:
    """The point reached from ``p`` with velocity ``v`` in time ``t``."""
    return Point(p.x + t * v.x, p.y + t * v.y, p.z + t * v.z)


def rk4(p: Point) -> Point:
    """One step."""
    k1 = lorenz(p)
    k2 = lorenz(along(p, k1, DT / 2))
    k3 = lorenz(along(p, k2, DT / 2))
    k4 = lorenz(along(p, k3, DT))
    return Point(
        p.x + DT / 6 * (k1.x + 2 * k2.x + 2 * k3.x + k4.x),
        p.y + DT / 6 * (k1.y + 2 * k2.y + 2 * k3.y + k4.y),
        p.z + DT / 6 * (k1.z + 2 * k2.z + 2 * k3.z + k4.z),
    )


WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Point], Point]]] = {
    "NumPy": (np.asarray, rk4),
    "eager": (td.asarray, rk4),
    "jit": (td.asarray, td.jit(rk4)),
}


def start(array: Callable[[Any], Any], trajectories: int) -> Point:
    """Neighbouring points near the attractor."""
    offsets = np.linspace(0, 1e-3, trajectories)
    return Point(array(1.0 + offsets), array(1.0 + offsets), array(20.0 + offsets))


def integrate(strategy: str, steps: int, trajectories: int) -> tuple[Point, float]:
    """The end point and the seconds that ``steps`` calls took; what the first call compiles is not counted."""
    array, step = WAYS[strategy]
    point = start(array, trajectories)
    for _ in range(100):
        step(point)
    began = time.perf_counter()
    for _ in range(steps):
        point = step(point)
    return point, time.perf_counter() - began


def compare(steps: int, trajectories: int, rounds: int) -> dict[str, tuple[Point, float]]:
    """Each way's end point and its best time of some interleaved rounds."""
    best: dict[str, tuple[Point, float]] = {}
    for _ in track(range(rounds), description="integrating"):
        for strategy in WAYS:
            point, seconds = integrate(strategy, steps, trajectories)
            best[strategy] = (point, min(seconds, best.get(strategy, (point, seconds))[1]))
    return best


def main(arguments: list[str] | None = None) -> dict[str, tuple[Point, float]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--trajectories", type=int, default=1, help="how many start points, side by side")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)

    results = compare(options.steps, options.trajectories, options.rounds)
    table = Table(title=f"Lorenz, RK4, {options.steps} steps, a call per step")
    for heading in ("run", "time", "per step", "beside NumPy", "end point of the first trajectory"):
        table.add_column(heading, justify="left" if heading == "run" else "right")
    base = results["NumPy"][1]
    for strategy, (point, seconds) in results.items():
        end = ", ".join(f"{float(np.asarray(c)[0]):.3f}" for c in (point.x, point.y, point.z))
        step_us = seconds / options.steps * 1e6
        table.add_row(
            strategy, f"{seconds * 1e3:.0f} ms", f"{step_us:.2f} us", f"{seconds / base:.3f} x", end
        )
    Console().print(table)
    return results


if __name__ == "__main__":
    main()

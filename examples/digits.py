"""Handwritten digits: an MLP 64-128-10 trained with Adam, eagerly, under ``@jit``, and in NumPy by hand.

    python examples/digits.py                 # one seed, three ways, digits.png with the loss curves
    python examples/digits.py --seeds 5       # the mean test accuracy over five seeds

The step is written once; the eager run calls it, the compiled run calls ``td.jit`` of it.  The NumPy twin starts
from the same initial values and sees the same batches, with its gradient written out by hand.
"""

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tandem as td
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BATCH, RATE, BETA1, BETA2, EPSILON = 32, 2e-3, 0.9, 0.999, 1e-8
Arrays = dict[str, Any]


@dataclass
class State:
    """The state of training: parameters, Adam's two moments, the number of steps so far."""

    params: Arrays
    mean: Arrays
    square: Arrays
    count: Any


# --- the model, once, for eager and compiled --------------------------------------------------------------


def init(key: td.random.Key) -> Arrays:
    """Initial values: normal, scaled by the number of inputs."""
    one, two = td.random.split(key)
    return {
        "w1": td.random.normal(one, (64, 128)) * (2 / 64) ** 0.5,
        "b1": td.zeros(128),
        "w2": td.random.normal(two, (128, 10)) * (2 / 128) ** 0.5,
        "b2": td.zeros(10),
    }


def predict(params: Arrays, x: td.Tensor) -> td.Tensor:
    # smooth, so that rounding stays rounding: at a kink of relu two runs that differ in a last place part for good
    hidden = td.tanh(x @ params["w1"] + params["b1"])
    logits: td.Tensor = hidden @ params["w2"] + params["b2"]
    return logits


def loss(params: Arrays, x: td.Tensor, y: td.Tensor) -> td.Tensor:
    return td.cross_entropy(predict(params, x), y)


def adam(state: State, grads: Arrays) -> State:
    count = state.count + 1
    mean = {k: BETA1 * state.mean[k] + (1 - BETA1) * g for k, g in grads.items()}
    square = {k: BETA2 * state.square[k] + (1 - BETA2) * g * g for k, g in grads.items()}
    rate = RATE * td.sqrt(1 - BETA2**count) / (1 - BETA1**count)
    params = {k: p - rate * mean[k] / (td.sqrt(square[k]) + EPSILON) for k, p in state.params.items()}
    return State(params, mean, square, count)


def step(state: State, x: td.Tensor, y: td.Tensor) -> tuple[td.Tensor, State]:
    value, grads = td.value_and_grad(loss)(state.params, x, y)
    return value, adam(state, grads)


# --- the same by hand in NumPy ----------------------------------------------------------------------------


def numpy_predict(params: Arrays, x: np.ndarray) -> np.ndarray:
    logits: np.ndarray = np.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    return logits


def numpy_step(state: State, x: np.ndarray, y: np.ndarray) -> tuple[np.floating, State]:
    p, rows = state.params, np.arange(len(y))
    hidden = np.tanh(x @ p["w1"] + p["b1"])
    logits = hidden @ p["w2"] + p["b2"]
    logits -= logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    d_logits = np.exp(logs)
    d_logits[rows, y] -= 1
    d_logits /= np.float32(len(y))
    d_hidden = (d_logits @ p["w2"].T) * (1 - hidden * hidden)
    grads = {
        "w1": x.T @ d_hidden,
        "b1": d_hidden.sum(axis=0),
        "w2": hidden.T @ d_logits,
        "b2": d_logits.sum(axis=0),
    }
    return -logs[rows, y].mean(), numpy_adam(state, grads)


def numpy_adam(state: State, grads: Arrays) -> State:
    count = state.count + 1
    mean = {k: BETA1 * state.mean[k] + (1 - BETA1) * g for k, g in grads.items()}
    square = {k: BETA2 * state.square[k] + (1 - BETA2) * g * g for k, g in grads.items()}
    rate = np.float32(RATE * np.sqrt(1 - BETA2**count) / (1 - BETA1**count))
    params = {
        k: p - rate * mean[k] / (np.sqrt(square[k]) + np.float32(EPSILON)) for k, p in state.params.items()
    }
    return State(params, mean, square, count)


# --- training ---------------------------------------------------------------------------------------------


@dataclass
class Way:
    """One way to train: functions that create and read arrays, the step, and the prediction."""

    name: str
    array: Callable[[Any], Any]
    step: Callable[..., Any]
    predict: Callable[..., Any]


@dataclass
class Run:
    """The result of a training run."""

    name: str
    losses: list[float]
    step_us: float
    accuracy: float


WAYS = (
    Way("eager", td.asarray, step, predict),
    Way("jit", td.asarray, td.jit(step), td.jit(predict)),
    Way("NumPy", np.asarray, numpy_step, numpy_predict),
)


def data(seed: int) -> tuple[np.ndarray, ...]:
    """Train and test images in [0, 1] and their labels; a fifth is held out."""
    images, labels = load_digits(return_X_y=True)
    x = (images / 16).astype(np.float32)
    parts = train_test_split(x, labels, test_size=0.2, random_state=seed, stratify=labels)
    return tuple(np.asarray(part) for part in parts)


def batches(seed: int, size: int, epochs: int) -> Iterator[np.ndarray]:
    """The rows of each batch: every epoch goes once through the data in a new order."""
    random = np.random.default_rng(seed)
    for _ in range(epochs):
        order = random.permutation(size)
        yield from np.split(order[: size - size % BATCH], size // BATCH)


def start(strategy: Way, params: Arrays) -> State:
    def zeros() -> Arrays:
        return {k: strategy.array(np.zeros_like(p)) for k, p in params.items()}

    return State(
        {k: strategy.array(p) for k, p in params.items()}, zeros(), zeros(), strategy.array(np.float32(0))
    )


def train(strategy: Way, seed: int, epochs: int, tick: Callable[[], None]) -> Run:
    """Train one way from the seed's initial values."""
    x_train, x_test, y_train, y_test = data(seed)
    state = start(strategy, {k: np.asarray(v) for k, v in init(td.random.key(seed)).items()})
    losses, times = [], []
    for rows in batches(seed, len(x_train), epochs):
        x, y = strategy.array(x_train[rows]), strategy.array(y_train[rows])
        began = time.perf_counter()
        value, state = strategy.step(state, x, y)
        losses.append(float(value))
        times.append(time.perf_counter() - began)
        tick()
    guesses = np.asarray(strategy.predict(state.params, strategy.array(x_test))).argmax(axis=1)
    return Run(strategy.name, losses, statistics.median(times) * 1e6, float((guesses == y_test).mean()))


def disagreement(one: Run, other: Run) -> float:
    """The largest relative difference of two runs' losses at any step."""
    a, b = np.asarray(one.losses), np.asarray(other.losses)
    return float(np.max(np.abs(a - b) / np.abs(b)))


# --- what is shown ----------------------------------------------------------------------------------------


def plot(runs: list[Run], path: str) -> None:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for run, style in zip(runs, ("-", "--", ":"), strict=True):
        axes.semilogy(run.losses, style, label=f"{run.name}: {run.step_us:.0f} us a step", linewidth=1.5)
    axes.set(
        xlabel="step", ylabel="training loss", title="Handwritten digits, one source, eager and compiled"
    )
    axes.legend()
    figure.savefig(path, dpi=150)


def table(results: list[list[Run]]) -> Table:
    out = Table(title=f"digits, MLP 64-128-10, Adam, {len(results)} seed(s)")
    for heading in (
        "run",
        "test accuracy",
        "time per step",
        "loss beside eager (largest relative difference)",
    ):
        out.add_column(heading, justify="left" if heading == "run" else "right")
    for runs in zip(*results, strict=True):
        accuracy = statistics.mean(run.accuracy for run in runs)
        took = statistics.median(run.step_us for run in runs)
        off = max(disagreement(run, seed[0]) for run, seed in zip(runs, results, strict=True))
        out.add_row(runs[0].name, f"{100 * accuracy:.2f} %", f"{took:.0f} us", f"{off:.1e}")
    return out


def main(arguments: list[str] | None = None) -> list[list[Run]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to average over")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--plot", default="digits.png", help="where the loss curves go; empty for none")
    options = parser.parse_args(arguments)

    console = Console()
    columns = (TextColumn("{task.description:>20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    results = []
    with Progress(*columns, console=console) as progress:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            runs = []
            for strategy in WAYS:
                steps = len(data(seed)[0]) // BATCH * options.epochs
                task = progress.add_task(f"seed {seed}, {strategy.name}", total=steps)
                runs.append(train(strategy, seed, options.epochs, functools.partial(progress.advance, task)))
            results.append(runs)
    console.print(table(results))
    if options.plot:
        plot(results[0], options.plot)
        console.print(f"loss curves: {options.plot}")
    return results


if __name__ == "__main__":
    main()

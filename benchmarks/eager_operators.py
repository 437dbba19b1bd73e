"""Measure eager calls of all operators on small samples, relative to functions of NumPy, SciPy and PyTorch.

python benchmarks/eager_operators.py [--only add,sort] [--dtype float32] [--above 1.2] [--seconds 0.06]

The samples come from tests/harness/optable.py. An operator's peer is the function of the same name in NumPy, SciPy or
PyTorch that accepts the sample; operators without one are counted at the end.
"""

import argparse
import functools
import importlib
import sys
import timeit
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tandem as td
from tandem import lazy
from tandem.registry.dtypes import DType

HARNESS = Path(__file__).resolve().parents[1] / "tests"
WARM_CALLS, REPEATS = 300, 7
# Modules that are searched for a peer, by the last part of the module of the declared reference.
NUMPY, TORCH, NN = "numpy", "torch", "torch.nn.functional"
PREFIXES = {
    "linalg_": ("numpy.linalg", "torch.linalg"),
    "special_": ("scipy.special",),
    "fft_": ("numpy.fft",),
}


def candidates(op: Any, name: str) -> Iterator[tuple[str, str]]:
    """(module, function) that may be an operator's peer, the best first."""
    reference = op.decl.reference
    if isinstance(reference, str) and reference.startswith(("numpy", "scipy")):
        module, _, function = reference.rpartition(".")
        yield module, function
    name = name.partition(".")[0]
    for prefix, modules in PREFIXES.items():
        if name.startswith(prefix):
            for module in modules:
                yield module, name.removeprefix(prefix)
    for module in (NUMPY, NN, TORCH):
        yield module, name


def arguments(optable: Any, tree: Any, module: str) -> Any:
    """Arguments of a sample as the module takes them."""
    if not module.startswith("torch"):
        return optable.replace(tree, DType, lambda dtype: dtype.np)
    torch = lazy.module("torch")
    tree = optable.replace(tree, DType, lambda dtype: getattr(torch, dtype.name))
    return optable.replace(tree, np.ndarray, lambda array: torch.from_numpy(array.copy()))


def find_peer(optable: Any, op: Any, name: str, sample: Any) -> tuple[str, Callable[[], Any]] | None:
    """The name of a peer and a function that calls it on the sample."""
    for module, function in candidates(op, name):
        if not lazy.is_installed(module.partition(".")[0]):
            continue
        target = getattr(importlib.import_module(module), function, None)
        if target is None:
            continue
        args, kwargs = arguments(optable, sample, module)
        try:
            target(*args, **kwargs)
        except Exception:  # the peer takes other arguments
            continue
        return f"{module}.{function}", lambda target=target, args=args, kwargs=kwargs: target(*args, **kwargs)
    return None


def interleaved(calls: list[Callable[[], Any]], seconds: float) -> list[float]:
    """The median time of each call in seconds, measured in turns."""
    timers = [timeit.Timer(call) for call in calls]
    counts = [max(1, int(seconds / REPEATS / max(timer.timeit(3) / 3, 1e-8))) for timer in timers]
    rounds = [
        [timer.timeit(count) / count for timer, count in zip(timers, counts, strict=True)]
        for _ in range(REPEATS)
    ]
    return [sorted(times)[REPEATS // 2] for times in zip(*rounds, strict=True)]


def measure(
    optable: Any, op: Any, name: str, dtype: DType, seconds: float
) -> tuple[str, float, float] | None:
    """(peer, seconds of ours, seconds of the peer) for the first sample that a peer accepts."""
    function = td.registry.function.functions.get(op.name, op)
    for sample in list(optable.samples_of(op, dtype))[:6]:
        arrays = optable.arrays_of(sample, dtype, optable.generator(op, dtype))
        peer = find_peer(optable, op, name, arrays)
        if peer is None:
            continue
        args, kwargs = optable.to_tensors(arrays)
        ours = functools.partial(function, *args, **kwargs)
        for call in (ours, peer[1]):
            for _ in range(WARM_CALLS):
                call()
        return (peer[0], *interleaved([ours, peer[1]], seconds))
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="operators, with commas")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--above", type=float, default=1.2, help="list the operators above this ratio")
    parser.add_argument("--seconds", type=float, default=0.06, help="for each call")
    options = parser.parse_args()
    sys.path[:0] = [str(HARNESS / "harness"), str(HARNESS)]
    optable = importlib.import_module("optable")  # from tests/harness

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    found, without = [], []
    for name, op in optable.table().items():
        if options.only and name not in options.only.split(","):
            continue
        wanted = getattr(td, options.dtype)
        dtypes = [dtype for dtype in op.decl.dtypes if dtype is wanted] or list(op.decl.dtypes)[:1]
        row = measure(optable, op, name, dtypes[0], options.seconds) if dtypes else None
        if row is None:
            without.append(name)
        else:
            found.append((row[1] / row[2], name, *row))
    for ratio, name, peer, ours, theirs in sorted(found, reverse=True):
        if ratio > options.above or options.only:
            print(f"{name:28s} {ratio:7.2f}  {ours * 1e6:8.2f} us beside {theirs * 1e6:8.2f} us  {peer}")
    ratios = np.asarray([row[0] for row in found])
    mean, slow = np.exp(np.log(ratios).mean()), (ratios > options.above).sum()
    print(f"{len(found)} operators, geometric mean {mean:.3f}, {slow} above {options.above}")
    print(f"{len(without)} without a peer: {', '.join(without)}")


if __name__ == "__main__":
    main()

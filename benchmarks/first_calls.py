"""Benchmark of the first 100 calls of operators in a fresh process, compared with PyTorch's: total processor time.

python benchmarks/first_calls.py [--size 1000000] prints the worst operators.

Imports are excluded, and the disk cache is warm: a first process fills it. All elementwise operators that PyTorch has
under the same name run on positive float32 numbers, and softmax, layer_norm and normal.
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, missing
from tandem import lazy
from tandem.operators.declare.declaration import declared_operators

CALLS, BOUND = 100, 1.2
SIZES = (100_000, 1_000_000)


def operators() -> Iterator[tuple[str, int]]:
    """The names of elementwise operators that PyTorch has too, and how many tensors they take."""
    torch = lazy.module("torch")
    samples = [torch.rand(4) + 0.5 for _ in range(3)]
    for op in declared_operators():
        name = op.name.partition("::")[2].removesuffix(".Tensor")
        if not op.decl.is_elementwise or not hasattr(torch, name) or not hasattr(td, name):
            continue
        for count in (1, 2, 3):
            try:
                getattr(td, name)(*(td.asarray(x.numpy()) for x in samples[:count]))
                getattr(torch, name)(*samples[:count])
            except Exception:  # another number of tensors
                continue
            yield name, count
            break


def calls(library: str, size: int, names: dict[str, int]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each operator's name and a call of it."""
    module = importlib.import_module(library)
    random = np.random.default_rng(0)
    arrays = [random.random(size, dtype=np.float32) + np.float32(0.5) for _ in range(3)]
    if library == "torch":
        module.set_num_threads(1)
        tensors, normal = [module.from_numpy(x) for x in arrays], partial(module.randn, size)
        layer_norm = module.nn.functional.layer_norm
    else:
        tensors = [module.asarray(x) for x in arrays]
        generator, layer_norm = module.Generator(0), module.layer_norm
        normal = partial(generator.normal, (size,), dtype=module.float32)
    for name, count in names.items():
        yield name, partial(getattr(module, name), *tensors[:count])
    rows = tensors[0].reshape(-1, 100)
    yield "softmax", lambda: module.softmax(rows, -1)
    yield "layer_norm", lambda: layer_norm(rows, (100,))
    yield "normal", normal


def run(library: str, size: int, names: dict[str, int]) -> dict[str, float]:
    """Processor seconds of the first calls of each operator, in this process."""
    result = {}
    for name, call in calls(library, size, names):
        start = time.process_time()
        for _ in range(CALLS):
            call()
        result[name] = time.process_time() - start
    return result


def in_new_process(library: str, size: int, names: dict[str, int]) -> dict[str, float]:
    given = json.dumps([library, size, names])
    done = subprocess.run(
        [sys.executable, __file__, "--run", given], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(size: int) -> dict[str, tuple[float, float]]:
    """Our processor seconds and PyTorch's, by operator: the least of three processes each."""
    names = dict(operators())
    in_new_process("tandem", size, names)  # fills the disk cache
    times: dict[str, list[dict[str, float]]] = {"tandem": [], "torch": []}
    for _ in range(3):
        for library, found in times.items():
            found.append(in_new_process(library, size, names))
    return {
        name: (min(x[name] for x in times["tandem"]), min(x[name] for x in times["torch"]))
        for name in times["torch"][0]
    }


def findings(size: int, seconds: float) -> list[Finding]:
    if not lazy.is_installed("torch"):
        return [missing("torch", BOUND)]
    found = measure(size)
    ours, theirs = (sum(pair[index] for pair in found.values()) for index in (0, 1))
    note = f"{len(found)} operators, {ours:.2f} s beside {theirs:.2f} s"
    return [Finding("PyTorch", ours / theirs, BOUND, note)]


ROWS = [
    Row(f"first {CALLS} calls of operators on {size} elements", partial(findings, size)) for size in SIZES
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=SIZES[-1])
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(*json.loads(options.run))))
        return
    found = measure(options.size)
    for name, (ours, theirs) in sorted(found.items(), key=lambda item: item[1][1] / item[1][0])[:25]:
        print(f"{name:20s} {ours / theirs:6.2f}  {ours * 1e3:8.2f} ms beside {theirs * 1e3:8.2f} ms")
    ours, theirs = (sum(pair[index] for pair in found.values()) for index in (0, 1))
    print(f"{len(found)} operators: {ours / theirs:.2f}, {ours:.2f} s beside {theirs:.2f} s")


if __name__ == "__main__":
    main()

"""Benchmarks of call overhead: 16 elements, chains of 30 operations, a dict of 50 leaves."""

import importlib
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, beside, peer, warmed
from tandem.cli.overhead.compare import make_call_case
from tandem.cli.overhead.measure import Case, interleave
from tandem.cli.overhead.workloads import chain, chain_arrays
from tandem.operators.declare.declaration import TensorSample, declared_operators
from tandem.registry.dtypes import DType, bool_, float32, int32
from tandem.registry.function import functions
from tandem.registry.operator import Operator

SIZE, LENGTH, LEAVES = 16, 30, 50
TESTS = str(Path(__file__).resolve().parents[1] / "tests" / "harness")


def placed(array: Callable[[Any], Any], size: int = SIZE) -> tuple[Any, ...]:
    return tuple(array(a) for a in chain_arrays(size))


def addition(array: Callable[[Any], Any]) -> Case:
    x, _, y = placed(array)
    return warmed(Case("x + y", {"x": x, "y": y}))


def eager_addition(seconds: float) -> list[Finding]:
    torch = peer("torch")
    theirs = {"NumPy": addition(np.asarray), "torch": addition(torch.array) if torch else None}
    return beside(addition(td.asarray), theirs, {"NumPy": 0.6, "torch": 0.3}, seconds)


def eager_chain(seconds: float) -> list[Finding]:
    function = chain(LENGTH)
    ours, theirs = make_call_case(function, placed(td.asarray)), make_call_case(function, placed(np.asarray))
    return beside(warmed(ours), {"NumPy": warmed(theirs)}, {"NumPy": 0.6}, seconds)


def jitted_chain(seconds: float) -> list[Finding]:
    def case(name: str) -> Case | None:
        one = peer(name)
        return (
            warmed(make_call_case(one.prepare(chain(LENGTH)), placed(one.array), one.finish))
            if one is not None
            else None
        )

    ours = warmed(make_call_case(td.jit(chain(LENGTH)), placed(td.asarray)))
    return beside(ours, {n: case(n) for n in ("numba", "jax")}, {"numba": 0.25, "jax": 0.05}, seconds)


def add_to_leaves(leaves: dict[str, Any]) -> dict[str, Any]:
    return {name: value + 1.0 for name, value in leaves.items()}


def jitted_dict(seconds: float) -> list[Finding]:
    arrays = {f"leaf{i}": np.full(SIZE, i, np.float32) for i in range(LEAVES)}
    ours = make_call_case(td.jit(add_to_leaves), ({name: td.asarray(a) for name, a in arrays.items()},))
    jax = peer("jax")
    theirs = None
    if jax is not None:
        placed_leaves = {name: jax.array(a) for name, a in arrays.items()}
        theirs = warmed(
            make_call_case(jax.prepare(add_to_leaves), (placed_leaves,), "['leaf0']" + jax.finish)
        )
    return beside(warmed(ours), {"jax": theirs}, {"jax": 0.15}, seconds)


# --- every elementwise operator and reduction -------------------------------------------------------------


def op_table() -> ModuleType:
    """The tests' table of operators: their samples and references."""
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    return importlib.import_module("optable")


def arguments(operator: Operator) -> tuple[np.ndarray, ...]:
    """Sixteen elements for each tensor argument, from the intervals that the operator's samples draw from."""
    decl = operator.decl
    dtype: DType = next(d for d in (float32, int32, bool_, *decl.dtypes) if d in decl.dtypes)
    random = np.random.default_rng(0)
    if decl.samples is None:
        raise ValueError(f"{decl.schema} declares no samples to draw from")
    samples = [sample.args for sample in op_table().samples_of(operator, dtype)]
    drawn = next(
        args for args in samples if args and all(isinstance(a, TensorSample) and a.shape for a in args)
    )
    return tuple(filled(d.dtype or dtype, random.uniform(d.low, d.high, SIZE)) for d in drawn)


def filled(dtype: DType, values: np.ndarray) -> np.ndarray:
    """The values as an array of a dtype."""
    return values > 0 if dtype is bool_ else values.astype(dtype.np)


def pairs() -> Iterator[tuple[str, Case, Case]]:
    """(name, ours, NumPy's) for every elementwise operator and reduction."""
    for operator in declared_operators():
        decl = operator.decl
        if (decl.is_elementwise or decl.kind == "reduction") and operator.schema.overload in ("", "Tensor"):
            name, arrays = operator.schema.name, arguments(operator)
            ours = make_call_case(functions[operator.name], tuple(map(td.asarray, arrays)))
            yield name, warmed(ours), warmed(make_call_case(op_table().resolve(decl.reference), arrays), 5)


def every_operator(seconds: float) -> list[Finding]:
    ratios = {}
    for name, ours, theirs in pairs():
        times = interleave({"tandem": ours, "NumPy": theirs}, seconds=seconds / 20)
        ratios[name] = times["tandem"].median / times["NumPy"].median
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    worst = ", ".join(f"{name} {ratios[name]:.2f}" for name in sorted(ratios, key=ratios.__getitem__)[-4:])
    return [Finding("NumPy", mean, 0.8, f"{len(ratios)} operators; the slowest: {worst}")]


ROWS = [
    Row("eager x + y, float32[16]", eager_addition),
    Row("eager chain of 30, float32[16]", eager_chain),
    Row("jitted chain of 30, float32[16]", jitted_chain),
    Row("jitted, dict of 50 float32[16] in and out", jitted_dict),
    Row("eager, every elementwise op and reduction, 16 elements, geometric mean", every_operator),
]

"""The comparisons: chains of small operations and a training step, by every contender side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ... import config
from . import workloads
from .measure import Case, interleave
from .peers import EAGER, JIT, NUMPY, Contender
from .results import Comparison

if TYPE_CHECKING:
    from ...registry.types import Args, Function

WARM_CALLS = 100  # more than makes an operator hot: its stub is compiled before anything is timed
WARM_NS = 2e8


def make_call_case(function: Function, args: Args, finish: str = "") -> Case:
    """A call of a function with these arguments as a statement to time."""
    names = {"f": function, **{f"a{i}": value for i, value in enumerate(args)}}
    return Case(f"f({', '.join(f'a{i}' for i in range(len(args)))}){finish}", names)


def warm_up(case: Case) -> float:
    """Run a case until it is hot; the nanoseconds of its first run."""
    timer = case.timer()
    first, second = (
        timer.timeit(1),
        timer.timeit(1),
    )  # the first may compile, and says nothing about the others
    timer.timeit(max(1, min(WARM_CALLS, int(WARM_NS / max(second, 1)))))
    return float(first)


def compare_chain(ops: int, elements: int, contenders: Iterable[Contender], seconds: float) -> Comparison:
    """One chain by every contender; each that compiles compiles a function of its own, never seen before."""
    arrays = workloads.chain_arrays(elements)
    cases = {
        one.name: make_call_case(one.prepare(workloads.chain(ops)), tuple(map(one.array, arrays)), one.finish)
        for one in contenders
    }
    return _time_cases(f"chain of {ops} on {elements}", ops, elements, cases, contenders, seconds)


def _time_cases(
    workload: str,
    ops: int,
    elements: int,
    cases: dict[str, Case],
    contenders: Iterable[Contender],
    seconds: float,
) -> Comparison:
    with config.override(cache=False):  # what a first call costs when nothing on disk helps
        first = {name: warm_up(case) for name, case in cases.items()}
    compiled = {one.name: first[one.name] for one in contenders if one.compiles and one.name in first}
    return Comparison(workload, ops, elements, interleave(cases, seconds=seconds), compiled)


def _step_arguments(contender: Contender) -> tuple[Any, Any, Any]:
    params, x, y = workloads.step_arrays()
    return {name: contender.array(p) for name, p in params.items()}, contender.array(x), contender.array(y)


def compare_step(contenders: Iterable[Contender], seconds: float) -> Comparison:
    """One training step, gradient included, of a network 64-128-10 on a batch of 32."""
    makers: dict[str, Callable[[], Callable[..., object]]] = {
        EAGER.name: workloads.tandem_step,
        JIT.name: lambda: JIT.prepare(workloads.tandem_step()),
        NUMPY.name: lambda: workloads.numpy_step,
        "PyTorch": workloads.torch_step,
        "jax.jit": workloads.jax_step,
    }
    cases = {
        one.name: make_call_case(
            makers[one.name](), _step_arguments(one), "[0]" + one.finish if one.finish else ""
        )
        for one in contenders
        if one.name in makers
    }
    return _time_cases("training step 64-128-10, batch 32", 0, 32 * 64, cases, contenders, seconds)

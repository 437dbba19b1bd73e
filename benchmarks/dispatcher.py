"""Benchmarks of the dispatcher: a recorded call, users' operators, a mode that handles other operators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tandem as td
from rows import Finding, Row, beside, missing, warmed
from tandem import lazy
from tandem.cli.overhead.measure import Case, interleave

SIZE = 16


def vector(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SIZE).astype(np.float32)


def torch() -> Any:
    module = lazy.module("torch")
    module.set_num_threads(1)
    return module


def recorded_addition(seconds: float) -> list[Finding]:
    ours = {"x": td.asarray(vector(0), requires_grad=True), "y": td.asarray(vector(1))}
    theirs = None
    if lazy.is_installed("torch"):
        x, y = torch().from_numpy(vector(0)).requires_grad_(), torch().from_numpy(vector(1))
        theirs = warmed(Case("x + y", {"x": x, "y": y}))
    return beside(warmed(Case("x + y", ours)), {"torch": theirs}, {"torch": 0.6}, seconds)


# --- users' operators ---------------------------------------------------------------------------------------


def kernel_giving(result: Any) -> Callable[[Any, Any], Any]:
    """A Python kernel that returns a constant, so that only the dispatch is measured."""

    def kernel(x: Any, y: Any) -> Any:
        return result

    return kernel


def case(function: Any, array: Callable[[np.ndarray], Any]) -> Case:
    return warmed(Case("f(x, y)", {"f": function, "x": array(vector(0)), "y": array(vector(1))}))


def torch_custom_op() -> Any:
    th = torch()
    kernel = kernel_giving(th.zeros(SIZE))
    kernel.__annotations__ = {"x": th.Tensor, "y": th.Tensor, "return": th.Tensor}
    return th.library.custom_op("bench_outside::custom", kernel, mutates_args=())


def torch_library_op() -> tuple[Any, Any]:
    th = torch()
    library = th.library.Library("bench_library", "DEF")
    library.define("direct(Tensor x, Tensor y) -> Tensor")
    library.impl("direct", kernel_giving(th.zeros(SIZE)), "CPU")
    return th.ops.bench_library.direct, library


def outside(seconds: float) -> list[Finding]:
    """The overhead of a call over the kernel itself, compared with PyTorch's."""
    kernel = kernel_giving(td.zeros(SIZE))
    kernel.__annotations__ = {"x": td.Tensor, "y": td.Tensor, "return": td.Tensor}
    ours = td.custom_op("bench_outside::custom", mutates_args=())(kernel)
    bounds = {"torch.library.custom_op": 0.25, "torch Library.define/impl": 0.5}
    if not lazy.is_installed("torch"):
        return [missing("torch", bound) for bound in bounds.values()]
    array = torch().from_numpy
    library_op, library = torch_library_op()
    cases = {
        "tandem": case(ours, td.asarray),
        "tandem kernel": case(kernel, td.asarray),
        "torch kernel": case(kernel_giving(torch().zeros(SIZE)), array),
        "torch.library.custom_op": case(torch_custom_op(), array),
        "torch Library.define/impl": case(library_op, array),
    }
    times = interleave(cases, seconds=seconds)
    over = times["tandem"].saved_by(times["tandem kernel"])
    result = []
    for name, bound in bounds.items():
        theirs = times[name].saved_by(times["torch kernel"])
        result.append(
            Finding(name, over / theirs, bound, f"{over:.0f} ns over the kernel beside {theirs:.0f} ns")
        )
    del library
    return result


# --- a mode that handles other operators --------------------------------------------------------------------

ELSEWHERE = {"x + y": "x + y", "exp": "exp(x)", "sum": "sum(x)", "x[2:8]": "x[2:8]"}


def unrelated_mode(seconds: float) -> list[Finding]:
    """Calls of other operators while a mode for one operator is active, compared with calls without the mode."""

    class Watches(td.DispatchMode):
        ops = (td.cosh,)

        def __tandem_dispatch__(self, op: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return op(*args, **kwargs)

    names = {"x": td.asarray(vector(0)), "y": td.asarray(vector(1)), "exp": td.exp, "sum": td.sum}
    result = []
    for name, statement in ELSEWHERE.items():
        plain = warmed(Case(statement, names))
        rounds = max(11, int(seconds))
        without, within = [], []
        for _ in range(rounds):  # short ones, so that a slow spell of the machine falls on few of them
            without.append(interleave({"": plain}, seconds=seconds / rounds / 8)[""].median)
            with Watches():
                within.append(interleave({"": plain}, seconds=seconds / rounds / 8)[""].median)
        ratio = sorted(b / a for a, b in zip(without, within, strict=True))[rounds // 2]
        result.append(Finding(f"{name} without the mode", ratio, 1.2, f"{min(within):.0f} ns"))
    return result


ROWS = (
    Row("eager x + y, gradient recorded, 16 elements", recorded_addition),
    Row("operator from outside, Python kernel: overhead", outside),
    Row("operators that an active mode did not ask for", unrelated_mode),
)

"""Checks in the bodies of loops and branches that were traced for themselves: what fails there becomes a result.

In a body a check is a node with an effect. Where ``checkify`` sees the loop, it is called with a body without these
nodes, which gives their conditions and values as further results: stacked by ``scan``, carried along by ``while_loop``,
and by ``switch`` as what the branch taken has found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..control.subgraph import retraced, run_graph
from ..eager.dunders import by_name
from ..registry.operator import Operator
from ..tracer.graph import Graph, Value

CHECK = "debug::check"
Args = tuple[Any, ...]


class Check(NamedTuple):
    """A check in a body: what it is about, its condition, and the values of its message."""

    place: Any
    condition: Any
    values: Args


class Finding(NamedTuple):
    """What a check has found, outside of the body: whether it failed, with which values, in which step."""

    place: Any
    failed: Any
    values: Args
    step: Any


def checks_in(graph: Graph) -> list[Check]:
    """The checks of a body."""
    return [Check(*node.args) for node in graph.nodes if node.op.name == CHECK]


def without_checks(graph: Graph) -> Graph:
    """A body without its checks."""
    made = Graph()
    made.inputs, made.outputs = graph.inputs, graph.outputs
    made.captured, made.constants = graph.captured, graph.constants
    made.nodes = [node for node in graph.nodes if node.op.name != CHECK]
    return made


def _looked_at(checks: Sequence[Check]) -> list[Any]:
    return [value for check in checks for value in (check.condition, *check.values)]


def _extended(graph: Graph, extra: Sequence[Any]) -> Graph:
    made = without_checks(graph)
    made.outputs = [*graph.outputs, *extra]
    return made


# -- the operators -----------------------------------------------------------------------------------------------------
def scan(op: Operator, args: Args, kwargs: dict[str, Any]) -> tuple[Any, list[Finding]]:
    """Run a scan, and say what its checks have found in the first step in which any of them has failed."""
    body, *rest = args
    checks = checks_in(body)
    if not checks or not kwargs["length"]:
        return op(*args, **kwargs), []
    out = op(_extended(body, _looked_at(checks)), *rest, **kwargs)
    count = len(body.outputs)
    stacked = _grouped(checks, out[count:])
    step = _first([conditions for conditions, _ in stacked], kwargs["reverse"])
    findings = []
    for check, (conditions, columns) in zip(checks, stacked):
        failed = by_name("logical_not")(by_name("take")(conditions, step, 0))
        values = tuple([by_name("take")(column, step, 0) for column in columns])
        findings.append(Finding(check.place, failed, values, step))
    return out[:count], findings


def _grouped(checks: Sequence[Check], found: Sequence[Any]) -> list[tuple[Any, list[Any]]]:
    """For each check its condition and its values, from a list of them all."""
    rest = iter(found)
    return [(next(rest), [next(rest) for _ in check.values]) for check in checks]


def _first(conditions: Sequence[Any], reverse: bool) -> Any:
    """The first step in which a condition is false, in the order in which the steps run."""
    fine = conditions[0]
    for other in conditions[1:]:
        fine = by_name("logical_and")(fine, other)
    numbers = by_name("astype")(fine, "int32")
    if not reverse:
        return by_name("argmin")(numbers, 0)
    return len(fine) - 1 - by_name("argmin")(by_name("flip")(numbers, 0), 0)


def while_loop(op: Operator, args: Args, kwargs: dict[str, Any]) -> tuple[Any, list[Finding]]:
    """Run a while_loop that carries along what its checks find until one of them fails, and the number of that step."""
    condition, body, carry, consts = args
    if checks_in(condition):
        return _asked_in_the_body(op, args, kwargs)
    checks = checks_in(body)
    if not checks:
        return op(*args, **kwargs), []
    count, extra = len(carry), _looked_at(checks)
    plain, last = _extended(body, extra), count + len(extra) + 1
    state = [*map(_zeros, extra), _zeros_of((), "int64")]
    like = [*body.inputs[:count], *(Value(x.spec) for x in state), *body.inputs[count:]]

    def step(*given: Any) -> list[Any]:
        found = run_graph(plain, [*given[:count], *given[last:]])
        return [*found[:count], *_carried(checks, given[count:last], found[count:])]

    def holds(*given: Any) -> list[Any]:
        return run_graph(condition, [*given[:count], *given[last:]])

    graphs = [retraced("while_loop", like, fn).graph for fn in (holds, step)]
    out = op(*graphs, (*carry, *state), consts, **kwargs)
    seen = zip(checks, _grouped(checks, out[count : last - 1]))
    findings = [
        Finding(check.place, failed, tuple(values), out[last - 1]) for check, (failed, values) in seen
    ]
    return out[:count], findings


def _asked_in_the_body(op: Operator, args: Args, kwargs: dict[str, Any]) -> tuple[Any, list[Finding]]:
    """Run a while_loop whose condition has checks: once before the loop, and then at the end of the body."""
    condition, body, carry, consts = args
    checks, count = checks_in(condition), len(carry)
    goes_on, *found = run_graph(_extended(condition, _looked_at(checks)), [*carry, *consts])
    like = [*body.inputs[:count], Value(goes_on.spec), *body.inputs[count:]]

    def step(*given: Any) -> list[Any]:
        after = run_graph(body, [*given[:count], *given[count + 1 :]])
        return [*after, *run_graph(condition, [*after, *given[count + 1 :]])]

    graphs = [retraced("while_loop", like, fn).graph for fn in (lambda *given: [given[count]], step)]
    out, later = while_loop(op, (*graphs, (*carry, goes_on), consts), kwargs)
    first = [
        Finding(check.place, by_name("logical_not")(fine), tuple(values), None)
        for check, (fine, values) in zip(checks, _grouped(checks, found))
    ]
    return out[:count], [*first, *later]


def _carried(checks: Sequence[Check], seen: Sequence[Any], found: Sequence[Any]) -> list[Any]:
    """What is carried along after one more step: whether each check has failed, its values; the step's number."""
    before, now = _grouped(checks, seen[:-1]), _grouped(checks, found)
    done = _any([failed for failed, _ in before])
    carried, failures = [], []
    for (failed, kept), (condition, values) in zip(before, now):
        failures.append(by_name("where")(done, failed, by_name("logical_not")(condition)))
        carried.append(failures[-1])
        for old, new in zip(kept, values):
            carried.append(by_name("where")(done, old, by_name("astype")(new, old.dtype, copy=False)))
    return [*carried, by_name("where")(_any(failures), seen[-1], seen[-1] + 1)]


def _any(flags: Sequence[Any]) -> Any:
    found = flags[0]
    for flag in flags[1:]:
        found = by_name("logical_or")(found, flag)
    return found


def switch(op: Operator, args: Args, kwargs: dict[str, Any]) -> tuple[Any, list[Finding]]:
    """Run a switch, and say what the checks of the branch taken have found."""
    branches, index, operands = args
    each = [checks_in(branch) for branch in branches]
    if not any(each):
        return op(*args, **kwargs), []
    made = [_branch(place, branch, each) for place, branch in enumerate(branches)]
    out = op(tuple(made), index, operands, **kwargs)
    count = len(branches[0].outputs)
    seen, findings = iter(out[count:]), []
    for check in (check for checks in each for check in checks):
        failed = by_name("logical_not")(next(seen))
        findings.append(Finding(check.place, failed, tuple([next(seen) for _ in check.values]), None))
    return out[:count], findings


def _branch(place: int, branch: Graph, each: Sequence[Sequence[Check]]) -> Graph:
    """A branch that gives what its own checks look at, and that all is well with those of the others."""
    plain = _extended(branch, _looked_at(each[place]))
    count = len(branch.outputs)

    def run(*given: Any) -> list[Any]:
        found = run_graph(plain, given)
        own, extra = found[count:], []
        for other, checks in enumerate(each):
            if other == place:
                extra += own
            else:
                extra += [x for check in checks for x in (_true(), *map(_zeros, check.values))]
        return [*found[:count], *extra]

    return retraced("switch", branch.inputs, run).graph


def _true() -> Any:
    return by_name("logical_not")(_zeros_of((), "bool"))


def _zeros(value: Any) -> Any:
    return _zeros_of(value.spec.shape, value.spec.dtype)


def _zeros_of(shape: tuple[int, ...], dtype: Any) -> Any:
    return by_name("zeros")(shape, dtype=dtype)


CONTROL: dict[str, Callable[[Operator, Args, dict[str, Any]], tuple[Any, list[Finding]]]] = {
    "control::scan": scan,
    "control::while_loop": while_loop,
    "control::switch": switch,
}

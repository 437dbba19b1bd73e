"""``checkify`` for loops and branches: turn the checks in their bodies into results.

In a body a check is a node with an effect. ``checkify`` replaces the body with one that has no such nodes and returns
their conditions and values as additional results: ``scan`` stacks them, ``while_loop`` carries them, and ``switch``
returns those of the branch that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..control.subgraph import retrace, run_graph
from ..eager.tensor.dunders import by_name
from ..named_tuple import NamedTuple
from ..registry.operator import Operator
from ..tracer.graph import Graph, Value

if TYPE_CHECKING:
    from ..registry.types import Args, DTypeLike, Kwargs, Tensor
    from .checks import CheckSite

CHECK = "debug::check"
# The results of a loop or a branch, and the findings of the checks in its bodies.
Outcome = tuple["tuple[Tensor, ...]", "list[Finding]"]
WhileArgs = tuple[Graph, Graph, "tuple[Tensor, ...]", "tuple[Tensor, ...]"]


class BodyCheck(NamedTuple):
    """A check in a body: its site, its condition, and the values of its message."""

    site: CheckSite
    condition: Value
    values: tuple[Value, ...]


class Finding(NamedTuple):
    """The outcome of a check after a loop or branch has run: whether it failed, the values, and the step."""

    site: CheckSite
    failed: Tensor
    values: tuple[Tensor, ...]
    step: Tensor | None


def find_checks(graph: Graph) -> list[BodyCheck]:
    """Find the checks of a body."""
    return [BodyCheck(*node.args) for node in graph.nodes if node.op.name == CHECK]


def remove_checks(graph: Graph) -> Graph:
    """Copy a body without its checks."""
    result = Graph()
    result.inputs, result.outputs = graph.inputs, graph.outputs
    result.captured, result.constants = graph.captured, graph.constants
    result.nodes = [node for node in graph.nodes if node.op.name != CHECK]
    return result


def _check_operands(checks: Sequence[BodyCheck]) -> list[Value]:
    return [value for check in checks for value in (check.condition, *check.values)]


def _add_outputs(graph: Graph, extra: Sequence[Value]) -> Graph:
    result = remove_checks(graph)
    result.outputs = [*graph.outputs, *extra]
    return result


# -- the operators -----------------------------------------------------------------------------------------------------
def scan(op: Operator, args: tuple[Graph, *Args], kwargs: Kwargs) -> Outcome:
    """Run a scan; return its results and the findings of the first step in which a check failed."""
    body, *rest = args
    checks = find_checks(body)
    if not checks or not kwargs["length"]:
        return op(*args, **kwargs), []
    out = op(_add_outputs(body, _check_operands(checks)), *rest, **kwargs)
    count = len(body.outputs)
    stacked = _group_by_check(checks, out[count:])
    step = _find_first_failed_step([conditions for conditions, _ in stacked], bool(kwargs["reverse"]))
    findings = []
    for check, (conditions, columns) in zip(checks, stacked):
        failed = by_name("logical_not")(by_name("take")(conditions, step, 0))
        values = tuple([by_name("take")(column, step, 0) for column in columns])
        findings.append(Finding(check.site, failed, values, step))
    return out[:count], findings


def _group_by_check(
    checks: Sequence[BodyCheck], operands: Sequence[Tensor]
) -> list[tuple[Tensor, list[Tensor]]]:
    """Split a flat list into the condition and the values of each check."""
    rest = iter(operands)
    return [(next(rest), [next(rest) for _ in check.values]) for check in checks]


def _find_first_failed_step(conditions: Sequence[Tensor], reverse: bool) -> Tensor:
    """Return the first step, in execution order, in which a condition is false."""
    fine = conditions[0]
    for other in conditions[1:]:
        fine = by_name("logical_and")(fine, other)
    numbers = by_name("astype")(fine, "int32")
    if not reverse:
        return by_name("argmin")(numbers, 0)
    return len(fine) - 1 - by_name("argmin")(by_name("flip")(numbers, 0), 0)


def while_loop(op: Operator, args: WhileArgs, kwargs: Kwargs) -> Outcome:
    """Run a while_loop that also carries the findings of its checks and the number of the first step that fails."""
    condition, body, carry, consts = args
    if find_checks(condition):
        return _move_condition_to_body(op, args, kwargs)
    checks = find_checks(body)
    if not checks:
        return op(*args, **kwargs), []
    count, extra = len(carry), _check_operands(checks)
    plain, last = _add_outputs(body, extra), count + len(extra) + 1
    state = [*map(_zeros, extra), _zeros_of((), "int64")]
    like = [*body.inputs[:count], *(Value(x.spec) for x in state), *body.inputs[count:]]

    def step(*given: Tensor) -> list[Tensor]:
        result = run_graph(plain, [*given[:count], *given[last:]])
        return [*result[:count], *_update_carry(checks, given[count:last], result[count:])]

    def holds(*given: Tensor) -> list[Tensor]:
        return run_graph(condition, [*given[:count], *given[last:]])

    graphs = [retrace("while_loop", like, fn).graph for fn in (holds, step)]
    out = op(*graphs, (*carry, *state), consts, **kwargs)
    pairs = zip(checks, _group_by_check(checks, out[count : last - 1]))
    findings = [
        Finding(check.site, failed, tuple(values), out[last - 1]) for check, (failed, values) in pairs
    ]
    return out[:count], findings


def _move_condition_to_body(op: Operator, args: WhileArgs, kwargs: Kwargs) -> Outcome:
    """Run a while_loop whose condition has checks: evaluate it before the loop and at the end of the body."""
    condition, body, carry, consts = args
    checks, count = find_checks(condition), len(carry)
    goes_on, *value = run_graph(_add_outputs(condition, _check_operands(checks)), [*carry, *consts])
    like = [*body.inputs[:count], Value(goes_on.spec), *body.inputs[count:]]

    def step(*given: Tensor) -> list[Tensor]:
        after = run_graph(body, [*given[:count], *given[count + 1 :]])
        return [*after, *run_graph(condition, [*after, *given[count + 1 :]])]

    stop = retrace("while_loop", like, lambda *given: [given[count]]).graph
    plain = retrace("while_loop", like, step).graph
    out, later = while_loop(op, (stop, plain, (*carry, goes_on), consts), kwargs)
    first = [
        Finding(check.site, by_name("logical_not")(fine), tuple(values), None)
        for check, (fine, values) in zip(checks, _group_by_check(checks, value))
    ]
    return out[:count], [*first, *later]


def _update_carry(
    checks: Sequence[BodyCheck], seen: Sequence[Tensor], operands: Sequence[Tensor]
) -> list[Tensor]:
    """Update the carry of findings after a step: the failures and values of the checks, and the step number."""
    before, now = _group_by_check(checks, seen[:-1]), _group_by_check(checks, operands)
    done = _any([failed for failed, _ in before])
    carried, failures = [], []
    for (failed, kept), (condition, values) in zip(before, now):
        failures.append(by_name("where")(done, failed, by_name("logical_not")(condition)))
        carried.append(failures[-1])
        for old, new in zip(kept, values):
            carried.append(by_name("where")(done, old, by_name("astype")(new, old.dtype, copy=False)))
    return [*carried, by_name("where")(_any(failures), seen[-1], seen[-1] + 1)]


def _any(flags: Sequence[Tensor]) -> Tensor:
    result = flags[0]
    for flag in flags[1:]:
        result = by_name("logical_or")(result, flag)
    return result


def switch(
    op: Operator, args: tuple[tuple[Graph, ...], Tensor, tuple[Tensor, ...]], kwargs: Kwargs
) -> Outcome:
    """Run a switch; return its results and the findings of the branch that was taken."""
    branches, index, operands = args
    each = [find_checks(branch) for branch in branches]
    if not any(each):
        return op(*args, **kwargs), []
    plain = [_make_branch(index, branch, each) for index, branch in enumerate(branches)]
    out = op(tuple(plain), index, operands, **kwargs)
    count = len(branches[0].outputs)
    seen, findings = iter(out[count:]), []
    for check in (check for checks in each for check in checks):
        failed = by_name("logical_not")(next(seen))
        findings.append(Finding(check.site, failed, tuple([next(seen) for _ in check.values]), None))
    return out[:count], findings


def _make_branch(index: int, branch: Graph, each: Sequence[Sequence[BodyCheck]]) -> Graph:
    """Make a branch that also returns the operands of its own checks, and passing values for the others' checks."""
    plain = _add_outputs(branch, _check_operands(each[index]))
    count = len(branch.outputs)

    def run(*given: Tensor) -> list[Tensor]:
        result = run_graph(plain, given)
        own, extra = result[count:], []
        for other, checks in enumerate(each):
            if other == index:
                extra += own
            else:
                extra += [x for check in checks for x in (_true(), *map(_zeros, check.values))]
        return [*result[:count], *extra]

    return retrace("switch", branch.inputs, run).graph


def _true() -> Tensor:
    return by_name("logical_not")(_zeros_of((), "bool"))


def _zeros(value: Value) -> Tensor:
    return _zeros_of(value.spec.shape, value.spec.dtype)


def _zeros_of(shape: tuple[int, ...], dtype: DTypeLike) -> Tensor:
    return by_name("zeros")(shape, dtype=dtype)


CONTROL: dict[str, Callable[..., Outcome]] = {
    "control::scan": scan,
    "control::while_loop": while_loop,
    "control::switch": switch,
}

"""``checkify``: a dispatch mode that turns errors into values, and the ``Error`` that collects them.

The mode intercepts the user's calls above all levels, so each failure is an ordinary value that is traced and batched,
and that does not depend on the transforms inside the checked function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from .. import lazy
from ..eager.layers.dispatch_mode import MODE, DispatchMode, stacks
from ..eager.layers.levels import LevelTensor, stack
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.results import flat
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, CheckError, ShapeError, ValueArgumentError
from ..operators.declare.batching import Batched, BatchInfo, Dims
from ..operators.indexing.subscript import out_of_bounds_hooks
from ..pytree import register_pytree_node
from ..registry.operator import Operator
from ..registry.source import source_line
from ..registry.values import describe, traced_number_types
from ..tracer.trace import current_trace
from .callbacks import OPAQUE, define, ignore_gradients, split_examples
from .host_calls import is_value, to_host_array
from .index_checks import INDEX_CHECKS, IndexCheck
from .printing import check_format, format_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..eager.layers.level_stack import Level
    from ..registry.types import Args, Kwargs, TensorLike

checkify_bodies = lazy.Module(".debug.checkify_bodies")

P = ParamSpec("P")
R = TypeVar("R")
KINDS = ("user", "nan", "division", "index")
_DIVISIONS = ("div", "floor_divide", "remainder", "fmod")
# By operator, which argument is the divisor.
DIVISORS = {f"td::{name}{end}.Tensor": 1 for name in _DIVISIONS for end in ("", "_")}
DIVISORS |= {"td::reciprocal": 0, "td::reciprocal_": 0}


class StaticValue:
    """A static value in a message; two are equal if their reprs are equal."""

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticValue) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True, slots=True)
class CheckSite:
    """A possible error at one location of the program.

    Attributes:
        kind: one of ``KINDS``, or ``"debug"`` for :func:`tandem.debug_check`, which only ``checkify`` collects.
        message: a format string.
        fixed: names and static values of the format, with None for each value that is known at run time.
        source: ``file:line`` in the user's code.
        inner: the number of ``vmap`` levels inside the checked function; as many values at the end of the values are
            the indices of the example, innermost first.
    """

    kind: str
    message: str
    fixed: tuple[tuple[str, StaticValue | None], ...]
    source: str
    inner: int = 0

    def in_step(self) -> CheckSite:
        """Return the site in the body of a loop, whose values include the number of the step."""
        number = sum(name.startswith("_step") for name, _ in self.fixed)
        pair = (f"_step{number}", None)
        return replace(self, message=f"{self.message} in step {{{pair[0]}}}", fixed=(*self.fixed, pair))

    def with_step(self, values: Args, step: object) -> Args:
        """Return the values for the site that :meth:`in_step` returns."""
        count = len(values) - self.inner
        return (*values[:count], step, *values[count:])

    def text(self, values: tuple[Any, ...], example: tuple[int, ...] = ()) -> str:
        """Format the message with values and the source location."""
        example += tuple([int(number) for number in reversed(values[len(values) - self.inner :])])
        dynamic = iter(values)
        pairs = [
            (name, value.value if type(value) is StaticValue else next(dynamic)) for name, value in self.fixed
        ]
        args = [value for name, value in pairs if name.isdigit()]
        message = format_values(
            self.message, args, {name: value for name, value in pairs if not name.isdigit()}
        )
        where = f", at example {example[0] if len(example) == 1 else example}" if example else ""
        return f"{message} ({self.source}{where})"


# -- the operator ------------------------------------------------------------------------------------------------------
def _check_kernel(site: CheckSite, condition: Tensor, values: Args) -> None:
    """Raise if the condition is false and the check is not a ``debug_check``; the kernel outside ``checkify``."""
    if site.kind != "debug" and not np.all(to_host_array(condition)):
        raise CheckError(site.text(tuple(map(to_host_array, values))))


def _batch_check(info: BatchInfo, in_dims: Dims, site: CheckSite, condition: Tensor, values: Args) -> Batched:
    dims = (in_dims[1], *in_dims[2])
    for example in split_examples(dims, (condition, *values), info.batch_size):
        info.call(site, example[0], example[1:])
    return None, None


run_check = define(
    "check(Any site, Tensor condition, Tensor[] values) -> ()",
    _check_kernel,
    doc="Raises where a condition is false; inside checkify a failure is a value.",
    shape_rule=lambda site, condition, values: None,
    derivative=OPAQUE,
    batching=_batch_check,
    effects=frozenset({"callback"}),
    idle_if="condition",
)
ignore_gradients("check")


def check(name: str, condition: TensorLike, message: str, args: Args, kwargs: Kwargs) -> None:
    """Implementation of :func:`tandem.check` and :func:`tandem.debug_check`."""
    check_format(name, message, args, kwargs)
    wanted: Any = condition if type(condition) in traced_number_types else asarray(condition)
    kind = getattr(wanted, "python_type", None) or wanted.dtype.name
    if kind not in (bool, "bool"):
        raise ArgumentError(f"{name} takes a boolean, such as x > 0, not {describe(condition)}")
    if isinstance(wanted, Tensor) and wanted.shape != ():
        raise ShapeError(f"{name} takes a boolean scalar, not {describe(condition)}; reduce it with .all()")
    pairs = [*((str(index), value) for index, value in enumerate(args)), *kwargs.items()]
    fixed = tuple((name, None if is_value(value) else StaticValue(value)) for name, value in pairs)
    values = tuple(value for _, value in pairs if is_value(value))
    site = CheckSite("user" if name == "check" else "debug", message, fixed, source_line())
    run_check(site, wanted, values)


# -- the error ---------------------------------------------------------------------------------------------------------
class Error:
    """The errors of a call of a checkified function: messages, locations and example indices.

    An ``Error`` is a pytree, so ``jit``, ``vmap`` and ``grad`` accept and return it as any other result.
    """

    def __init__(self, sites: tuple[CheckSite, ...], failed: Args, values: tuple[Args, ...]):
        self._sites, self._failed, self._values = sites, failed, values

    def get(self) -> str | None:
        """Return the message of the first error in program order; None without an error."""
        for site, failed, values in zip(self._sites, self._failed, self._values):
            flags = to_host_array(asarray(failed))
            if flags.any():
                example = tuple(int(i) for i in np.argwhere(flags)[0])
                return site.text(tuple([_take_example(value, example) for value in values]), example)
        return None

    def throw(self) -> None:
        """Raise CheckError if there is an error.

        In a traced function the error is raised at run time; inside another ``checkify`` it is added to the errors that
        that one collects.

        Raises:
            CheckError: there is an error; the message is that of :meth:`get`.
        """
        for site, failed, values in zip(self._sites, self._failed, self._values):
            failed, value = _take_first_failure(asarray(failed), values)
            inner = site.inner + len(value) - len(values)
            run_check(replace(site, inner=inner), by_name("logical_not")(failed), value)

    def __repr__(self) -> str:
        traced = any(type(asarray(failed)) is not Tensor for failed in self._failed)
        return "Error(<traced>)" if traced else f"Error({self.get()})"


def _take_first_failure(failed: Tensor, values: Args) -> tuple[Tensor, Args]:
    """Reduce batched failures to the first one; return whether it failed, and its values and example indices."""
    numbers: list[Tensor] = []
    while failed.shape:
        rows = (
            by_name("any")(by_name("reshape")(failed, (failed.shape[0], -1)), 1)
            if failed.ndim > 1
            else failed
        )
        first = by_name("argmax")(by_name("astype")(rows, "int32"), 0)
        failed = by_name("take")(failed, first, 0)
        values = tuple([by_name("take")(v, first, 0) if getattr(v, "shape", ()) else v for v in values])
        numbers.append(first)
    return failed, (*values, *reversed(numbers))


def _take_example(value: object, example: tuple[int, ...]) -> Any:
    array = to_host_array(value)
    shared = len(example) if isinstance(array, np.ndarray) and array.ndim >= len(example) else 0
    return array[example[:shared]] if shared else array


def _flatten(error: Error) -> tuple[Args, tuple[CheckSite, ...]]:
    return (error._failed, error._values), error._sites


register_pytree_node(Error, _flatten, lambda sites, children: Error(sites, *children))


# -- the mode ----------------------------------------------------------------------------------------------------------
class CheckMode(DispatchMode):
    """The dispatch mode that collects errors.

    Args:
        kinds: the kinds of errors to collect.
    """

    def __init__(self, kinds: frozenset[str]):
        super().__init__()
        self.kinds = kinds
        self.depth, self.trace = len(stack.levels), current_trace()
        self.sites: list[CheckSite] = []
        self.failed: list[Tensor] = []
        self.values: list[Args] = []

    def error(self) -> Error:
        """Return the collected errors."""
        return Error(tuple(self.sites), tuple(self.failed), tuple(self.values))

    def __tandem_dispatch__(
        self, op: Operator, types: Sequence[type], args: tuple[Any, ...], kwargs: Kwargs
    ) -> object:
        """Run an operator without raising, and collect its errors."""
        if op is run_check.operator:
            if "user" in self.kinds:
                site, condition, values = args
                self.collect(site, by_name("logical_not")(condition), values)
            return None
        if "index" in self.kinds and op.name in INDEX_CHECKS:
            index_check: IndexCheck = INDEX_CHECKS[op.name](op, args)
            for bad, index, axis, size in index_check.faults:
                message = f"index {{0}} is out of bounds for axis {axis} with size {size} in {op.name}"
                self.collect(CheckSite("index", message, (("0", None),), source_line()), bad, (index,))
            args = index_check.args
        if "division" in self.kinds and op.name in DIVISORS:
            bad = _is_zero(args[DIVISORS[op.name]])
            self.collect(
                self._make_site("division", f"division by zero in {_describe_call(op, args)}"), bad, ()
            )
        out = self._run(op, args, kwargs)
        if "nan" in self.kinds and op.schema.namespace != "control":
            for item in flat(out):
                if isinstance(item, Tensor) and item.dtype.is_inexact:
                    bad = by_name("any")(by_name("isnan")(item))
                    self.collect(self._make_site("nan", f"nan given by {_describe_call(op, args)}"), bad, ())
        return out

    def _run(self, op: Operator, args: Args, kwargs: Kwargs) -> object:
        """Run an operator; for loops and branches, collect the findings of the checks in their bodies."""
        if op.schema.namespace != "control":
            return op(*args, **kwargs)
        out, findings = checkify_bodies.CONTROL[op.name](op, args, kwargs)
        for site, failed, values, step in findings:
            if step is None:
                self.collect(site, failed, values)
            else:
                self.collect(site.in_step(), failed, site.with_step(values, step))
        return out

    def _make_site(self, kind: str, message: str) -> CheckSite:
        return CheckSite(kind, message.replace("{", "{{").replace("}", "}}"), (), source_line())

    def collect(self, site: CheckSite, failed: Tensor, values: Args) -> None:
        """Add a failure, unwrapped from inner levels, so that its value can leave the function."""
        count = len(values)
        failed, values = self._outside(failed, values)
        site = replace(site, inner=site.inner + len(values) - count)
        if current_trace() is not self.trace:  # the body of a loop: see checkify_bodies.py
            run_check(site, by_name("logical_not")(failed), values)
            return
        site = replace(site, kind="user") if site.kind == "debug" else site
        if site.kind != "user" and type(failed) is Tensor and not to_host_array(failed).any():
            return  # so many are looked at; those of the user's are few, and kept, so that all calls give one structure
        self.sites.append(site)
        self.failed.append(failed)
        self.values.append(values)

    def _outside(self, failed: Tensor, values: Args) -> tuple[Tensor, Args]:
        """Reduce a failure over inner levels of ``vmap``, with the values of the first failing example."""
        while isinstance(failed, LevelTensor) and failed._level.depth > self.depth:
            level, failed = failed._level, failed._payload
            if level.run is None:
                continue
            first = by_name("argmax")(by_name("astype")(failed, "int32"), 0)
            values = (*[_take_level_example(level, value, first) for value in values], first)
            failed = by_name("any")(failed, 0)
        return failed, tuple([self._below(value) for value in values])

    def _below(self, value: object) -> object:
        """Unwrap a value from inner levels; for a batch, take the first example."""
        while isinstance(value, LevelTensor) and value._level.depth > self.depth:
            value = value._payload if value._level.run is None else value._payload[0]
        return value


def _collect_index_error(index: int, axis: int, size: int) -> bool:
    """Collect an out-of-bounds int index if a ``checkify`` mode with ``"index"`` is active."""
    for mode, _ in reversed(stacks.of[MODE]):
        if isinstance(mode, CheckMode):
            message = f"index {index} is out of bounds for axis {axis} with size {size} in td::index"
            if "index" in mode.kinds:
                mode.collect(CheckSite("index", message, (), source_line()), asarray(True), ())
            return "index" in mode.kinds
    return False


out_of_bounds_hooks.append(_collect_index_error)


def _is_zero(divisor: TensorLike) -> Tensor:
    """Return whether any element is zero."""
    return by_name("any")(by_name("eq")(divisor, 0)) if is_value(divisor) else asarray(bool(divisor == 0))


def _take_level_example(level: Level, value: object, number: Tensor) -> object:
    """Take one example of a value that is batched by a level."""
    if isinstance(value, LevelTensor) and value._level is level:
        return by_name("take")(value._payload, number, 0)
    return value


def _describe_call(op: Operator, args: Args) -> str:
    described = [
        describe(a)
        for a in args
        if isinstance(a, (Tensor, float, int, complex)) or type(a) in traced_number_types
    ]
    return f"{op.name}({', '.join(described)})"


def make_checkified(fun: Callable[P, R], errors: str | Iterable[str]) -> Callable[P, tuple[Error, R]]:
    """Implementation of :func:`tandem.checkify`."""
    if not callable(fun):
        raise ArgumentError(f"checkify takes a function, not {describe(fun)}")
    kinds = frozenset((errors,) if isinstance(errors, str) else errors)
    if not kinds <= {*KINDS}:
        wrong = ", ".join(sorted(map(repr, kinds - {*KINDS})))
        raise ValueArgumentError(
            f"checkify: errors are of the kinds {', '.join(map(repr, KINDS))}, not {wrong}"
        )

    @functools.wraps(fun)
    def with_error(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, R]:
        with CheckMode(kinds) as checks:
            out = fun(*args, **kwargs)
        return checks.error(), out

    return with_error

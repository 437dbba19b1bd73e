"""``checkify``: a mode that turns what goes wrong into values, and the error that it gives.

The mode sees what the user calls, above all levels, so that each failure is a value like others: traced, batched, and
outside of every transform that was opened inside of the checked function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import lazy
from ..eager.construct import asarray
from ..eager.dispatch_mode import MODE, DispatchMode, stacks
from ..eager.dunders import by_name
from ..eager.levels import LevelTensor, stack
from ..eager.results import flat
from ..eager.tensor import Tensor
from ..errors import ArgumentError, CheckError, ShapeError, ValueArgumentError
from ..operators.batching import Batched, BatchInfo, Dims
from ..operators.indexing import outside
from ..pytree import register_pytree_node
from ..registry.operator import Operator
from ..registry.source import source_line
from ..registry.values import describe, number_stand_ins
from ..tracer.trace import current_trace
from .bounds import INDEXING, Bounds
from .callbacks import OPAQUE, define, examples, without_gradients
from .host import as_array, is_value
from .printing import check_format, filled

KINDS = ("user", "nan", "division", "index")
_DIVISIONS = ("div", "floor_divide", "remainder", "fmod")
# By operator, which argument is the divisor.
DIVISORS = {f"td::{name}{end}.Tensor": 1 for name in _DIVISIONS for end in ("", "_")}
DIVISORS |= {"td::reciprocal": 0, "td::reciprocal_": 0}
Args = tuple[Any, ...]


class Fixed:
    """A value of a message that is known while the function is traced; equal to another that prints the same."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True, slots=True)
class Place:
    """What may go wrong at one place of the program.

    Attributes:
        kind: one of ``KINDS``, or ``"debug"``: one of the user's that is for ``checkify`` alone.
        message: a format for the values that come with it.
        fixed: names and values of the format, with None where a value of the program belongs.
        source: ``file:line`` in the user's code.
        inner: how many transforms inside of the checked function map over it: so many values at the end say which
            example is meant, the innermost first.
    """

    kind: str
    message: str
    fixed: tuple[tuple[str, Any], ...]
    source: str
    inner: int = 0

    def in_step(self) -> Place:
        """The same in the body of a loop: one more value says in which step."""
        number = sum(name.startswith("_step") for name, _ in self.fixed)
        pair = (f"_step{number}", None)
        return replace(self, message=f"{self.message} in step {{{pair[0]}}}", fixed=(*self.fixed, pair))

    def with_step(self, values: Args, step: Any) -> Args:
        """The values for :meth:`in_step`."""
        count = len(values) - self.inner
        return (*values[:count], step, *values[count:])

    def text(self, values: Args, example: tuple[int, ...] = ()) -> str:
        """The message with values in it, and where."""
        example += tuple([int(number) for number in reversed(values[len(values) - self.inner :])])
        given = iter(values)
        pairs = [(name, value.value if type(value) is Fixed else next(given)) for name, value in self.fixed]
        args = [value for name, value in pairs if name.isdigit()]
        message = filled(self.message, args, {name: value for name, value in pairs if not name.isdigit()})
        where = f", at example {example[0] if len(example) == 1 else example}" if example else ""
        return f"{message} ({self.source}{where})"


# -- the operator ------------------------------------------------------------------------------------------------------
def _check(place: Place, condition: Any, values: Args) -> None:
    """Outside of ``checkify``: raise where the condition is false, unless that is for ``checkify`` alone."""
    if place.kind != "debug" and not np.all(as_array(condition)):
        raise CheckError(place.text(tuple(map(as_array, values))))


def _each(info: BatchInfo, in_dims: Dims, place: Place, condition: Any, values: Args) -> Batched:
    dims = (in_dims[1], *in_dims[2])
    for example in examples(dims, (condition, *values), info.batch_size):
        info.call(place, example[0], example[1:])
    return None, None


run_check = define(
    "check(Any place, Tensor condition, Tensor[] values) -> ()",
    _check,
    doc="Raises where a condition is false; inside checkify a failure is a value.",
    meta=lambda place, condition, values: None,
    derivative=OPAQUE,
    batching=_each,
    effects=frozenset({"callback"}),
)
without_gradients("check")


def check(name: str, condition: Any, message: Any, args: Args, kwargs: dict[str, Any]) -> None:
    """What :func:`tandem.check` and :func:`tandem.debug_check` do."""
    check_format(name, message, args, kwargs)
    wanted = condition if type(condition) in number_stand_ins else asarray(condition)
    kind = getattr(wanted, "python_type", None) or wanted.dtype.name
    if kind not in (bool, "bool"):
        raise ArgumentError(f"{name} takes a boolean, such as x > 0, not {describe(condition)}")
    if isinstance(wanted, Tensor) and wanted.shape != ():
        raise ShapeError(f"{name} takes a boolean scalar, not {describe(condition)}; reduce it with .all()")
    pairs = [*((str(place), value) for place, value in enumerate(args)), *kwargs.items()]
    fixed = tuple((name, None if is_value(value) else Fixed(value)) for name, value in pairs)
    values = tuple(value for _, value in pairs if is_value(value))
    place = Place("user" if name == "check" else "debug", message, fixed, source_line())
    run_check(place, wanted, values)


# -- the error ---------------------------------------------------------------------------------------------------------
class Error:
    """What went wrong in a function that :func:`tandem.checkify` has made: nothing, or what, where, for which example.

    It is a pytree, and passes through ``jit``, ``vmap`` and ``grad`` as other results do.
    """

    def __init__(self, places: tuple[Place, ...], failed: Args, values: tuple[Args, ...]):
        self._places, self._failed, self._values = places, failed, values

    def get(self) -> str | None:
        """The first thing that went wrong, in the order of the program; None if all is well."""
        for place, failed, values in zip(self._places, self._failed, self._values):
            flags = as_array(asarray(failed))
            if flags.any():
                example = tuple(int(i) for i in np.argwhere(flags)[0])
                return place.text(tuple([_of_example(value, example) for value in values]), example)
        return None

    def throw(self) -> None:
        """Raise if anything went wrong: at once, or when a function that is being traced runs. Inside of another
        ``checkify`` it becomes a part of that one's error.

        Raises:
            CheckError: the message is that of :meth:`get`.
        """
        for place, failed, values in zip(self._places, self._failed, self._values):
            failed, found = _of_first(asarray(failed), values)
            inner = place.inner + len(found) - len(values)
            run_check(replace(place, inner=inner), by_name("logical_not")(failed), found)

    def __repr__(self) -> str:
        traced = any(type(asarray(failed)) is not Tensor for failed in self._failed)
        return "Error(<traced>)" if traced else f"Error({self.get()})"


def _of_first(failed: Any, values: Args) -> tuple[Any, Args]:
    """Of what differs from example to example the first failure: whether there is one, its values, and where it is."""
    numbers: list[Any] = []
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


def _of_example(value: Any, example: tuple[int, ...]) -> Any:
    array = as_array(value)
    shared = len(example) if isinstance(array, np.ndarray) and array.ndim >= len(example) else 0
    return array[example[:shared]] if shared else array


def _flatten(error: Error) -> tuple[Args, Any]:
    return (error._failed, error._values), error._places


register_pytree_node(Error, _flatten, lambda places, children: Error(places, *children))


# -- the mode ----------------------------------------------------------------------------------------------------------
class Checks(DispatchMode):
    """Collects what goes wrong.

    Args:
        kinds: what counts.
    """

    def __init__(self, kinds: frozenset[str]):
        super().__init__()
        self.kinds = kinds
        self.depth, self.trace = len(stack.levels), current_trace()
        self.places: list[Place] = []
        self.failed: list[Any] = []
        self.values: list[Args] = []

    def error(self) -> Error:
        """What has been collected."""
        return Error(tuple(self.places), tuple(self.failed), tuple(self.values))

    def __tandem_dispatch__(self, op: Operator, types: Any, args: Args, kwargs: dict[str, Any]) -> Any:
        """Run an operator so that nothing raises, and collect what went wrong."""
        if op is run_check.operator:
            if "user" in self.kinds:
                place, condition, values = args
                self.collect(place, by_name("logical_not")(condition), values)
            return None
        if "index" in self.kinds and op.name in INDEXING:
            bounds: Bounds = INDEXING[op.name](op, args)
            for bad, index, axis, size in bounds.faults:
                message = f"index {{0}} is out of bounds for axis {axis} with size {size} in {op.name}"
                self.collect(Place("index", message, (("0", None),), source_line()), bad, (index,))
            args = bounds.args
        if "division" in self.kinds and op.name in DIVISORS:
            bad = _is_zero(args[DIVISORS[op.name]])
            self.collect(self._place("division", f"division by zero in {_call(op, args)}"), bad, ())
        out = self._run(op, args, kwargs)
        if "nan" in self.kinds and op.schema.namespace != "control":
            for item in flat(out):
                if isinstance(item, Tensor) and item.dtype.is_inexact:
                    bad = by_name("any")(by_name("isnan")(item))
                    self.collect(self._place("nan", f"nan given by {_call(op, args)}"), bad, ())
        return out

    def _run(self, op: Operator, args: Args, kwargs: dict[str, Any]) -> Any:
        """Run an operator; of a loop or branches also collect what the checks in its bodies find."""
        if op.schema.namespace != "control":
            return op(*args, **kwargs)
        out, findings = lazy.debug_machinery("bodies").CONTROL[op.name](op, args, kwargs)
        for place, failed, values, step in findings:
            if step is None:
                self.collect(place, failed, values)
            else:
                self.collect(place.in_step(), failed, place.with_step(values, step))
        return out

    def _place(self, kind: str, message: str) -> Place:
        return Place(kind, message.replace("{", "{{").replace("}", "}}"), (), source_line())

    def collect(self, place: Place, failed: Any, values: Args) -> None:
        """Keep a failure, as a value that lives as long as the function's results do."""
        count = len(values)
        failed, values = self._outside(failed, values)
        place = replace(place, inner=place.inner + len(values) - count)
        if current_trace() is not self.trace:  # the body of a loop: see bodies.py
            run_check(place, by_name("logical_not")(failed), values)
            return
        place = replace(place, kind="user") if place.kind == "debug" else place
        if place.kind != "user" and type(failed) is Tensor and not as_array(failed).any():
            return  # so many are looked at; those of the user's are few, and kept, so that all calls give one structure
        self.places.append(place)
        self.failed.append(failed)
        self.values.append(values)

    def _outside(self, failed: Any, values: Args) -> tuple[Any, Args]:
        """A failure of any example of what is mapped inside of the function, with the values of the first such one."""
        while isinstance(failed, LevelTensor) and failed._level.depth > self.depth:
            level, failed = failed._level, failed._payload
            if level.run is None:
                continue
            first = by_name("argmax")(by_name("astype")(failed, "int32"), 0)
            values = (*[_first(level, value, first) for value in values], first)
            failed = by_name("any")(failed, 0)
        return failed, tuple([self._below(value) for value in values])

    def _below(self, value: Any) -> Any:
        """A value without the levels of ``grad`` that were opened inside; of a batch what all examples share."""
        while isinstance(value, LevelTensor) and value._level.depth > self.depth:
            value = value._payload if value._level.run is None else value._payload[0]
        return value


def _caught(index: int, axis: int, size: int) -> bool:
    """Note an int that lies outside of an axis, where such a thing is an error as a value."""
    for mode, _ in reversed(stacks.of[MODE]):
        if isinstance(mode, Checks):
            message = f"index {index} is out of bounds for axis {axis} with size {size} in td::index"
            if "index" in mode.kinds:
                mode.collect(Place("index", message, (), source_line()), asarray(True), ())
            return "index" in mode.kinds
    return False


outside.append(_caught)


def _is_zero(divisor: Any) -> Any:
    """Whether any element is."""
    return by_name("any")(by_name("eq")(divisor, 0)) if is_value(divisor) else asarray(bool(divisor == 0))


def _first(level: Any, value: Any, number: Any) -> Any:
    """The value of one example, where it differs from example to example."""
    if isinstance(value, LevelTensor) and value._level is level:
        return by_name("take")(value._payload, number, 0)
    return value


def _call(op: Operator, args: Args) -> str:
    given = [
        describe(a)
        for a in args
        if isinstance(a, (Tensor, float, int, complex)) or type(a) in number_stand_ins
    ]
    return f"{op.name}({', '.join(given)})"


def checkified(fun: Any, errors: str | Iterable[str]) -> Callable[..., Any]:
    """What :func:`tandem.checkify` makes."""
    if not callable(fun):
        raise ArgumentError(f"checkify takes a function, not {describe(fun)}")
    kinds = frozenset((errors,) if isinstance(errors, str) else errors)
    if not kinds <= {*KINDS}:
        wrong = ", ".join(sorted(map(repr, kinds - {*KINDS})))
        raise ValueArgumentError(
            f"checkify: errors are of the kinds {', '.join(map(repr, KINDS))}, not {wrong}"
        )

    @functools.wraps(fun)
    def with_error(*args: Any, **kwargs: Any) -> Any:
        with Checks(kinds) as checks:
            out = fun(*args, **kwargs)
        return checks.error(), out

    return with_error

"""Hot eager calls of pure functions: calls that repeat with the same kinds of arguments run as compiled code.

The functions are composite operators and those that eager/compiled.py:compile_when_hot decorates. A kind of call is the
dtypes, shapes and key sets of the tensors, whether they are contiguous, and the values of all other arguments. Each
kind runs operator by operator until it has occurred `config.flags.hot_composites` times, where a long call, or one on
many elements, counts as several; then jit/hot_calls.py:Compiler traces and compiles it, forward and backward pass, and
links it to the function's native entry.

Calls that differ only by numbers, which are neither sizes nor axes, are counted together too: after as many calls of
several kinds, code is compiled that takes the numbers as arguments.

Where no call of many is of a compiled kind, since each has other sizes, one of a few is counted for all of them.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import config, lazy, locks
from ..errors import TandemError
from ..registry.dispatch import trace
from ..registry.dispatch.keys import CPU_KEYS, GRAD_CPU_KEYS
from ..registry.dispatch.observers import draw_watches
from ..registry.dispatch.state import ELSEWHERE, current
from ..registry.dtypes import DType
from ..registry.schemas.binding import ConversionError, key_types
from .layers import dispatch_mode
from .layers.level_stack import stack
from .tensor.tensor import Tensor

if TYPE_CHECKING:
    from ..registry.schemas.binding import Binder

compiler = lazy.Module(".jit.hot_calls")

CONSTANTS = frozenset(
    (int, float, bool, str, type(None), DType, FunctionType, type)
)  # a type: dtype=np.float64
MOST_KINDS = 1024  # counted or rejected for one function; then counting starts again
MOST_COMPILED = 32  # kinds of one function that are compiled
MOST_REJECTED = 3  # kinds more than those compiled that are tried in vain
MOST_MISSES = 1024  # calls in a row that are not compiled; after these only one of `SAMPLED` is looked at
SAMPLED = 8
COMPILED, REJECTED, RESPELLED = -1, -2, -3  # in place of a count
kinds_of_containers: dict[type, Callable[[Any], object]] = {}
"""By the types of containers that compiled code takes, such as generators: a function that returns their kind."""
NOT_RUN = object()
_NUMBERS = frozenset((int, float))
ELEMENTS_PER_CALL = 1 << 16  # elements of the largest tensor that count as one more call
NS_PER_CALL = 1_000_000  # nanoseconds of a call that count as one more
_lock = locks.make_lock("hot calls")  # two compilers would each free what the other one's entry reads
_PLAIN_KEYS = (CPU_KEYS, GRAD_CPU_KEYS)


def kind_of(value: Any) -> object:
    """Return what compiled code depends on of an argument; None if compiled code does not take it."""
    cls = type(value)
    if cls is Tensor:
        array = value._array
        if value._keys not in _PLAIN_KEYS:
            return None
        return array.dtype, array.shape, value._keys, array.flags.c_contiguous
    if cls in CONSTANTS or isinstance(value, np.dtype):
        return cls, value
    if cls is tuple or (cls is list and _has_tensor(value)):
        kinds = tuple(map(kind_of, value))
        return None if None in kinds else (cls, kinds)
    if cls in key_types:
        kind = kind_of(key_types[cls](value))
        return None if kind is None else (cls, kind)
    find_kind = kinds_of_containers.get(cls)
    return None if find_kind is None else find_kind(value)


def _has_tensor(values: list[object]) -> bool:
    return any(type(value) is Tensor for value in values)


_CONVERTED = frozenset((list, np.ndarray, *(np.dtype(code).type for code in "?bBhHiIlLqQefd")))
"""The types of values that are converted for a compiled call."""


def _is_converted(value: object) -> bool:
    """Return whether compiled calls take something else for a value: tensors for lists and arrays."""
    return type(value) in _CONVERTED


def _convert(binder: Binder, name: str, value: object) -> object:
    """Return a value as the schema's argument takes it; lists of tensors are left as they are."""
    is_kept = not _is_converted(value) or (type(value) is list and _has_tensor(value))
    return value if is_kept else binder.converters[name](value)


def find_size(args: tuple[object, ...]) -> int:
    """Return the number of elements of the largest tensor among some arguments."""
    return max((value._array.size for value in args if type(value) is Tensor), default=0)


def is_watched() -> bool:
    """Return whether a layer, a level, a mode or the dispatch trace has to see the operators of a call."""
    return bool(current().flags == ELSEWHERE or stack.levels or trace.active or dispatch_mode.watching())


class HotCalls:
    """Counts the calls of one pure function by their kinds, and has hot kinds compiled.

    Args:
        function: the callable that users call; its native entry runs what is compiled.
        plain: runs a call operator by operator.
        traced: the function to trace, with the parameters of ``function``.
        respell: runs a call in another spelling than the schema's, and calls ``function`` in that; None: plain does.
        writes: whether the function writes into its arguments, or the states of random generators.

    Attributes:
        is_enabled: whether calls may be compiled.
        fall_back: runs the calls that the native entry does not take: :meth:`call`, or what counts fewer calls.
        find_weight: returns how many calls the one that is running represents, where not all reach :meth:`call`.
    """

    is_enabled = True
    find_weight: Callable[[], int] | None = None

    def __init__(
        self,
        function: Any,
        plain: Callable[..., Any],
        traced: Callable[..., Any],
        respell: Callable[..., Any] | None = None,
        writes: bool = False,
    ) -> None:
        self.function, self.plain, self.traced, self.writes = function, plain, traced, writes
        self.respell = plain if respell is None else respell
        self.binder: Binder | None = getattr(self.respell, "binder", None)
        self.names = None if self.binder is None else self.binder.names
        self.counts: dict[object, int] = {}
        self.compiled_kinds = self.rejected_kinds = self.rejected_with_numbers = self.misses = 0
        self.compiler: Any = None
        self.fall_back: Callable[..., Any] = self.call
        self.recorders: list[Any] = []  # which run calls on tensors that require gradients

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(inspect.signature(self.traced).parameters)

    @functools.cached_property
    def numbers(self) -> frozenset[str]:
        """The names of the parameters for which an int is a number, and neither a size nor an axis."""
        if self.binder is None:
            parameters = inspect.signature(self.traced).parameters.values()
            return frozenset([x.name for x in parameters if str(x.annotation).startswith("TensorLike")])
        arguments = self.binder.schema.arguments
        return frozenset([x.name for x in arguments if x.type.core in ("Tensor", "Scalar", "float")])

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run a call that the native entry did not take."""
        if kwargs and self.names is not None and not kwargs.keys() <= self.names:
            names = self._find_renaming(len(args), *kwargs)
            if names is None:
                return self.respell(*args, **kwargs)
            return self.function(*args, **dict(zip(names, kwargs.values())))
        for recorder in self.recorders:
            values = recorder.entry(*args, **kwargs)
            if values is not None:
                result = recorder.finish_native_call(values)
                if result is not self.compiler.PASS:
                    return result
        self.misses += 1
        is_left = self.misses > MOST_MISSES and self.misses % SAMPLED
        if is_left or not self.is_enabled or is_watched() or (self.writes and draw_watches.count):
            return self.plain(*args, **kwargs)
        kind = self._kind_of_call(args, kwargs, current().flags)
        if kind is None:
            return self._run_converted(args, kwargs)
        return self._run_counted(kind, args, kwargs)

    def _find_renaming(self, *spelling: Any) -> tuple[str, ...] | None:
        """Return the schema's names of the keywords of a call, where it differs by them only; None for other calls."""
        renamings = getattr(getattr(self.respell, "respelled", None), "renamings", None)
        return None if renamings is None else renamings.get(spelling)

    def _run_counted(self, kind: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Run a call of a kind, and count it; the kind is compiled if it is hot."""
        count = self.counts.get(kind, 0)
        if count == 0 and self._is_respelled(args, kwargs):
            count = RESPELLED
            self._note(kind, count)
        if count >= 0:
            weight = 1 if self.find_weight is None else self.find_weight()
            weight = (
                weight * (SAMPLED if self.misses > MOST_MISSES else 1) + find_size(args) // ELEMENTS_PER_CALL
            )
            count += weight
            if count < config.flags.hot_composites:
                result = self._run_with_numbers(kind, weight, args, kwargs)
                if result is not NOT_RUN:
                    return result
            if count >= config.flags.hot_composites and not draw_watches.count:
                count = self._compile(args, kwargs)
            self._note(kind, count)
            if count >= 0:
                return self._run_timed(kind, args, kwargs)
        if count == COMPILED:
            self.misses = 0
            result = self.compiler.run(args, kwargs)
            if result is not self.compiler.PASS:
                return result
            self._note(kind, REJECTED)
        elif count == RESPELLED:
            return self.respell(*args, **kwargs)
        return self.plain(*args, **kwargs)

    def _run_with_numbers(
        self, kind: object, weight: int, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Any:
        """Run a call by code that takes numbers as arguments; ``NOT_RUN`` if there is none."""
        numbers = self._find_numbers(args, kwargs)
        if not numbers:
            return NOT_RUN
        common = self._drop_numbers(kind, args, kwargs, numbers)
        count = self.counts.get(common, 0)
        if count >= 0:
            count += weight
            if count >= config.flags.hot_composites and not draw_watches.count:
                count = self._compile(args, kwargs, numbers)
            self._note(common, count)
        if count != COMPILED:
            return NOT_RUN
        self.misses = 0
        result = self.compiler.run(args, kwargs, numbers)
        if result is not self.compiler.PASS:
            return result
        self._note(common, REJECTED)
        return NOT_RUN

    def _find_numbers(self, args: tuple[object, ...], kwargs: dict[str, object]) -> frozenset[str]:
        """Return the parameters of a call that are Python numbers, and neither sizes nor axes."""
        if _NUMBERS.isdisjoint(map(type, args)) and _NUMBERS.isdisjoint(map(type, kwargs.values())):
            return frozenset()
        given = (*zip(self.parameters, args), *kwargs.items())
        return frozenset(
            [name for name, x in given if type(x) is float or (type(x) is int and name in self.numbers)]
        )

    def _drop_numbers(
        self, kind: Any, args: tuple[object, ...], kwargs: dict[str, object], numbers: frozenset[str]
    ) -> object:
        """Return the kind of the calls that differ from a call by their numbers."""
        kinds, *rest = kind
        names = (*self.parameters, *[""] * len(args))
        kinds = tuple([(type(x),) if n in numbers else k for n, x, k in zip(names, args, kinds)])
        if kwargs:
            named = zip(kwargs.items(), rest[1])
            rest[1] = tuple([(type(x),) if n in numbers else k for (n, x), k in named])
        return numbers, kinds, *rest

    def _is_respelled(self, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
        """Return whether a call of an operator is not spelled as its schema spells it."""
        binder = self.binder
        return binder is not None and not (len(args) <= binder.limit and kwargs.keys() <= binder.names)

    def _run_converted(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Run a call that has no kind: that of converted arguments, if lists and NumPy's values are why."""
        binder = self.binder
        if binder is None or not any(map(_is_converted, (*args, *kwargs.values()))):
            return self.plain(*args, **kwargs)
        if self._is_respelled(args, kwargs):
            return self.respell(*args, **kwargs)
        names = [argument.name for argument in binder.positional]
        try:
            given = tuple(map(functools.partial(_convert, binder), names, args))
            named = {name: _convert(binder, name, value) for name, value in kwargs.items()}
        except (TandemError, ConversionError):
            return self.plain(*args, **kwargs)  # which raises the error that names the operator
        kind = self._kind_of_call(given, named, current().flags)
        if kind is None:
            return self.plain(*args, **kwargs)
        if self.counts.get(kind) == COMPILED:
            self.misses = 0
            return self.function(*given, **named)
        return self._run_counted(kind, given, named)

    def _run_timed(self, kind: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call operator by operator, and count it again for each millisecond that it takes."""
        start = time.perf_counter_ns()
        result = self.plain(*args, **kwargs)
        more = (time.perf_counter_ns() - start) // NS_PER_CALL
        count = self.counts.get(kind, COMPILED) if more else COMPILED
        if count >= 0:  # another thread may have had it compiled
            self._note(kind, count + more)
        return result

    def _kind_of_call(self, args: tuple[object, ...], kwargs: dict[str, object], flags: int) -> object:
        kinds = tuple(map(kind_of, args))
        if None in kinds:
            return None
        if not kwargs:
            return kinds, flags
        named = tuple(map(kind_of, kwargs.values()))
        return None if None in named else (kinds, tuple(kwargs), named, flags)

    def _note(self, kind: object, count: int) -> None:
        """Note the count of a kind; if there are too many kinds, only those compiled are kept."""
        if len(self.counts) >= MOST_KINDS and kind not in self.counts:
            self.counts = {known: n for known, n in self.counts.items() if n == COMPILED}
        self.counts[kind] = count

    def _compile(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: frozenset[str] = frozenset()
    ) -> int:
        """Compile a kind of call; return what is noted in place of its count."""
        rejected = self.rejected_with_numbers if numbers else self.rejected_kinds
        if self.compiled_kinds >= MOST_COMPILED or rejected > MOST_REJECTED + self.compiled_kinds:
            return REJECTED
        make = compiler.Compiler  # imports its module, for which no lock may be held
        with _lock:
            if self.compiler is None:
                self.compiler = make(
                    self.function, self.fall_back, self.traced, self.recorders, self.plain, self.writes
                )
        if not self.compiler.is_canonical(args, kwargs):
            return RESPELLED
        if self.compiler.compile(args, kwargs, numbers):
            self.compiled_kinds += 1
            return COMPILED
        if numbers:
            self.rejected_with_numbers += 1
        else:
            self.rejected_kinds += 1
        return REJECTED

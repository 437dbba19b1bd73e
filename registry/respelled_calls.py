"""Calls that do not fit an operator's schema as they are written: other spellings, other overloads, ``out``.

Native code and :class:`.operator.Operator` run calls in the spelling of the schema; they pass the others to
:func:`call_respelled`, which calls the operator's function again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..errors import ArgumentError, DTypeError, ShapeError, ValueArgumentError
from .dtype_functions import can_cast
from .function import find_library_function, functions, make_function
from .lazy_operators import materialize
from .library import find_overloads
from .operator import Operator, definition_listeners, lock
from .schemas.binding import is_variadic
from .schemas.spellings import FOREIGN_ARGUMENTS, CallSpellings
from .values import TensorBase, describe

if TYPE_CHECKING:
    from .types import Args, Kwargs


class RespelledCalls:
    """Runs the calls of one operator whose names or number of arguments are not those of its schema.

    How a call is translated depends on the number of positional arguments and the names of the others, for most calls;
    the translation of each such combination is cached.

    Attributes:
        spellings: what the operator accepts.
        variadic, ignored: the declaration's fields of these names.
        known: (number of positional arguments, *names) -> a function of the arguments that runs the call.
        renamings: the same -> the names of the schema, for calls that only name arguments otherwise.
    """

    def __init__(self, operator: Operator):
        self.operator = operator
        self.variadic: bool | str | None = getattr(operator.decl, "variadic", None)
        self.ignored: tuple[str, ...] = getattr(operator.decl, "ignored", ())
        is_packed = is_variadic(operator.schema, self.variadic) and not isinstance(self.variadic, str)
        self.spellings = CallSpellings(operator.binder, getattr(operator.decl, "spellings", {}), is_packed)
        self.known: dict[tuple[object, ...], Callable[[Args, Kwargs], Any]] = {}
        self.renamings: dict[tuple[object, ...], tuple[str, ...]] = {}

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        """Run a call.

        Raises:
            ArgumentError: an argument is unknown, missing or given twice.
            ShapeError, DTypeError: the result does not fit into ``out``.
        """
        key = len(args), *kwargs
        run = self.known.get(key)
        if run is None:
            run = self._choose(len(args), tuple(kwargs))
            if len(self.known) >= _MOST_KNOWN:
                self.clear()
            self.known[key] = run
            names = getattr(run, "names", None)
            if names is not None:
                self.renamings[key] = names
        return run(args, kwargs)

    def clear(self) -> None:
        """Forget the translations."""
        self.known.clear()
        self.renamings.clear()

    def _choose(self, given: int, names: tuple[str, ...]) -> Callable[[Args, Kwargs], Any]:
        absent = [name for name in names if self._is_added(name)]
        run = self._choose_given(given, names)
        return self._leaving_out(absent, run) if absent else run

    def _is_added(self, name: str) -> bool:
        """Whether a keyword is not the operator's: ``out`` and ``copy``, where None means as if it were not given."""
        takes = name == "out" or (name == "copy" and self.operator.schema.takes_copy)
        return takes and name not in self.spellings.binder.names

    def _leaving_out(
        self, absent: Sequence[str], run: Callable[[Args, Kwargs], Any]
    ) -> Callable[[Args, Kwargs], Any]:
        """Return a function of the arguments that leaves out keywords which are None."""
        function = self.function

        def leave_out(args: Args, kwargs: Kwargs) -> Any:
            if any(kwargs[name] is not None for name in absent):
                return run(args, kwargs)
            return function(*args, **{name: value for name, value in kwargs.items() if name not in absent})

        return leave_out

    def _choose_given(self, given: int, names: tuple[str, ...]) -> Callable[[Args, Kwargs], Any]:
        kept = [name for name in names if name not in self.ignored]
        if len(kept) < len(names):
            return lambda args, kwargs: self.function(*args, **{name: kwargs[name] for name in kept})
        binder = self.spellings.binder
        if given <= binder.limit and given + len(names) < binder.needed:
            shorter = self._find_shorter(given, names)
            # Without one, binding the arguments raises the error that names the missing one.
            return binder.bind if shorter is None else _call(make_function(shorter))
        if "copy" in names and self.operator.schema.takes_copy:
            return lambda args, kwargs: _call_view(self.operator, args, dict(kwargs))
        overload = self._find_overload(given, names) or self._find_variadic(given)
        if overload is not None:
            function = make_function(overload)
            result_type = getattr(overload.decl, "result_type", None)
            if result_type is not None:
                return lambda args, kwargs: result_type(*function(*args, **kwargs))
            return _call(function)
        canonical = [self.spellings.names.get(name, name) for name in names]
        others = {*canonical} - {"out"} if self._is_added("out") else {*canonical}
        if len({*canonical}) < len(canonical):
            return self.translate
        if not binder.names.issuperset(others):
            return self._find_library_function(given, canonical) or self.translate
        if len(others) < len(canonical):
            return self._writing(canonical) if given <= binder.limit else self.translate
        if given <= binder.limit:
            return self._renaming(canonical)
        return self._packing(canonical) if self.spellings.variadic else self.translate

    def _find_overload(self, given: int, names: tuple[str, ...]) -> Operator | None:
        """Another overload that fits, if more names are those of its schema than of the operator's.

        Of an operator without overload name, as many suffice: ``x.max(dim=1, keepdims=True)`` is ``max.dim``.
        """
        schema = self.operator.schema
        materialize(self.operator.name)
        names = tuple(name for name in names if name != "out")  # which every operator takes
        if self.spellings.binder.names.issuperset(names):
            return None
        with lock:
            overloads = find_overloads(schema.namespace, schema.name)
        best, most = None, max(self._count_own(names) - (not schema.overload), 0)
        for other in overloads:
            if other is not self.operator:
                calls = respelled_calls(other)
                if calls._count_own(names) > most and calls._fits(given, names):
                    best, most = other, calls._count_own(names)
        return best

    def _find_shorter(self, given: int, names: tuple[str, ...]) -> Operator | None:
        """An overload for a call with fewer arguments than the operator needs: ``td.where(mask)``."""
        materialize(self.operator.name)
        with lock:
            overloads = find_overloads(self.operator.schema.namespace, self.operator.schema.name)
        return next((other for other in overloads if respelled_calls(other)._fits(given, names)), None)

    def _find_library_function(
        self, given: int, names: Sequence[str]
    ) -> Callable[[Args, Kwargs], Any] | None:
        """A function of NumPy's or PyTorch's namespace with keywords that the operator lacks: ``x.sum(where=mask)``."""
        schema, added = self.operator.schema, {*names} - self.spellings.binder.names - {"out"}
        if schema.namespace != "td" or schema.is_mutable or "self" in names:
            return None
        for name in (self.operator.schema.name, *getattr(self.operator.decl, "aliases", ())):
            function: Any = find_library_function(name, added)
            if function is not None:
                packs = given > self.spellings.binder.limit
                call = self._packing_for(function) if packs else _call(function)
                return lambda args, kwargs: call(args, dict(zip(names, kwargs.values())))
        return None

    def _packing_for(self, function: Callable[..., Any]) -> Callable[[Args, Kwargs], Any]:
        """Call a function whose last positional argument is a list, of which the call has the items."""
        first = self.spellings.binder.limit - 1
        return lambda args, kwargs: function(*args[:first], args[first:], **kwargs)

    def _find_variadic(self, given: int) -> Operator | None:
        """The overload that the declaration names for more positional arguments than the schema has."""
        schema = self.operator.schema
        if given <= self.spellings.binder.limit or not isinstance(self.variadic, str):
            return None
        with lock:
            overloads = find_overloads(schema.namespace, schema.name)
        return next((other for other in overloads if other.schema.overload == self.variadic), None)

    def _count_own(self, names: tuple[str, ...]) -> int:
        return len(self.spellings.binder.names.intersection(names))

    def _fits(self, given: int, names: tuple[str, ...]) -> bool:
        return self.spellings.binder.fits(given, {self.spellings.names.get(name, name) for name in names})

    @property
    def function(self) -> Callable[..., Any]:
        """The operator's function, which may have a native entry."""
        return functions.get(self.operator.name) or self.operator

    def _renaming(self, names: Sequence[str]) -> Callable[[Args, Kwargs], Any]:
        function = self.function

        def run(args: Args, kwargs: Kwargs) -> Any:
            return function(*args, **dict(zip(names, kwargs.values())))

        run.names = tuple(names)  # type: ignore[attr-defined]
        return run

    def _writing(self, names: Sequence[str]) -> Callable[[Args, Kwargs], Any]:
        """Run calls that name the tensor which the result is written into.

        Native twin: backends/cpu/fastpath/runtime/rt_entry.py:call_writing
        """
        function, operator = self.function, self.operator

        def run(args: Args, kwargs: Kwargs) -> Any:
            options = dict(zip(names, kwargs.values()))
            out = options.pop("out")
            return write_result(operator, function(*args, **options), out)

        return run

    def _packing(self, names: Sequence[str]) -> Callable[[Args, Kwargs], Any]:
        """Run calls whose last positional arguments are the items of a list."""
        function, first = self.function, self.spellings.binder.limit - 1

        def run(args: Args, kwargs: Kwargs) -> Any:
            sizes = args[first:]
            for size in sizes:
                if type(size) is not int:
                    return self.translate(args, kwargs)
            if kwargs:
                return function(*args[:first], sizes, **dict(zip(names, kwargs.values())))
            return function(*args[:first], sizes)

        return run

    def translate(self, args: Args, kwargs: Kwargs) -> Any:
        """Run any call."""
        binder = self.spellings.binder
        args, options, out = self.spellings.translate(args, kwargs)
        for name in options:
            if name not in binder.names:
                raise binder.refuse(f"has no argument {name!r}{_suggest(name, self.spellings)}")
        result = self.function(*args, **options)
        return result if out is None else write_result(self.operator, result, out)


def _call(function: Callable[..., Any]) -> Callable[[Args, Kwargs], Any]:
    return lambda args, kwargs: function(*args, **kwargs)


_difflib = lazy.Module("difflib")
_MOST_KNOWN = 64
_calls: dict[Operator, RespelledCalls] = {}


def respelled_calls(operator: Operator) -> RespelledCalls:
    """Return the object that runs the calls of an operator in other spellings, made at the first such call."""
    result = _calls.get(operator)
    if result is None:
        result = _calls[operator] = operator.respelled = RespelledCalls(operator)
    return result


def call_respelled(operator: Operator, args: Args, kwargs: Kwargs) -> Any:
    """Run the first call of an operator whose names or number of arguments are not those of the operator's schema.

    Another overload that has all keywords runs the call: ``x.max(dim=1)`` is ``max.dim``, as in PyTorch. Otherwise the
    arguments are translated, and a result is written into ``out``.
    """
    return respelled_calls(operator)(args, kwargs)


def _call_view(operator: Operator, args: Args, kwargs: Kwargs) -> Any:
    """Run a call of a view operator with ``copy``: True copies, False raises if a copy is needed."""
    copy = kwargs.pop("copy")
    if copy not in (None, True, False):
        raise ArgumentError(f"{operator.schema.name}: copy must be True, False or None, not {describe(copy)}")
    result: Any = make_function(operator)(*args, **kwargs)
    source: Any = next(value for value in (*args, *kwargs.values()) if isinstance(value, TensorBase))
    if copy is False and (_memory_of(result) is None or _memory_of(result) is not _memory_of(source)):
        raise ValueArgumentError(
            f"{operator.schema.name}: {describe(source)} needs a copy here, and copy=False forbids it"
        )
    return result.clone() if copy else result


def _memory_of(tensor: Any) -> object:
    """The memory of a tensor, below the levels of transforms; None if it has no views."""
    while hasattr(tensor, "_payload"):
        tensor = tensor._payload
    return tensor._memory


def spellings_of(operator: Operator) -> CallSpellings:
    """The other spellings that an operator accepts."""
    return respelled_calls(operator).spellings


def _forget(operator: Operator, defined: bool) -> None:
    """Forget translations that a new or removed overload may change."""
    if not defined:
        _calls.pop(operator, None)
    name = operator.schema.namespace, operator.schema.name
    for other, calls in list(_calls.items()):
        if (other.schema.namespace, other.schema.name) == name:
            calls.clear()


definition_listeners.append(_forget)


def _suggest(name: str, spellings: CallSpellings) -> str:
    if name in FOREIGN_ARGUMENTS:
        return f"; {FOREIGN_ARGUMENTS[name]}"
    near = _difflib.get_close_matches(name, [*spellings.binder.names, *spellings.names], 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def write_result(operator: Operator, result: Any, out: Any) -> Any:
    """Write the result of an operator into ``out``, which is returned.

    Args:
        operator: the operator, for messages.
        result: a tensor, or a tuple of tensors.
        out: a tensor, or a tuple of as many tensors; NumPy's rules: the shapes are equal, and the dtype of the result
            can be cast to that of ``out`` within its kind or to a wider kind.

    Raises:
        ArgumentError: ``out`` is not a tensor, or not as many as the results.
        ShapeError, DTypeError: the result does not fit.

    Native twin: backends/cpu/fastpath/runtime/rt_outputs.py:write_result
    """
    name = operator.schema.name
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(f"{name}: out must be a tuple of {len(result)} tensors")
        for one, one_out in zip(result, out):
            write_result(operator, one, one_out)
        return out
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if not isinstance(out, TensorBase):
        raise ArgumentError(f"{name}: out must be a Tensor, not {describe(out)}")
    target: Any = out
    if target.shape != result.shape:
        raise ShapeError(f"{name}: the result has shape {result.shape}, and out has shape {target.shape}")
    if not can_cast(result.dtype, target.dtype, "same_kind"):
        raise DTypeError(
            f"{name}: the result is {result.dtype} and cannot be written into out of {target.dtype}"
        )
    target.copy_(result)
    return target

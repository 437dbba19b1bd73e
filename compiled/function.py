"""What ``jit`` makes: a callable that keeps its specializations, and answers calls by the one whose guards hold."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, NamedTuple

from .. import config
from ..eager import dispatch_mode as modes
from ..eager.autocast import context_key
from ..eager.level_stack import named_axes, stack
from ..eager.levels import Level, LevelTensor, unwrap
from ..eager.tensor import Tensor
from ..eager.transfer import UNCOMPILED
from ..errors import ArgumentError
from ..operators.devices import assuming
from ..registry.keys import AUTOGRAD, autograd_keys
from ..registry.native_type import NativeCallable, accept_entries
from ..registry.observe import observed, unobserved
from ..registry.state import state
from ..tracer.trace import is_tracing
from .arguments import Arguments, Bound, as_names, as_numbers
from .batches import Batches, innermost
from .build import containers, specialize
from .captures import NOTHING, Captures
from .execute import make_executable
from .explain import explain
from .externals import reaches_recorded
from .forwards import Forwards
from .joint import specialize_joint
from .leaves import is_plain, key_on, leaf_key, without_data
from .native import NativeEntry
from .outputs import CapturedValueError
from .recorded import MISSED, Recorder, meta_at
from .specialization import Specialization
from .stages import Lowered, Traced, traced

Keys = tuple[tuple[Any, ...], ...]


class CacheInfo(NamedTuple):
    """How often a jitted function was called.

    Attributes:
        hits: calls that a specialization answered.
        misses: calls that were traced.
        specializations: number of specializations kept.
    """

    hits: int
    misses: int
    specializations: int


@accept_entries
class JitFunction(NativeCallable):  # type: ignore[misc]
    """A function that is traced and compiled for each kind of arguments; made by :func:`jit`.

    While another function is being traced it is called as it is, so that its operators become part of that trace.
    """

    _specializations: list[Specialization]
    _by_key: dict[Any, tuple[Specialization, ...]]
    _misses: int
    _gone_hits: int

    def __init__(
        self, fn: Callable[..., Any], names: str | Iterable[str] = (), numbers: int | Iterable[int] = ()
    ):
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._arguments = Arguments(fn, as_names(names), as_numbers(numbers))
        self.__signature__ = self._arguments.signature
        self._methods_self = self._arguments.dynamic[:1] in (["self"], ["cls"])
        self._lock = threading.Lock()
        self._native = NativeEntry(self, functools.partial(type(self).__call__, self))
        self._forget()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        values = self._recorder.entry(*args, **kwargs)
        if values is not None:
            result = self._recorder.answered(values)
            if result is not MISSED:
                return result
        if is_tracing() or modes.active():  # what is open sees every call
            return self._fn(*args, **kwargs)
        observer = observed()
        if observer is not None:  # the compiled code runs as it does when nobody watches
            name, inputs = f"jit {self._arguments.name}", (*args, *kwargs.values())
            return unobserved(lambda: observer.span(name, "jit", lambda: self(*args, **kwargs), inputs))
        return self._call(self._arguments.bind(args, kwargs), _form(args, kwargs))

    def _call(self, bound: Bound, form: Any = None) -> Any:
        """Answer a call; ``form`` is how it was written, for the native entry."""
        if stack.levels:
            result = self._captures.call(bound)
            if result is not NOTHING:
                return result
        for leaf in bound.leaves:
            if type(leaf) in UNCOMPILED:
                return self._plainly(bound)  # no data to compile for, or no compiler for the device
            if isinstance(leaf, LevelTensor):
                return self._captured_or(bound, self._call_at, innermost(bound.leaves), bound)
        return self._captured_or(bound, self._call_plain, bound, form)

    def _captured_or(self, bound: Bound, call: Callable[..., Any], *args: Any) -> Any:
        """Answer a call; as it is written where the function reaches values of transforms that nothing tells of."""
        try:
            return call(*args)
        except CapturedValueError:
            if getattr(self._fn, "is_part", False):  # it works on what values wrap: the whole is to be run
                raise
            return self._plainly(bound)

    def _call_plain(self, bound: Bound, form: Any) -> Any:
        """Answer a call without values of transforms."""
        found, scalars = self._answer(bound, self._keys(bound))
        if named_axes():
            form = None  # machine code would not notice that they are others
        if found.overlaps(bound.leaves):
            return self._plainly(bound)
        if found.derivative is not None:
            if form is not None and not modes.watching():
                self._recorder.link(found, form)
                if modes.watching():
                    self._recorder.unlink()
            return self._recorder.run(found, bound, scalars, None)
        if form is not None and not modes.watching():
            self._native.link(found, self._arguments, form)
            if modes.watching():  # opened in another thread meanwhile: the link may have come after
                self._native.unlink()
        return found.run(bound.leaves, scalars)

    def _call_at(self, level: Level, bound: Bound) -> Any:
        """Answer a call on values of transforms, the innermost of which is given."""
        if level.run is not None:
            return self._batches.call(level, bound)
        if level.forward is not None and not state.exclude & AUTOGRAD:
            return self._forwards.call(level, bound)
        raw = [unwrap(level, leaf) for leaf in bound.leaves]
        exclude = state.exclude | level.outer_exclude
        if not state.exclude & AUTOGRAD and all(is_plain(leaf, exclude) for leaf in raw):
            needs = [meta_at(level, leaf) is not None for leaf in bound.leaves]
            below = bound._replace(leaves=raw)
            keys = tuple(_recorded(key, need) for key, need in zip(self._keys(below), needs))
            found, scalars = self._answer(below, keys)
            derivative = found.derivative
            if derivative is not None and not derivative.captured and not found.overlaps(raw):
                return self._recorder.run(found, bound, scalars, level)
        return self._recorder.run_at(level, bound, self._call)

    def _plainly(self, bound: Bound) -> Any:
        """Run the function as it is written."""
        return self._arguments.call(self._fn, containers(bound.treedef, bound.leaves), bound.statics)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # by its name, as functions are

    def __repr__(self) -> str:
        return f"<jitted {self._arguments.name}{self._arguments.signature}>"

    # -- the cache -------------------------------------------------------------------------------------------------
    def _answer(self, bound: Bound, keys: Keys) -> tuple[Specialization, Any]:
        """The specialization that answers a call, made now if there is none, and the call's derived scalars."""
        found, scalars = self._find(bound, keys)
        if found is None:
            found = self._add(bound, keys)
            scalars = found.scalars(bound.leaves)
        else:
            found.hits += 1
        return found, scalars or ()

    def _keys(self, bound: Bound) -> Keys:
        """The keys of the leaves; an object of any class is taken where it is the ``self`` of a method."""
        if self._methods_self and bound.treedef.children[0].kind is None and bound.leaves:
            first, *rest = bound.leaves
            return (leaf_key(first, identity=True), *map(leaf_key, rest))
        try:
            return tuple([leaf_key(leaf) for leaf in bound.leaves])
        except ArgumentError as fault:
            raise self._located(bound, fault) from None

    def _located(self, bound: Bound, fault: ArgumentError) -> ArgumentError:
        """The error that a leaf was refused with, with the path of that leaf."""
        for path, leaf in zip(self._arguments.paths(bound.treedef), bound.leaves):
            try:
                leaf_key(leaf)
            except ArgumentError:
                return type(fault)(f"{self._arguments.name}: argument {path}: {fault}")
        return fault

    def _find(self, bound: Bound, keys: Keys) -> tuple[Specialization | None, Any]:
        """The specialization whose guards hold for a call, and the call's derived scalars."""
        for found in self._by_key.get(_cache_key(bound, keys), ()):
            if found.holds():
                scalars = found.scalars(bound.leaves)
                if scalars is not None:
                    return found, scalars
        return None, ()

    def _add(self, bound: Bound, keys: Keys) -> Specialization:
        """Trace, lower and keep a new specialization. Nothing is kept if that fails."""
        made = self._specialize(bound, keys)
        if made.derivative is None:
            made.executable = make_executable(made.program)
        key = _cache_key(bound, keys)
        with self._lock:
            self._misses += 1
            self._drop([old for old in self._specializations if not old.current()])
            self._drop(
                self._specializations[: max(0, len(self._specializations) + 1 - config.flags.specializations)]
            )
            self._specializations = [*self._specializations, made]
            self._by_key = {**self._by_key, key: (made, *self._by_key.get(key, ()))}
        return made

    def _specialize(self, bound: Bound, keys: Keys) -> Specialization:
        """Trace a call; together with its gradient where an argument or a captured tensor needs one."""
        recording = AUTOGRAD & ~state.exclude
        wanted = [n for n, key in enumerate(keys) if key[0] is Tensor and key[-1] & recording]
        if not wanted and not (recording and reaches_recorded(self._fn)):
            made = specialize(self._fn, self._arguments, bound, keys)
            if not any(tensor._keys & recording for tensor in made.graph.constants):
                return made
        return specialize_joint(self._fn, self._arguments, bound, keys, wanted)

    def _drop(self, old: list[Specialization]) -> None:
        """Forget specializations (the lock is held); calls that are inside one go on undisturbed."""
        if not old:
            return
        self._native.unlink()
        self._recorder.unlink()
        self._gone_hits += sum(item.calls for item in old)
        self._specializations = [item for item in self._specializations if item not in old]
        kept = {key: tuple(item for item in items if item not in old) for key, items in self._by_key.items()}
        self._by_key = {key: items for key, items in kept.items() if items}

    def _forget(self) -> None:
        self._native.unlink()
        self._batches = Batches(self._fn, self._arguments, type(self))
        self._forwards = Forwards(self._fn, self._arguments, type(self))
        self._captures = Captures(self._fn, self._arguments, type(self))
        self._recorder = Recorder(self._fn, self._arguments, type(self))
        self._specializations, self._by_key = [], {}
        self._misses = self._gone_hits = 0

    def cache_info(self) -> CacheInfo:
        """Hits, misses and the number of specializations.

        >>> import tandem as td
        >>> f = td.jit(lambda x: x + 1)
        >>> _ = f(td.asarray([1.0])), f(td.asarray([2.0])), f(td.asarray([1.0, 2.0]))
        >>> f.cache_info()
        CacheInfo(hits=1, misses=2, specializations=2)
        """
        with self._lock:
            hits = self._gone_hits + sum(item.calls for item in self._specializations)
            return CacheInfo(hits, self._misses, len(self._specializations))

    def cache_clear(self) -> None:
        """Forget all specializations and counts."""
        with self._lock:
            self._forget()

    def explain(self, /, *args: Any, **kwargs: Any) -> str:
        """Say in words what a call with these arguments would do, and why it would recompile if it would.

        Returns:
            A text that names each guard that fails with its past and its new value, the tensors that were captured and
            the variables that are guarded.
        """
        bound = self._arguments.bind(args, kwargs)
        keys = self._keys(bound)
        found, _ = self._find(bound, keys)
        return explain(self._arguments, list(self._specializations), found, bound, keys)

    def check_donated(self, names: str | Iterable[str], numbers: int | Iterable[int]) -> None:
        """Refuse donated arguments that are no parameters, or static."""
        self._arguments.check_donated(
            as_names(names, "donate_argnames"), as_numbers(numbers, "donate_argnums")
        )

    # -- stages ----------------------------------------------------------------------------------------------------
    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function on these arguments.

        Args:
            args, kwargs: as in a call; anything with ``shape`` and ``dtype`` may stand for a tensor, such as a
                :class:`tandem.ShapeDtypeStruct`.

        Returns:
            The graph: a networkx ``MultiDiGraph`` whose ``str()`` is the graph as text; see :func:`.tracer.printer`.
        """
        return traced(self._specialized(args, kwargs), self._arguments.name)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower the function on these arguments.

        Args:
            args, kwargs: as for :meth:`trace`. The keyword ``device`` says what to lower for, unless the function
                itself takes a parameter of that name: ``device="cuda"`` has all tensors that lie on the CPU or on
                ``"meta"`` count as CUDA tensors, without a GPU.

        Returns:
            What was chosen to run each part: ``.kernels()``, ``.llvm_ir()`` or ``.cuda_source()``, and ``.compile()``.
        """
        device = None if "device" in self.__signature__.parameters else kwargs.pop("device", None)
        return Lowered(self._specialized(args, kwargs, device), self._arguments)

    def _specialized(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], device: str | None = None
    ) -> Specialization:
        bound = self._arguments.bind(args, kwargs)
        bound = bound._replace(leaves=[without_data(leaf) for leaf in bound.leaves])
        keys = self._keys(bound)
        if device is None or device == "cpu":
            return specialize(self._fn, self._arguments, bound, keys)
        with assuming(device) as name:
            moved = tuple(key_on(name, key) for key in keys)
            return specialize(self._fn, self._arguments, bound, moved)


def _form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, tuple[str, ...]]:
    return len(args), tuple(kwargs)


def _recorded(key: tuple[Any, ...], need: bool) -> tuple[Any, ...]:
    """A leaf's key with the autograd keys of its backend, or without any."""
    if key[0] is not Tensor:
        return key
    keys = key[-1] & ~AUTOGRAD
    return (*key[:-1], keys | autograd_keys(keys) if need else keys)


def _cache_key(bound: Bound, keys: Keys) -> Any:
    context = context_key(), named_axes()
    return bound.treedef, keys, bound.static_keys, state.include, state.exclude, *context

"""``JitFunction``: a callable with a cache of specializations, which runs the one whose guards hold for a call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, Any

from .. import background, config, lazy, locks
from ..eager.layers import dispatch_mode as modes
from ..eager.layers.autocast import context_key
from ..eager.layers.level_stack import named_axes
from ..eager.layers.levels import Level, unwrap
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError
from ..named_tuple import NamedTuple
from ..operators.creation.devices import assume_device
from ..registry import native_type
from ..registry.dispatch.keys import AUTOGRAD, autograd_keys
from ..registry.dispatch.precedence import traces
from ..registry.dispatch.state import state
from ..registry.dispatch.unwinding import run_restoring
from ..registry.dtypes import default_float, default_stamp
from ..registry.native_type import NativeCallable, accept_entries
from .arguments import Arguments, BoundArguments, as_names, as_numbers, is_wrapped_in
from .guards.externals import captures_gradient
from .guards.leaves import generalize, has_strides, is_plain, key_for_device, leaf_key, without_data
from .interceptors import BOUND_INTERCEPTORS, CALL_INTERCEPTORS
from .native_entry import NativeEntry, use_time
from .outputs import CapturedValueError
from .specialization import Specialization
from .specialize import specialize, unflatten_arguments
from .variants import PASS

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs
    from .stages import Lowered, Traced

Keys = tuple[tuple[Any, ...], ...]
MOST_KINDS = 4
"""How many strides of the same arguments are compiled apart; for further ones, one specialization takes any."""

_donation = lazy.Module(".jit.donation")
_eval_shape = lazy.Module(".transforms.eval_shape")
_explain = lazy.Module(".jit.explain")
_joint_trace = lazy.Module(".jit.derivatives.joint_trace")
_progress = lazy.Module(".jit.progress")
_recorded_call = lazy.Module(".jit.derivatives.recorded_call")
_stages = lazy.Module(".jit.stages")
_lock = locks.make_lock("jit")  # held while a table of specializations changes, never while one is made


class CacheInfo(NamedTuple):
    """Statistics of a jitted function's cache.

    Attributes:
        hits: calls that used a cached specialization.
        misses: calls that were traced and compiled.
        specializations: number of cached specializations.
    """

    hits: int
    misses: int
    specializations: int


class _LazyVariants:
    """The variants of one kind of a jitted function (see :mod:`.variants`), which are made when a call needs them.

    Args:
        make: the class of the variants.
    """

    name: str

    def __init__(self, make: Callable[..., Any]):
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, function: JitFunction | None, owner: type | None = None) -> Any:
        """Make the variants; later uses find them in the instance's dictionary."""
        if function is None:
            return self
        made = self.make(function._fn, function._arguments, JitFunction)
        return function.__dict__.setdefault(self.name, made)

    def clear(self, function: JitFunction) -> None:
        """Drop the variants."""
        function.__dict__.pop(self.name, None)


@accept_entries
class JitFunction(NativeCallable):  # type: ignore[misc]
    """A function that is traced and compiled for each kind of arguments; made by :func:`jit`.

    While another function is traced, its Python code runs, so that its operators become part of that trace.
    """

    _specializations: list[Specialization]
    _by_key: dict[tuple[Any, ...], tuple[Specialization, ...]]
    _misses: int
    _evicted_hits: int
    _batches = _LazyVariants(lazy.Functions(".jit.batching").BatchedVariants)
    _forwards = _LazyVariants(lazy.Functions(".jit.derivatives.forward_mode").ForwardVariants)
    _lifted = _LazyVariants(lazy.Functions(".jit.lift_closures").LiftedVariants)
    _recorder = _LazyVariants(lazy.Functions(".jit.derivatives.recorded_call").GradientVariants)
    _as_recorded = False  # whether compiled calls repeat eager ones: same kernels and residuals

    def __init__(self, fn: Function, names: str | Iterable[str] = (), numbers: int | Iterable[int] = ()):
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._arguments = Arguments(fn, as_names(names), as_numbers(numbers))
        self.__signature__ = self._arguments.signature
        self._methods_self = self._arguments.dynamic[:1] in (["self"], ["cls"])
        self._native = NativeEntry(self, functools.partial(type(self).__call__, self))
        self._reset()

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Run a call by the first interceptor that answers it, else by a specialization.

        Native twin: backends/cpu/fastpath/entries/rt_jit.py:jitted_call
        """
        for intercept in CALL_INTERCEPTORS:
            result = intercept(self, args, kwargs)
            if result is not PASS:
                return result
        return self._bind_and_call(args, kwargs)

    def _bind_and_call(self, args: Args, kwargs: Kwargs) -> object:
        return self._call(self._arguments.bind(args, kwargs), (len(args), tuple(kwargs)))

    def _call_profiled(self, /, *args: object, **kwargs: object) -> object:
        """Run a call in Python, which reports the kernels."""
        return self._call(self._arguments.bind(args, kwargs))

    def _call(self, bound: BoundArguments, form: object = None) -> object:
        """Run a call; ``form``, its argument counts and keywords, is for linking the native entry."""
        for intercept in BOUND_INTERCEPTORS:
            result = intercept(self, bound)
            if result is not PASS:
                return result
        return self._run_or_fall_back(bound, self._call_plain, bound, form)

    def _run_or_fall_back(self, bound: BoundArguments, call: Function, *args: object) -> object:
        """Run a call; fall back to Python code if the function captures values of transforms that cannot be lifted."""
        try:
            return call(*args)
        except CapturedValueError:
            if getattr(
                self._fn, "is_part", False
            ):  # a variant on payloads: the outer function must fall back
                raise
            return self._run_uncompiled(bound)

    def _call_plain(self, bound: BoundArguments, form: object) -> Any:
        """Run a call without values of transforms."""
        value, scalars = self._find_or_add(bound, self._keys(bound))
        if named_axes() or (not value.hits and native_type.runtime is None):
            form = None  # native entries do not guard named axes, and are not loaded for a single call
        if value.overlaps(bound.leaves):
            return self._run_uncompiled(bound)
        if value.derivative is not None:
            if form is not None and not modes.watching():
                self._recorder.link(value, form)
                if modes.watching():
                    self._recorder.unlink()
            return self._recorder.run(value, bound, scalars, None)
        if form is not None and not modes.watching():
            self._native.link(value, self._arguments, form)
            if modes.watching():  # opened in another thread meanwhile: the link may have come after
                self._native.unlink()
        return value.run(bound.leaves, scalars)

    def _call_at(self, level: Level, bound: BoundArguments) -> Any:
        """Run a call on values of transforms; ``level`` is the innermost level."""
        if level.run is not None:
            return self._batches.call(level, bound)
        if level.forward is not None and not state.exclude & AUTOGRAD:
            return self._forwards.call(level, bound)
        raw = [unwrap(level, leaf) for leaf in bound.leaves]
        exclude = state.exclude | level.outer_exclude
        if not state.exclude & AUTOGRAD and all(is_plain(leaf, exclude) for leaf in raw):
            needs = [_recorded_call.autograd_meta_at(level, leaf) is not None for leaf in bound.leaves]
            below = bound._replace(leaves=raw)
            keys = tuple(_set_autograd_keys(key, need) for key, need in zip(self._keys(below), needs))
            value, scalars = self._find_or_add(below, keys)
            derivative = value.derivative
            if derivative is not None and not derivative.captured and not value.overlaps(raw):
                return self._recorder.run(value, bound, scalars, level)
        return self._recorder.run_at(level, bound, self._call)

    def _run_uncompiled(self, bound: BoundArguments) -> object:
        """Run the Python function without compiling it."""
        return self._arguments.call(self._fn, unflatten_arguments(bound.treedef, bound.leaves), bound.statics)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # by its name, as functions are

    def __repr__(self) -> str:
        return f"<jitted {self._arguments.name}{self._arguments.signature}>"

    # -- the cache -------------------------------------------------------------------------------------------------
    def _find_or_add(self, bound: BoundArguments, keys: Keys) -> tuple[Specialization, Sequence[object]]:
        """Look up or make the specialization for a call; returns it and the call's derived scalars."""
        result, scalars = self._find(bound, keys)
        if result is None:
            result = self._add(bound, self._limit_strides(bound, keys))
            scalars = result.scalars(bound.leaves)
        else:
            result.hits += 1
        result.used = use_time()
        return result, scalars or ()

    def _keys(self, bound: BoundArguments) -> Keys:
        """The cache keys of the leaves; the ``self`` of a method may be an object of any class."""
        try:
            if self._methods_self and self._arguments.begins_with_leaf(bound.treedef):
                first, *rest = bound.leaves
                keys = (leaf_key(first, identity=True), *map(leaf_key, rest))
            else:
                keys = tuple([leaf_key(leaf) for leaf in bound.leaves])
            return tuple(map(generalize, keys)) if self._arguments.donated or self._as_recorded else keys
        except ArgumentError as fault:
            if not self._methods_self and self._is_method(bound):
                self._methods_self = True
                return self._keys(bound)
            raise self._add_leaf_path(bound, fault) from None

    def _is_method(self, bound: BoundArguments) -> bool:
        """Whether the first argument is an instance of a class that has this function as a method."""
        if not self._arguments.begins_with_leaf(bound.treedef):
            return False
        classes = type(bound.leaves[0]).__mro__
        return any(is_wrapped_in(self, value) for each in classes for value in vars(each).values())

    def _add_leaf_path(self, bound: BoundArguments, fault: ArgumentError) -> ArgumentError:
        """Add the path of the rejected leaf to an error."""
        for path, leaf in zip(self._arguments.paths(bound.treedef), bound.leaves):
            try:
                leaf_key(leaf)
            except ArgumentError:
                return type(fault)(f"{self._arguments.name}: argument {path}: {fault}")
        return fault

    def _find(
        self, bound: BoundArguments, keys: Keys
    ) -> tuple[Specialization | None, Sequence[object] | None]:
        """Look up the specialization whose guards hold for a call; returns it and the call's derived scalars.

        Native twin: backends/cpu/fastpath/entries/rt_guards.py:check_guards
        """
        for value in self._by_key.get(_cache_key(bound, keys), ()):
            if value.holds():
                scalars = value.scalars(bound.leaves)
                if scalars is not None:
                    return value, scalars
        return self._find(bound, tuple(map(generalize, keys))) if any(map(has_strides, keys)) else (None, ())

    def _limit_strides(self, bound: BoundArguments, keys: Keys) -> Keys:
        """The keys to compile for: any strides, if there are many specializations that differ in strides only."""
        general = tuple(map(generalize, keys))
        if general == keys:
            return keys
        wanted = _cache_key(bound, general)
        alike = [key for key in self._by_key if (key[0], tuple(map(generalize, key[1])), *key[2:]) == wanted]
        return general if len(alike) >= MOST_KINDS else keys

    def _add(self, bound: BoundArguments, keys: Keys) -> Specialization:
        """Trace, lower and cache a specialization, and evict the least recently used; if it fails, change nothing."""
        name, delay, stamp = self._arguments.name, config.flags.compile_progress, default_stamp()
        with background.Deadline(delay, lambda: _progress.report_slow(name, delay)) as deadline:
            made = run_restoring(self._trace_and_compile, bound, keys)
        if deadline.is_past:
            _progress.report_end(name, deadline.seconds, len(made.graph.nodes))
        key = _cache_key(bound, keys)
        if stamp != default_stamp():  # another thread has set the default dtype
            with _lock:
                self._drop([made])
            return made
        with _lock:
            self._misses += 1
            self._drop([old for old in self._specializations if not old.is_current()])
            surplus = len(self._specializations) + 1 - config.flags.specializations
            if surplus > 0:
                self._drop(sorted(self._specializations, key=attrgetter("last_use"))[:surplus])
            kept = [*self._specializations, made]
            by_key = {**self._by_key, key: (made, *self._by_key.get(key, ()))}
            self._specializations, self._by_key = kept, by_key  # no call between: safe against interrupts
        return made

    def _trace_and_compile(self, bound: BoundArguments, keys: Keys) -> Specialization:
        """Trace a call, lower its graph (lowering/lower.py:lower) and compile that; a joint graph is compiled later."""
        made = self._specialize(bound, keys)
        if made.derivative is None:
            made.compile(_donation.find_donated(made, self._arguments) if self._arguments.donated else ())
        return made

    def _specialize(self, bound: BoundArguments, keys: Keys) -> Specialization:
        """Trace a call, together with its gradient if an argument or a captured tensor requires one."""
        before, traces.keeps_kernels = traces.keeps_kernels, self._as_recorded
        try:
            return self._trace(bound, keys)
        finally:
            traces.keeps_kernels = before

    def _trace(self, bound: BoundArguments, keys: Keys) -> Specialization:
        recording = AUTOGRAD & ~state.exclude
        wanted = [n for n, key in enumerate(keys) if key[0] is Tensor and key[-1] & recording]
        if not wanted and not (recording and captures_gradient(self._fn)):
            made = specialize(self._fn, self._arguments, bound, keys)
            if not any(tensor._keys & recording for tensor in made.graph.constants):
                return made
        joint: Specialization = _joint_trace.specialize_joint(
            self._fn, self._arguments, bound, keys, wanted, self._as_recorded
        )
        return joint

    @property
    def _made_recorder(self) -> Any:
        """The gradient functions, or None before the first call that needs one."""
        return vars(self).get("_recorder")

    def _drop(self, old: list[Specialization]) -> None:
        """Evict specializations (the lock is held); calls that run one are not affected."""
        if not old:
            return
        for item in old:
            self._native.remove(item)
            if self._made_recorder is not None:
                self._made_recorder.remove(item)
        gone_hits = self._evicted_hits + sum(item.calls for item in old)
        kept = [item for item in self._specializations if item not in old]
        by_key = {
            key: tuple(item for item in items if item not in old) for key, items in self._by_key.items()
        }
        by_key = {key: items for key, items in by_key.items() if items}
        self._specializations, self._by_key, self._evicted_hits = kept, by_key, gone_hits

    def _reset(self) -> None:
        self._native.unlink()
        for variants in vars(JitFunction).values():
            if isinstance(variants, _LazyVariants):
                variants.clear(self)
        self._specializations, self._by_key = [], {}
        self._misses = self._evicted_hits = 0

    def cache_info(self) -> CacheInfo:
        """Hits, misses and the number of specializations.

        >>> import tandem as td
        >>> f = td.jit(lambda x: x + 1)
        >>> _ = f(td.asarray([1.0])), f(td.asarray([2.0])), f(td.asarray([1.0, 2.0]))
        >>> f.cache_info()
        CacheInfo(hits=1, misses=2, specializations=2)
        """
        with _lock:
            hits = self._evicted_hits + sum(item.calls for item in self._specializations)
            return CacheInfo(hits, self._misses, len(self._specializations))

    def cache_clear(self) -> None:
        """Remove all specializations and reset the counts."""
        with _lock:
            self._reset()

    clear_cache = cache_clear

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results for these arguments, see :func:`tandem.eval_shape`."""
        bound = self._arguments.bind(args, kwargs)
        call = functools.wraps(self._fn)(
            lambda *leaves: self._run_uncompiled(bound._replace(leaves=list(leaves)))
        )
        return _eval_shape.eval_shape(call, *bound.leaves)

    def explain(self, /, *args: object, **kwargs: object) -> str:
        """Explain whether a call with these arguments would use the cache, and otherwise why it would recompile.

        Returns:
            A text that names each guard that fails with its past and its new value, the tensors that were captured and
            the variables that are guarded.
        """
        bound = self._arguments.bind(args, kwargs)
        keys = self._keys(bound)
        value, _ = self._find(bound, keys)
        return str(_explain.explain(self._arguments, list(self._specializations), value, bound, keys))

    def set_donated(self, names: str | Iterable[str], numbers: int | Iterable[int]) -> None:
        """Set the donated parameters; raises ArgumentError if one is not a parameter, or is static."""
        self._arguments.set_donated(as_names(names, "donate_argnames"), as_numbers(numbers, "donate_argnums"))

    # -- stages ----------------------------------------------------------------------------------------------------
    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function on these arguments.

        Args:
            args, kwargs: as in a call; anything with ``shape`` and ``dtype`` may stand for a tensor, such as a
                :class:`tandem.ShapeDtypeStruct`.

        Returns:
            A networkx ``MultiDiGraph`` whose ``str()`` is the graph as text; see :mod:`tandem.tracer.printer`.
        """
        traced: Traced = _stages.to_traced(self._trace_for_stages(args, kwargs), self._arguments.name)
        return traced

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
        lowered: Lowered = _stages.Lowered(self._trace_for_stages(args, kwargs, device), self._arguments)
        return lowered

    def _trace_for_stages(self, args: Args, kwargs: Kwargs, device: str | None = None) -> Specialization:
        bound = self._arguments.bind(args, kwargs)
        bound = bound._replace(leaves=[without_data(leaf) for leaf in bound.leaves])
        keys = self._keys(bound)
        if device is None or device == "cpu":
            return run_restoring(specialize, self._fn, self._arguments, bound, keys)
        with assume_device(device) as name:
            moved = tuple(key_for_device(name, key) for key in keys)
            return run_restoring(specialize, self._fn, self._arguments, bound, moved)


def _set_autograd_keys(key: tuple[Any, ...], need: bool) -> tuple[object, ...]:
    """Set or clear the autograd keys in a leaf's cache key."""
    if key[0] is not Tensor:
        return key
    keys = key[-1] & ~AUTOGRAD
    return (*key[:-1], keys | autograd_keys(keys) if need else keys)


def _cache_key(bound: BoundArguments, keys: Keys) -> tuple[Any, ...]:
    context = context_key(), named_axes(), default_float()
    return bound.treedef, keys, bound.static_keys, state.include, state.exclude, *context

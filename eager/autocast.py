"""Autocast: operators run in the precision that suits them. One boxed kernel that reads each operator's policy.

The kernel casts the floating-point arguments on an enabled device (float64 is left alone) and runs the operator with
autocast off, so that what a composite is made of is not cast again. The casts are operators: gradients flow through
them, and a trace records them.

Source: ``torch.amp.autocast`` and ``at::autocast``.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from ..errors import ArgumentError, DTypeError, ValueArgumentError
from ..operators.declare import LIBRARY, Declaration, on_declaration
from ..registry.binding import device_name
from ..registry.dtypes import DType, as_dtype, bfloat16, float16, float32, float64
from ..registry.function import OperatorFunction, functions
from ..registry.keys import AUTOGRAD, BACKENDS, DENSE, DispatchKey, below
from ..registry.library import Library
from ..registry.operator import Operator
from ..registry.state import Carried, carried, set_keys, state
from ..registry.values import describe
from .dunders import by_name
from .tensor import Tensor

AUTOCAST = 1 << DispatchKey.Autocast
LEVEL = 1 << DispatchKey.Level
NOT_DENSE = BACKENDS & ~DENSE
BELOW_MODES = below(DispatchKey.Mode)
F = TypeVar("F", bound=Callable[..., Any])

POLICIES = ("lower", "float32", "promote", "")
# device: its dtype where none is asked for
DEFAULTS: dict[str, DType] = {"cpu": bfloat16, "cuda": float16, "meta": bfloat16}
LOWER = (bfloat16, float16)


class Cached(NamedTuple):
    """A cast of a weight: the weight, the version that its memory had, and the result."""

    weight: weakref.ref[Tensor]
    version: int
    result: Tensor


class Settings(threading.local):
    """What autocast does in this thread.

    Attributes:
        lower: the lower-precision dtype of each device that is enabled.
        keeps: whether casts of weights are kept.
        depth: how many blocks are open.
        cache: casts of weights by the weight's identity, the dtype, and whether gradients are recorded.
    """

    def __init__(self) -> None:
        self.lower: dict[str, DType] = {}
        self.keeps = True
        self.depth = 0
        self.cache: dict[tuple[int, DType, bool], Cached] = {}


settings = Settings()


# -- casting -----------------------------------------------------------------------------------------------------------
def lower_dtype(value: Any) -> DType | None:
    """The lower-precision dtype for an argument; None for what autocast leaves alone.

    Left alone are numbers, tensors of integers, booleans, complex numbers and float64, and those on other devices.
    """
    if not isinstance(value, Tensor) or not value.dtype.is_floating or value.dtype is float64:
        return None
    # the key may have been included by hand: then the defaults hold
    return (settings.lower or DEFAULTS).get(value.device.partition(":")[0])


def _is_weight(value: Tensor) -> bool:
    """Whether the cast of a tensor is worth keeping: a float32 leaf that requires a gradient, used again and again."""
    return (
        type(value) is Tensor
        and value.dtype is float32
        and value.is_leaf
        and value.requires_grad
        and settings.keeps
        and settings.depth > 0
    )


def cached_cast(dtype: DType, value: Any) -> Any:
    """An argument in a dtype, if autocast casts it at all.

    The cast of a float32 leaf that requires a gradient is kept until the outermost ``autocast`` block ends, unless the
    leaf is written in place.

    Args:
        dtype: the dtype.
        value: any argument of an operator.

    Returns:
        The cast tensor, or ``value`` itself.
    """
    if lower_dtype(value) is None or value.dtype is dtype:
        return value
    cast = by_name("cast")
    if not _is_weight(value):
        return cast(value, dtype)
    key = id(value), dtype, not state.exclude & AUTOGRAD
    version = 0 if value._storage is None else value._storage.version
    found = settings.cache.get(key)
    if found is not None and found.weight() is value and found.version == version:
        return found.result
    result = cast(value, dtype)
    if type(result) is Tensor:  # not what a trace records
        settings.cache[key] = Cached(weakref.ref(value), version, result)
    return result


def promote_type(lower: DType, *values: Any) -> DType:
    """The dtype that operators with the policy ``"promote"`` run in: the widest among the arguments.

    Args:
        lower: the dtype where no argument counts.
        values: arguments; those that autocast leaves alone do not count.

    Returns:
        The dtype of those that count if it is the same for all, else float32.
    """
    dtypes = {value.dtype for value in values if lower_dtype(value) is not None}
    return lower if not dtypes else dtypes.pop() if len(dtypes) == 1 else float32


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments, and what is in lists among them."""
    found: list[Any] = []
    for value in (*args, *kwargs.values()):
        found += value if type(value) is tuple else (value,)
    return found


def _target(policy: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DType | None:
    """The dtype that a call runs in; None if none of its arguments is to be cast."""
    values = _flat(args, kwargs)
    if any(isinstance(value, Tensor) and value._keys & NOT_DENSE for value in values):
        return None  # sparse and quantized tensors have kernels for their own dtypes
    lower = next((dtype for dtype in map(lower_dtype, values) if dtype is not None), None)
    if lower is None or policy == "lower":
        return lower
    return float32 if policy == "float32" else promote_type(lower, *values)


def _cast_deep(dtype: DType, value: Any) -> Any:
    if type(value) is tuple:
        return tuple([cached_cast(dtype, item) for item in value])
    return cached_cast(dtype, value)


# -- the kernel --------------------------------------------------------------------------------------------------------
_libraries: dict[str, Library] = {}  # through which operators from outside are cast before levels
_given: weakref.WeakKeyDictionary[Operator, str] = weakref.WeakKeyDictionary()


def policy_of(op: Operator) -> str:
    """The policy of an operator: that set for it, or that of its declaration."""
    found = _given.get(op)
    if found is None:
        return op.decl.autocast if isinstance(op.decl, Declaration) else ""
    return found


def set_policy(op: Any, policy: str) -> None:
    """Say how autocast treats an operator.

    Args:
        op: an operator, or its function.
        policy: ``"lower"`` (run in the lower precision), ``"float32"``, ``"promote"`` (the widest dtype among the
            arguments) or ``""`` (left alone).

    Raises:
        ArgumentError: ``op`` is no operator.
        ValueArgumentError: there is no such policy.

    >>> import tandem as td
    >>> td.autocast.set_policy(td.hypot, "float32")
    >>> x = td.asarray([3.0, 4.0], dtype=td.bfloat16)
    >>> with td.autocast("cpu"):
    ...     td.hypot(x, x).dtype
    tandem.float32
    >>> td.autocast.set_policy(td.hypot, "")
    """
    operator = op.operator if isinstance(op, OperatorFunction) else op
    if not isinstance(operator, Operator):
        raise ArgumentError(f"set_policy takes an operator or its function, such as td.matmul, not {op!r}")
    if policy not in POLICIES:
        raise ValueArgumentError(
            f"there is no autocast policy {policy!r}; they are {', '.join(map(repr, POLICIES))}"
        )
    _given[operator] = policy
    _cast_before_levels(operator)
    operator.recompute()  # functions compiled under autocast have the former policy's casts


def autocast_kernel(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Cast the arguments by the operator's policy and run it without autocast; the fallback of the Autocast key."""
    policy = policy_of(op)
    if not policy and _has_parts(op):
        bits = op.keyset(args, kwargs) & (keyset | LEVEL) & BELOW_MODES
        return op.dispatch(bits & ~AUTOCAST, args, kwargs)
    before = set_keys(state.include & ~AUTOCAST, state.exclude)
    try:
        dtype = _target(policy, args, kwargs) if policy else None
        if dtype is not None:
            args = tuple([_cast_deep(dtype, value) for value in args])
            kwargs = {name: _cast_deep(dtype, value) for name, value in kwargs.items()}
        bits = op.keyset(args, kwargs)
        if bits == keyset & ~AUTOCAST and not (state.include or state.exclude):
            return functions.get(op.name, op)(*args, **kwargs)  # its native entry, if it has one
        return op.dispatch(bits & (keyset | LEVEL) & BELOW_MODES, args, kwargs)
    finally:
        set_keys(*before)


def _has_parts(op: Operator) -> bool:
    """Whether the kernels below may call operators, each of which has a policy of its own."""
    return not isinstance(op.decl, Declaration) or op.decl.kind in ("composite", "custom")


def _cast_before_levels(op: Operator) -> None:
    """Register the kernel for a composite itself, so that a transform casts it before it is taken apart."""
    if op.registered("CompositeImplicit") is not None and op.registered(DispatchKey.Autocast) is None:
        library = LIBRARY
        if op.schema.namespace != LIBRARY.namespace:
            library = _libraries.setdefault(op.schema.namespace, Library(op.schema.namespace, "IMPL"))
        library.impl(op, autocast_kernel, DispatchKey.Autocast, boxed=True)


# -- switching it on and off -------------------------------------------------------------------------------------------
class autocast:
    """Context manager or decorator: operators run in the precision that suits them, in this thread.

    Matrix products, convolutions and attention run in the lower precision; exponentials, logarithms, sums, norms and
    losses in float32; what joins tensors in the widest dtype among them. ``docs/autocast.md`` lists the operators.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` or ``"meta"``; tensors elsewhere are left alone.
        dtype: the lower precision: bfloat16 or float16; by default bfloat16, on CUDA float16.
        enabled: False switches autocast off for this device inside the block.
        cache_enabled: whether the cast of a weight is kept until the outermost block ends.

    Raises:
        DeviceError: there is no such device.
        DTypeError: the dtype is not a lower precision.

    >>> import tandem as td
    >>> x, w = td.ones((2, 3)), td.ones((3, 4)).requires_grad_()
    >>> with td.autocast("cpu", dtype=td.bfloat16):
    ...     y = x @ w
    ...     loss = y.sum()
    >>> y.dtype, loss.dtype
    (tandem.bfloat16, tandem.float32)
    >>> loss.backward()
    >>> w.grad.dtype
    tandem.float32
    """

    promote_type = staticmethod(promote_type)
    cached_cast = staticmethod(cached_cast)
    set_policy = staticmethod(set_policy)

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        self.device = device_name(device_type).partition(":")[0]
        self.dtype = DEFAULTS.get(self.device, bfloat16) if dtype is None else as_dtype(dtype)
        if self.dtype not in LOWER:
            raise DTypeError(f"autocast lowers to {' or '.join(map(str, LOWER))}, not to {self.dtype}")
        self.enabled, self.cache_enabled = enabled, cache_enabled
        self._before: dict[int, list[tuple[Any, ...]]] = {}  # by thread: what to go back to

    def __enter__(self) -> autocast:
        keys = state.include, state.exclude
        self._before.setdefault(get_ident(), []).append((settings.lower, settings.keeps, keys))
        others = {device: dtype for device, dtype in settings.lower.items() if device != self.device}
        settings.lower = others | ({self.device: self.dtype} if self.enabled else {})
        settings.keeps = settings.keeps if self.cache_enabled is None else self.cache_enabled
        settings.depth += 1
        if settings.lower:
            set_keys(keys[0] | AUTOCAST, keys[1] & ~AUTOCAST)
        else:
            set_keys(keys[0] & ~AUTOCAST, keys[1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        settings.lower, settings.keeps, keys = self._before[get_ident()].pop()
        settings.depth -= 1
        if not settings.depth:
            settings.cache.clear()
        set_keys(*keys)

    def __call__(self, function: F) -> F:
        if not callable(function):
            raise ArgumentError(f"autocast decorates functions, not {describe(function)}")

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.dtype, self.enabled, self.cache_enabled):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether autocast is on in this thread.

    Args:
        device_type: the device.

    Returns:
        True inside ``autocast(device_type)``.

    >>> import tandem as td
    >>> with td.autocast("cpu"):
    ...     td.is_autocast_enabled("cpu"), td.is_autocast_enabled("cuda")
    (True, False)
    """
    return bool(state.include & AUTOCAST) and device_name(device_type).partition(":")[0] in settings.lower


def context_key() -> tuple[Any, ...]:
    """What a trace depends on beside the key sets: the dtypes, where autocast is on."""
    if not state.include & AUTOCAST:
        return ()
    return tuple(sorted((device, dtype.name) for device, dtype in settings.lower.items()))


def _restore(kept: tuple[dict[str, DType], bool]) -> None:
    settings.lower, settings.keeps = kept


carried.append(Carried(lambda: (settings.lower, settings.keeps), _restore))
LIBRARY.fallback(autocast_kernel, DispatchKey.Autocast)


def _register(op: Operator) -> None:
    """Let a composite with a policy be cast before it is taken apart."""
    if op.decl.autocast:
        _cast_before_levels(op)


on_declaration(_register)

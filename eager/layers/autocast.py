"""Autocast: run operators in the precision that suits them, by one boxed kernel that reads each operator's policy.

The kernel casts the floating-point arguments on an enabled device (float64 is not cast) and runs the operator with
autocast off, so that the parts of a composite are not cast again. The casts are operators: gradients flow through
them, and a trace records them.

Source: ``torch.amp.autocast`` and ``at::autocast``.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, DTypeError, ValueArgumentError
from ...named_tuple import NamedTuple
from ...operators.declare.declaration import LIBRARY, Declaration, on_declaration
from ...registry.dispatch.guard import Guard
from ...registry.dispatch.keys import (
    AUTOCAST,
    AUTOCAST_OF_BACKEND,
    AUTOGRAD,
    BACKEND_OF_DEVICE,
    BACKENDS,
    DENSE,
    DispatchKey,
    below,
    keys_of,
    keyset,
)
from ...registry.dispatch.state import (
    current,
    current_keys,
    pop_block,
    push_block,
    replace_part,
    set_keys,
    set_state,
    state,
)
from ...registry.dtypes import DType, as_dtype, bfloat16, float16, float32, float64
from ...registry.function import OperatorFunction, functions
from ...registry.library import Library
from ...registry.operator import Operator
from ...registry.values import to_device_name
from ..tensor.dunders import by_name
from ..tensor.tensor import Tensor
from .level_stack import stack

if TYPE_CHECKING:
    from ...registry.types import Args, DTypeLike, Kwargs

LEVEL = 1 << DispatchKey.Level
NOT_DENSE = BACKENDS & ~DENSE
BELOW_MODES = below(DispatchKey.Mode)

POLICIES = ("lower", "float32", "promote", "")
# by device: the default lower-precision dtype
DEFAULTS: dict[str, DType] = {"cpu": bfloat16, "cuda": float16, "meta": bfloat16}
LOWER = (bfloat16, float16)


class CachedCast(NamedTuple):
    """A cached cast of a weight: the weight, the version of its memory, and the result."""

    weight: weakref.ref[Tensor]
    version: int
    result: Tensor


class Setting(NamedTuple):
    """The options set by ``autocast``; a part of the dispatch state.

    Attributes:
        lower: the lower-precision dtype of each device that is enabled.
        caches_casts: whether casts of weights are cached.
        depth: the number of open blocks.
        cache: casts of weights by the weight's identity, the dtype, and whether gradients are recorded; one for all
            blocks inside the outermost one.
    """

    lower: dict[str, DType]
    caches_casts: bool
    depth: int
    cache: dict[tuple[int, DType, bool], CachedCast]


class Settings:
    """The current :class:`Setting`, as attributes."""

    __slots__ = ()

    @property
    def now(self) -> Setting:
        """The setting of the dispatch state."""
        return current().parts.get("autocast") or Setting({}, True, 0, {})

    @property
    def lower(self) -> dict[str, DType]:
        """See :class:`Setting`."""
        return self.now.lower

    @property
    def caches_casts(self) -> bool:
        """See :class:`Setting`."""
        return self.now.caches_casts

    @property
    def depth(self) -> int:
        """See :class:`Setting`."""
        return self.now.depth

    @property
    def cache(self) -> dict[tuple[int, DType, bool], CachedCast]:
        """See :class:`Setting`."""
        return self.now.cache


settings = Settings()


# -- casting -----------------------------------------------------------------------------------------------------------
def lower_dtype(value: object) -> DType | None:
    """The lower-precision dtype for an argument; None if autocast does not cast it.

    Numbers, tensors of integers, booleans, complex numbers and float64, and tensors on other devices are not cast.
    """
    if not isinstance(value, Tensor) or not value.dtype.is_floating or value.dtype is float64:
        return None
    # If the key was included explicitly, there is no setting: use the defaults.
    return (settings.lower or DEFAULTS).get(value.device.partition(":")[0])


def _is_weight(value: Tensor) -> bool:
    """Whether to cache the cast of a tensor: a float32 leaf that requires a gradient, which is used repeatedly."""
    return (
        type(value) is Tensor
        and value.dtype is float32
        and value.is_leaf
        and value.requires_grad
        and settings.caches_casts
        and settings.depth > 0
        and stack.recording is None  # an input of td.grad, whose gradients are added in float32
    )


def cached_cast(dtype: DType, value: Any) -> object:
    """Cast an argument to a dtype, if autocast casts it at all.

    The cast of a float32 leaf that requires a gradient is cached until the outermost ``autocast`` block ends, unless
    the leaf is written in place.

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
    cached = settings.cache.get(key)
    if cached is not None and cached.weight() is value and cached.version == version:
        return cached.result
    result = cast(value, dtype)
    if type(result) is Tensor:  # not for traced values
        settings.cache[key] = CachedCast(weakref.ref(value), version, result)
    return result


def promote_type(lower: DType, *values: Any) -> DType:
    """The dtype that operators with the policy ``"promote"`` run in: the widest among the arguments.

    Args:
        lower: the dtype if no argument is cast.
        values: arguments; those that autocast does not cast are ignored.

    Returns:
        The dtype of the remaining arguments if it is the same for all, else float32.
    """
    dtypes = {value.dtype for value in values if lower_dtype(value) is not None}
    return lower if not dtypes else dtypes.pop() if len(dtypes) == 1 else float32


def _flat(args: Args, kwargs: Kwargs) -> list[object]:
    """The arguments, with lists among them flattened."""
    result: list[Any] = []
    for value in (*args, *kwargs.values()):
        result += value if type(value) is tuple else (value,)
    return result


def _target_dtype(policy: str, args: Args, kwargs: Kwargs) -> DType | None:
    """The dtype that a call runs in; None if none of its arguments is cast."""
    values = _flat(args, kwargs)
    if any(isinstance(value, Tensor) and value._keys & NOT_DENSE for value in values):
        return None  # sparse and quantized tensors have kernels for their own dtypes
    lower = next((dtype for dtype in map(lower_dtype, values) if dtype is not None), None)
    if lower is None or policy == "lower":
        return lower
    return float32 if policy == "float32" else promote_type(lower, *values)


def _cast_deep(dtype: DType, value: object) -> object:
    if type(value) is tuple:
        return tuple([cached_cast(dtype, item) for item in value])
    return cached_cast(dtype, value)


# -- the kernel --------------------------------------------------------------------------------------------------------
_libraries: dict[str, Library] = {}  # by namespace, for user-defined operators that are cast before levels
_policy_overrides: weakref.WeakKeyDictionary[Operator, str] = weakref.WeakKeyDictionary()


def policy_of(op: Operator) -> str:
    """The policy of an operator: the one set by `set_policy`, or that of its declaration."""
    result = _policy_overrides.get(op)
    if result is None:
        return op.decl.autocast if isinstance(op.decl, Declaration) else ""
    return result


def set_policy(op: object, policy: str) -> None:
    """Set the policy of an operator under autocast.

    Args:
        op: an operator, or its function.
        policy: ``"lower"`` (run in the lower precision), ``"float32"``, ``"promote"`` (the widest dtype among the
            arguments) or ``""`` (not cast).

    Raises:
        ArgumentError: ``op`` is not an operator.
        ValueArgumentError: the policy is unknown.

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
            f"set_policy: policy is one of {', '.join(map(repr, POLICIES))}, not {policy!r}"
        )
    _policy_overrides[operator] = policy
    _cast_before_levels(operator)
    operator.recompute()  # functions compiled under autocast have the former policy's casts


def autocast_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Cast the arguments by the operator's policy and run it without autocast; the fallback of the autocast keys."""
    policy = policy_of(op)
    if not policy and _may_call_operators(op):
        bits = op.keyset(args, kwargs) & (keyset | LEVEL) & BELOW_MODES
        return op.dispatch(bits & ~AUTOCAST, args, kwargs)
    before = current_keys()
    try:
        set_keys(state.include & ~AUTOCAST, state.exclude)
        dtype = _target_dtype(policy, args, kwargs) if policy else None
        if dtype is not None:
            args = tuple([_cast_deep(dtype, value) for value in args])
            kwargs = {name: _cast_deep(dtype, value) for name, value in kwargs.items()}
        bits = op.keyset(args, kwargs)
        if bits == keyset & ~AUTOCAST and not (state.include or state.exclude):
            return functions.get(op.name, op)(*args, **kwargs)  # its native entry, if it has one
        return op.dispatch(bits & (keyset | LEVEL) & BELOW_MODES, args, kwargs)
    finally:
        set_keys(*before)


def _may_call_operators(op: Operator) -> bool:
    """Whether the kernels below may call operators, which have their own policies."""
    return not isinstance(op.decl, Declaration) or op.decl.kind in ("composite", "custom")


def _cast_before_levels(op: Operator) -> None:
    """Register the kernel for a composite itself, so that a transform casts it before decomposing it."""
    if op.registered("CompositeImplicit") is not None and op.registered("Autocast") is None:
        library = LIBRARY
        if op.schema.namespace != LIBRARY.namespace:
            library = _libraries.setdefault(op.schema.namespace, Library(op.schema.namespace, "IMPL"))
        library.impl_layer(op, autocast_kernel, "Autocast")


# -- enabling and disabling -------------------------------------------------------------------------------------------
class autocast(Guard):
    """Context manager or decorator: run operators in the precision that suits them, in this thread or task.

    Matrix products, convolutions and attention run in the lower precision; exponentials, logarithms, sums, norms and
    losses in float32; operators that join tensors run in the widest dtype among them. ``docs/autocast.md`` lists the
    operators.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` or ``"meta"``; tensors on other devices are not cast.
        dtype: the lower precision: bfloat16 or float16; by default bfloat16, on CUDA float16.
        enabled: False switches autocast off for this device inside the block.
        cache_enabled: whether the cast of a weight is cached until the outermost block ends.

    Raises:
        DeviceError: the device type is unknown.
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
        self,
        device_type: str,
        dtype: DTypeLike | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        self.device = to_device_name(device_type).partition(":")[0]
        self.dtype = DEFAULTS.get(self.device, bfloat16) if dtype is None else as_dtype(dtype)
        if self.dtype not in LOWER:
            raise DTypeError(f"autocast lowers to {' or '.join(map(str, LOWER))}, not to {self.dtype}")
        self.enabled, self.cache_enabled = enabled, cache_enabled

    def __enter__(self) -> autocast:
        now, before = current(), settings.now
        lower = {device: dtype for device, dtype in before.lower.items() if device != self.device}
        if self.enabled:
            lower[self.device] = self.dtype
        caches_casts = before.caches_casts if self.cache_enabled is None else self.cache_enabled
        setting = Setting(lower, caches_casts, before.depth + 1, before.cache)
        on = _keys_of_devices(lower)
        include, exclude = now.include & ~AUTOCAST | on, now.exclude & ~on
        undo = now.include & AUTOCAST, now.exclude & AUTOCAST, now.parts.get("autocast")
        set_state(
            include, exclude, replace_part(now.parts, "autocast", setting), push_block(self, undo, now.blocks)
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        now = current()
        undo, rest = pop_block(self, now.blocks)
        if undo is not None:
            included, excluded, setting = undo
            keys = now.include & ~AUTOCAST | included, now.exclude & ~AUTOCAST | excluded
            set_state(*keys, replace_part(now.parts, "autocast", setting), rest)


def _keys_of_devices(devices: Iterable[str]) -> int:
    """The autocast keys of device types."""
    return keyset(*{AUTOCAST_OF_BACKEND[BACKEND_OF_DEVICE[device]] for device in devices})


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
    device = to_device_name(device_type).partition(":")[0]
    return device in settings.lower and bool(state.include & _keys_of_devices([device]))


def context_key() -> tuple[Any, ...]:
    """The part of a trace's key that autocast adds to the key sets: the dtypes of the enabled devices."""
    if not state.include & AUTOCAST:
        return ()
    return tuple(sorted((device, dtype.name) for device, dtype in settings.lower.items()))


for _key in keys_of(AUTOCAST):
    LIBRARY.fallback(autocast_kernel, _key)


def _register(op: Operator) -> None:
    """Cast a composite that has a policy before it is decomposed."""
    if op.decl.autocast:
        _cast_before_levels(op)


on_declaration(_register)

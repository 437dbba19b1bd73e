"""Cache keys and guards of the leaves of a call's arguments."""

from __future__ import annotations

import enum
import functools
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy, pytree
from ...eager.meta.tensor import MetaTensor, meta_tensor
from ...eager.tensor.tensor import Tensor
from ...eager.tensor.transfer import COMPILED
from ...eager.tensor.weak_scalars import is_weak, number_of
from ...errors import ArgumentError, UnsupportedError
from ...named_tuple import NamedTuple
from ...registry.dispatch.keys import AUTOGRAD, CPU_KEYS, DispatchKey, from_bits
from ...registry.dtypes import DType, as_dtype
from ...registry.native_type import NativeCallable
from ...registry.values import SCALARS, TensorSpec, converters, describe
from ...tracer.trace import check_alive

if TYPE_CHECKING:
    from ...registry.types import Array
    from ..native_record import GuardBuilder

jit_layout = lazy.Module(".backends.cpu.fastpath.glue.jit_layout")

_STATIC_TYPES = (
    type(np._NoValue),
    str,
    bytes,
    DType,
    type,
    enum.Enum,
    range,
    types.EllipsisType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    np.dtype,
    np.ufunc,
    functools.partial,
    NativeCallable,  # operators and jitted functions
)


SCALAR_KINDS = ("scalar", "weak")
"""The kinds of leaves that are Python numbers to compiled code."""


Strides = tuple[int, ...]

ANY: Strides = ()
"""The strides, in a key or a guard, of each array that is not C-contiguous: it is copied."""


class NotNative(Exception):
    """The native entry cannot express a specialization; the message is the reason."""


class LeafGuard(NamedTuple):
    """The guard of one leaf of the arguments.

    Attributes:
        kind: ``"tensor"``, ``"array"`` (NumPy), ``"scalar"`` and ``"weak"`` (a Python number and a weak scalar, whose
            value is passed at run time), ``"static"`` (a string, a function, ...: equal to ``value``) or ``"identity"``
            (the object that ``value`` refers to, for ``self``).
        type: its exact type.
        dtype: NumPy dtype of a tensor or an array.
        shape: its shape.
        strides: its strides in bytes; None if it is C-contiguous, empty for any others: then it is copied.
        keys: key set of a tensor.
        value: of a static leaf, or the :class:`IdentityKey` of an object.
        device: the device of a tensor.
    """

    kind: str
    type: type
    dtype: Any = None
    shape: tuple[int, ...] = ()
    strides: Strides | None = None
    keys: int = 0
    value: Any = None
    device: str = "cpu"

    def __str__(self) -> str:
        if self.kind in ("tensor", "array"):
            layout = "" if self.strides is None else f", {_describe_strides(self.strides)}"
            grad = ", requires_grad" if self.keys & AUTOGRAD else ""
            device = "" if self.device == "cpu" else f" on {self.device}"
            return (
                f"{self.type.__name__} {self.dtype}[{','.join(map(str, self.shape))}]{device}{layout}{grad}"
            )
        if self.kind == "scalar":
            return f"a Python {self.type.__name__}"
        if self.kind == "weak":
            return f"a weak scalar of a Python {self.type.__name__}"
        return f"left to its default {self.value!r}" if self.type in SCALARS else repr(self.value)

    def check(self, key: tuple[Any, ...]) -> bool:
        """Whether a leaf with this cache key has the same properties."""
        return make_guard(key) == self

    def explain(self, path: str, key: tuple[Any, ...]) -> str:
        """Describe how a leaf with this cache key differs from that of the trace; empty if the guard holds.

        Args:
            path: the name of the leaf.
            key: its cache key now.
        """
        current = make_guard(key)
        if current == self:
            return ""
        if self.kind in ("tensor", "array") and self.kind == current.kind:
            properties = [("shape", self.shape, current.shape), ("dtype", self.dtype, current.dtype)]
            properties += [
                ("layout", _describe_strides(self.strides), _describe_strides(current.strides)),
                ("device", self.device, current.device),
            ]
            if self.device == current.device:
                properties.append(("key set", self.keys, current.keys))
            changes = [f"{name} was {old}, now {new}" for name, old, new in properties if old != new]
            return f"argument {path}: {', '.join(changes)}"
        return f"argument {path} was {self}, now {current}"

    def emit(self, builder: GuardBuilder, parameter: int) -> None:
        """Add the guard to the guard program of a native entry.

        Args:
            builder: the program.
            parameter: which of the graph's parameters a dynamic leaf is.

        Raises:
            NotNative: machine code cannot check it.
        """
        if self.kind == "identity":
            builder.guards.add(jit_layout.GuardCode.SAME)
            builder.guards.weakly(self.value._ref())
        elif self.kind == "static":
            builder.add_constant(self.value)
        elif self.kind == "scalar":
            builder.add_scalar(self.type, parameter)
        elif self.kind == "weak":
            builder.guards.add(jit_layout.GuardCode.WEAK)
            builder.add_scalar(self.type, parameter)
        else:
            builder.add_array(self, parameter)


def _describe_strides(strides: Strides | None) -> str:
    if strides is None:
        return "contiguous"
    return f"strides {strides}" if strides else "not contiguous"


class DefaultValue:
    """A default value that a call uses: the function finds it where it is, so that its tensors are captured ones."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value


class IdentityKey:
    """A key that compares an object by identity; holds a weak reference."""

    __slots__ = ("_hash", "_ref")

    def __init__(self, value: object):
        self._hash = id(value)
        try:
            self._ref: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._ref = lambda: value

    def __eq__(self, other: object) -> bool:
        value = self._ref()
        return isinstance(other, IdentityKey) and value is not None and value is other._ref()

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        value = self._ref()
        return f"the object {object.__repr__(value)}" if value is not None else "an object that is gone"


def read_strides(array: Array) -> Strides | None:
    """The strides of an array in bytes; None if it is C-contiguous, :data:`ANY` if they are not whole elements."""
    flags = array.flags
    if flags.c_contiguous:
        return None
    strides: Strides = array.strides
    return strides if flags.aligned and not any(step % array.itemsize for step in strides) else ANY


def has_strides(key: tuple[Any, ...]) -> bool:
    """Whether a leaf's key is that of an array that is read by its strides."""
    return key[0] in (Tensor, np.ndarray) and bool(key[3])


def generalize(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A leaf's key with any strides instead of certain ones; other keys are returned unchanged."""
    return (*key[:3], ANY, *key[4:]) if has_strides(key) else key


def _tensor_key(value: Any) -> tuple[Any, ...]:
    array, keys = value._array, value._keys
    if keys is not CPU_KEYS:
        if is_weak(value):
            return ("weak", type(number_of(value)))
        _check_keys(value)
    return (Tensor, array.dtype, array.shape, read_strides(array), keys)


def device_key(value: Any, device: str) -> tuple[object, ...]:
    """The key of a device tensor; the dispatch key set is the last item."""
    return (Tensor, value.dtype.np, value.shape, None if value.is_contiguous() else ANY, device, value._keys)


def key_for_device(device: str, key: tuple[object, ...]) -> tuple[object, ...]:
    """The key of a CPU tensor or an array as if it were on a CUDA device; other keys are returned unchanged."""
    if key[0] not in (Tensor, np.ndarray, np.generic) or len(key) == 6:
        return key
    strides = None if len(key) == 3 or key[3] is None else ANY
    return (Tensor, *key[1:3], strides, device, 1 << DispatchKey.CUDA)


def is_plain(value: Any, exclude: int) -> bool:
    """Whether compiled code can take a leaf: a plain tensor without levels, trace or active autograd."""
    if not isinstance(value, Tensor):
        return True
    return (type(value) is Tensor or type(value) in COMPILED) and not value._keys & AUTOGRAD & ~exclude


def _check_keys(value: Any) -> None:
    if value._keys & ~AUTOGRAD != CPU_KEYS:
        raise UnsupportedError(
            f"a jitted function was called with a tensor {describe(value)} of the keys {from_bits(value._keys)}; "
            "jit takes dense tensors only"
        )


def _default_key(value: object) -> tuple[Any, ...]:
    """The key of a default: of constants the value, of containers that of each item, of other objects the identity."""
    if value is None or type(value) in SCALARS or _is_static(value):
        return ("static", type(value), value)
    leaves, treedef = pytree.flatten(value)
    if treedef.kind is None:
        return ("static", type(value), IdentityKey(value))
    return ("static", type(value), (treedef, *map(_default_key, leaves)))


def _array_key(value: Any) -> tuple[Any, ...]:
    as_dtype(value.dtype)  # refuses object arrays, strings, ...
    return (np.ndarray, value.dtype, value.shape, read_strides(value))


_KEY_FUNCTIONS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Tensor: _tensor_key,
    # meta tensors serve tracing and lowering without data; calls on them are not compiled
    MetaTensor: lambda x: (Tensor, x.dtype.np, x.shape, None if x.is_contiguous() else ANY, CPU_KEYS),
    np.ndarray: _array_key,
    DefaultValue: lambda leaf: _default_key(leaf.value),
    **{kind: (lambda value, key=(kind,): key) for kind in SCALARS},  # type: ignore[misc]
}


def leaf_key(value: object, identity: bool = False) -> tuple[object, ...]:
    """The cache key of a leaf: a hashable tuple of its properties that a specialization depends on, its type first.

    Args:
        value: a leaf.
        identity: whether to accept any object, by identity (the ``self`` of a method).

    Raises:
        ArgumentError: jit does not accept such a leaf.
        LeakedTracerError: the leaf is a traced value of a trace that has ended.
    """
    cached = _KEY_FUNCTIONS.get(type(value))
    if cached is not None:
        return cached(value)
    if isinstance(value, Tensor):
        if type(value) in COMPILED:
            return device_key(value, value.device)
        raise _make_subclass_error(value)
    if isinstance(value, np.generic):
        return (np.generic, as_dtype(value.dtype).np, ())
    if _is_static(value):
        return ("static", type(value), value)
    if identity:
        return ("identity", type(value), IdentityKey(value))
    raise ArgumentError(
        f"a {type(value).__name__} is given; jit takes tensors, NumPy arrays, Python numbers, strings, "
        "functions and containers of them (dict, list, tuple, namedtuple, dataclass). Name the argument in "
        "static_argnames if it is hashable and seldom changes, or make its class a container with "
        "td.pytree.register_pytree_node"
    )


def _is_static(value: Any) -> bool:
    """Whether a value is a compiled-in constant: a string, a function, a wrapped function (lru_cache)."""
    is_wrapper = callable(value) and hasattr(value, "__wrapped__")
    return (isinstance(value, _STATIC_TYPES) or is_wrapper) and _is_hashable(value)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _make_subclass_error(value: Tensor) -> Exception:
    check_alive(value)
    if value.is_deleted():
        value._host("a jitted call")
    return UnsupportedError(
        f"a jitted function was called with a {type(value).__name__}; jit takes Tensor itself, not its subclasses"
    )


def make_guard(key: tuple[Any, ...]) -> LeafGuard:
    """Make the guard for a cache key."""
    kind = key[0]
    if kind is Tensor:
        device = key[4] if len(key) == 6 else "cpu"
        return LeafGuard("tensor", Tensor, key[1], key[2], key[3], key[-1], None, device)
    if kind is np.ndarray:
        return LeafGuard("array", np.ndarray, *key[1:])
    if kind is np.generic:
        return LeafGuard("array", np.generic, *key[1:])
    if kind in SCALARS:
        return LeafGuard("scalar", kind)
    if kind == "weak":
        return LeafGuard("weak", key[1])
    return LeafGuard(kind, key[1], value=key[2])


def without_data(value: object) -> object:
    """Convert an object that only has a shape and a dtype to a meta tensor; other leaves are returned unchanged."""
    if isinstance(value, (Tensor, np.ndarray, np.generic)) or not (
        hasattr(value, "shape") and hasattr(value, "dtype")
    ):
        return value
    return meta_tensor(TensorSpec(tuple(value.shape), as_dtype(value.dtype), "meta"))


def to_tensor(value: object) -> Any:
    """Convert an array leaf to a tensor on its memory, and a weak scalar to its number."""
    if isinstance(value, Tensor):
        return number_of(value)
    return converters[np.ndarray if isinstance(value, np.ndarray) else np.generic](value)

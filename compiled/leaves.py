"""The leaves of a call's arguments: what jit takes, and what of each leaf a specialization depends on."""

from __future__ import annotations

import enum
import functools
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..eager.meta_tensor import MetaTensor, meta_tensor
from ..eager.tensor import Tensor
from ..eager.transfer import COMPILED
from ..errors import ArgumentError, UnsupportedError
from ..registry.dtypes import DType, as_dtype
from ..registry.keys import AUTOGRAD, CPU_KEYS, DispatchKey, from_bits
from ..registry.native_type import NativeCallable
from ..registry.values import SCALARS, TensorSpec, converters, describe
from ..tracer.trace import check_alive

_FIXED_TYPES = (
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


@dataclass(frozen=True, slots=True)
class LeafGuard:
    """What one leaf of the arguments must be.

    Attributes:
        kind: ``"tensor"``, ``"array"`` (NumPy), ``"scalar"`` (its value is passed at run time), ``"fixed"`` (a string,
            a function, ...: equal to ``value``) or ``"same"`` (the very object that ``value`` refers to, for ``self``).
        type: its exact type.
        dtype: NumPy dtype of a tensor or an array.
        shape: its shape.
        contiguous: whether it is C-contiguous.
        keys: key set of a tensor.
        value: of a fixed leaf, or the :class:`Same` of an object.
        device: where a tensor lies.
    """

    kind: str
    type: type
    dtype: Any = None
    shape: tuple[int, ...] = ()
    contiguous: bool = True
    keys: int = 0
    value: Any = None
    device: str = "cpu"

    def __str__(self) -> str:
        if self.kind in ("tensor", "array"):
            layout = "" if self.contiguous else ", not contiguous"
            grad = ", requires_grad" if self.keys & AUTOGRAD else ""
            where = "" if self.device == "cpu" else f" on {self.device}"
            return f"{self.type.__name__} {self.dtype}[{','.join(map(str, self.shape))}]{where}{layout}{grad}"
        if self.kind == "scalar":
            return f"a Python {self.type.__name__}"
        return f"left to its default {self.value!r}" if self.type in SCALARS else repr(self.value)


class LeftOut:
    """What a call left to its parameter's default: a constant of the specialization, as in the function."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def is_constant(value: Any) -> bool:
    """Whether a default is the same for all calls: a number, a string, a function."""
    return type(value) in SCALARS or _is_fixed(value)


class Same:
    """Stands for an object in guards: equal only to another stand-in of that object; does not keep it alive."""

    __slots__ = ("_hash", "_ref")

    def __init__(self, value: Any):
        self._hash = id(value)
        try:
            self._ref: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._ref = lambda: value

    def __eq__(self, other: object) -> bool:
        mine = self._ref()
        return isinstance(other, Same) and mine is not None and mine is other._ref()

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        value = self._ref()
        return f"the object {object.__repr__(value)}" if value is not None else "an object that is gone"


def _tensor_key(value: Any) -> tuple[Any, ...]:
    array, keys = value._array, value._keys
    if keys is not CPU_KEYS:
        _check_keys(value)
    return (Tensor, array.dtype, array.shape, array.flags.c_contiguous, keys)


def device_key(value: Any, device: str) -> tuple[Any, ...]:
    """The key of a tensor whose class is that of a device; the key set stays at the end."""
    return (Tensor, value.dtype.np, value.shape, value.is_contiguous(), device, value._keys)


def key_on(device: str, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of a CPU tensor or an array as if it lay on a CUDA device; others as they are."""
    if key[0] not in (Tensor, np.ndarray, np.generic) or len(key) == 6:
        return key
    contiguous = key[3] if len(key) > 3 else True
    return (Tensor, *key[1:3], contiguous, device, 1 << DispatchKey.CUDA)


def is_plain(value: Any, exclude: int) -> bool:
    """Whether a leaf is what compiled code takes: no value of a level or a trace, and recorded by nobody."""
    if not isinstance(value, Tensor):
        return True
    return (type(value) is Tensor or type(value) in COMPILED) and not value._keys & AUTOGRAD & ~exclude


def _check_keys(value: Any) -> None:
    if value._keys & ~AUTOGRAD != CPU_KEYS:
        raise UnsupportedError(
            f"a jitted function was called with a tensor {describe(value)} of the keys {from_bits(value._keys)}; "
            "dense CPU tensors are what jit takes so far"
        )


def _array_key(value: Any) -> tuple[Any, ...]:
    as_dtype(value.dtype)  # refuses object arrays, strings, ...
    return (np.ndarray, value.dtype, value.shape, value.flags.c_contiguous)


_KEYS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Tensor: _tensor_key,
    # to trace and to lower a function without data; a call on such tensors is not compiled
    MetaTensor: lambda x: (Tensor, x.dtype.np, x.shape, x.is_contiguous(), CPU_KEYS),
    np.ndarray: _array_key,
    LeftOut: lambda leaf: ("fixed", type(leaf.value), leaf.value),
    **{kind: (lambda value, key=(kind,): key) for kind in SCALARS},  # type: ignore[misc]
}


def leaf_key(value: Any, identity: bool = False) -> tuple[Any, ...]:
    """What a specialization depends on, as a hashable tuple that starts with the leaf's type.

    Args:
        value: a leaf.
        identity: whether any object is taken, by identity (the ``self`` of a method).

    Raises:
        ArgumentError: jit does not take such a leaf.
        LeakedTracerError: it is a traced value of a trace that is over.
    """
    found = _KEYS.get(type(value))
    if found is not None:
        return found(value)
    if isinstance(value, Tensor):
        if type(value) in COMPILED:
            return device_key(value, value.device)
        raise _refuse_subclass(value)
    if isinstance(value, np.generic):
        return (np.generic, as_dtype(value.dtype).np, ())
    if _is_fixed(value):
        return ("fixed", type(value), value)
    if identity:
        return ("same", type(value), Same(value))
    raise ArgumentError(
        f"a {type(value).__name__} is given; jit takes tensors, NumPy arrays, Python numbers, strings, "
        "functions and containers of them (dict, list, tuple, namedtuple, dataclass). Name the argument in "
        "static_argnames if it is hashable and seldom changes, or make its class a container with "
        "td.pytree.register_pytree_node"
    )


def _is_fixed(value: Any) -> bool:
    """Whether a value is compiled in: a string, a function, also one in a wrapper (custom_vjp, lru_cache)."""
    is_wrapper = callable(value) and hasattr(value, "__wrapped__")
    return (isinstance(value, _FIXED_TYPES) or is_wrapper) and _is_hashable(value)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _refuse_subclass(value: Any) -> Exception:
    check_alive(value)
    return UnsupportedError(
        f"a jitted function was called with a {type(value).__name__}; Tensor itself is what it takes"
    )


def guard_of(key: tuple[Any, ...]) -> LeafGuard:
    """The guard that a key stands for."""
    head = key[0]
    if head is Tensor:
        device = key[4] if len(key) == 6 else "cpu"
        return LeafGuard("tensor", Tensor, key[1], key[2], key[3], key[-1], None, device)
    if head is np.ndarray:
        return LeafGuard("array", np.ndarray, *key[1:])
    if head is np.generic:
        return LeafGuard("array", np.generic, *key[1:])
    if head in SCALARS:
        return LeafGuard("scalar", head)
    return LeafGuard(head, key[1], value=key[2])


def without_data(value: Any) -> Any:
    """A tensor on ``meta`` for what only says the shape and the dtype of one; else the leaf itself."""
    if isinstance(value, (Tensor, np.ndarray, np.generic)) or not (
        hasattr(value, "shape") and hasattr(value, "dtype")
    ):
        return value
    return meta_tensor(TensorSpec(tuple(value.shape), as_dtype(value.dtype), "meta"))


def as_tensor(value: Any) -> Any:
    """A tensor leaf as it is, an array leaf as a tensor on its memory."""
    if isinstance(value, Tensor):
        return value
    return converters[np.ndarray if isinstance(value, np.ndarray) else np.generic](value)

"""Contract: check that kernels registered by other packages follow their schema.

Tandem's own kernels are called directly. Kernels of other packages are called through a wrapper that converts Python
numbers passed for tensors to weak scalars, and rejects results that do not match the schema: an array in place of a
tensor would silently lose its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import KernelResultError
from .dispatch.keys import DispatchKey, from_bits
from .dtypes import DType
from .registration import Registration
from .schemas.binding import weak_scalar_types
from .schemas.schema import Schema, Type
from .values import SCALARS, TensorBase, TensorSpec, describe, traced_number_types

if TYPE_CHECKING:
    from .types import Args, Function, Kwargs

Normalize = Callable[[Any], Any]
_SEVERAL = (tuple, list)


class ResultError(Exception):
    """A result does not have the schema's type; the argument is the end of the error message."""


class Contract:
    """Checks of the arguments and results of kernels against one schema.

    Attributes:
        schema: the schema.
        tensors: number of results if all are plain tensors; -1 otherwise.
    """

    def __init__(self, schema: Schema):
        self.schema = schema
        plain = all(r.type.form == "base" and r.type.base == "Tensor" for r in schema.returns)
        self.tensors = len(schema.returns) if plain and not schema.varrets else -1
        self._tensor_arguments = tuple(
            (n, a.name) for n, a in enumerate(schema.positional) if a.type.core == "Tensor"
        )
        self._keywords = tuple(a.name for a in schema.arguments if a.kwarg_only and a.type.core == "Tensor")
        self._normalize = tuple(_make_normalizer(result.type) for result in schema.returns)

    # -- arguments -------------------------------------------------------------------------------------------------
    def with_tensors(self, args: Args, kwargs: Kwargs) -> tuple[tuple[object, ...], dict[str, object]]:
        """The arguments of a bound call with each Python number passed for a tensor converted to a weak scalar."""
        for index, _ in self._tensor_arguments:
            value = args[index]
            if type(value) in weak_scalar_types or type(value) is tuple:
                args = (*args[:index], _wrap_numbers(value), *args[index + 1 :])
        for name in self._keywords:
            if type(kwargs[name]) in weak_scalar_types or type(kwargs[name]) is tuple:
                kwargs = {**kwargs, name: _wrap_numbers(kwargs[name])}
        return args, kwargs

    # -- results ---------------------------------------------------------------------------------------------------
    def checked(self, result: object, who: str, specs: bool = False) -> object:
        """Check the results of a kernel and return them, lists as tuples.

        Native twin: backends/cpu/fastpath/entries/rt_kernels.py:check_result

        Args:
            result: what the kernel returned.
            who: the kernel, for the message.
            specs: whether a TensorSpec may take the place of a tensor, as in shape rules.

        Raises:
            KernelResultError: the results do not match the schema.
        """
        if self.tensors == 1 and isinstance(result, TensorBase):
            return result
        if self.schema.varrets:
            return result
        try:
            return self._results(result, specs)
        except ResultError as fault:
            raise KernelResultError(
                f"{self.schema.full_name}: {who} returned {_describe_result(result)}, "
                f"but the schema returns {self._wanted()}{fault}\n"
                f"  schema: {self.schema}"
            ) from None

    def _results(self, result: Any, specs: bool) -> object:
        count = len(self._normalize)
        if count == 1:
            return result if specs and isinstance(result, TensorSpec) else self._normalize[0](result)
        if count == 0:
            if result is not None:
                raise ResultError(": no result")
            return None
        if type(result) not in _SEVERAL or len(result) != count:
            raise ResultError(f": a tuple of {count} results")
        return tuple(
            [
                x if specs and isinstance(x, TensorSpec) else normalize(x)
                for normalize, x in zip(self._normalize, result)
            ]
        )

    def _wanted(self) -> str:
        return str(self.schema).rpartition(" -> ")[2]


def _wrap_numbers(value: object) -> object:
    if type(value) is tuple:
        return tuple([_wrap_numbers(item) for item in value])
    make = weak_scalar_types.get(type(value))
    return value if make is None else make(value)


def _describe_result(result: Any) -> str:
    if isinstance(result, np.ndarray):
        return f"an ndarray {result.dtype}{list(result.shape)}"
    if type(result) in _SEVERAL:
        return f"a {type(result).__name__} of {len(result)}: {describe(result)}"
    return describe(result)


# -- one normalizer per type -------------------------------------------------------------------------------------------
def _check_tensor(value: object) -> object:
    if isinstance(value, TensorBase):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        raise ResultError("; return td.asarray(array), or register the function as td.numpy_kernel(fn)")
    if value is None:
        raise ResultError("; the kernel must return its result")
    if type(value) in SCALARS:
        raise ResultError("; return td.asarray(number)")
    raise ResultError("")


def _make_number_check(kinds: tuple[type, ...], name: str) -> Normalize:
    def normalize(value: object) -> object:
        value = value.item() if isinstance(value, np.generic) else value
        kind = getattr(value, "python_type", None) if type(value) in traced_number_types else type(value)
        if kind in kinds:
            return value
        raise ResultError(f": a Python {name}")

    return normalize


def _make_instance_check(kind: type, name: str) -> Normalize:
    def normalize(value: object) -> object:
        if isinstance(value, kind):
            return value
        raise ResultError(f": {name}")

    return normalize


_NORMALIZERS: dict[str, Normalize] = {
    "Tensor": _check_tensor,
    "int": _make_number_check((int,), "int"),
    "SymInt": _make_number_check((int,), "int"),
    "float": _make_number_check((int, float), "float"),
    "bool": _make_number_check((bool,), "bool"),
    "SymBool": _make_number_check((bool,), "bool"),
    "complex": _make_number_check((int, float, complex), "complex"),
    "Scalar": _make_number_check(SCALARS, "number"),
    "str": _make_instance_check(str, "a str"),
    "ScalarType": _make_instance_check(DType, "a dtype"),
}


def _make_normalizer(kind: Type) -> Normalize:
    if kind.form == "base" or kind.element is None:
        return _NORMALIZERS.get(kind.base, lambda value: value)
    inner = _make_normalizer(kind.element)
    if kind.form == "optional":
        return lambda value: None if value is None else inner(value)

    def several(value: Any) -> object:
        if type(value) not in _SEVERAL or kind.size not in (None, len(value)):
            size = "" if kind.size is None else f" of {kind.size}"
            raise ResultError(f": a list{size} of {kind.core}")
        return tuple([inner(item) for item in value])

    return several


# -- kernels -----------------------------------------------------------------------------------------------------------
def is_checked(registration: Registration) -> bool:
    """Whether the arguments and results of a kernel are checked against the schema."""
    return not (registration.is_trusted or getattr(registration.fn, "is_trusted_kernel", False))


def enforce_schema(registration: Registration, contract: Contract) -> None:
    """Make the dispatcher check the calls of a kernel that another package registered for one operator."""
    if not is_checked(registration):
        return
    call = _wrap_boxed(registration) if registration.boxed or registration.with_keyset else None
    registration.call = (_wrap_unboxed(registration, contract), False) if call is None else (call, True)


def describe_kernel(registration: Registration) -> str:
    """The description of a kernel in error messages."""
    return f"its kernel {registration.name} [{registration.key_name}] ({registration.origin})"


def _wrap_unboxed(registration: Registration, contract: Contract) -> Function:
    fn, specs = registration.fn, registration.key == DispatchKey.Meta
    one_tensor, makers = contract.tensors == 1, weak_scalar_types

    def kernel(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) in makers or type(value) is tuple:
                args, kwargs = contract.with_tensors(args, kwargs)
                break
        else:
            if kwargs:
                args, kwargs = contract.with_tensors(args, kwargs)
        result = fn(*args, **kwargs)
        if one_tensor and isinstance(result, TensorBase):
            return result
        return contract.checked(result, describe_kernel(registration), specs)

    _copy_name(kernel, fn, registration.name)
    return kernel


def _wrap_boxed(registration: Registration) -> Function:
    """Wrap a boxed kernel, or one that takes the key set, so that it receives a DispatchKeySet."""
    fn, boxed, specs = registration.fn, registration.boxed, registration.key == DispatchKey.Meta

    def kernel(op: Any, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        contract: Contract = op.contract
        args, kwargs = contract.with_tensors(args, kwargs)
        keyset = from_bits(bits)
        value = fn(op, keyset, args, kwargs) if boxed else fn(keyset, *args, **kwargs)
        return contract.checked(value, describe_kernel(registration), specs)

    _copy_name(kernel, fn, registration.name)
    return kernel


def enforce_fallback_schema(registration: Registration) -> None:
    """Make the dispatcher check the calls of a fallback that another package registered."""
    if not registration.is_trusted:
        registration.call = _wrap_boxed(registration), True


def _copy_name(kernel: Any, fn: Any, name: str) -> None:
    kernel.__qualname__, kernel.__wrapped__ = name, fn

"""Weak scalars: results of operators whose tensor arguments are all Python numbers.

``td.sqrt(2 / math.pi)`` is a 0-d tensor of the default dtype that also stores a Python number, computed in double
precision. In operators with other tensors it acts as that number: it takes their dtype, so that no precision is lost
with float64 and no tensor is widened with float16. It is immutable. Its dispatch key WeakScalar is above all others;
the kernel of the key passes numbers to the keys below.

Source: weakly typed arrays of JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ...operators.declare.declaration import LIBRARY, Declaration
from ...operators.declare.quiet import call_quietly
from ...operators.declare.shape_rules import common_dtype, compute_dtype, operand_dtypes
from ...registry.dispatch.keys import CPU_KEYS, WEAK_KEYS, DispatchKey
from ...registry.dispatch.state import current_keys, set_keys
from ...registry.dtypes import (
    DType,
    bool_,
    complex128,
    default_complex,
    default_float,
    float64,
    int64,
    promote_scalar,
    scalar_dtype,
)
from ...registry.operator import Operator
from ...registry.schemas import binding
from ...registry.schemas.schema import Argument
from ...registry.values import SCALARS, traced_number_types
from .dunders import by_name
from .storage import Number
from .tensor import Tensor, wrap

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs
    from ...registry.types import Number as Scalar

WEAK = binding.WEAK
TRACER = 1 << DispatchKey.Tracer
DTYPES = {bool: bool_, int: int64, float: float64, complex: complex128}


def widest(dtype: DType) -> DType:
    """The widest dtype of the kind of a float or complex dtype; another dtype unchanged."""
    return float64 if dtype.is_floating else complex128 if dtype.is_complex else dtype


def shown(dtype: DType) -> DType:
    """The dtype as which a number that was computed in ``dtype`` shows: the default one of its kind."""
    return default_float() if dtype is float64 else default_complex() if dtype is complex128 else dtype


# Kinds of operators whose results depend on the values of their tensors alone.
_KINDS = frozenset(
    "unary binary comparison ternary special reduction scan view copy cast join gather contraction composite "
    "collective".split()
)
# Kinds whose argument ``dtype`` is the dtype to which the result is cast.
_CASTING = frozenset(("cast", "reduction", "scan", "composite"))


class Traced:
    """Hooks of the tracer: weak scalars whose value is known only at run time.

    Attributes:
        types: the tensor classes of such scalars.
        python_type: the type of the number that such a scalar represents.
        widen: converts one, or a traced Python number, to a tensor of a dtype.
        strengthen: casts one to the dtype that the number takes with tensors of a dtype.
        weaken: converts a traced tensor to a weak scalar; None if the tensor is not traced.
    """

    types: tuple[type, ...] = ()
    python_type: Callable[[object], type]
    widen: Callable[[object, DType], Tensor]
    strengthen: Callable[[Any, DType | None], Tensor]
    weaken: Callable[[Tensor], Tensor | None] = lambda tensor: None


def weak_scalar(value: Number) -> Tensor:
    """A weak scalar.

    Args:
        value: a Python number; an int has to fit int64.

    Native twin: backends/cpu/fastpath/runtime/rt_numbers.py:make_weak
    """
    array = call_quietly(np.asarray, value, scalar_dtype(value).np)
    array.flags.writeable = False
    tensor = wrap(array)
    tensor._keys, tensor._storage = WEAK_KEYS, Number(array, value)
    return tensor


def is_weak(value: object) -> TypeGuard[Tensor]:
    """Whether a value is a weak scalar, traced or not."""
    return isinstance(value, Tensor) and bool(value._keys & WEAK)


def number_of(value: object) -> Any:
    """The Python number of a weak scalar; any other value unchanged."""
    return value._storage.value if type(value) is Tensor and type(value._storage) is Number else value


def strengthen(value: Any) -> Any:
    """Convert a weak scalar to an ordinary tensor of its dtype; return any other value unchanged."""
    if not is_weak(value):
        return value
    return Traced.strengthen(value, None) if type(value) in Traced.types else wrap(value._array.copy())


# -- the kernel --------------------------------------------------------------------------------------------------------
def weak_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Compute functions of numbers in double precision, pass numbers to other operators; the fallback of WeakScalar."""
    known = _known_dtypes.get((op, *_types(args))) if keyset == WEAK_KEYS else None
    if known is not None:
        return _weaken_results(op.dispatch(CPU_KEYS, _tensors_in(known, args), kwargs))
    if op.schema.is_mutable:  # binding raises for a weak scalar that would be written
        named = {argument.name: value for argument, value in zip(op.binder.positional, args)}
        args, kwargs = op.binder.bind((), {**named, **kwargs})
    operands = _tensor_values(op, args, kwargs)
    strong = [value for value in operands if isinstance(value, Tensor) and not is_weak(value)]
    if not strong and is_function(op, args, kwargs):
        return _compute_in_double(op, keyset & ~WEAK, args, kwargs, operands)
    dtype, takes_positions = common_dtype(strong) or _given_dtype(args, kwargs), _takes_positions(op)
    args, kwargs = _map_tensor_arguments(
        op, args, kwargs, lambda value, _: _replace_weak_scalar(value, dtype, takes_positions)
    )
    if not strong:
        args, kwargs = op.binder.bind(args, kwargs)
        args, kwargs = _map_tensor_arguments(op, args, kwargs, lambda value, _: strengthen(value))
    return op.dispatch(keyset & ~WEAK, args, kwargs)


def _tensor_values(op: Operator, args: Args, kwargs: Kwargs) -> list[object]:
    """The values of the tensor arguments, with lists flattened."""
    binder = op.binder
    values = [args[index] for index, _ in binder.tensor_positions]
    values += [kwargs[name] for name in binder.tensor_keywords]
    flat = [item for value in values for item in (value if type(value) is tuple else (value,))]
    return [value for value in flat if value is not None]


def _map_tensor_arguments(
    op: Operator, args: Args, kwargs: Kwargs, change: Callable[[object, Argument], object]
) -> tuple[Args, Kwargs]:
    """Map a function over the values of the tensor arguments of a call."""

    def visit(value: object, argument: Argument) -> object:
        if value is None:
            return None
        return (
            tuple([visit(item, argument) for item in value])
            if type(value) is tuple
            else change(value, argument)
        )

    binder, current = op.binder, list(args)
    for index, _ in binder.tensor_positions:
        current[index] = visit(args[index], binder.positional[index])
    named = {name: visit(kwargs[name], binder.argument(name)) for name in binder.tensor_keywords}
    return tuple(current), {**kwargs, **named}


def strengthen_to(value: Tensor, dtype: DType | None) -> Tensor:
    """Convert a weak scalar to an ordinary tensor of the dtype that its number takes with tensors of `dtype`."""
    number = number_of(value)
    return strengthen(value) if dtype is None else wrap(np.asarray(number, promote_scalar(dtype, number).np))


def _takes_positions(op: Operator) -> bool:
    """Whether an operator takes positions, which have dtypes of their own."""
    return isinstance(op.decl, Declaration) and op.decl.kind in ("gather", "scatter")


def _replace_weak_scalar(value: object, dtype: DType | None, takes_positions: bool = False) -> object:
    """Convert a weak scalar to a number, or a traced one to a tensor, for the keys below."""
    if type(value) in Traced.types:
        is_position = takes_positions and Traced.python_type(value) is int
        return Traced.strengthen(value, None if is_position else dtype)
    return number_of(value)


def replace_weak_scalars(op: Operator, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """Replace weak scalars among the arguments by numbers, for a kernel that is called directly."""
    operands = _tensor_values(op, args, kwargs)
    if not any(map(is_weak, operands)):
        return args, kwargs
    dtype = common_dtype([value for value in operands if isinstance(value, Tensor) and not is_weak(value)])
    return _map_tensor_arguments(op, args, kwargs, lambda value, _: _replace_weak_scalar(value, dtype))


# -- functions of numbers ----------------------------------------------------------------------------------------------
def is_function(op: Operator, args: Args, kwargs: Kwargs) -> bool:
    """Whether a call computes a value from numbers, independent of the precision."""
    decl = op.decl
    if not isinstance(decl, Declaration) or decl.kind not in _KINDS or decl.effects or op.schema.is_mutable:
        return False
    if op.binder.device_argument is not None and not any(a.name == "dtype" for a in op.schema.positional):
        return False  # it creates a tensor; a cast takes the dtype by position
    return decl.kind in _CASTING or _given_dtype(args, kwargs) is None


def _given_dtype(args: Args, kwargs: Kwargs) -> DType | None:
    """The dtype argument of a call."""
    return next((value for value in (*args, *kwargs.values()) if isinstance(value, DType)), None)


def _type_of(value: object) -> type:
    if type(value) in Traced.types:
        return Traced.python_type(value)
    return getattr(value, "python_type", None) or type(number_of(value))


def _compute_in_double(
    op: Operator, keyset: int, args: Args, kwargs: Kwargs, operands: list[object]
) -> object:
    """The result of a call on numbers alone, computed in double precision: a weak scalar where it is 0-d."""
    traced = any(type(value) in Traced.types or type(value) in traced_number_types for value in operands)
    before = current_keys()
    try:
        if not traced:  # a constant
            keyset &= ~TRACER
            set_keys(before[0] & ~TRACER, before[1])
        result = op.dispatch(keyset, *_widen_numbers(op, args, kwargs))
        if (
            not _is_elementwise(op)
            and _has_rounded_integers(result)
            and any(_type_of(x) in (bool, int) for x in operands)
        ):
            wide = _map_tensor_arguments(op, args, kwargs, lambda value, _: _tensor_in_float(value))
            result = op.dispatch(keyset, *wide)
        result = _weaken_results(result) if _given_dtype(args, kwargs) is None else result
    finally:
        set_keys(*before)
    return result if traced or not before[0] & ~before[1] & TRACER else _trace_constants(result)


def _trace_constants(result: object) -> object:
    """Replace constants of a trace that have one value by calls of `full`, which compiled code need not capture."""
    if type(result) is tuple:
        return tuple([_trace_constants(item) for item in result])
    if type(result) is not Tensor or result._keys != CPU_KEYS or not result._array.size:
        return result
    first = result._array.ravel()[:1]
    if result._array.size > 1 and first.tobytes() * result._array.size != result._array.tobytes():
        return result
    return by_name("full")(result.shape, first.item(), dtype=result.dtype)


def _has_rounded_integers(result: object) -> bool:
    """Whether integers were converted to the default float dtypes, and these round them."""
    items = result if type(result) is tuple else (result,)
    return any(isinstance(item, Tensor) and widest(item.dtype) is not item.dtype for item in items)


def _is_elementwise(op: Operator) -> bool:
    return isinstance(op.decl, Declaration) and op.decl.is_elementwise


# (operator, types of the numbers) -> the dtypes of the tensors that hold them
_known_dtypes: dict[tuple[Operator | type, ...], tuple[DType, ...]] = {}


def _widen_numbers(op: Operator, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """Replace each number by a tensor of the widest dtype of the kind in which the operator computes."""
    if not _is_elementwise(op):
        return _map_tensor_arguments(
            op, args, kwargs, lambda value, _: _tensor_in(DTYPES[_type_of(value)], value)
        )
    decl, name = op.decl, op.schema.name
    numbers = [_representative(value) for value in args]
    decl.shape_rule(*numbers)  # raises for arguments that the operator does not accept
    computed = compute_dtype(name, decl.result, decl.dtypes, numbers)
    dtypes = tuple([widest(d) for d in operand_dtypes(decl, computed, len(args))])
    kinds = _types(args)
    if all(kind in (float, complex) for kind in kinds):  # the rules look at the values of integers
        _known_dtypes[op, *kinds] = dtypes
    return _tensors_in(dtypes, args), kwargs


def _types(args: Args) -> list[type]:
    return [type(number_of(value)) for value in args]


def _tensors_in(dtypes: tuple[DType, ...], args: Args) -> tuple[Tensor, ...]:
    return tuple([_tensor_in(dtype, value) for dtype, value in zip(dtypes, args, strict=True)])


def _representative(value: object) -> Scalar:
    result: Scalar = _type_of(value)() if type(value) in Traced.types else number_of(value)
    return result


def _tensor_in(dtype: DType, value: object) -> Tensor:
    """A 0-d tensor of a number in a dtype."""
    if type(value) in Traced.types or type(value) in traced_number_types:
        return Traced.widen(value, dtype)
    number = number_of(value)
    if dtype.is_inexact and type(number) is int:
        number = call_quietly(_as_float, number)
    return wrap(call_quietly(np.asarray, number, dtype.np))


def _tensor_in_float(value: object) -> Tensor:
    """A 0-d tensor of a number in double precision: of an integer in float64."""
    dtype = DTYPES[_type_of(value)]
    return _tensor_in(dtype if dtype.is_inexact else float64, value)


def _as_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _weaken_results(result: object) -> object:
    """Results computed in double precision: weak scalars where they are 0-d, else of the default dtypes."""
    if type(result) is tuple:
        return tuple([_weaken_results(item) for item in result])
    if not isinstance(result, Tensor):
        return result
    if result.shape == () and result.dtype in (bool_, int64, float64, complex128):
        if type(result) is Tensor and result._keys == CPU_KEYS:
            return weak_scalar(result._array.item())
        traced = Traced.weaken(result)
        if traced is not None:
            return traced
    wanted = shown(result.dtype)
    return result if wanted is result.dtype else by_name("astype")(result, wanted)


binding.weak_scalar_types.update(dict.fromkeys(SCALARS, weak_scalar))
binding.weak_scalar_resolvers.append(replace_weak_scalars)
LIBRARY.fallback(weak_kernel, DispatchKey.WeakScalar)

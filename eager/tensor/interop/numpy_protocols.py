"""NumPy's functions and ufuncs of tensors: ``np.mean(x)`` runs ``tandem.numpy.mean(x)`` and returns a tensor.

``np.add(x, y)`` calls ``x.__array_ufunc__``, and ``np.mean(x)`` calls ``x.__array_function__``. Both are answered by
the function of the same name in ``tandem.numpy``, ``td.linalg``, ``td.fft`` or ``td.special``, so that calls are traced
and differentiated. NumPy computes the functions that tandem lacks, and the calls with arguments that tandem lacks, on
the host; the arrays in their results become tensors. A traced or differentiated tensor raises an error there.

Source: NEP 13 (``__array_ufunc__``) and NEP 18 (``__array_function__``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import lazy
from ....errors import ArgumentError, DTypeError, ShapeError, TracerError
from ....operators.declare.aliases import ALIASES
from ....registry.dtype_functions import can_cast
from ....registry.dtypes import DType, as_dtype
from ..construct import asarray
from ..dunders import by_name, is_operand
from ..tensor import Tensor, from_numpy_scalar

if TYPE_CHECKING:
    from ....registry.types import Args, Function, Kwargs

_numpy = lazy.Module(".numpy")
_writing = lazy.Module(".numpy.writing")
_linalg = lazy.Module(".numpy.linalg")
_fft = lazy.Module(".numpy.fft")
_stride_tricks = lazy.Module(".numpy.lib.stride_tricks")
_special = lazy.Module(".special")

# Functions of shapes and dtypes, which need no data.
_OF_SPECS = frozenset(
    (np.shape, np.ndim, np.size, np.result_type, np.common_type, np.iscomplexobj, np.isrealobj)
)
# Of these, the members of Tensor that return the same.
_READERS = {np.shape: "shape", np.ndim: "ndim", np.size: "numel"}
# Arguments that do not change values.
_HINTS = frozenset("assume_unique kind optimize overwrite_input subok".split())
_WRITERS = frozenset("copyto fill_diagonal place put put_along_axis putmask".split())
_REDUCTIONS = {
    "add": "sum",
    "logaddexp": "logsumexp",
    "logical_and": "all",
    "logical_or": "any",
    "maximum": "max",
    "minimum": "min",
    "multiply": "prod",
}
_PLAIN_TYPES = frozenset((Tensor, bool, int, float, complex))
_SCANS = {"add": "cumsum", "multiply": "cumprod"}
_UPDATES = {
    "add": "add",
    "divide": "divide",
    "maximum": "max",
    "minimum": "min",
    "multiply": "multiply",
    "subtract": "subtract",
}

# What has been found for functions of NumPy; native code calls those here.
known_ufuncs: dict[object, Function] = {}
known_functions: dict[object, Function] = {}


# -- ufuncs ------------------------------------------------------------------------------------------------------------
def apply_ufunc(ufunc: np.ufunc, method: str, inputs: Args, options: Kwargs) -> object:
    """Run a ufunc, or a method of it such as ``reduce``, with at least one tensor among its arguments.

    Raises:
        DTypeError: a result or an input cannot be cast as ``out`` or ``dtype`` ask.
        ShapeError: a result does not have the shape of ``out``.

    Native twin: backends/cpu/fastpath/entries/rt_protocols.py:array_ufunc
    """
    function = find_operator(ufunc)
    if function is not None:
        known_ufuncs[ufunc] = function
    if method == "__call__" and not options and function is not None and _are_plain(inputs):
        return function(*inputs)
    run = _UFUNC_METHODS.get(method)
    if run is not None and function is not None:
        result = run(ufunc, function, *inputs, **options)
        if result is not NotImplemented:
            return result
    if method == "at" and isinstance(inputs[0], Tensor):
        raise DTypeError(f"np.{ufunc.__name__}.at cannot write into a tensor")
    return run_numpy(ufunc if method == "__call__" else getattr(ufunc, method), inputs, options)


def _are_plain(inputs: Args) -> bool:
    """Whether operators take all inputs unchanged: tensors and Python's numbers."""
    return _PLAIN_TYPES.issuperset(map(type, inputs))


@cache
def find_operator(ufunc: np.ufunc) -> Function | None:
    """The function of tandem that computes a ufunc of NumPy or SciPy; None if there is none."""
    name = ufunc.__name__
    if getattr(np, name, None) is not ufunc and name not in ("cbrt", "exp2", "expm1", "log1p"):
        return getattr(_special, name, None)
    try:
        return by_name(ALIASES.get(name, name))
    except KeyError:
        return None


def _call(
    ufunc: np.ufunc,
    function: Function,
    *inputs: object,
    out: object = None,
    where: object = True,
    dtype: object = None,
    casting: str = "same_kind",
    order: str = "K",
    subok: bool = True,
    **others: object,
) -> object:
    """``ufunc(*inputs, out=..., where=..., dtype=...)``."""
    if not all(map(is_operand, inputs)) or others.keys() - {"axis"} or order == "F":
        return NotImplemented
    if dtype is not None and not _yields_bool(ufunc):
        target = as_dtype(dtype)
        inputs = tuple(_cast_input(ufunc, value, target, casting) for value in inputs)
    result = function(*[from_numpy_scalar(x) if isinstance(x, np.generic) else x for x in inputs], **others)
    return _deliver(result, out, where, casting)


@cache
def _yields_bool(ufunc: np.ufunc) -> bool:
    return all(loop.endswith(("?", "O")) for loop in ufunc.types)


def _cast_input(ufunc: np.ufunc, value: object, dtype: DType, casting: str) -> object:
    """An input in the dtype in which the ufunc computes; Python's numbers take the dtype of the other inputs."""
    if type(value) in (bool, int, float, complex):
        return asarray(value, dtype)
    tensor = asarray(value)
    if casting != "unsafe" and not can_cast(tensor.dtype, dtype, casting):
        raise DTypeError(f"np.{ufunc.__name__}: cannot cast {tensor.dtype} to dtype={dtype} ({casting!r})")
    return tensor.astype(dtype)


def _deliver(result: Any, out: Any, where: Any, casting: Any) -> object:
    """Return a result, or write it into ``out`` where ``where`` is true and return ``out``."""
    if isinstance(result, tuple):
        outs = (None,) * len(result) if out is None else out
        return tuple(_deliver(one, target, where, casting) for one, target in zip(result, outs))
    target = out[0] if isinstance(out, tuple) else out
    if target is None:
        return result if where is True else _numpy.where(where, result, 0)
    if isinstance(target, np.ndarray):
        np.copyto(target, result.numpy(), casting=casting, where=to_arrays(where))
        return target
    if casting != "unsafe" and not can_cast(result.dtype, target.dtype, casting):
        raise DTypeError(f"the result is {result.dtype} and cannot be written into out of {target.dtype}")
    shape = np.broadcast_shapes(result.shape, np.shape(where))
    if shape != target.shape:
        raise ShapeError(f"the result has shape {shape}, and out has shape {target.shape}")
    target.copy_(result if where is True else _numpy.where(where, result, target))
    return target


def _reduce(
    ufunc: np.ufunc,
    function: Function,
    array: object,
    axis: object = 0,
    dtype: object = None,
    out: object = None,
    keepdims: bool = False,
    initial: object = None,
    where: object = True,
) -> object:
    """``ufunc.reduce(array, ...)``: the reduction of that name, along the first axis if none is given."""
    name = _REDUCTIONS.get(ufunc.__name__)
    if name is None:
        return NotImplemented
    given = {"dtype": dtype, "initial": initial, "where": None if where is True else where}
    options = {name: value for name, value in given.items() if value is not None and value is not np._NoValue}
    result = _call_or_refuse(getattr(_numpy, name), (array,), {"axis": axis, "keepdims": keepdims, **options})
    return result if result is NotImplemented else _deliver(result, out, True, "same_kind")


def _accumulate(
    ufunc: np.ufunc,
    function: Function,
    array: object,
    axis: int = 0,
    dtype: object = None,
    out: object = None,
) -> object:
    """``ufunc.accumulate(array, ...)``: a cumulative sum or product."""
    name = _SCANS.get(ufunc.__name__)
    if name is None:
        return NotImplemented
    result = getattr(_numpy, name)(array, axis=axis, dtype=dtype)
    return _deliver(result, out, True, "same_kind")


def _outer(ufunc: np.ufunc, function: Function, first: object, second: object, **options: Any) -> object:
    """``ufunc.outer(first, second)``: the ufunc of all pairs of elements."""
    x, y = asarray(first), asarray(second)
    return _call(ufunc, function, x.reshape((*x.shape, *(1,) * len(y.shape))), y, **options)


def _write_at(ufunc: np.ufunc, function: Function, x: object, index: Any, *values: object) -> object:
    """``ufunc.at(x, index, values)``: update elements in place, those that are indexed twice two times."""
    name = _UPDATES.get(ufunc.__name__)
    if name is None or not isinstance(x, Tensor):
        return NotImplemented
    x.copy_(getattr(x.at[index], name)(*values))
    return None


_UFUNC_METHODS: dict[str, Callable[..., object]] = {
    "__call__": _call,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "at": _write_at,
}


# -- functions ---------------------------------------------------------------------------------------------------------
def apply_function(function: Function, args: Args, kwargs: Kwargs) -> object:
    """Run a NumPy function with at least one tensor among its arguments.

    Native twin: backends/cpu/fastpath/entries/rt_protocols.py:array_function
    """
    if function in _OF_SPECS:
        if function in _READERS:
            member = getattr(Tensor, _READERS[function])
            known_functions[function] = getattr(member, "fget", member)
        return function(
            *map(_like_arrays, args), **{name: _like_arrays(value) for name, value in kwargs.items()}
        )
    options = kwargs and {n: value for n, value in kwargs.items() if not _is_default(function, n, value)}
    ours = find_function(function)
    if ours is not None:
        if function.__name__ not in _WRITERS:
            known_functions[function] = ours
        result = _call_or_refuse(ours, args, options)
        if result is not NotImplemented:
            return result
    return run_numpy(function, args, options)


@cache
def find_function(function: Function) -> Function | None:
    """The function of tandem for a NumPy function: that of its name in the namespace of its module."""
    name = function.__name__
    if function.__module__ == "numpy":
        return getattr(_writing if name in _WRITERS else _numpy, name, None)
    namespaces = {"numpy.linalg": _linalg, "numpy.fft": _fft, "numpy.lib.stride_tricks": _stride_tricks}
    return getattr(namespaces.get(function.__module__), name, None)


def _is_default(function: Function, name: str, value: object) -> bool:
    """Whether a keyword argument changes nothing: a default, a hint, or an order in memory that is not ``"F"``."""
    if value is np._NoValue or name in _HINTS or (name == "order" and value in ("K", "A", "C")):
        return True
    default = _defaults(function).get(name, inspect.Parameter.empty)
    return type(default) is type(value) and default == value


@cache
def _defaults(function: Function) -> dict[str, object]:
    """The defaults of a NumPy function; none of functions in C that do not tell them."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return {}
    return {name: parameter.default for name, parameter in parameters.items()}


def _convert_lists(function: Function, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments with tensors in place of lists of numbers, where the schema or the signature has a tensor."""
    kinds = _kinds_of_arguments(function)
    if kinds is None:
        return tuple(map(_convert_by_annotation, _annotations(function, len(args)), args)), kwargs
    if not kinds or not (_has_list(args) or _has_list(kwargs.values())):
        return args, kwargs
    given = [_convert_list(kind, value) for kind, value in zip(kinds.values(), args)]
    options = {name: _convert_list(kinds.get(name, ""), value) for name, value in kwargs.items()}
    return (*given, *args[len(given) :]), options


def _has_list(values: Iterable[object]) -> bool:
    return any(isinstance(value, (list, tuple)) for value in values)


@cache
def _kinds_of_arguments(function: Function) -> dict[str, str] | None:
    """For each argument of a function's operator ``"tensor"``, ``"tensors"`` or ``""``; empty if it has no operator.

    Returns:
        None of functions that accept arrays, whose annotations say which arguments are tensors.
    """
    if getattr(function, "accepts_arrays", False):
        return None
    wrapped = getattr(function, "__wrapped__", function)
    operator = getattr(function, "operator", None) or getattr(wrapped, "operator", None)
    if operator is None:
        return {}
    types = {argument.name: argument.type for argument in operator.schema.arguments}
    return {
        name: "" if kind.core != "Tensor" else "tensors" if kind.is_list else "tensor"
        for name, kind in types.items()
    }


@cache
def _annotations(function: Function, count: int) -> list[str]:
    """The annotations of the first ``count`` positional arguments of a call."""
    result: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        result += [parameter.annotation] * (count if parameter.kind is parameter.VAR_POSITIONAL else 1)
    return [*result, *[""] * count][:count]


def _convert_by_annotation(annotation: str, value: object) -> object:
    if annotation == "Tensor" and (value is None or isinstance(value, (str, bytes))):
        raise ArgumentError(f"a tensor cannot hold {value!r}")
    return _numpy.asarray(value) if annotation == "Tensor" and isinstance(value, (list, tuple)) else value


def _convert_list(kind: str, value: object) -> object:
    if not kind or not isinstance(value, (list, tuple)):
        return value
    if kind == "tensors":
        return [_numpy.asarray(item) if isinstance(item, (list, tuple)) else item for item in value]
    return _numpy.asarray(value)


def _call_or_refuse(function: Function, args: Args, kwargs: Kwargs) -> object:
    """Call a function of tandem; NotImplemented if it does not take these arguments."""
    try:
        given, options = _convert_lists(function, args, kwargs)
        return function(*given, **options)
    except ArgumentError as error:
        if type(error) is not ArgumentError:
            raise
    except TypeError as error:
        traceback = error.__traceback__
        if traceback is None or traceback.tb_next is not None:  # raised in the function
            raise
    return NotImplemented


def run_numpy(function: Function, args: Args, kwargs: Kwargs) -> object:
    """Run a NumPy function on the arrays of tensors; the arrays among its results become tensors.

    Raises:
        ConcretizationError: a tensor is traced.
        ArgumentError: a tensor requires a gradient.
    """
    out = kwargs.pop("out", None)
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if target is not None and not isinstance(target, Tensor):
        kwargs["out"] = to_arrays(out)
    try:
        given, options = to_arrays(args), {name: to_arrays(value) for name, value in kwargs.items()}
    except TracerError as error:
        error.add_note(f"tandem has no np.{function.__name__} with these arguments, and NumPy needs values")
        raise
    result = to_tensors(function(*given, **options))
    if isinstance(target, Tensor):
        return _deliver(result, target, True, "same_kind")
    return result if target is None else target


# -- conversion --------------------------------------------------------------------------------------------------------
def to_arrays(value: object) -> Any:
    """Convert tensors and dtypes, also in lists and tuples, to NumPy's."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, DType):
        return value.np
    return type(value)(map(to_arrays, value)) if type(value) is list or type(value) is tuple else value


def to_tensors(value: Any) -> Any:
    """Convert arrays and NumPy's numbers, also in lists and tuples, to tensors; arrays of text stay arrays."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(to_tensors, value))
    if type(value) is list or type(value) is tuple:
        return type(value)(map(to_tensors, value))
    is_array = isinstance(value, (np.ndarray, np.generic)) and _is_known(value.dtype)
    return asarray(value) if is_array else value


@cache
def _is_known(dtype: np.dtype[Any]) -> bool:
    try:
        as_dtype(dtype)
    except TypeError:
        return False
    return True


def _like_arrays(value: object) -> Any:
    """Convert tensors to arrays of the same shapes and dtypes without their data."""
    if isinstance(value, Tensor):
        return np.broadcast_to(np.empty((), value.dtype.np), value.shape)
    return type(value)(map(_like_arrays, value)) if type(value) is list or type(value) is tuple else value

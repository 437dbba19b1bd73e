"""Methods of elementwise functions, as NumPy's ufuncs have them: outer, reduce, accumulate, reduceat and at.

``td.add.outer`` and the like come from :func:`get_method`; :class:`ufunc` wraps a function of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..control.api import scan
from ..eager.tensor import copied_writes
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, ShapeError, UnsupportedError, ValueArgumentError
from ..operators.creation.creation import arange, full
from ..operators.declare.shape_rules import is_tensor, normalize_axes, normalize_axis, spec_of
from ..operators.elementwise.arithmetic import neg
from ..operators.elementwise.casting import astype
from ..operators.elementwise.selection import where as select
from ..operators.indexing.subscript import add_in_place
from ..operators.reductions import extrema, folds, scans
from ..operators.shape.joining import concat, stack
from ..operators.shape.rearrange import expand_dims, moveaxis
from ..operators.shape.splitting import slice_axis
from ..operators.shape.views import broadcast_to, reshape
from .numpy_maps import vectorize

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import DTypeLike, TensorLike

    Call = Callable[..., Any]

# operator: its reduction, the cumulative form or None, and the identity or None
_FOLDS: dict[str, tuple[Call, Call | None, object]] = {
    "add": (folds.sum, scans.cumsum, 0),
    "mul": (folds.prod, scans.cumprod, 1),
    "maximum": (folds.max, lambda x, axis: extrema.cummax(x, axis)[0], None),
    "minimum": (folds.min, lambda x, axis: extrema.cummin(x, axis)[0], None),
    "logical_and": (folds.all, None, True),
    "logical_or": (folds.any, None, False),
}
_WIDENING = ("add", "mul")  # without dtype, their reductions of small integers are those of 64 bits
_UPDATES = {"mul": "multiply", "div": "divide", "pow": "power", "maximum": "max", "minimum": "min"}
SMALL = 1 << 12  # elements of a tensor that is copied rather than updated at positions
METHODS = ("outer", "reduce", "accumulate", "reduceat", "at")


class ufunc:
    """A function of single elements, applied to the elements of tensors that broadcast.

    Args:
        func: a function of ``nin`` tensors without axes.
        nin: the number of arguments.
        nout: the number of results; more than one are a tuple.
        identity: the value with which a reduction of no elements ends; None: it raises.

    Raises:
        ArgumentError: ``func`` is not a function.
        ValueArgumentError: a number is not positive.

    >>> import tandem as td
    >>> larger = td.frompyfunc(lambda x, y: td.where(x > y, x, y), 2, 1)
    >>> larger(td.asarray([1, 5]), 3).tolist(), larger.reduce(td.asarray([1, 5])).item()
    ([3, 5], 5)

    Source: ``jax.numpy.ufunc``.
    """

    def __init__(self, func: Call, /, nin: int, nout: int = 1, *, identity: object = None) -> None:
        if not callable(func):
            raise ArgumentError(f"frompyfunc: needs a function, not {func!r}")
        if nin < 1 or nout < 1:
            raise ValueArgumentError(f"frompyfunc: nin and nout are positive, not {nin} and {nout}")
        self.nin, self.nout, self.identity = nin, nout, identity
        self.__name__ = getattr(func, "__name__", "ufunc")
        self._call = vectorize(func)

    @property
    def nargs(self) -> int:
        """The number of arguments and results."""
        return self.nin + self.nout

    def __call__(self, *args: Any) -> Any:
        """Apply the function to the elements."""
        if len(args) != self.nin:
            raise ArgumentError(f"{self.__name__}: takes {self.nin} arguments, not {len(args)}")
        return self._call(*args)

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"'ufunc' object has no attribute {name!r}")
        return _bind(name, "", self, self.nin, self.identity)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"


def frompyfunc(func: Call, /, nin: int, nout: int, *, identity: object = None) -> ufunc:
    """Make a :class:`ufunc` of a function of single elements.

    Args:
        func, nin, nout, identity: as for :class:`ufunc`.

    Returns:
        The ufunc; unlike NumPy's, it returns tensors of the function's dtype.

    Raises:
        ArgumentError: ``func`` is not a function.

    >>> import tandem as td
    >>> td.frompyfunc(lambda x, y: x * 10 + y, 2, 1).outer(td.arange(2), td.arange(2)).tolist()
    [[0, 1], [10, 11]]

    Source: ``jax.numpy.frompyfunc``.
    """
    return ufunc(func, nin, nout, identity=identity)


def get_method(function: OperatorFunction[Any], method: str) -> Call:
    """One of `METHODS` of an elementwise operator's function.

    Raises:
        AttributeError: the operator is not an elementwise one.
    """
    declaration, name = function.decl, function.operator.schema.name
    tensors = [one for one in function.operator.schema.arguments if one.type.base == "Tensor"]
    if declaration is None or not declaration.is_elementwise:
        raise AttributeError(f"td.{name} has no attribute {method!r}: only elementwise functions have it")
    return _bind(method, name, function, len(tensors), _FOLDS.get(name, (None, None, None))[2])


def _bind(method: str, name: str, call: Call, count: int, identity: object) -> Call:
    if count != 2 and not (count == 1 and method == "at"):
        raise AttributeError(f"{method} is a method of functions of two arguments")
    known: dict[str, Call] = {
        "outer": partial(outer, call),
        "reduce": partial(reduce, call, name, identity),
        "accumulate": partial(accumulate, call, name),
        "reduceat": partial(reduceat, call, name, identity),
        "at": partial(update_at, call, name),
    }
    return known[method]


# -- the methods -------------------------------------------------------------------------------------------------------
def outer(call: Call, A: Tensor, B: Tensor, /) -> Any:
    """The function of every pair of an element of ``A`` and one of ``B``; the axes of ``A`` come first."""
    if type(A) is type(B) is Tensor:
        return call(reshape(A, A.shape + (1,) * B.ndim), B)
    first, second = _tensor(A), _tensor(B)
    return call(reshape(first, first.shape + (1,) * len(second.shape)), second)


def reduce(
    call: Call,
    name: str,
    identity: object,
    a: Tensor,
    axis: int | Sequence[int] | None = 0,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    initial: object = None,
    where: TensorLike | None = None,
) -> Any:
    """The elements along axes combined from the first to the last.

    Raises:
        ValueArgumentError: there are no elements, and the function has no identity.
    """
    is_plain = all(option is None for option in (dtype, out, initial, where))
    if is_plain and type(a) is Tensor and name in _FOLDS:
        return _FOLDS[name][0](a, axis, keepdims=True) if keepdims else _FOLDS[name][0](a, axis)
    x = _with_dtype(a, dtype)
    options = {"dtype": dtype} if dtype is not None and name in _WIDENING else {}
    if where is not None and where is not True:
        filler = identity if initial is None else initial
        if name not in _FOLDS or filler is None:
            raise ValueArgumentError("reduce: where needs a function that has an identity, or initial")
        x = select(where, x, filler)
    if name in _FOLDS and (identity is not None or initial is None or spec_of(x).size):
        result = _FOLDS[name][0](
            x, axis if axis is None or isinstance(axis, int) else tuple(axis), keepdims=keepdims, **options
        )
        result = result if initial is None else call(result, initial)
    else:
        result = _fold(call, identity, x, axis, keepdims, initial)
    return _deliver(result, out)


def _fold(
    call: Call, identity: object, x: Tensor, axis: int | Sequence[int] | None, keepdims: bool, initial: object
) -> Any:
    """A reduction by a loop over the elements."""
    shape = spec_of(x).shape
    axes = normalize_axes("reduce", (axis,) if isinstance(axis, int) else axis, len(shape))
    kept = tuple(n for at, n in enumerate(shape) if at not in axes)
    x = moveaxis(x, tuple(axes), tuple(range(len(axes))))
    start = identity if initial is None else initial
    rows = reshape(x, (_product(shape, axes), *kept))
    if start is not None:
        first = full((1, *kept), start, dtype=spec_of(x).dtype, device=spec_of(x).device)
        rows = concat([first, rows]) if initial is not None or not spec_of(rows).shape[0] else rows
    count = spec_of(rows).shape[0]
    if not count:
        raise ValueArgumentError("reduce: there are no elements, and the function has no identity")
    result = rows[0]
    if count > 1:
        second = call(rows[0], rows[1])
        step = partial(_step, call)
        result = scan(step, second, slice_axis(rows, 0, 2, count))[0] if count > 2 else second
    return expand_dims(result, tuple(axes)) if keepdims else result


def _step(call: Call, carry: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
    value = astype(call(carry, row), carry.dtype)
    return value, value


def _product(shape: Sequence[int], axes: Sequence[int]) -> int:
    total = 1
    for axis in axes:
        total *= shape[axis]
    return total


def accumulate(
    call: Call, name: str, a: Tensor, axis: int = 0, dtype: DTypeLike | None = None, out: Tensor | None = None
) -> Any:
    """The results of ``reduce`` up to and including each element along an axis."""
    cumulative = _FOLDS.get(name, (None, None))[1]
    if cumulative is not None and dtype is None and out is None and type(a) is Tensor and type(axis) is int:
        return cumulative(a, axis)
    x = _with_dtype(a, dtype)
    along = normalize_axis("accumulate", axis, len(spec_of(x).shape))
    if cumulative is not None:
        options = {"dtype": dtype} if dtype is not None and name in _WIDENING else {}
        return _deliver(cumulative(x, along, **options), out)
    rows = moveaxis(x, along, 0)
    count = spec_of(rows).shape[0]
    if count > 1:
        second = call(rows[0], rows[1])
        rows = astype(rows, second.dtype)
        parts = [slice_axis(rows, 0, 0, 1), expand_dims(second, 0)]
        if count > 2:
            parts.append(scan(partial(_step, call), second, slice_axis(rows, 0, 2, count))[1])
        rows = concat(parts)
    return _deliver(moveaxis(rows, 0, along), out)


def reduceat(
    call: Call,
    name: str,
    identity: object,
    a: Tensor,
    indices: Sequence[int],
    axis: int = 0,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Any:
    """Reductions of the slices that begin at each index and end before the next; of one element if that is not larger.

    Raises:
        ValueArgumentError: an index is out of bounds, or there is none.
    """
    x = _with_dtype(a, dtype)
    along = normalize_axis("reduceat", axis, len(spec_of(x).shape))
    size, starts = spec_of(x).shape[along], [int(start) for start in indices]
    if not starts or any(not 0 <= start < size for start in starts):
        raise ValueArgumentError(f"reduceat: indices {starts} are not within an axis of length {size}")
    parts = []
    for start, stop in zip(starts, [*starts[1:], size]):
        part = slice_axis(x, along, start, max(stop, start + 1))
        parts.append(reduce(call, name, identity, part, along, dtype))
    return _deliver(stack(parts, along), out)


def update_at(
    call: Call,
    name: str,
    a: Tensor,
    indices: object,
    b: TensorLike | None = None,
    *,
    inplace: bool = True,
) -> Any:
    """Apply the function to the elements at indices, once for each time that an index occurs.

    Args:
        a: the tensor, which is written.
        indices: what ``a[indices]`` accepts.
        b: the second arguments, which broadcast to ``a[indices]``; None: of functions of one argument.
        inplace: False: ``a`` is not written, and the result is returned, as in JAX.
    """
    if name == "add" and b is not None and inplace and type(a) is Tensor and a.size <= SMALL:
        result = copied_writes.write_into_copy(a, indices, b, name)
        if result is not None:
            a[...] = result
            return None
    given = [] if b is None else [b if is_tensor(b) else asarray(b, spec_of(a).dtype)]
    if name in ("add", "sub"):
        added = given[0] if name == "add" else neg(given[0])
        if inplace:
            add_in_place(a, indices, added)
            return None
        return a.at[indices].add(added)
    if name in _UPDATES:
        result = getattr(a.at[indices], _UPDATES[name])(*given)
    else:
        result = _apply_at(call, a, indices, given)
    if not inplace:
        return result
    a[...] = result
    return None


def _apply_at(call: Call, a: Tensor, indices: object, given: list[Any]) -> Tensor:
    """The tensor after the function was applied at one position after the other."""
    spec = spec_of(a)
    positions = reshape(arange(spec.size, device=spec.device), spec.shape)[indices]
    count = spec_of(positions).size
    values = [reshape(broadcast_to(one, positions.shape), (count,)) for one in given]

    def step(flat: Tensor, item: tuple[Tensor, ...]) -> tuple[Tensor, None]:
        at, *others = item
        return flat.at[at].set(astype(call(flat[at], *others), spec.dtype)), None

    items = (reshape(positions, (count,)), *values)
    return reshape(scan(step, reshape(a, (spec.size,)), items)[0], spec.shape)


# -- arguments and results ---------------------------------------------------------------------------------------------
def _tensor(x: TensorLike) -> Tensor:
    return asarray(x) if not is_tensor(x) else x  # type: ignore[return-value]


def _with_dtype(a: TensorLike, dtype: DTypeLike | None) -> Tensor:
    x = _tensor(a)
    return x if dtype is None else astype(x, dtype)


def _deliver(result: Any, out: Tensor | None) -> Any:
    """The result, written into ``out`` if that is a tensor."""
    if out is None:
        return result
    if isinstance(out, tuple):
        out = out[0]
    if spec_of(out).shape != spec_of(result).shape:
        raise ShapeError(f"out has shape {spec_of(out).shape}, and the result {spec_of(result).shape}")
    if not hasattr(out, "copy_"):
        raise UnsupportedError("out is a tensor")
    return out.copy_(result)

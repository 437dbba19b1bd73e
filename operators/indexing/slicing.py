"""Basic indexing: ``basic_index``, a view by integers, slices and new axes, and ``basic_put``, its functional write.

The index of both operators is an index plan: a tuple with, for each axis of the tensor in order, an int (the axis is
removed) or ``(start, length, step)``, and ``None`` for each new axis between them. A plan is hashable, is valid for one
shape only, and determines the shape of the result. :mod:`.subscript` makes plans from subscripts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from ...registry.dtypes import ALL, check_range
from ...registry.values import TensorSpec
from ..creation.full import zeros
from ..declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis, expand_rank
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.derivatives import Linear, Rule
from ..declare.kinds import array_op, view
from ..declare.quiet import call_quietly
from ..declare.shape_rules import broadcast_shapes, spec_of
from ..declare.view_spec import Piece, PieceSpec, Sizes, ViewLayout
from ..shape.views import sum_to

if TYPE_CHECKING:
    from ...registry.dims import Dim
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Tensor

Plan = tuple[Any, ...]

_dims = lazy.Module(".registry.dims")


def check_plan(name: str, shape: Sizes, plan: Any) -> None:
    """Check that a plan fits a shape, so that kernels stay within the memory."""
    entries = [entry for entry in plan if entry is not None] if isinstance(plan, tuple) else None
    if entries is None or len(entries) != len(shape):
        raise ArgumentError(
            f"{name}: {plan!r} is not a plan for shape {shape}: write one int or (start, length, step) per axis"
        )
    for axis, (entry, size) in enumerate(zip(entries, shape)):
        if not _fits_axis(name, entry, size):
            raise OutOfBoundsError(f"{name}: {entry!r} is out of bounds for axis {axis} with size {size}")


def _fits_axis(name: str, entry: Any, size: Dim) -> bool:
    if type(entry) is int:
        return 0 <= entry < size
    if type(entry) is not tuple and _dims.is_symbolic(entry):
        return bool(0 <= entry < size)
    if not (
        type(entry) is tuple
        and len(entry) == 3
        and all(type(part) is int or _dims.is_symbolic(part) for part in entry)
    ):
        raise ArgumentError(f"{name}: {entry!r} is neither an int nor (start, length, step)")
    start, length, step = entry
    last = start + (length - 1) * step
    return bool(length == 0 or (length > 0 and step != 0 and 0 <= start < size and 0 <= last < size))


def plan_shape(plan: Plan) -> Sizes:
    """The shape of the view that a plan selects."""
    return tuple(1 if entry is None else entry[1] for entry in plan if entry is None or type(entry) is tuple)


def to_numpy_index(plan: Plan) -> tuple[int | slice | EllipsisType | None, ...]:
    """A plan as an index for NumPy; the ellipsis makes the result an array even if all axes are removed.

    Native twin: backends/cpu/fastpath/entries/rt_subscript.py:basic_index
    """
    return (
        *(entry if entry is None or type(entry) is int else _to_slice(*entry) for entry in plan),
        Ellipsis,
    )


def plan_strides(plan: Plan, strides: Sequence[Dim]) -> tuple[Sizes, Dim]:
    """The strides and the offset of the view that a plan selects from an array with ``strides``."""
    items: list[Dim] = []
    first: Dim = 0
    axis = 0
    for entry in plan:
        if entry is None:
            items.append(0)
            continue
        step = strides[axis]
        axis += 1
        if type(entry) is tuple:
            start, length, stride = entry
            first += start * step if length else 0
            items.append(stride * step)
        else:
            first += entry * step
    return tuple(items), first


def _to_slice(start: int, length: int, step: int) -> slice:
    if length == 0:
        return slice(0, 0)
    stop = start + length * step
    return slice(start, stop if stop >= 0 else None, step)


# -- reading -----------------------------------------------------------------------------------------------------------
def _read_shape_rule(self: TensorSpec, plan: Plan) -> TensorSpec:
    spec = spec_of(self)
    check_plan("basic_index", spec.shape, plan)
    return TensorSpec(plan_shape(plan), spec.dtype, spec.device)


def _batch_plan(plan: Plan, size: int) -> Plan:
    """The plan that applies ``plan`` to each example of a batch."""
    return (0, size, 1), *plan


def _read_batched(info: BatchInfo, in_dims: Dims, x: Tensor, plan: Plan) -> Batched:
    return info.call(x, _batch_plan(plan, info.batch_size)), 0


def _read_rule(x: ViewLayout, plan: Plan) -> ViewLayout:
    strides, first = plan_strides(plan, x.strides)
    sizes = plan_shape(plan)
    return ViewLayout(sizes, strides, x.offset + (0 if 0 in sizes else first))


basic_index = view(
    "basic_index(Tensor(a) self, Any plan) -> Tensor(a)",
    _read_rule,
    shape_rule=_read_shape_rule,
    kernel=lambda xp, self, plan: self[to_numpy_index(plan)],
    doc="""A view of the elements that a plan selects: what ``x[1, 2:8:3, None]`` becomes.

    Args:
        self: any tensor.
        plan: for each axis in order an int, or ``(start, length, step)``; ``None`` for each new axis between them.

    Returns:
        A view; an int removes its axis, a triple selects ``length`` elements, ``None`` adds an axis of length 1.

    Raises:
        OutOfBoundsError: the plan selects elements outside of the tensor.
        ArgumentError: the plan is not for this number of axes.

    >>> td.ops.td.basic_index(td.arange(5), ((4, 2, -2),)).tolist()
    [4, 2]
    """,
    reference="references.basic.basic_index",
    dtypes=ALL,
    derivative=Linear({"self": lambda g, plan, self_spec: put_into_zeros(g, plan, self_spec)}),
    batching=_read_batched,
    samples="samples.indexing.slicing_read_samples",
    errors="samples.indexing.slicing_read_errors",
    method=False,
)


# -- writing -----------------------------------------------------------------------------------------------------------
KIND_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""The kinds of dtypes, narrowest first; a value of a lower kind is stored in a higher one."""


def check_storable(
    name: str, into: TensorSpec, value: Any, shape: tuple[int, ...], combines: bool = True
) -> None:
    """Check that a value broadcasts to ``shape`` and can be stored in the dtype of the tensor.

    Assignments drop fractions, as those of NumPy and PyTorch do; what ``combines`` old elements and values does not.

    Raises:
        ShapeError: the value does not broadcast.
        DTypeError: storing it would drop an imaginary part, or a fraction of what is combined.
        ScalarOverflowError: a Python integer does not fit.
    """
    spec = spec_of(value)
    if broadcast_shapes(name, spec.shape, shape) != shape:
        raise ShapeError(
            f"{name}: a value of shape {spec.shape} does not broadcast to the selected shape {shape}"
        )
    drops_fraction = not combines and not spec.dtype.is_complex
    if KIND_RANKS[spec.dtype.kind] > KIND_RANKS[into.dtype.kind] and not drops_fraction:
        raise DTypeError(f"{name}: {spec.dtype} does not go into {into.dtype}; cast the value with astype")
    if type(value) is int and into.dtype.is_integer:
        check_range(into.dtype, value)


def combine_storable(combine: Callable[[Any, Any], Any], elements: Any, value: Any) -> Any:
    """Combine elements with values; raises DTypeError for a result that does not fit the dtype of the elements."""
    combined = combine(elements, value)
    check_storable("index_reduce", spec_of(elements), combined, elements.shape)
    return combined


def _write_shape_rule(self: TensorSpec, value: Any, plan: Plan, *, accumulate: bool = False) -> TensorSpec:
    spec = spec_of(self)
    check_plan("basic_put", spec.shape, plan)
    check_storable("basic_put", spec, value, plan_shape(plan), accumulate)
    return TensorSpec(spec.shape, spec.dtype, spec.device)


def _write_kernel(xp: ArrayModule, self: Array, value: Any, plan: Plan, *, accumulate: bool) -> Array:
    """Copy an array and store a value in the elements that a plan selects.

    Native twin: backends/cpu/fastpath/entries/rt_assign.py:put
    """
    out = xp.array(self)
    selected = out[to_numpy_index(plan)]  # a plan selects no element twice, so plain addition is right
    value = call_quietly(xp.asarray(value).astype, out.dtype)  # infinities have no integer
    selected[...] = selected + value if accumulate else value
    return out


def _write_batched(
    info: BatchInfo, in_dims: Dims, x: Tensor, value: Any, plan: Plan, *, accumulate: bool
) -> Batched:
    x = ensure_batch_axis(x, in_dims[0], info.batch_size)
    value = expand_rank(value, in_dims[1], len(plan_shape(plan)))
    return info.call(x, value, _batch_plan(plan, info.batch_size), accumulate=accumulate), 0


def _write_pieces(
    whole: ViewLayout, self: Any, value: Any, plan: Plan, *, accumulate: bool = False
) -> list[Piece]:
    """The pieces of a write: the tensor, then the selected elements."""
    return [Piece(whole, self), Piece(_read_rule(whole, plan), value, accumulate)]


basic_put: OperatorFunction[Tensor] = array_op(
    "scatter",
    "basic_put(Tensor self, Tensor value, Any plan, *, bool accumulate=False) -> Tensor",
    _write_shape_rule,
    _write_kernel,
    doc="""A copy of the tensor with the elements that a plan selects replaced, or added to.

    Args:
        self: any tensor.
        value: a tensor that broadcasts to the shape that the plan selects, or a number; cast to the dtype of ``self``.
        plan: as for ``basic_index``.
        accumulate: add instead of replacing.

    Returns:
        A new tensor of the shape and dtype of ``self``.

    Raises:
        OutOfBoundsError: the plan selects elements outside of the tensor.
        ShapeError: the value does not broadcast.
        DTypeError: the value's dtype is of a higher kind (a float into integers).

    >>> td.ops.td.basic_put(td.zeros(4), 1.0, ((0, 2, 2),)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """,
    reference="references.basic.basic_put",
    dtypes=ALL,
    derivative=Rule(
        vjp={
            "self": lambda g, plan, accumulate: g if accumulate else basic_put(g, 0, plan),
            "value": lambda g, plan, value_spec: sum_to(basic_index(g, plan), value_spec.shape),
        },
        jvp={
            "self": lambda t, plan, accumulate: t if accumulate else basic_put(t, 0, plan),
            "value": lambda t, plan, self_spec: put_into_zeros(t, plan, self_spec),
        },
    ),
    piece_spec=PieceSpec(_write_pieces, updates=True),
    batching=_write_batched,
    samples="samples.indexing.slicing_write_samples",
    errors=lambda: [
        ErrorInput((TensorSample((3,)), TensorSample((2,)), ((0, 3, 1),)), ValueError, "broadcast"),
        ErrorInput((TensorSample((3,)), 1, (3,)), IndexError, "out of bounds"),
        ErrorInput((TensorSample((3,)), 1j, (0,)), TypeError, "complex"),
    ],
    method=False,
)


def put_into_zeros(g: Tensor, plan: Plan, spec: TensorSpec) -> Tensor:
    """Zeros of a spec with ``g`` at the selection of a plan: the gradient of ``x[i]``, ``basic_index`` transposed."""
    where = {} if spec.device == "cpu" else {"device": spec.device}
    return basic_put(zeros(spec.shape, dtype=g.dtype, **where), g, plan)

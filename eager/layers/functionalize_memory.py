"""FunctionalTensor: tensors whose in-place writes replace a shared immutable value.

A :class:`FunctionalStorage` represents the memory that a tensor shares with its views; its value is a tensor that is
never written. A write through a view replaces the value by one with that part updated. A view stores the view operators
that derive it from the storage, and is recomputed after a write. Whether an operator returns a view or a copy is
decided by strides alone, on meta tensors.

Source: ``FunctionalTensorWrapper`` and ``FunctionalStorageImpl`` of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from ...errors import TandemError, UnsupportedError
from ...operators.declare.ownership import shares_memory
from ...operators.declare.view_spec import ViewLayout, row_major_strides
from ...registry.dispatch.keys import BACKENDS, DispatchKey
from ...registry.dtypes import DType
from ...registry.operator import Operator
from ...registry.values import Device, TensorSpec, describe
from ..autograd.view_writes import Step, put_part
from ..meta.tensor import MetaTensor, is_row_major, meta_tensor, meta_view
from ..meta.views import may_view, view_meta
from ..tensor.dunders import by_name
from ..tensor.storage import Storage
from ..tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from ...eager.layers.functionalize_kernel import Run
    from ...registry.types import Args, Array

FUNCTIONALIZE = 1 << DispatchKey.Functionalize
Call = Callable[..., Tensor]


class FunctionalStorage:
    """The memory that a tensor shares with its views.

    Attributes:
        value: the current elements: a tensor that is never written.
        strides: the strides that the memory would have if it were written; the axes of ``value`` have the same order.
        version: incremented when the value is replaced.
        written: whether anything was written.
        origin: the outer tensor whose memory it represents, or None.
        rivals: storages of other outer tensors whose memory overlaps with that of ``origin``.
    """

    __slots__ = ("origin", "overlapping", "strides", "value", "version", "written")

    def __init__(self, value: Tensor, strides: tuple[int, ...], origin: Any = None):
        self.value, self.strides, self.origin = value, strides, origin
        self.version, self.written = 0, False
        self.overlapping: list[FunctionalStorage] = []


class FunctionalTensor(Tensor):
    """A tensor inside :func:`tandem.functionalize`: a functional storage and the view operators applied to it."""

    __slots__ = (
        "_cached_value",
        "_cached_version",
        "_call",
        "_functional_storage",
        "_meta_view",
        "_path",
        "_run",
    )
    _functional_storage: FunctionalStorage
    _path: tuple[Step, ...]
    _meta_view: MetaTensor
    _run: Run
    _call: Call
    _cached_version: int
    _cached_value: Tensor

    @property
    def value(self) -> Tensor:
        """The current elements, as an outer tensor."""
        if self._cached_version != self._functional_storage.version:
            root = self._functional_storage.value
            part = follow(root, self._path, self._call)[-1]
            if self._path and self._run.copies and shares_memory(part, root):
                part = copy_with_strides(self._call, part, self._meta_view._strides)
            self._cached_value, self._cached_version = part, self._functional_storage.version
        return self._cached_value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._meta_view.shape

    @property
    def dtype(self) -> DType:
        return self._meta_view.dtype

    @property
    def device(self) -> Device:
        return self._cached_value.device

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.shape, self.dtype, self.device)

    @property
    def _strides(self) -> tuple[int, ...]:
        return self._meta_view._strides

    @property
    def storage_offset(self) -> int:
        return self._meta_view.storage_offset

    def is_contiguous(self) -> bool:
        return self._meta_view.is_contiguous()

    @property
    def requires_grad(self) -> bool:
        return self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        return self.value.is_leaf

    @property
    def _array(self) -> Any:
        return self.value._array

    def _host(self, what: str) -> Array:
        return self.value._host(what)

    def numpy(self) -> Array:
        array = self.value.numpy().view()
        array.flags.writeable = False  # a write would not be noticed
        return array

    def __bool__(self) -> bool:
        return bool(self.value)

    def _alias(self) -> FunctionalTensor:
        return view_of(self, self._meta_view._alias(), ())

    def _without_history(self) -> Tensor:
        return by_name("stop_gradient")(self)

    def backward(self, *args: object, **kwargs: object) -> None:
        """Not supported inside :func:`tandem.functionalize`.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            "backward() inside td.functionalize: call it on the result, outside, or use td.grad inside"
        )

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UnsupportedError("a tensor inside td.functionalize cannot be pickled; use x.clone() to copy it")

    def __copy__(self) -> Tensor:
        return by_name("clone")(self)

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        return by_name("clone")(self)

    def __repr__(self) -> str:
        return f"<functionalized {self.value!r}>"

    __str__ = __repr__


def _make_meta_view(value: Tensor) -> MetaTensor:
    """A meta tensor with the shape and strides of a tensor; row-major if the strides are unknown."""
    spec = value.spec
    try:
        strides = tuple(value._strides)
    except TandemError:  # a traced value
        strides = row_major_strides(spec.shape)
    whole = meta_tensor(TensorSpec(tuple(spec.shape), spec.dtype))
    return meta_view(
        whole, spec.dtype, whole.shape, strides if len(strides) == len(spec.shape) else whole._strides, 0
    )


def wrap_functional(run: Run, call: Call, value: Tensor, origin: Tensor | None = None) -> FunctionalTensor:
    """A functional tensor with a new storage.

    Args:
        run: the call of :func:`tandem.functionalize` that it belongs to.
        call: calls an operator outside the run.
        value: the elements.
        origin: the outer tensor that it represents.
    """
    storage = Storage(None)
    meta = _make_meta_view(value)
    return _new_functional_tensor(
        run, call, FunctionalStorage(value, meta._strides, origin), (), meta, storage, value
    )


def view_of(
    base: FunctionalTensor, meta: MetaTensor, steps: tuple[Step, ...], value: Tensor | None = None
) -> FunctionalTensor:
    """A view: another functional tensor on the storage of ``base``."""
    path = (*base._path, *steps)
    elements = base.value if value is None else value
    return _new_functional_tensor(
        base._run, base._call, base._functional_storage, path, meta, base._storage, elements
    )


def _new_functional_tensor(
    run: Run,
    call: Call,
    memory: FunctionalStorage,
    path: tuple[Step, ...],
    meta: MetaTensor,
    storage: Storage | None,
    value: Tensor,
) -> FunctionalTensor:
    tensor = FunctionalTensor.__new__(FunctionalTensor)
    tensor._run, tensor._call, tensor._functional_storage, tensor._path, tensor._meta_view = (
        run,
        call,
        memory,
        path,
        meta,
    )
    tensor._storage, tensor._meta, tensor._cached_value, tensor._cached_version = (
        storage,
        None,
        value,
        memory.version,
    )
    tensor._keys = FUNCTIONALIZE | value._keys & BACKENDS
    return tensor


# -- views -------------------------------------------------------------------------------------------------------------
def derive_meta_view(op: Operator, base: FunctionalTensor, spec: TensorSpec, args: Args) -> MetaTensor | None:
    """A meta tensor with the shape and strides of a view operator's result; None if the operator copies."""
    if not may_view(op):  # a user-defined operator without a rule
        return meta_tensor(spec)
    return view_meta(op, base._meta_view, spec.dtype, args, {})


def follow(root: Tensor, path: tuple[Step, ...], call: Call) -> list[Tensor]:
    """The value of a storage and the result of each view operator of a path."""
    values = [root]
    for step in path:
        values.append(call(step.op, (values[-1], *step.args), step.kwargs))
    return values


# -- layouts: strides decide between view and copy, so a new value keeps the strides of the written memory -------------
def copy_with_strides(call: Call, value: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy whose axes are ordered in memory as by ``strides``, without gaps; broadcast axes stay broadcast."""
    shape = tuple(value.shape)
    repeated = [step == 0 and size > 1 for step, size in zip(strides, shape)]
    if any(repeated):
        plan = tuple((0, 1 if again else size, 1) for again, size in zip(repeated, shape))
        value = call(by_name("basic_index").operator, (value, plan), {})
    order = _axes_in_memory(strides)
    permute, clone = by_name("permute").operator, by_name("clone").operator
    if order == tuple(range(len(order))):
        value = call(clone, (value,), {})
    else:
        value = call(clone, (call(permute, (value, order), {}),), {})
        value = call(permute, (value, tuple(map(order.index, range(len(order))))), {})
    return call(by_name("broadcast_to").operator, (value, shape), {}) if any(repeated) else value


def _match_strides(call: Call, value: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A new value of a storage, copied if its axes are not ordered as by ``strides``."""
    try:
        steps = value._strides
    except TandemError:  # a traced value has no strides
        return value
    order = _axes_in_memory(strides)
    shape = tuple(value.shape[axis] for axis in order)
    if is_row_major(shape, tuple(steps[axis] for axis in order)):
        return value
    return copy_with_strides(call, value, strides)


def _axes_in_memory(strides: tuple[int, ...]) -> tuple[int, ...]:
    """The axes by decreasing stride."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))


# -- writes ------------------------------------------------------------------------------------------------------------
def _invert_index(call: Call, whole: Tensor, new: Tensor, step: Step) -> Tensor:
    put: Operator = by_name("basic_put").operator
    return call(put, (whole, new, *step.args), {"accumulate": False})


def _invert_permute(call: Call, whole: Tensor, new: Tensor, step: Step) -> Tensor:
    rank = len(whole.shape)
    indices = [axis % rank for axis in step.args[0]]
    return call(step.op, (new, tuple(indices.index(axis) for axis in range(rank))), {})


def _invert_reshape(call: Call, whole: Tensor, new: Tensor, step: Step) -> Tensor:
    return call(by_name("reshape").operator, (new, tuple(whole.shape)), {})


def _invert_part(call: Call, whole: Tensor, new: Tensor, step: Step) -> Tensor:
    return put_part(lambda op, args: call(op, args, {}), whole, new, step.args[0])


def _invert_detach(call: Call, whole: Tensor, new: Tensor, step: Step) -> Tensor:
    if whole.requires_grad:
        raise UnsupportedError(
            f"a write through a detached view of {describe(whole)}, which requires a gradient: the history of what "
            "it was would be lost inside td.functionalize; write into the tensor itself inside td.no_grad(), or a copy"
        )
    return new


def _invert_rule(call: Call, whole: Tensor, new: Tensor, step: Step) -> Tensor:
    """The base with the elements that a view's rule addresses replaced."""
    shape = tuple(whole.shape)
    layout = step.op.decl.view(ViewLayout(shape, row_major_strides(shape)), *step.args, **step.kwargs)
    indices = np.full(layout.sizes, layout.offset)
    for axis, (size, stride) in enumerate(zip(layout.sizes, layout.strides, strict=True)):
        indices += stride * np.arange(size).reshape(-1, *[1] * (len(layout.sizes) - axis - 1))
    reshape, put = by_name("reshape").operator, by_name("index_put").operator
    flat, values = (call(reshape, (x, (-1,)), {}) for x in (whole, new))
    return call(
        reshape,
        (call(put, (flat, (wrap(indices.reshape(-1)),), values, 0), {"accumulate": False}), shape),
        {},
    )


# By view operator: a function that computes the new base from the new value of its view.
VIEW_INVERSES: dict[str, Callable[[Call, Tensor, Tensor, Step], Tensor]] = {
    "td::basic_index": _invert_index,
    "td::permute": _invert_permute,
    "td::reshape": _invert_reshape,
    "td::bitcast": lambda call, whole, new, step: call(step.op, (new, whole.dtype), {}),
    "td::view_part": _invert_part,
    "td::contiguous": lambda call, whole, new, step: new,
    "td::stop_gradient": _invert_detach,
}


def check_writable(name: str, target: FunctionalTensor) -> None:
    """Raise UnsupportedError for read-only and overlapping memory, and for views without an inverse."""
    axes = zip(target._strides, target.shape)
    broadcast = any(step.op.name == "td::broadcast_to" for step in target._path)
    if broadcast or (0 not in target.shape and any(stride == 0 and size > 1 for stride, size in axes)):
        raise UnsupportedError(
            f"{name}: the memory of {describe(target)} is read-only (a broadcast view); write into a copy: x.clone()"
        )
    unknown = [
        step.op.name
        for step in target._path
        if step.op.name not in VIEW_INVERSES and getattr(step.op.decl, "view", None) is None
    ]
    if unknown:
        raise UnsupportedError(
            f"{name}: td.functionalize cannot write through the view {unknown[0]}; write into a copy: x.clone()"
        )
    if target._functional_storage.overlapping:
        raise UnsupportedError(
            f"{name}: {describe(target)} is written, and another tensor that the function uses shares its "
            "memory; pass one of them, and take the other from it inside"
        )


def write(target: FunctionalTensor, value: Tensor) -> None:
    """Assign a new value to a tensor, and so to every view of the same storage."""
    memory = target._functional_storage
    wholes = follow(memory.value, target._path[:-1], target._call) if target._path else []
    for whole, step in zip(reversed(wholes), reversed(target._path)):
        value = VIEW_INVERSES.get(step.op.name, _invert_rule)(target._call, whole, value, step)
    memory.value = _match_strides(target._call, value, memory.strides)
    memory.version += 1
    memory.written = True
    target._storage.version += 1  # type: ignore[union-attr]

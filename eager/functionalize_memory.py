"""Tensors that are written without writing: memories as values that are replaced, and views as ways to look at them.

A :class:`Memory` stands for what tensors and their views share; its value is a tensor that nobody writes. A write
through a view replaces the value by one with that part put in. A view is how it follows from the memory, and is taken
again after a write. What is a view and what a copy is decided by strides alone, on tensors without data.

Source: ``FunctionalTensorWrapper`` and ``FunctionalStorageImpl`` of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TandemError, UnsupportedError
from ..registry.dtypes import DType
from ..registry.keys import BACKENDS, DispatchKey
from ..registry.operator import Operator
from ..registry.values import TensorSpec, describe
from .dunders import by_name
from .meta_tensor import MetaTensor, lies_in_order, meta_tensor, meta_view, row_major
from .meta_views import VIEWS
from .storage import Storage
from .tensor import Tensor
from .views import Step, shares

FUNCTIONALIZE = 1 << DispatchKey.Functionalize
Call = Callable[..., Any]


class Memory:
    """What a tensor and its views share.

    Attributes:
        value: the elements now: a tensor that is never written.
        strides: of the memory as it would be if it were written; the axes of ``value`` lie in the same order.
        version: rises when the value is replaced.
        written: whether anything was written.
        origin: the tensor from outside whose memory it stands for, or None.
        rivals: memories of other tensors from outside that overlap with it.
    """

    __slots__ = ("origin", "rivals", "strides", "value", "version", "written")

    def __init__(self, value: Any, strides: tuple[int, ...], origin: Any = None):
        self.value, self.strides, self.origin = value, strides, origin
        self.version, self.written = 0, False
        self.rivals: list[Memory] = []


class FunctionalTensor(Tensor):
    """A tensor inside :func:`tandem.functionalize`: a memory, and how the tensor follows from it."""

    __slots__ = ("_call", "_memory", "_outline", "_path", "_run", "_seen", "_taken")
    _memory: Memory
    _path: tuple[Step, ...]
    _outline: MetaTensor
    _run: Any
    _call: Call
    _seen: int
    _taken: Any

    @property
    def value(self) -> Any:
        """The elements now, as a tensor of the world outside."""
        if self._seen != self._memory.version:
            root = self._memory.value
            taken = follow(root, self._path, self._call)[-1]
            if self._path and self._run.copies and shares(taken, root):
                taken = copied(self._call, taken, self._outline.strides)
            self._taken, self._seen = taken, self._memory.version
        return self._taken

    @property
    def shape(self) -> tuple[int, ...]:
        return self._outline.shape

    @property
    def dtype(self) -> DType:
        return self._outline.dtype

    @property
    def device(self) -> str:
        return self._taken.device  # type: ignore[no-any-return]

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.shape, self.dtype, self.device)

    @property
    def strides(self) -> tuple[int, ...]:
        return self._outline.strides

    @property
    def storage_offset(self) -> int:
        return self._outline.storage_offset

    def is_contiguous(self) -> bool:
        return self._outline.is_contiguous()

    @property
    def requires_grad(self) -> bool:
        return self.value.requires_grad  # type: ignore[no-any-return]

    @property
    def is_leaf(self) -> bool:
        return self.value.is_leaf  # type: ignore[no-any-return]

    @property
    def _array(self) -> Any:
        return self.value._array

    def _host(self, what: str) -> Any:
        return self.value._host(what)

    def numpy(self) -> Any:
        array = self.value.numpy().view()
        array.flags.writeable = False  # the write would not be seen
        return array

    def __bool__(self) -> bool:
        return bool(self.value)

    def _alias(self) -> Any:
        return view_of(self, self._outline._alias(), ())

    def _without_history(self) -> Any:
        return by_name("stop_gradient")(self)

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Not here: the gradient would be one of the functionalized world.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            "backward() inside td.functionalize: call it on the result, outside, or use td.grad inside"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UnsupportedError("a tensor inside td.functionalize cannot be pickled; use x.clone() to copy it")

    def __copy__(self) -> Any:
        return by_name("clone")(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return by_name("clone")(self)

    def __repr__(self) -> str:
        return f"<functionalized {self.value!r}>"

    __str__ = __repr__


def _outline_of(value: Any) -> MetaTensor:
    """Shape and strides of a tensor, without its elements; row-major where it has no strides to tell."""
    spec = value.spec
    try:
        strides = tuple(value.strides)
    except TandemError:  # a traced value
        strides = row_major(spec.shape)
    made = meta_tensor(TensorSpec(tuple(spec.shape), spec.dtype))
    return meta_view(made, made.shape, strides if len(strides) == len(spec.shape) else made.strides, 0)


def wrap_functional(run: Any, call: Call, value: Any, origin: Any = None) -> FunctionalTensor:
    """A tensor on a memory of its own.

    Args:
        run: the call of :func:`tandem.functionalize` that it belongs to.
        call: calls an operator outside of it.
        value: the elements.
        origin: the tensor from outside that it stands for.
    """
    storage = Storage(None)
    outline = _outline_of(value)
    return _made(run, call, Memory(value, outline.strides, origin), (), outline, storage, value)


def view_of(base: FunctionalTensor, outline: MetaTensor, steps: tuple[Step, ...], value: Any = None) -> Any:
    """A view: another tensor on the memory of ``base``."""
    path = (*base._path, *steps)
    taken = base.value if value is None else value
    return _made(base._run, base._call, base._memory, path, outline, base._storage, taken)


def _made(
    run: Any,
    call: Call,
    memory: Memory,
    path: tuple[Step, ...],
    outline: MetaTensor,
    storage: Any,
    value: Any,
) -> FunctionalTensor:
    made = FunctionalTensor.__new__(FunctionalTensor)
    made._run, made._call, made._memory, made._path, made._outline = run, call, memory, path, outline
    made._storage, made._meta, made._taken, made._seen = storage, None, value, memory.version
    made._keys = FUNCTIONALIZE | value._keys & BACKENDS
    return made


# -- views -------------------------------------------------------------------------------------------------------------
def outline_of_view(op: Operator, base: FunctionalTensor, spec: TensorSpec, args: tuple[Any, ...]) -> Any:
    """Shape and strides of what a view operator gives; None if it copies."""
    rule = VIEWS.get(op.name)
    if rule is None:  # from outside: it says that it is a view
        return meta_tensor(spec)
    return rule(base._outline, spec._replace(device="meta"), *args)


def follow(root: Any, path: tuple[Step, ...], call: Call) -> list[Any]:
    """A memory's value and what each step of a path makes of it."""
    values = [root]
    for step in path:
        values.append(call(step.op, (values[-1], *step.args), step.kwargs))
    return values


# -- layouts: what is a view follows from strides, so a new value lies in memory as the written one would --------------
def copied(call: Call, value: Any, strides: tuple[int, ...]) -> Any:
    """A copy whose axes lie in memory in the order of ``strides``, without gaps; broadcast axes stay broadcast."""
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


def _laid_out(call: Call, value: Any, strides: tuple[int, ...]) -> Any:
    """A new value of a memory, its axes in the order of ``strides``."""
    try:
        steps = value.strides
    except TandemError:  # a traced value lies nowhere
        return value
    order = _axes_in_memory(strides)
    shape = tuple(value.shape[axis] for axis in order)
    if lies_in_order(shape, tuple(steps[axis] for axis in order)):
        return value
    return copied(call, value, strides)


def _axes_in_memory(strides: tuple[int, ...]) -> tuple[int, ...]:
    """The axes, from the one with the largest steps to the innermost."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))


# -- writes ------------------------------------------------------------------------------------------------------------
def _put_index(call: Call, whole: Any, new: Any, step: Step) -> Any:
    put: Operator = by_name("basic_put").operator
    return call(put, (whole, new, *step.args), {"accumulate": False})


def _put_permute(call: Call, whole: Any, new: Any, step: Step) -> Any:
    rank = len(whole.shape)
    places = [axis % rank for axis in step.args[0]]
    return call(step.op, (new, tuple(places.index(axis) for axis in range(rank))), {})


def _put_reshape(call: Call, whole: Any, new: Any, step: Step) -> Any:
    return call(by_name("reshape").operator, (new, tuple(whole.shape)), {})


def _put_detached(call: Call, whole: Any, new: Any, step: Step) -> Any:
    if whole.requires_grad:
        raise UnsupportedError(
            f"a write through a detached view of {describe(whole)}, which requires a gradient: the history of what "
            "it was would be lost inside td.functionalize; write into the tensor itself inside td.no_grad(), or a copy"
        )
    return new


# How the whole follows from the new value of a part, by the view operator that had given the part.
PUT_BACK: dict[str, Callable[[Call, Any, Any, Step], Any]] = {
    "td::basic_index": _put_index,
    "td::permute": _put_permute,
    "td::reshape": _put_reshape,
    "td::contiguous": lambda call, whole, new, step: new,
    "td::stop_gradient": _put_detached,
}


def check_writable(name: str, target: FunctionalTensor) -> None:
    """Refuse what could not be written either if it were memory, and what nobody knows how to put back."""
    lies = zip(target.strides, target.shape)
    broadcast = any(step.op.name == "td::broadcast_to" for step in target._path)
    if broadcast or (0 not in target.shape and any(stride == 0 and size > 1 for stride, size in lies)):
        raise UnsupportedError(
            f"{name}: the memory of {describe(target)} is read-only (a broadcast view); write into a copy: x.clone()"
        )
    unknown = [step.op.name for step in target._path if step.op.name not in PUT_BACK]
    if unknown:
        raise UnsupportedError(
            f"{name}: td.functionalize does not know how a write goes through the view {unknown[0]}; write into a copy"
        )
    if target._memory.rivals:
        raise UnsupportedError(
            f"{name}: {describe(target)} is written, and another tensor that the function uses lies in the same "
            "memory; pass one of them, and take the other from it inside"
        )


def write(target: FunctionalTensor, value: Any) -> None:
    """Let a tensor have a new value, and with it every view of the same memory."""
    memory = target._memory
    wholes = follow(memory.value, target._path[:-1], target._call) if target._path else []
    for whole, step in zip(reversed(wholes), reversed(target._path)):
        value = PUT_BACK[step.op.name](target._call, whole, value, step)
    memory.value = _laid_out(target._call, value, memory.strides)
    memory.version += 1
    memory.written = True
    target._storage.version += 1  # type: ignore[union-attr]

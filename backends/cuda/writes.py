"""In-place operators on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...eager import inplace
from ...errors import UnsupportedError
from ...registry.operator import Operator
from ...registry.values import describe
from .arrays import DeviceArray, overlap
from .casting import convert_into, copied
from .elementwise import write_again, write_into
from .indexing import beside, put, store
from .native_eager import Doors
from .operands import elsewhere, flattened, placed
from .tensor import CudaTensor, cuda_tensor

Kernel = Callable[..., CudaTensor]


def check_writable(name: str, target: Any, others: tuple[Any, ...]) -> None:
    """Refuse what is no tensor of the device, and a broadcast view.

    Raises:
        DeviceError: the tensor that is written lies elsewhere.
        UnsupportedError: several of its elements are one in memory.
    """
    if type(target) is not CudaTensor:
        raise elsewhere(name, target, next(one for one in flattened(others) if type(one) is CudaTensor))
    layout = target._data.layout
    if any(step == 0 and size > 1 for step, size in zip(layout.strides, layout.shape)):
        raise UnsupportedError(
            f"{name}: {describe(target)} is a broadcast view, several of its elements are one in memory; write into a "
            "copy: x.clone()"
        )


def _apart(target: DeviceArray, value: Any) -> Any:
    """An argument that a write into ``target`` does not change before it is read."""
    if type(value) is not CudaTensor:
        return value
    data = value._data
    same = data.ptr == target.ptr and data.layout is target.layout
    return value if same or not overlap(data, target) else cuda_tensor(copied(data))


def writer(op: Operator, inner: Operator) -> Kernel:
    """The kernel of an in-place operator that writes the result of another one."""
    name, decl = op.schema.name, inner.decl

    def kernel(self: Any, *args: Any, **options: Any) -> CudaTensor:
        is_known = decl.is_elementwise and type(self) is CudaTensor
        if is_known and write_again(
            inner, self, tuple([_apart(self._data, value) for value in (self, *args)])
        ):
            return self  # type: ignore[no-any-return]
        check_writable(name, self, (*args, *options.values()))
        if decl.is_elementwise:
            given = placed(name, (self, *args), constants=True)
            inplace.check_fits(name, self, decl.meta(*(beside(value, self) for value in given)))
            if write_into(inner, self, tuple(_apart(self._data, value) for value in given), doors):
                return self  # type: ignore[no-any-return]
        result = inner.dispatch(self._keys, (self, *args), options)
        inplace.check_fits(name, self, result.spec)
        convert_into(self._data, result._data)
        return self  # type: ignore[no-any-return]

    doors = Doors(op, f"inplace{len(op.schema.arguments)}")
    doors.kernel = kernel
    return kernel


def basic_put_writer(op: Operator, inner: Operator) -> Kernel:
    """The kernel of ``basic_put_``, which writes the selected elements only."""

    def kernel(self: Any, value: Any, plan: Any, *, accumulate: bool) -> CudaTensor:
        check_writable("setitem", self, (value,))
        _, value = placed("setitem", (self, value), constants=True)
        inner.decl.meta(self, beside(value, self), plan, accumulate=accumulate)
        put(self._data, value, plan, accumulate)
        return self  # type: ignore[no-any-return]

    return kernel


def index_put_writer(op: Operator, inner: Operator) -> Kernel:
    """The kernel of ``index_put_``, which writes the selected elements only."""

    def kernel(self: Any, indices: Any, value: Any, axis: int, *, accumulate: bool) -> CudaTensor:
        check_writable("setitem", self, (indices, value))
        _, value = placed("setitem", (self, value), constants=True)
        _, indices = placed("setitem", (self, indices), constants=False, indices=True)
        inner.decl.meta(self, indices, beside(value, self), axis, accumulate=accumulate)
        made = store("setitem", self._data, indices, value, axis, accumulate)
        if made is not self._data:
            convert_into(self._data, made)
        return self  # type: ignore[no-any-return]

    return kernel


WRITERS: dict[str, Callable[[Operator, Operator], Kernel]] = {
    "basic_put": basic_put_writer,
    "index_put": index_put_writer,
}


def inplace_kernel(op: Operator, inner: Operator) -> Kernel:
    """The kernel of an in-place operator."""
    return WRITERS.get(inner.schema.name, writer)(op, inner)

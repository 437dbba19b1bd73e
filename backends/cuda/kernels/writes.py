"""Kernels of in-place operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....eager.tensor import inplace
from ....errors import UnsupportedError
from ....registry.operator import Operator
from ....registry.values import describe
from ..fastpath.eager import OperatorEntries
from ..runtime.arrays import DeviceArray, overlap
from .casting import convert_into, copy_array
from .elementwise import write_again, write_into
from .indexing import put, spec_beside, store
from .operands import check_devices, device_mismatch_error, flatten
from .tensor import CudaTensor, cuda_tensor

Kernel = Callable[..., CudaTensor]


def check_writable(name: str, target: Any, others: tuple[Any, ...]) -> None:
    """Check that the target of a write is a CUDA tensor and not a broadcast view.

    Raises:
        DeviceError: the target is on another device.
        UnsupportedError: several of its elements share memory.
    """
    if type(target) is not CudaTensor:
        raise device_mismatch_error(
            name, target, next(one for one in flatten(others) if type(one) is CudaTensor)
        )
    layout = target._data.layout
    if any(step == 0 and size > 1 for step, size in zip(layout.strides, layout.shape)):
        raise UnsupportedError(
            f"{name}: {describe(target)} is a broadcast view, whose elements share memory; write into a copy: "
            "x.clone()"
        )


def _copy_if_overlapping(target: DeviceArray, value: Any) -> Any:
    """The argument, copied if it partially overlaps ``target``."""
    if type(value) is not CudaTensor:
        return value
    data = value._data
    same = data.ptr == target.ptr and data.layout is target.layout
    return value if same or not overlap(data, target) else cuda_tensor(copy_array(data))


def make_writer(op: Operator, inner: Operator) -> Kernel:
    """The kernel of an in-place operator that writes the result of another one."""
    name, decl = op.schema.name, inner.decl

    def kernel(self: Any, *args: Any, **options: Any) -> CudaTensor:
        is_known = decl.is_elementwise and type(self) is CudaTensor
        if is_known and write_again(
            inner, self, tuple([_copy_if_overlapping(self._data, value) for value in (self, *args)])
        ):
            return self  # type: ignore[no-any-return]
        check_writable(name, self, (*args, *options.values()))
        if decl.is_elementwise:
            given = check_devices(name, (self, *args), constants=True)
            inplace.check_fits(name, self, decl.shape_rule(*(spec_beside(value, self) for value in given)))
            if write_into(
                inner, self, tuple(_copy_if_overlapping(self._data, value) for value in given), entries
            ):
                return self  # type: ignore[no-any-return]
        result = inner.dispatch(self._keys, (self, *args), options)
        inplace.check_fits(name, self, result.spec)
        convert_into(self._data, result._data)
        return self  # type: ignore[no-any-return]

    entries = OperatorEntries(op, f"inplace{len(op.schema.arguments)}")
    entries.kernel = kernel
    return kernel


def basic_put_writer(op: Operator, inner: Operator) -> Kernel:
    """The kernel of ``basic_put_``, which writes the selected elements only."""

    def kernel(self: Any, value: Any, plan: Any, *, accumulate: bool) -> CudaTensor:
        check_writable("setitem", self, (value,))
        _, value = check_devices("setitem", (self, value), constants=True)
        inner.decl.shape_rule(self, spec_beside(value, self), plan, accumulate=accumulate)
        put(self._data, value, plan, accumulate)
        return self  # type: ignore[no-any-return]

    return kernel


def index_put_writer(op: Operator, inner: Operator) -> Kernel:
    """The kernel of ``index_put_``, which writes the selected elements only."""

    def kernel(self: Any, indices: Any, value: Any, axis: int, *, accumulate: bool) -> CudaTensor:
        check_writable("setitem", self, (indices, value))
        _, value = check_devices("setitem", (self, value), constants=True)
        _, indices = check_devices("setitem", (self, indices), constants=False, indices=True)
        inner.decl.shape_rule(self, indices, spec_beside(value, self), axis, accumulate=accumulate)
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
    return WRITERS.get(inner.schema.name, make_writer)(op, inner)

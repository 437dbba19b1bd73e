"""Kernels of in-place operators: run the functional operator and write its result into the target."""

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
from .indexing import operand_spec, put, store
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
            name, target, next(other for other in flatten(others) if type(other) is CudaTensor)
        )
    layout = target._data.layout
    if any(stride == 0 and size > 1 for stride, size in zip(layout.strides, layout.shape)):
        raise UnsupportedError(
            f"{name}: {describe(target)} is a broadcast view, whose elements share memory; write into a copy: "
            "x.clone()"
        )


def _copy_if_overlapping(target: DeviceArray, value: Any) -> Any:
    """Copy an argument that partially overlaps ``target``; other arguments are returned unchanged."""
    if type(value) is not CudaTensor:
        return value
    data = value._data
    same = data.ptr == target.ptr and data.layout is target.layout
    return value if same or not overlap(data, target) else cuda_tensor(copy_array(data))


def make_inplace_kernel(op: Operator, functional: Operator) -> Kernel:
    """Make the kernel of an in-place operator from its functional one."""
    name, decl = op.schema.name, functional.decl

    def kernel(self: Any, *args: Any, **options: Any) -> CudaTensor:
        is_elementwise = decl.is_elementwise and type(self) is CudaTensor
        if is_elementwise and write_again(
            functional, self, tuple([_copy_if_overlapping(self._data, value) for value in (self, *args)])
        ):
            return self  # type: ignore[no-any-return]
        check_writable(name, self, (*args, *options.values()))
        if decl.is_elementwise:
            operands = check_devices(name, (self, *args), constants=True)
            spec = decl.shape_rule(*(operand_spec(value, self) for value in operands))
            inplace.check_fits(name, self, spec)
            is_exact = spec.dtype is self.dtype
            if is_exact and write_into(
                functional,
                self,
                tuple(_copy_if_overlapping(self._data, value) for value in operands),
                entries,
            ):
                return self  # type: ignore[no-any-return]
        result = functional.dispatch(self._keys, (self, *args), options)
        inplace.check_fits(name, self, result.spec)
        convert_into(self._data, result._data)
        return self  # type: ignore[no-any-return]

    entries = OperatorEntries(op, f"inplace{len(op.schema.arguments)}")
    entries.kernel = kernel
    return kernel


def make_basic_put_kernel(op: Operator, functional: Operator) -> Kernel:
    """Make the kernel of ``basic_put_``, which writes the selected elements only."""

    def kernel(self: Any, value: Any, plan: Any, *, accumulate: bool) -> CudaTensor:
        check_writable("setitem", self, (value,))
        _, value = check_devices("setitem", (self, value), constants=True)
        functional.decl.shape_rule(self, operand_spec(value, self), plan, accumulate=accumulate)
        put(self._data, value, plan, accumulate)
        return self  # type: ignore[no-any-return]

    return kernel


def make_index_put_kernel(op: Operator, functional: Operator) -> Kernel:
    """Make the kernel of ``index_put_``, which writes the selected elements only."""

    def kernel(self: Any, indices: Any, value: Any, axis: int, *, accumulate: bool) -> CudaTensor:
        check_writable("setitem", self, (indices, value))
        _, value = check_devices("setitem", (self, value), constants=True)
        _, indices = check_devices("setitem", (self, indices), constants=False, indices=True)
        functional.decl.shape_rule(self, indices, operand_spec(value, self), axis, accumulate=accumulate)
        combine = functional.decl.index_spec.combine(accumulate=accumulate)
        result = store("setitem", self._data, indices, value, axis, combine)
        if result is not self._data:
            convert_into(self._data, result)
        return self  # type: ignore[no-any-return]

    return kernel


PUT_KERNELS: dict[str, Callable[[Operator, Operator], Kernel]] = {
    "basic_put": make_basic_put_kernel,
    "index_put": make_index_put_kernel,
}


def inplace_kernel(op: Operator, functional: Operator) -> Kernel:
    """The kernel of an in-place operator."""
    return PUT_KERNELS.get(functional.schema.name, make_inplace_kernel)(op, functional)

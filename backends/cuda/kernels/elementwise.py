"""Kernels of elementwise operators: one kernel for each combination of dtypes, one launch for each call.

The result's layout, the kernel, the grid and the static parameters are cached by the arguments' layouts. A repeated
call allocates a buffer, sets the addresses and launches.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ....lowering.fusion.loop_ir import collapse
from ....operators.declare.declaration import Declaration
from ....operators.declare.shape_rules import compute_dtype, operand_dtypes, promoted_dtype
from ....operators.scalar_ir.expr import Expr, order
from ....operators.scalar_ir.nodes import instantiate
from ....registry.dtypes import DType, default_listeners
from ....registry.operator import Operator
from ...cpu.fastpath.glue.structs import CODES
from ..codegen.eager import write_elementwise
from ..codegen.kernel import MAX_RANK, CudaKernel, pack_layout
from ..codegen.nodes import explain_unsupported
from ..codegen.types import CTYPE
from ..fastpath import eager_entries as rt
from ..fastpath.eager import OperatorEntries, make_call_record
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, Layout, contiguous_layout, layout_of
from ..runtime.launching import Launch
from ..runtime.memory import allocate
from .library_ops import evaluate
from .operands import bits_of, check_devices, device_index, is_constant, spec_here
from .tensor import CudaTensor, cuda_tensor

MOST_PLANS = 1 << 12
NUMBERS = (bool, int, float, complex)
# the fields of the launcher of each variant of a kernel in the native struct of a cached call
LAUNCHERS = {
    "contiguous": rt.ANY_ADDRESS[:1],
    "unaligned": rt.ANY_ADDRESS[1:],
    "strided": rt.ANY_ADDRESS,
}
BLOCKS = 1 << 16
Ints = tuple[int, ...]


def is_emitted(root: Expr, dtypes: Sequence[DType]) -> bool:
    """Whether CUDA C can be emitted for a body."""
    return all(d in CTYPE for d in dtypes) and not any(explain_unsupported(e) for e in order(root))


@functools.lru_cache(1 << 12)
def _instantiate_body(decl: Declaration, operands: tuple[DType, ...], out: DType, number: bool) -> Expr:
    return instantiate(decl.body_with(number), operands, out)


def result_layout(shape: Ints, dtype: DType, index: int, given: Sequence[Layout]) -> Layout:
    """The layout of a new result: dense, in the order of axes that all operands of its shape share, else contiguous."""
    like = {one.strides for one in given if one.shape == shape}
    if len(like) == 1:
        (strides,) = like
        by_step = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
        step = 1
        for axis in reversed(by_step):
            if shape[axis] != 1 and strides[axis] != step:
                return contiguous_layout(shape, dtype, index)
            step *= shape[axis]
        return layout_of(shape, strides, dtype, index)
    return contiguous_layout(shape, dtype, index)


class ElementwisePlan:
    """The result layout and the launches of calls whose arguments have certain layouts.

    Attributes:
        out: the layout of the result.
        launches: the kernel with its static parameters, by variant.
        dense: whether all arrays have the same dense layout.
        arrays: the positions of the arguments that are arrays.
        numbers: (position, dtype) of the arguments that are passed by value.
        record: the native struct of the cached call.
        is_registered: whether native code knows the call, or cannot run it.
        check: the shape rule, if it has to check each value of a Python integer; else None.
        wide: the positions of numbers of two words; the second words follow the result's parameter.
    """

    __slots__ = (
        "_kernel_args",
        "arrays",
        "check",
        "dense",
        "is_registered",
        "launches",
        "numbers",
        "out",
        "record",
        "wide",
    )

    def __init__(self, op: Operator, args: tuple[Any, ...], target: Layout | None):
        decl, name = op.decl, op.schema.name
        args = check_devices(name, args, constants=True)
        index = device_index(name, args)
        known = tuple(spec_here(one, index) for one in args)
        spec = decl.shape_rule(*known)
        computed = compute_dtype(name, decl.result, decl.dtypes, known)
        operands = operand_dtypes(decl, computed, len(args))
        number = len(args) == 2 and type(args[1]) in NUMBERS and type(args[1]) is not complex
        root = _instantiate_body(decl, operands, spec.dtype, number)
        self.arrays = [i for i, one in enumerate(args) if type(one) is CudaTensor]
        promoted = promoted_dtype(name, known)
        # a quotient of integers: the number has to be one of their dtype
        given = (promoted,) * len(args) if decl.result == "float" else operands
        self.numbers = [(i, d) for i, d in enumerate(given) if i not in self.arrays]
        self.wide = [i for i, d in self.numbers if d.itemsize > 8]
        layouts = [args[i]._data.layout for i in self.arrays]
        self.out = target or result_layout(spec.shape, spec.dtype, index, layouts)
        ints = any(type(one) is int for one in args)
        self.check = decl.shape_rule if ints and promoted.is_integer else None
        stored = list(given)
        for i, layout in zip(self.arrays, layouts):
            stored[i] = layout.dtype
        if not is_emitted(root, (*stored, spec.dtype)):
            raise NotEmitted
        sizes, steps = collapse(
            self.out.shape, [*(_broadcast_strides(x, self.out.shape) for x in layouts), self.out.strides]
        )
        self.dense = len(sizes) <= 1 and all(step == (1,) * len(sizes) for step in steps)
        if len(sizes) > MAX_RANK:
            raise NotEmitted
        rest: Any = ctypes.c_int64(self.out.size) if self.dense else pack_layout(sizes, steps)
        self._kernel_args = name, root, tuple(stored), rest
        self.launches: dict[str, Launch] = {}
        self.record: Any = None
        self.is_registered = self.check is not None and decl.value_checked

    def make_record(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """Make the native struct, and return its key; an empty key if native code cannot run the call."""
        kinds = [one._data.layout if type(one) is CudaTensor else type(one) for one in args]
        if (
            not self.out.size
            or self.wide
            or any(kind not in (int, float, bool) for i, kind in enumerate(kinds) if i not in self.arrays)
        ):
            return ()
        key = tuple(map(id, kinds))
        record = self.record = make_call_record(key, self, kinds, self.out)
        for i, dtype in self.numbers:
            record.set(rt.CacheEntry.number_dtypes + 8 * i, CODES.index(dtype))
        for variant, launch in self.launches.items():
            self._link_launch(variant, launch)
        return key

    def _link_launch(self, variant: str, launch: Launch) -> None:
        if self.record is not None and launch.record is not None:
            for offset in LAUNCHERS[variant]:
                self.record.point(offset, launch.record)

    def _make_launch(self, variant: str) -> Launch:
        name, root, stored, rest = self._kernel_args
        numbers = tuple(i for i, _ in self.numbers)
        kernel = _write_kernel(name, root, stored, self.out.dtype, variant, numbers)
        grid = (kernel.blocks(self.out.size, BLOCKS), 1, 1)
        changing = len(stored) + 1 + len(self.wide)
        made = self.launches[variant] = Launch(kernel, self.out.index, grid, changing, [rest])
        self._link_launch(variant, made)
        return made

    def run(self, args: tuple[Any, ...]) -> CudaTensor:
        """The result, as a new tensor."""
        out = self.out
        buffer = allocate(out.nbytes, out.index)
        result = DeviceArray(buffer.ptr, out, buffer)
        self.into(result, args)
        return cuda_tensor(result)

    def into(self, out_array: DeviceArray, args: tuple[Any, ...]) -> None:
        """Write the result into an array of the layout ``out``."""
        if self.check is not None:
            self.check(*[spec_here(one, self.out.index) for one in args])
        if not self.out.size:
            return
        arrays = [args[i]._data for i in self.arrays]
        variant = "strided"
        if self.dense:
            bits = out_array.ptr
            for array in arrays:
                bits |= array.ptr
            variant = "unaligned" if bits & 15 else "contiguous"
        launch = self.launches.get(variant) or self._make_launch(variant)
        values = [array.ptr for array in arrays]
        for i, dtype in self.numbers:
            values.insert(i, bits_of(args[i], dtype))
        values.append(out_array.ptr)
        for i in self.wide:
            values.append(values[i] >> 64)
            values[i] &= 2**64 - 1
        launch.run(values, arrays)


class NotEmitted(Exception):
    """Raised for a body that has no CUDA C; the array library computes it."""


def _broadcast_strides(layout: Layout, shape: Ints) -> Ints:
    """The strides of an array broadcast to a shape."""
    lead = len(shape) - len(layout.shape)
    return (0,) * lead + tuple(
        0 if size != whole else step for size, whole, step in zip(layout.shape, shape[lead:], layout.strides)
    )


@functools.lru_cache(1 << 12)
def _write_kernel(
    name: str, root: Expr, stored: tuple[DType, ...], out: DType, variant: str, numbers: tuple[int, ...]
) -> CudaKernel:
    """Write the kernel of a body, once for each combination of dtypes."""
    return write_elementwise(f"{name}_{variant}", root, stored, out, variant, numbers)


def _plan_key(value: Any) -> Any:
    """The part of the plan's key for an argument: its layout, the dtype of a constant, or its type."""
    if type(value) is CudaTensor:
        return value._data.layout
    if is_constant(value):
        return value._array.dtype
    return type(value)


def elementwise_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of an operator with a scalar body."""
    plans: dict[tuple[Any, ...], ElementwisePlan] = {}
    entries = OperatorEntries(op, f"elementwise{len(op.schema.arguments)}")

    def kernel(*args: Any) -> CudaTensor:
        key = tuple([a._data.layout if type(a) is CudaTensor else _plan_key(a) for a in args])
        plan = plans.get(key)
        if plan is None:
            try:
                plan = ElementwisePlan(op, args, None)
            except NotEmitted:
                return evaluate(op, args)
            if len(plans) >= MOST_PLANS:
                plans.clear()
                entries.clear()
            plans[key] = plan
        elif not plan.is_registered:  # a repeated call: many layouts are used only once
            entries.add(plan, args)
        return plan.run(args)

    tools.change_listeners.append(plans.clear)
    default_listeners.append(plans.clear)
    entries.kernel = kernel
    return kernel


_writes: dict[tuple[Any, ...], ElementwisePlan] = {}
tools.change_listeners.append(_writes.clear)
default_listeners.append(_writes.clear)


def write_into(op: Operator, target: CudaTensor, args: tuple[Any, ...], entries: OperatorEntries) -> bool:
    """Compute an operator's result directly into a tensor.

    Args:
        op: the operator.
        target: a tensor of the result's shape and dtype; an operand may share its memory only as the same array.
        args: the operator's arguments.
        entries: the native entries of the in-place operator.

    Returns:
        Whether it was done; False if the body has no CUDA C.
    """
    try:
        plan = ElementwisePlan(op, args, target._data.layout)
    except NotEmitted:
        return False
    if len(_writes) >= MOST_PLANS:
        _writes.clear()
    _writes[op, target._data.layout, *map(_plan_key, args)] = plan
    if args[0] is target and not plan.is_registered:
        entries.add(plan, args)
    plan.into(target._data, args)
    return True


def write_again(op: Operator, target: CudaTensor, args: tuple[Any, ...]) -> bool:
    """Repeat a cached :func:`write_into` with arguments of the same layouts; False if there is none."""
    plan = _writes.get((op, target._data.layout, *map(_plan_key, args)))
    if plan is not None:
        plan.into(target._data, args)
    return plan is not None

"""Elementwise operators on the device: one kernel for each combination of dtypes, one launch for each call.

What a call works out about its arguments is kept by their layouts: the result's layout, the kernel, the grid, and the
parameters that stay. A call that has met its layouts before takes a buffer, sets the addresses and launches.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...lowering.loops import collapse
from ...operators.declare import Declaration
from ...operators.expr import Expr, order
from ...operators.rules import compute_dtype, operand_dtypes, promoted_dtype
from ...operators.scalar import instantiate
from ...registry.dtypes import DType
from ...registry.operator import Operator
from ..cpu.native.records import CODES
from . import rt_eager as rt
from . import toolkit as tools
from .arrays import DeviceArray, Layout, contiguous_layout, layout_of
from .emit.eager import write_elementwise
from .emit.kernel import MAX_RANK, CudaKernel, pack_layout
from .emit.nodes import why_not
from .emit.types import CTYPE
from .launching import Launch
from .library_ops import evaluate
from .memory import allocate
from .native_eager import Doors, key_record
from .native_result import device_record, result_record
from .operands import bits_of, device_index, is_constant, placed, spec_here
from .tensor import CudaTensor, cuda_tensor

MOST_PLANS = 1 << 12
VARIANTS = {"contiguous": rt.E_CONTIGUOUS, "unaligned": rt.E_UNALIGNED, "strided": rt.E_STRIDED}
BLOCKS = 1 << 16
Ints = tuple[int, ...]


def is_emitted(root: Expr, dtypes: Sequence[DType]) -> bool:
    """Whether a body has CUDA C."""
    return all(d in CTYPE for d in dtypes) and not any(why_not(e) for e in order(root))


@functools.lru_cache(1 << 12)
def _body(decl: Declaration, operands: tuple[DType, ...], out: DType) -> Expr:
    return instantiate(decl.body, operands, out)  # type: ignore[arg-type]


def result_layout(shape: Ints, dtype: DType, index: int, given: Sequence[Layout]) -> Layout:
    """The layout of a new result: the order of axes that the operands of its shape have in common, without gaps."""
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


class Plan:
    """How a call runs whose arguments lie in certain layouts.

    Attributes:
        out: the layout of the result.
        launches: by variant, the kernel with what stays of its parameters.
        dense: whether all arrays lie alike and without gaps.
        arrays: the positions of the arguments that are arrays.
        numbers: (position, dtype) of the arguments that are passed by value.
        record: what machine code reads of it.
        known: whether machine code knows it, or never will.
        check: the rule, where it has to look at each value of a Python integer; else None.
        wide: the positions of numbers of two words, whose second ones follow the result.
    """

    __slots__ = ("_make", "arrays", "check", "dense", "known", "launches", "numbers", "out", "record", "wide")

    def __init__(self, op: Operator, args: tuple[Any, ...], target: Layout | None):
        decl, name = op.decl, op.schema.name
        args = placed(name, args, constants=True)
        index = device_index(name, args)
        known = tuple(spec_here(one, index) for one in args)
        spec = decl.meta(*known)
        computed = compute_dtype(name, decl.result, decl.dtypes, known)
        operands = operand_dtypes(decl, computed, len(args))
        root = _body(decl, operands, spec.dtype)
        self.arrays = [i for i, one in enumerate(args) if type(one) is CudaTensor]
        promoted = promoted_dtype(name, known)
        # a quotient of integers: the number has to be one of their dtype
        given = (promoted,) * len(args) if decl.result == "float" else operands
        self.numbers = [(i, d) for i, d in enumerate(given) if i not in self.arrays]
        self.wide = [i for i, d in self.numbers if d.itemsize > 8]
        layouts = [args[i]._data.layout for i in self.arrays]
        self.out = target or result_layout(spec.shape, spec.dtype, index, layouts)
        ints = any(type(one) is int for one in args)
        self.check = decl.meta if ints and promoted.is_integer else None
        stored = list(given)
        for i, layout in zip(self.arrays, layouts):
            stored[i] = layout.dtype
        if not is_emitted(root, (*stored, spec.dtype)):
            raise NotEmitted
        sizes, steps = collapse(
            self.out.shape, [*(_widened(x, self.out.shape) for x in layouts), self.out.strides]
        )
        self.dense = len(sizes) <= 1 and all(step == (1,) * len(sizes) for step in steps)
        if len(sizes) > MAX_RANK:
            raise NotEmitted
        rest: Any = ctypes.c_int64(self.out.size) if self.dense else pack_layout(sizes, steps)
        self._make = name, root, tuple(stored), rest
        self.launches: dict[str, Launch] = {}
        self.record: Any = None
        self.known = self.check is not None and decl.value_checked

    def describe(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """Make the record, and give the key by which machine code finds the plan; no key where it cannot run it."""
        kinds = [one._data.layout if type(one) is CudaTensor else type(one) for one in args]
        if (
            not self.out.size
            or self.wide
            or any(kind not in (int, float, bool) for i, kind in enumerate(kinds) if i not in self.arrays)
        ):
            return ()
        key = tuple(map(id, kinds))
        record = self.record = key_record(key, self)
        record.kept.append(kinds)
        record.point(rt.E_DEVICE, device_record(self.out.index))
        record.point(rt.E_RESULT, result_record(self.out))
        record.set(rt.E_DENSE, int(self.dense))
        for i, dtype in self.numbers:
            record.set(rt.E_TO + 8 * i, CODES.index(dtype))
        for variant, launch in self.launches.items():
            self._show(variant, launch)
        return key

    def _show(self, variant: str, launch: Launch) -> None:
        if self.record is not None and launch.record is not None:
            self.record.point(VARIANTS[variant], launch.record)

    def _launch(self, variant: str) -> Launch:
        name, root, stored, rest = self._make
        numbers = tuple(i for i, _ in self.numbers)
        kernel = _kernel(name, root, stored, self.out.dtype, variant, numbers)
        grid = (kernel.blocks(self.out.size, BLOCKS), 1, 1)
        changing = len(stored) + 1 + len(self.wide)
        made = self.launches[variant] = Launch(kernel, self.out.index, grid, changing, [rest])
        self._show(variant, made)
        return made

    def run(self, args: tuple[Any, ...]) -> CudaTensor:
        """The result, as a new tensor."""
        out = self.out
        buffer = allocate(out.nbytes, out.index)
        found = DeviceArray(buffer.ptr, out, buffer)
        self.into(found, args)
        return cuda_tensor(found)

    def into(self, found: DeviceArray, args: tuple[Any, ...]) -> None:
        """Write the result into an array of the plan's layout."""
        if self.check is not None:
            self.check(*[spec_here(one, self.out.index) for one in args])
        if not self.out.size:
            return
        arrays = [args[i]._data for i in self.arrays]
        variant = "strided"
        if self.dense:
            bits = found.ptr
            for array in arrays:
                bits |= array.ptr
            variant = "unaligned" if bits & 15 else "contiguous"
        launch = self.launches.get(variant) or self._launch(variant)
        values = [array.ptr for array in arrays]
        for i, dtype in self.numbers:
            values.insert(i, bits_of(args[i], dtype))
        values.append(found.ptr)
        for i in self.wide:
            values.append(values[i] >> 64)
            values[i] &= 2**64 - 1
        launch.go(values, arrays)


class NotEmitted(Exception):
    """A body that has no CUDA C; the array library computes it."""


def _widened(layout: Layout, shape: Ints) -> Ints:
    """The strides of an array broadcast to a shape."""
    lead = len(shape) - len(layout.shape)
    return (0,) * lead + tuple(
        0 if size != whole else step for size, whole, step in zip(layout.shape, shape[lead:], layout.strides)
    )


@functools.lru_cache(1 << 12)
def _kernel(
    name: str, root: Expr, stored: tuple[DType, ...], out: DType, variant: str, numbers: tuple[int, ...]
) -> CudaKernel:
    """The kernel of a body; written once for each combination of dtypes."""
    return write_elementwise(f"{name}_{variant}", root, stored, out, variant, numbers)


def _kind_of(value: Any) -> Any:
    """What a plan depends on, of an argument."""
    if type(value) is CudaTensor:
        return value._data.layout
    if is_constant(value):
        return value._array.dtype
    return type(value)


def elementwise_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of an operator with a scalar body."""
    plans: dict[tuple[Any, ...], Plan] = {}
    doors = Doors(op, f"elementwise{len(op.schema.arguments)}")

    def kernel(*args: Any) -> CudaTensor:
        key = tuple([a._data.layout if type(a) is CudaTensor else _kind_of(a) for a in args])
        plan = plans.get(key)
        if plan is None:
            try:
                plan = Plan(op, args, None)
            except NotEmitted:
                return evaluate(op, args)
            if len(plans) >= MOST_PLANS:
                plans.clear()
                doors.clear()
            plans[key] = plan
        elif not plan.known:  # met again: many layouts come just once
            plan.known = doors.learn(plan, args)
        return plan.run(args)

    tools.changed.append(plans.clear)
    doors.kernel = kernel
    return kernel


_writes: dict[tuple[Any, ...], Plan] = {}
tools.changed.append(_writes.clear)


def write_into(op: Operator, target: CudaTensor, args: tuple[Any, ...], doors: Doors) -> bool:
    """Let an operator write its result right into a tensor.

    Args:
        op: the operator.
        target: a tensor of the result's shape and dtype, in whose memory an operand may lie only where it is the same
            array.
        args: the operator's arguments.
        doors: of the in-place operator.

    Returns:
        Whether it was done; a body may have no CUDA C.
    """
    try:
        plan = Plan(op, args, target._data.layout)
    except NotEmitted:
        return False
    if len(_writes) >= MOST_PLANS:
        _writes.clear()
    _writes[op, target._data.layout, *map(_kind_of, args)] = plan
    if args[0] is target and not plan.known:
        doors.learn(plan, args)
    plan.into(target._data, args)
    return True


def write_again(op: Operator, target: CudaTensor, args: tuple[Any, ...]) -> bool:
    """Do what :func:`write_into` has done before, with arguments of the same layouts; whether it has."""
    plan = _writes.get((op, target._data.layout, *map(_kind_of, args)))
    if plan is not None:
        plan.into(target._data, args)
    return plan is not None

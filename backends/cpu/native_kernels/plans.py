"""Plans of eager calls (``rt_loops.LoopPlan``): the loop of an operator for operands of some dtypes, sizes and strides.

A plan is made once for a combination. The operator's native entry runs it, and so does the Python kernel of operators
with emitted loops.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .... import lazy
from ....eager.tensor.tensor import Tensor, wrap
from ....errors import TandemError
from ....lowering.fusion.loop_ir import collapse
from ....lowering.layout import Layout, contiguous
from ....named_tuple import NamedTuple
from ....operators.declare.native_kernel import EMITTED, NativeKernel
from ....operators.declare.shape_rules import promoted_dtype
from ....registry.dtypes import DType, default_float, default_stamp, int64
from ....registry.operator import Operator, find_operator
from ....registry.values import TensorSpec
from ..fastpath.compiler.structs import fields_of, sizeof
from ..fastpath.entries.rt_loop_calls import (
    LEAST_SIZE,
    MOST_RANK,
    MOST_RESULTS,
    MOST_TENSORS,
    SIZE_STEP,
)
from ..fastpath.glue.structs import CODES
from ..fastpath.runtime.rt_loops import Failures, LoopOperand, LoopPlan
from ..loop_cost import RELEASE_NS
from .calls import LoopChoice, choose_loop
from .providers import array_layout
from .tables import fits, make_call_table

loops = lazy.Module(".backends.cpu.fastpath.glue.loops")

NS_PER_STEP = 1.0  # of an element and an index that is summed over
LEAST_STEPS = 16  # of an element
MOST_PLANS = 512  # that are kept for the calls of Python kernels
_STATIC = frozenset((bool, int, float, complex, str, type(None)))
_UNKNOWN = b"unknown"
_plans: dict[object, bytes | None] = {}


class PlannedOperand(NamedTuple):
    """An operand or a result of a plan: its layout and dtype, and the dtype in which the loop has it."""

    layout: Layout
    dtype: DType
    loop_dtype: DType

    @property
    def loop_layout(self) -> Layout:
        """The layout of what the loop reads or writes; conversions are contiguous."""
        return self.layout if self.dtype is self.loop_dtype else contiguous(self.layout.shape)


def take_arrays(values: Iterable[Any]) -> list[Any]:
    """Return values with views of their memory in the place of tensors.

    Another thread may give a tensor other memory, or its array another shape, at any time; key and plan must be those
    of one array.
    """
    return [value._array.view() if isinstance(value, Tensor) else value for value in values]


def find_plan(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> bytes | None:
    """Return the plan of a call; None if no loop computes it, or the call is wrong.

    Args:
        op: the operator.
        args, kwargs: its arguments, with arrays in the place of tensors (:func:`take_arrays`).
    """
    key = op, tuple(map(_key_of, args)), tuple(kwargs), tuple(map(_key_of, kwargs.values())), default_float()
    if None in key[1] or None in key[3]:
        return None
    plan = _plans.get(key, _UNKNOWN)
    if plan is _UNKNOWN:
        stamp = default_stamp()
        plan = _make_plan(op, args, kwargs)
        if stamp != default_stamp() or stamp[1] is not key[-1]:
            return None
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        _plans[key] = plan
    return plan


def find_symbolic(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> bytes | None:
    """Return the plan of all calls that differ from one by one size: by multiples of a step, within a power of two.

    The size is that of the first axis of the first argument that is long enough for it; other axes of this size
    vary with it, and the strides of contiguous arrays with them.

    Args:
        op: the operator.
        args, kwargs: the arguments of one of them, as for :func:`find_plan`; the first is an array.

    Returns:
        The words of a plan for the smallest size below one step, then what each of them increases by with a step; None
        if the words of plans are not such functions. Whether a call is long is what it is for the largest size.
    """
    size = next((n for n in args[0].shape if n >= LEAST_SIZE), 0)
    if size == 0:
        return None  # another thread has given the tensor another array
    rest, low = size % SIZE_STEP, (1 << size.bit_length() - 1) // SIZE_STEP
    counts = (low, 2 * low - 1, low + 1, low + low // 2, size // SIZE_STEP)
    sizes = [count * SIZE_STEP + rest for count in counts]
    plans = [
        plan for n in sizes if (plan := _make_plan(op, _resize(args, size, n), dict(kwargs))) is not None
    ]
    if len(plans) < len(sizes) or len(set(map(len, plans))) > 1:
        return None
    words = np.array([np.frombuffer(plan, np.int64) for plan in plans])
    is_long = fields_of(LoopPlan)["is_long"].offset // 8
    words[:, is_long] = words[1, is_long]
    steps = (words[1] - words[0]) // (counts[1] - counts[0])
    first = words[0] - steps * low
    if not np.array_equal(words, first + np.multiply.outer(counts, steps)):
        return None
    return np.concatenate([first, steps]).tobytes()


def _resize(args: Sequence[Any], size: int, new_size: int) -> list[Any]:
    """Return arguments with layouts of other arrays in the place of those that have axes of a size.

    Their elements may not be read.
    """
    result = list(args)
    for index, value in enumerate(args):
        if isinstance(value, np.ndarray) and size in value.shape:
            shape = tuple(new_size if n == size else n for n in value.shape)
            strides = value.strides
            if value.flags.c_contiguous:
                strides = tuple(step * value.itemsize for step in contiguous(shape).strides)
            result[index] = np.lib.stride_tricks.as_strided(value, shape, strides)
    return result


def _key_of(value: Any) -> object:
    if type(value) in _STATIC:
        return type(value), value
    if type(value) is tuple:
        keys = tuple(map(_key_of, value))
        return None if None in keys else keys
    if not isinstance(value, np.ndarray):
        return None
    return value.dtype, value.shape, value.strides, value.flags.aligned


def _make_plan(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> bytes | None:
    try:
        bound, named = op.binder.bind(tuple(map(_wrap, args)), dict(zip(kwargs, map(_wrap, kwargs.values()))))
        operands = [value for value, is_tensor in zip(bound, _tensor_arguments(op)) if is_tensor]
        arrays = [x._array if isinstance(x, Tensor) else np.array(x) for x in operands if x is not None]
        by_position = [x for x, is_tensor in zip(args, _tensor_arguments(op)) if is_tensor and x is not None]
        # the entry passes the loop only operands that are given by position
        if len(by_position) != len(arrays) or any(isinstance(value, Tensor) for value in named.values()):
            return None
        if not all(map(_can_address, arrays)):
            return None
        return _plan_call(op, bound, named, arrays)
    except TandemError:
        return None


def _wrap(value: Any) -> Any:
    return wrap(value) if isinstance(value, np.ndarray) else value


@functools.cache
def _tensor_arguments(op: Operator) -> list[bool]:
    """Return which positional arguments are tensors."""
    return [argument.type.core == "Tensor" for argument in op.schema.positional]


def _can_address(array: Any) -> bool:
    """Return whether a loop can address the elements of an operand."""
    if not array.flags.aligned or array.ndim > MOST_RANK:
        return False
    return all(step % array.itemsize == 0 for step in array.strides)


def _plan_call(op: Operator, args: Sequence[Any], kwargs: dict[str, Any], arrays: list[Any]) -> bytes | None:
    kernel: NativeKernel = op.decl.native
    given = [value.spec if isinstance(value, Tensor) else value for value in args]
    results = _results(op, given, kwargs)
    if not results or len(results) > MOST_RESULTS or len(arrays) > MOST_TENSORS:
        return None
    if any(result.size == 0 for result in results):
        return None
    wide, wide_results = given, results
    choice = _choose(op, given, kwargs, results)
    if choice is None and (kernel.widen or kernel.promotes):
        wide = _widen(op, kernel, given)
        wide_results = _results(op, wide, kwargs)
        choice = _choose(op, wide, kwargs, wide_results)
    if choice is None:
        return None
    operands: list[PlannedOperand] = []
    has_tensors = any(isinstance(spec, TensorSpec) for spec in given)
    for spec, wide_spec, is_tensor in zip(given, wide, _tensor_arguments(op)):
        if is_tensor and spec is not None:
            dtype = spec.dtype if isinstance(spec, TensorSpec) else wide_spec.dtype
            if type(spec) is int and not has_tensors:
                dtype = int64  # among numbers alone; the entry leaves larger ones to Python
            layout = array_layout(arrays[len(operands)])
            operands.append(PlannedOperand(layout, dtype, wide_spec.dtype))
    operands += [PlannedOperand(contiguous(()), dtype, dtype) for _, dtype in choice.extra]
    operands += [
        PlannedOperand(contiguous(spec.shape), spec.dtype, wide_spec.dtype)
        for spec, wide_spec in zip(results, wide_results, strict=True)
    ]
    return write_plan(choice, operands, len(arrays), len(results))


def _results(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> list[TensorSpec]:
    result = op.decl.shape_rule(*args, **kwargs)
    return [result] if isinstance(result, TensorSpec) else list(result)


def _choose(
    op: Operator, args: Sequence[Any], kwargs: dict[str, Any], results: Sequence[TensorSpec]
) -> LoopChoice | None:
    operands = [
        value for value, is_tensor in zip(args, _tensor_arguments(op)) if is_tensor and value is not None
    ]
    if not all(isinstance(value, TensorSpec) for value in operands):
        return None
    return choose_loop(op.decl.native, args, kwargs, operands, results)


def _widen(op: Operator, kernel: NativeKernel, args: Sequence[Any]) -> list[Any]:
    """Return the arguments with the dtypes that they are computed in; numbers become tensors."""
    is_tensor = _tensor_arguments(op)
    operands = [value for value, one in zip(args, is_tensor) if one and value is not None]
    widest = (
        promoted_dtype(op.schema.name, operands) if kernel.promotes else next(iter(kernel.widen.values()))
    )
    result = list(args)
    for index, value in enumerate(args):
        if isinstance(value, TensorSpec):
            dtype = widest if kernel.promotes else kernel.widen.get(value.dtype, value.dtype)
            result[index] = value._replace(dtype=dtype)
        elif is_tensor[index] and value is not None:
            result[index] = TensorSpec((), widest)
    return result


# -- memory ------------------------------------------------------------------------------------------------------------
class PlanWriter:
    """The words of a plan: a fixed head, and tables that follow, to which it has offsets."""

    def __init__(self, operands: int) -> None:
        self.words = [0] * ((sizeof(LoopPlan) + operands * sizeof(LoopOperand)) // 8)

    def append(self, words: Sequence[int]) -> int:
        """Append a table and return its offset."""
        at = 8 * len(self.words)
        self.words += words
        return at

    def set(self, cls: type, index: int, **fields: int) -> None:
        """Set fields of the head, or of its operand of an index."""
        start = 0 if cls is LoopPlan else sizeof(LoopPlan) + index * sizeof(LoopOperand)
        for name, value in fields.items():
            self.words[(start + fields_of(cls)[name].offset) // 8] = value


def write_plan(
    choice: LoopChoice, operands: Sequence[PlannedOperand], tensors: int, results: int
) -> bytes | None:
    """Return a plan.

    Args:
        choice: the loop.
        operands: its operands and results.
        tensors: how many of them are tensors, which come first.
        results: how many are results, which come last.

    Returns:
        The words of a ``LoopPlan``; None if the loop has too many outer axes, or more bytes than 64 bits can count.
    """
    loop, writer, scratch = choice.loop, PlanWriter(len(operands)), 0
    layouts = [choice.move_axis(x.loop_layout) for x in operands]
    sizes = [x.loop_dtype.itemsize for x in operands]
    failures = loop.failures if choice.failure or loop.failures != Failures.FLAG else Failures.NEVER
    table = make_call_table(loop.signature, layouts, sizes, failures, choice.is_finite)
    if not fits(table):
        return None
    for index, operand in enumerate(operands):
        shape = operand.layout.shape
        fields = {"dims": writer.append(shape), "rank": len(shape), "code": CODES.index(operand.dtype)}
        if tensors <= index < len(operands) - results:
            fields["dims"] = writer.append([_bits(*choice.extra[index - tensors])])
        elif index < tensors:
            fields["steps"] = writer.append(
                [step * operand.dtype.itemsize for step in operand.layout.strides]
            )
        else:
            fields |= {
                "descr": id(operand.dtype.np),
                "nbytes": operand.layout.size * operand.dtype.itemsize,
            }
        if operand.dtype is not operand.loop_dtype:
            fields |= _write_conversion(writer, operand, index >= tensors) | {"scratch": scratch}
            scratch += -(-operand.layout.size * operand.loop_dtype.itemsize // 16) * 16
        writer.set(LoopOperand, index, **fields)
    writer.set(
        LoopPlan,
        0,
        loop=loop.address,
        data=loop.data,
        words=writer.append(loop.words) if loop.words else 0,
        call=writer.append(table),
        tensors=tensors,
        numbers=len(operands) - tensors - results,
        results=results,
        scratch=scratch,
        is_long=int(_estimate(operands) > RELEASE_NS),
        may_raise=int(loop.may_raise),
        is_emitted=int(choice.name.partition(".")[0] in EMITTED),
    )
    try:
        return struct.pack(f"{len(writer.words)}q", *writer.words)
    except struct.error:
        return None


def _estimate(operands: Sequence[PlannedOperand]) -> float:
    """Return the estimated time of a call in nanoseconds: each element takes as many steps as the longest core axis."""
    steps = max((max(x.layout.shape[-2:], default=1) for x in operands), default=1)
    return NS_PER_STEP * max(steps, LEAST_STEPS) * sum(x.layout.size for x in operands)


def _bits(value: float, dtype: DType) -> int:
    """Return a number of a dtype as the bits of a word."""
    text: bytes = dtype.np.type(value).tobytes()
    return int.from_bytes(text.ljust(8, b"\0"), "little", signed=True)


def _write_conversion(writer: PlanWriter, operand: PlannedOperand, is_result: bool) -> dict[str, int]:
    """Append the tables of a conversion and return the fields of its operand."""
    source, target = operand.layout, contiguous(operand.layout.shape)
    dtypes = operand.dtype, operand.loop_dtype
    if is_result:
        dtypes = dtypes[::-1]
    steps = [
        tuple(step * dtype.itemsize for step in layout.strides)
        for layout, dtype in zip((target, target) if is_result else (source, target), dtypes)
    ]
    shape, strides = collapse(source.shape, steps)
    rows = [step for axis in zip(*strides) for step in axis]
    return {
        "convert": _find_cast(*dtypes),
        "axes": len(shape),
        "shape": writer.append(shape),
        "strides": writer.append(rows),
    }


def _find_cast(source: DType, target: DType) -> int:
    dtypes = loops.OperandDtypes((source,), (source,), target)
    address: int = loops.compile_loop(find_operator("td::cast"), dtypes)["loop"]
    return address


def scratch_bytes(plan: bytes) -> int:
    """Return the bytes of scratch memory that a plan needs."""
    return _read(plan, "scratch")


def is_emitted(plan: bytes) -> bool:
    """Return whether a plan calls a loop of this package."""
    return bool(_read(plan, "is_emitted"))


def _read(plan: bytes, name: str) -> int:
    (value,) = struct.unpack_from("q", plan, fields_of(LoopPlan)[name].offset)
    return int(value)


def operand_count(plan: bytes) -> int:
    """Return how many operands of a plan are given by the call."""
    return _read(plan, "tensors")

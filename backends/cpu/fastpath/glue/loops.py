"""Loops of elementwise operators for one combination of operand types, the variants of their entries.

The entry (entries/rt_elementwise.py:elementwise) finds the variant of a call's operand types and runs its loop.
"""

from __future__ import annotations

from typing import Any

from .....eager.tensor.weak_scalars import DTYPES, NARROW, WIDE, is_function
from .....errors import TandemError
from .....named_tuple import NamedTuple
from .....operators.declare.shape_rules import compute_dtype, operand_dtypes, promoted_dtype
from .....operators.scalar_ir import nodes
from .....operators.scalar_ir.expr import Expr, arg, cast, substitute
from .....registry.dtypes import DType
from .....registry.operator import Operator
from .....registry.values import TensorSpec
from ...codegen.elementwise import emit_loop
from ...loop_cost import RELEASE_NS, elements_per_time, estimate_element
from ..compiler import engine
from ..runtime.rt_base import CODE_BITS, Variant
from . import structs
from .programs import compile_interpreter, make_program
from .structs import CODES, WEAK_CODES, StructMemory


class OperandDtypes(NamedTuple):
    """The dtypes that an operator computes with, for a combination of operand codes."""

    bodies: tuple[DType, ...]  # what the operator's body takes
    inputs: tuple[DType, ...]  # what the operands are
    out: DType
    ends_in_number: bool = False  # whether the second of two operands is a Python number
    number: int = 0  # operands that are all numbers: the code of the number that the result is


_NUMBERS = {DTYPES[kind]: code for code, kind in WEAK_CODES.items()}


def unpack_codes(key: int, arity: int) -> tuple[int, ...]:
    """Return the operands' codes in a key."""
    return tuple(key >> CODE_BITS * i & 31 for i in range(arity))


def resolve_dtypes(op: Operator, codes: tuple[int, ...]) -> OperandDtypes | None:
    """Return the dtypes of a combination, by the operator's own rules; None if it rejects the combination."""
    decl, name = op.decl, op.schema.name
    operands: list[Any] = [
        WEAK_CODES[code](0) if code in WEAK_CODES else TensorSpec((), CODES[code]) for code in codes
    ]
    try:
        out = decl.shape_rule(*operands).dtype
        computed = compute_dtype(name, decl.result, decl.dtypes, operands)
        bodies = operand_dtypes(decl, computed, len(codes))
        promoted = promoted_dtype(name, _promoted_operands(op, operands))
    except TandemError:
        return None
    if decl.value_checked and computed.is_integer and any(type(operand) is int for operand in operands):
        return None  # the rule looks at the integer's value
    if all(code in WEAK_CODES for code in codes):
        checked = len(codes) > 1 and promoted.is_integer and computed.is_inexact  # by range, at each call
        return None if checked else _resolve_number_dtypes(op, bodies)
    weak = tuple(promoted if body is computed else body for body in bodies)
    inputs = tuple(weak[i] if code in WEAK_CODES else CODES[code] for i, code in enumerate(codes))
    return OperandDtypes(bodies, inputs, out, len(codes) == 2 and codes[1] in WEAK_CODES)


def _resolve_number_dtypes(op: Operator, bodies: tuple[DType, ...]) -> OperandDtypes | None:
    """Return the dtypes for numbers alone: tensors of the widest dtype of their kind, and a number as result."""
    wide = tuple(WIDE.get(dtype, dtype) for dtype in bodies)
    out = op.decl.shape_rule(*[TensorSpec((), dtype) for dtype in wide]).dtype
    if out not in _NUMBERS or not is_function(op, (), {}):
        return None
    return OperandDtypes(wide, wide, out, number=_NUMBERS[out])


def _promoted_operands(op: Operator, operands: list[Any]) -> list[Any]:
    """Return the operands that take part in promotion: all but conditions."""
    names = [argument.name for argument in op.schema.arguments]
    return [operand for name, operand in zip(names, operands, strict=True) if name not in op.decl.conditions]


_loops: dict[tuple[Operator, OperandDtypes], engine.Code] = {}


def make_expression(op: Operator, dtypes: OperandDtypes) -> Expr:
    """Return the expression that a loop computes for one element."""
    if op.decl.kind == "cast":
        return cast(arg(0, dtypes.inputs[0]), dtypes.out)
    body = nodes.instantiate(op.decl.body_with(dtypes.ends_in_number), dtypes.bodies, dtypes.out)
    pairs = zip(dtypes.inputs, dtypes.bodies, strict=True)
    return substitute(body, [cast(arg(i, have), want) for i, (have, want) in enumerate(pairs)])


def loop_ir(op: Operator, dtypes: OperandDtypes) -> str:
    """Return LLVM IR of a loop.

    Raises:
        UnsupportedError: the emitter has no code for one of the dtypes.
    """
    return emit_loop("loop", make_expression(op, dtypes), dtypes.inputs, dtypes.out)


def is_complex(dtypes: OperandDtypes) -> bool:
    """Return whether NumPy's inner loops compute a combination, since the emitter has no complex dtypes."""
    return any(dtype.kind == "c" for dtype in (*dtypes.inputs, *dtypes.bodies, dtypes.out))


def has_loop(op: Operator, dtypes: OperandDtypes) -> bool:
    """Return whether there is native code for a combination."""
    try:
        if is_complex(dtypes):
            return make_program(make_expression(op, dtypes), len(dtypes.inputs)) is not None
        return bool(loop_ir(op, dtypes))
    except TandemError:
        return False


def compile_loop(op: Operator, dtypes: OperandDtypes) -> engine.Code:
    """Return a compiled loop; combinations with the same dtypes share one.

    Raises:
        UnsupportedError: the emitter has no code for one of the dtypes.
    """
    if (op, dtypes) not in _loops:
        _loops[op, dtypes] = engine.compile_ir(loop_ir(op, dtypes), ["loop"])
    return _loops[op, dtypes]


def make_elementwise_variant(op: Operator, key: int) -> StructMemory:
    """Return the variant of a key; without native code for the combination, one that falls back to Python."""
    result = resolve_dtypes(op, unpack_codes(key, len(op.schema.arguments)))
    return make_variant_for(op, key, result)


def make_cast_variant(op: Operator, key: int) -> StructMemory:
    """Return the variant of a dtype and the one that it is cast to."""
    source, target = (CODES[code] for code in unpack_codes(key, 2))
    dropped = (
        source.kind == "c" and target.kind not in "bc"
    )  # Python raises the error that says what to do instead
    return make_variant_for(op, key, None if dropped else OperandDtypes((source,), (source,), target))


def make_variant_for(op: Operator, key: int, dtypes: OperandDtypes | None) -> StructMemory:
    """Return the variant of resolved dtypes; without native code, one that falls back to Python."""
    try:
        if dtypes is not None:
            made = _make_loop_variant(op, key, dtypes)
            if dtypes.number:
                made.set(Variant.number, dtypes.number)
                made.refer(Variant.descr, NARROW.get(dtypes.out, dtypes.out).np)
            return made
    except TandemError:
        pass
    return structs.make_variant(key, 0, None, ())


def _make_loop_variant(op: Operator, key: int, dtypes: OperandDtypes) -> StructMemory:
    body = make_expression(op, dtypes)
    if not is_complex(dtypes):
        code = compile_loop(op, dtypes)
        made = structs.make_variant(key, code["loop"], dtypes.out, dtypes.inputs, code)
        made.set(Variant.release, elements_per_time(RELEASE_NS, estimate_element(body)))
        return made
    program = make_program(body, len(dtypes.inputs))
    if program is None:
        return structs.make_variant(key, 0, None, ())
    code = compile_interpreter()
    made = structs.make_variant(key, code["loop"], dtypes.out, dtypes.inputs, code)
    made.point(Variant.program, program)
    made.set(Variant.release, elements_per_time(RELEASE_NS, estimate_element(body)))
    return made

"""The native loops of elementwise operators: choose and compile one for a combination of operand dtypes.

Such a loop with its dtypes is a variant of the operator's entry. The entry (entries/rt_elementwise.py:elementwise)
finds the variant of a call's operand types and runs its loop.
"""

from __future__ import annotations

from typing import Any

from .....eager.tensor.weak_scalars import DTYPES, is_function, shown, widest
from .....errors import TandemError
from .....named_tuple import NamedTuple
from .....operators.declare.shape_rules import compute_dtype, operand_dtypes, promoted_dtype
from .....operators.scalar_ir import nodes
from .....operators.scalar_ir.expr import Expr, arg, cast, substitute
from .....registry.dtypes import DType, default_float, float32
from .....registry.operator import Operator
from .....registry.values import TensorSpec
from ...codegen.elementwise import write_loop
from ...codegen.text import Module
from ...loop_cost import RELEASE_NS, elements_per_time, estimate_element
from ..compiler import engine
from .layout import find_node_loop
from .structs import CODES, WEAK_CODES, StructMemory, make_variant, unpack_codes


class OperandDtypes(NamedTuple):
    """The dtypes that an operator computes with, for a combination of operand codes."""

    bodies: tuple[DType, ...]  # what the operator's body takes
    inputs: tuple[DType, ...]  # what the operands are
    out: DType
    ends_in_number: bool = False  # whether the second of two operands is a real Python number
    number: int = 0  # operands that are all numbers: the code of the number that the result is


_NUMBERS = {DTYPES[kind]: code for code, kind in WEAK_CODES.items()}


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
        if checked or default_float() is not float32:  # native code shows weak scalars in float32
            return None
        return _resolve_number_dtypes(op, bodies)
    weak = tuple(promoted if body is computed else body for body in bodies)
    inputs = tuple(weak[i] if code in WEAK_CODES else CODES[code] for i, code in enumerate(codes))
    ends_in_number = len(codes) == 2 and WEAK_CODES.get(codes[1], complex) is not complex
    return OperandDtypes(bodies, inputs, out, ends_in_number)


def _resolve_number_dtypes(op: Operator, bodies: tuple[DType, ...]) -> OperandDtypes | None:
    """Return the dtypes for numbers alone: tensors of the widest dtype of their kind, and a number as result."""
    wide = tuple(map(widest, bodies))
    out = op.decl.shape_rule(*[TensorSpec((), dtype) for dtype in wide]).dtype
    if out not in _NUMBERS or not is_function(op, (), {}):
        return None
    return OperandDtypes(wide, wide, out, number=_NUMBERS[out])


def _promoted_operands(op: Operator, operands: list[Any]) -> list[Any]:
    """Return the operands that take part in promotion: all but conditions."""
    names = [argument.name for argument in op.schema.arguments]
    return [operand for name, operand in zip(names, operands, strict=True) if name not in op.decl.conditions]


def make_expression(op: Operator, dtypes: OperandDtypes) -> Expr:
    """Return the expression that a loop computes for one element."""
    if op.decl.kind == "cast":
        return cast(arg(0, dtypes.inputs[0]), dtypes.out)
    body = nodes.instantiate(op.decl.body_with(dtypes.ends_in_number), dtypes.bodies, dtypes.out)
    pairs = zip(dtypes.inputs, dtypes.bodies, strict=True)
    return substitute(body, [cast(arg(i, have), want) for i, (have, want) in enumerate(pairs)])


def make_module(op: Operator, dtypes: OperandDtypes) -> Module:
    """Return the module of a loop.

    Raises:
        UnsupportedError: the emitter has no code for one of the dtypes.
    """
    module = Module(find_node_loop)
    write_loop(module, "loop", make_expression(op, dtypes), dtypes.inputs, dtypes.out)
    return module


def has_loop(op: Operator, dtypes: OperandDtypes) -> bool:
    """Return whether there is native code for a combination."""
    try:
        return bool(make_module(op, dtypes))
    except TandemError:
        return False


@engine.KeepFirst
def compile_loop(op: Operator, dtypes: OperandDtypes) -> engine.Code:
    """Return a compiled loop; combinations with the same dtypes share one.

    Raises:
        UnsupportedError: the emitter has no code for one of the dtypes.
    """
    module = make_module(op, dtypes)
    return engine.compile_ir(str(module), ["loop"], module.imports)


def make_elementwise_variant(op: Operator, key: int) -> StructMemory:
    """Return the variant of a key; without native code for the combination, one that falls back to Python."""
    return make_variant_for(op, key, resolve_dtypes(op, unpack_codes(key, len(op.schema.arguments))))


def make_cast_variant(op: Operator, key: int) -> StructMemory:
    """Return the variant of a dtype and the one that it is cast to."""
    source, target = (CODES[code] for code in unpack_codes(key, 2))
    # Python raises the error that says what to do instead
    dropped = source.kind == "c" and target.kind not in "bc"
    return make_variant_for(op, key, None if dropped else OperandDtypes((source,), (source,), target))


def make_variant_for(op: Operator, key: int, dtypes: OperandDtypes | None) -> StructMemory:
    """Return the variant of resolved dtypes; without native code, one that falls back to Python."""
    if dtypes is None:
        return make_variant(key)
    fields: dict[str, Any] = {}
    try:
        code = compile_loop(op, dtypes)
        each = estimate_element(make_expression(op, dtypes))
        fields["release"] = elements_per_time(RELEASE_NS, each)
    except TandemError:
        return make_variant(key)
    if dtypes.number:
        fields |= {"number": dtypes.number, "descr": shown(dtypes.out).np}
    return make_variant(key, code, dtypes.out, dtypes.inputs, **fields)

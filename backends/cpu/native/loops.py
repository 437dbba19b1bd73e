"""Loops of elementwise operators for one combination of operand types: what a variant of an entry runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....errors import TandemError
from ....operators import scalar
from ....operators.expr import Expr, arg, cast, substitute
from ....operators.rules import compute_dtype, operand_dtypes, promoted_dtype
from ....registry.dtypes import DType
from ....registry.operator import Operator
from ....registry.values import TensorSpec
from ..emit.elementwise import emit_loop
from . import engine, records
from .programs import interpreter, program_of
from .records import CODES, WEAK_CODES, Record
from .rt_elementwise import V_PROGRAM
from .rt_operands import CODE_BITS


class Plan(NamedTuple):
    """What a combination of operand codes means for an operator."""

    bodies: tuple[DType, ...]  # what the operator's body takes
    inputs: tuple[DType, ...]  # what the operands are
    out: DType


def codes_of(key: int, arity: int) -> tuple[int, ...]:
    """The operands' codes in a key."""
    return tuple(key >> CODE_BITS * i & 31 for i in range(arity))


def plan(op: Operator, codes: tuple[int, ...]) -> Plan | None:
    """The dtypes of a combination, by the operator's own rules; None when it refuses the combination."""
    decl, name = op.decl, op.schema.name
    operands: list[Any] = [
        WEAK_CODES[code](0) if code in WEAK_CODES else TensorSpec((), CODES[code]) for code in codes
    ]
    try:
        out = decl.meta(*operands).dtype
        computed = compute_dtype(name, decl.result, decl.dtypes, operands)
        bodies = operand_dtypes(decl, computed, len(codes))
        promoted = promoted_dtype(name, _promoting(op, operands))
    except TandemError:
        return None
    if decl.value_checked and computed.is_integer and any(type(operand) is int for operand in operands):
        return None  # the rule looks at the integer's value
    weak = tuple(promoted if body is computed else body for body in bodies)
    inputs = tuple(weak[i] if code in WEAK_CODES else CODES[code] for i, code in enumerate(codes))
    return Plan(bodies, inputs, out)


def _promoting(op: Operator, operands: list[Any]) -> list[Any]:
    """The operands that take part in promotion: all but conditions."""
    names = [argument.name for argument in op.schema.arguments]
    return [operand for name, operand in zip(names, operands, strict=True) if name not in op.decl.conditions]


_loops: dict[tuple[Operator, Plan], engine.Code] = {}


def expression(op: Operator, found: Plan) -> Expr:
    """What the loop of a plan computes for one element."""
    if op.decl.kind == "cast":
        return cast(arg(0, found.inputs[0]), found.out)
    body = scalar.instantiate(op.decl.body, found.bodies, found.out)
    pairs = zip(found.inputs, found.bodies, strict=True)
    return substitute(body, [cast(arg(i, have), want) for i, (have, want) in enumerate(pairs)])


def loop_ir(op: Operator, found: Plan) -> str:
    """LLVM IR of the loop of a plan.

    Raises:
        UnsupportedError: the emitter has no code for one of the dtypes.
    """
    return emit_loop("loop", expression(op, found), found.inputs, found.out)


def is_complex(found: Plan) -> bool:
    """Whether a plan is one for NumPy's inner loops, since the emitter has no complex dtypes."""
    return any(dtype.kind == "c" for dtype in (*found.inputs, *found.bodies, found.out))


def emittable(op: Operator, found: Plan) -> bool:
    """Whether there is native code for a plan."""
    try:
        if is_complex(found):
            return program_of(expression(op, found), len(found.inputs)) is not None
        return bool(loop_ir(op, found))
    except TandemError:
        return False


def loop_of(op: Operator, found: Plan) -> engine.Code:
    """The compiled loop of a plan; combinations with the same dtypes share one.

    Raises:
        UnsupportedError: the emitter has no code for one of the dtypes.
    """
    if (op, found) not in _loops:
        _loops[op, found] = engine.compile_ir(loop_ir(op, found), ["loop"])
    return _loops[op, found]


def elementwise_variant(op: Operator, key: int) -> Record:
    """The variant of a key; one that leaves the combination to Python if there is no native code for it."""
    found = plan(op, codes_of(key, len(op.schema.arguments)))
    return plan_variant(op, key, found)


def cast_variant(op: Operator, key: int) -> Record:
    """The variant of a dtype and the one that it is cast to."""
    source, target = (CODES[code] for code in codes_of(key, 2))
    dropped = source.kind == "c" and target.kind not in "bc"  # Python says what to do instead
    return plan_variant(op, key, None if dropped else Plan((source,), (source,), target))


def plan_variant(op: Operator, key: int, found: Plan | None) -> Record:
    """The variant of a plan; one that leaves it to Python if there is no native code for it."""
    try:
        if found is not None:
            return _variant(op, key, found)
    except TandemError:
        pass
    return records.variant_record(key, 0, None, ())


def _variant(op: Operator, key: int, found: Plan) -> Record:
    if not is_complex(found):
        code = loop_of(op, found)
        return records.variant_record(key, code["loop"], found.out, found.inputs, code)
    program = program_of(expression(op, found), len(found.inputs))
    if program is None:
        return records.variant_record(key, 0, None, ())
    code = interpreter()
    made = records.variant_record(key, code["loop"], found.out, found.inputs, code)
    made.point(V_PROGRAM, program)
    return made

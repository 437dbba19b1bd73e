"""Loops of elementwise operators for one combination of operand types: what a variant of an entry runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....errors import TandemError
from ....operators import scalar
from ....operators.expr import arg, cast, substitute
from ....operators.rules import compute_dtype, operand_dtypes, promoted_dtype
from ....registry.dtypes import DType
from ....registry.operator import Operator
from ....registry.values import TensorSpec
from ..emit.elementwise import emit_loop
from . import engine, records
from .records import CODES, WEAK_CODES, Record
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


def loop_ir(op: Operator, found: Plan) -> str:
    """LLVM IR of the loop of a plan.

    Raises:
        UnsupportedError: the emitter has no code for one of the dtypes.
    """
    body = scalar.instantiate(op.decl.body, found.bodies, found.out)
    pairs = zip(found.inputs, found.bodies, strict=True)
    operands = [cast(arg(i, have), want) for i, (have, want) in enumerate(pairs)]
    return emit_loop("loop", substitute(body, operands), found.inputs, found.out)


def emittable(op: Operator, found: Plan) -> bool:
    """Whether there is native code for a plan."""
    try:
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
    try:
        code = loop_of(op, found) if found is not None else None
    except TandemError:
        code = None
    if found is None or code is None:
        return records.variant_record(key, 0, None, ())
    return records.variant_record(key, code["loop"], found.out, found.inputs, code)

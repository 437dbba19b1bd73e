"""Find the operands of the operator that a Python function runs, on CPython's evaluation stack.

Native entries compute a large result in the memory of an operand that only that stack refers to
(runtime/rt_temporaries.py). The index of an operand's slot follows from the bytecode: each instruction has one depth of
the stack, since the compiler reserves the stack by it.
"""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType, FrameType

from ..compiler.structs import read
from ..runtime.rt_temporaries import INDEX_SHIFT, FrameObject, InterpreterFrame

MOST_CODES = 256
UNKNOWN = 0
_OPERANDS = {"BINARY_OP": 2, "UNARY_NEGATIVE": 1, "UNARY_INVERT": 1}
_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])
_ENDS = frozenset(
    "JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD RAISE_VARARGS RERAISE RETURN_CONST RETURN_VALUE".split()
)

# by the addresses of code objects: the code, which keeps its address, and its operators' operands once it ran twice
_known: dict[int, tuple[CodeType, dict[int, int] | None]] = {}


def find_operands(frame: FrameType) -> int:
    """Return where a frame's current operator has its operands.

    Args:
        frame: a frame whose current instruction is running.

    Returns:
        The number of operands, plus the index of the first one's slot in the frame times ``1 << INDEX_SHIFT``;
        `UNKNOWN` for other instructions, and for functions that are seen for the first time.
    """
    code = frame.f_code
    known = _known.get(id(code))
    if known is None:
        if len(_known) >= MOST_CODES:
            _known.clear()
        _known[id(code)] = code, None  # a code that runs once is not worth the analysis
        return UNKNOWN
    operands = known[1]
    if operands is None:
        try:
            operands = read_operands(code) if has_expected_layout() else {}
        except (ValueError, KeyError, IndexError):  # an instruction that this interpreter does not describe
            operands = {}
        _known[id(code)] = code, operands
    return operands.get(frame.f_lasti, UNKNOWN)


def read_operands(code: CodeType) -> dict[int, int]:
    """Return what `find_operands` returns, by the offsets of a code's operators.

    Exception handlers, which no jump leads to, have no known depth.

    >>> {offset: value & 3 for offset, value in read_operands((lambda x: -x * x).__code__).items()}.values()
    dict_values([1, 2])
    """
    first = len(code.co_varnames) + len({*code.co_cellvars} - {*code.co_varnames}) + len(code.co_freevars)
    depths: dict[int, int] = {}
    operands: dict[int, int] = {}
    depth: int | None = 0
    for item in dis.get_instructions(code):
        depth = depths.get(item.offset, depth)
        if depth is None:
            continue
        count = _OPERANDS.get(item.opname, 0)
        if count:
            operands[item.offset] = count | (first + depth - count) << INDEX_SHIFT
        if item.opcode in _JUMPS:
            depths[item.argval] = depth + dis.stack_effect(item.opcode, item.arg, jump=True)
        if item.opname in _ENDS:
            depth = None
        elif item.opname == "RETURN_GENERATOR":
            depth = 1  # the value that was sent to the generator
        else:
            depth += dis.stack_effect(item.opcode, item.arg, jump=False)
    return operands


@functools.cache
def has_expected_layout() -> bool:
    """Return whether this interpreter's frames have their operands where `find_operands` expects them."""
    one, two = _Operand(), _Operand()

    def multiply() -> list[bool]:
        return [True, one * two]

    return all(multiply())


class _Operand:
    """An operand whose product is whether both operands are where they are expected."""

    def __mul__(self, other: object) -> bool:
        frame = sys._getframe(1)
        operands = read_operands(frame.f_code).get(frame.f_lasti, UNKNOWN)
        slots = InterpreterFrame(FrameObject(id(frame)).frame).slots + (operands >> INDEX_SHIFT) * 8
        return [read("i64", slots), read("i64", slots + 8)] == [id(self), id(other)]

"""Random bits in emitted code: Philox4x32-10, eight blocks at a time, called from within ``main``.

The bits are those of :mod:`tandem.operators.random.philox`, which names the source of the algorithm.
"""

from __future__ import annotations

import math
from typing import Any

from ...lowering.layout import Layout
from ...lowering.thunks import NodeThunk
from ...operators.random.philox import BITS, FACTORS, FOLD, ROUNDS, SPLIT, WEYL
from ...registry.dtypes import DType, int64, uint32
from ...tracer.graph import Node, Value

USES = {"td::random_bits": BITS, "td::random_split": SPLIT}
FOLDS = "td::random_fold_in"
LANES = 8
_WIDE, _NARROW = f"<{LANES} x i64>", f"<{LANES} x i32>"


def explain_random_bits(node: Node) -> str | None:
    """Return why the code of this module serves a node, or None if it does not."""
    key = node.args[0] if node.args else None
    if not isinstance(key, Value) or key.spec.dtype is not uint32:
        return None
    if node.op.name in USES:
        return "Philox, eight blocks at a time"
    return (
        "Philox, one block for each key"
        if node.op.name == FOLDS and _find_strides(node) is not None
        else None
    )


def _find_strides(node: Node) -> tuple[int, int] | None:
    """Return the strides (0 or 1) of keys and numbers over the new keys; None if their sizes do not broadcast so."""
    key, number = node.args
    lead = math.prod(node.outputs[0].shape[:-1])
    sizes = (math.prod(key.shape[:-1]), number.spec.size if isinstance(number, Value) else 1)
    return None if any(size not in (1, lead) for size in sizes) else (int(sizes[0] != 1), int(sizes[1] != 1))


def _multiply_wide(name: str, source: str, factor: int) -> list[str]:
    """Return instructions for the upper (``h``) and lower (``l``) 32 bits of a product with a constant."""
    return [
        f"  %{name}w = zext {_NARROW} %{source} to {_WIDE}",
        f"  %{name}p = mul {_WIDE} %{name}w, splat (i64 {factor})",
        f"  %{name}s = lshr {_WIDE} %{name}p, splat (i64 32)",
        f"  %{name}h = trunc {_WIDE} %{name}s to {_NARROW}",
        f"  %{name}l = trunc {_WIDE} %{name}p to {_NARROW}",
    ]


def _broadcast(name: str, word: str) -> list[str]:
    """Return instructions that put one 32-bit value in all lanes."""
    return [
        f"  %{name}i = insertelement {_NARROW} poison, i32 {word}, i32 0",
        f"  %{name} = shufflevector {_NARROW} %{name}i, {_NARROW} poison, {_NARROW} zeroinitializer",
    ]


def _round(n: int, words: tuple[str, str, str, str]) -> tuple[list[str], tuple[str, str, str, str]]:
    """Return one round's instructions, and the names of the four registers after it."""
    one, two, three, four = words
    lines = [*_multiply_wide(f"m{n}", one, FACTORS[0]), *_multiply_wide(f"o{n}", three, FACTORS[1])]
    for pointer in (0, 1):
        lines.append(f"  %r{n}k{pointer} = add i32 %k{pointer}, {n * WEYL[pointer] % 2**32}")
        lines += _broadcast(f"v{n}k{pointer}", f"%r{n}k{pointer}")
    lines += [
        f"  %x{n}a = xor {_NARROW} %o{n}h, %{two}",
        f"  %a{n} = xor {_NARROW} %x{n}a, %v{n}k0",
        f"  %x{n}c = xor {_NARROW} %m{n}h, %{four}",
        f"  %c{n} = xor {_NARROW} %x{n}c, %v{n}k1",
    ]
    return lines, (f"a{n}", f"o{n}l", f"c{n}", f"m{n}l")


def _counters() -> list[str]:
    """Return instructions for eight blocks' counters from ``%block`` on: ``%low``, ``%high``, ``%s2``, ``%s3``."""
    order = ", ".join(f"i64 {lane}" for lane in range(LANES))
    return [
        f"  %bi = insertelement {_WIDE} poison, i64 %block, i32 0",
        f"  %bv = shufflevector {_WIDE} %bi, {_WIDE} poison, {_NARROW} zeroinitializer",
        f"  %number = add {_WIDE} %bv, <{order}>",
        f"  %low = trunc {_WIDE} %number to {_NARROW}",
        f"  %upper = lshr {_WIDE} %number, splat (i64 32)",
        f"  %upper32 = trunc {_WIDE} %upper to {_NARROW}",
        *_broadcast("uses", "%use"),
        f"  %high = or {_NARROW} %upper32, %uses",
        *_broadcast("s2", "%k2"),
        *_broadcast("s3", "%k3"),
    ]


def _blocks() -> list[str]:
    """Return instructions for ``%words``: the bits of eight blocks, block after block."""
    lines, words = _counters(), ("low", "high", "s2", "s3")
    for n in range(ROUNDS):
        more, words = _round(n, words)
        lines += more
    two, four = 2 * LANES, 4 * LANES
    joined = ", ".join(f"i32 {i}" for i in range(two))
    order = ", ".join(f"i32 {word * LANES + lane}" for lane in range(LANES) for word in range(4))
    pairs = (words[0], words[1]), (words[2], words[3])
    for name, (one, other) in zip(("half0", "half1"), pairs, strict=True):
        lines.append(
            f"  %{name} = shufflevector {_NARROW} %{one}, {_NARROW} %{other}, <{two} x i32> <{joined}>"
        )
    both = f"<{two} x i32> %half0, <{two} x i32> %half1"
    return [*lines, f"  %words = shufflevector {both}, <{four} x i32> <{order}>"]


_FUNCTION = """define LINKAGEvoid @philox_words(ptr %keys, i64 %n, i64 %count, i32 %use, ptr %out) {
entry:
  %rest = alloca <SIZE x i32>
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %outer
outer:
  %at = phi i64 [ 0, %entry ], [ %at1, %row ]
  %more = icmp slt i64 %at, %n
  br i1 %more, label %start, label %done
start:
  %key = getelementptr [4 x i32], ptr %keys, i64 %at
LOADS
  %base = mul i64 %at, %count
  %to = getelementptr i32, ptr %out, i64 %base
  br label %loop
loop:
  %block = phi i64 [ 0, %start ], [ %block1, %next ]
BLOCKS
  %first = shl i64 %block, 2
  %first_word = getelementptr i32, ptr %to, i64 %first
  %left = sub i64 %count, %first
  %whole = icmp sge i64 %left, SIZE
  br i1 %whole, label %full, label %part
full:
  store <SIZE x i32> %words, ptr %first_word, align 4
  br label %next
part:
  store <SIZE x i32> %words, ptr %rest
  br label %copy
copy:
  %i = phi i64 [ 0, %part ], [ %i1, %copy ]
  %from = getelementptr i32, ptr %rest, i64 %i
  %word = load i32, ptr %from, align 4
  %into = getelementptr i32, ptr %first_word, i64 %i
  store i32 %word, ptr %into, align 4
  %i1 = add i64 %i, 1
  %rests = icmp slt i64 %i1, %left
  br i1 %rests, label %copy, label %next
next:
  %block1 = add i64 %block, LANES
  %again = icmp sgt i64 %left, SIZE
  br i1 %again, label %loop, label %row
row:
  %at1 = add i64 %at, 1
  br label %outer
done:
  ret void
}
"""


_FOLD = """define internal void @NAME(ptr %keys, i64 %key_step, ptr %numbers, i64 %number_step, i64 %n, ptr %out) {
entry:
  br label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %at1, %next ]
  %more = icmp slt i64 %at, %n
  br i1 %more, label %next, label %done
next:
  %key_at = mul i64 %at, %key_step
  %key = getelementptr [4 x i32], ptr %keys, i64 %key_at
LOADS
  %number_at = mul i64 %at, %number_step
  %number_place = getelementptr TYPE, ptr %numbers, i64 %number_at
  %given = load TYPE, ptr %number_place, align 1
  %wide = EXTENDED
  %block = and i64 %wide, MASK
BLOCKS
  %new = shufflevector <SIZE x i32> %words, <SIZE x i32> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %to = getelementptr [4 x i32], ptr %out, i64 %at
  store <4 x i32> %new, ptr %to, align 4
  %at1 = add i64 %at, 1
  br label %loop
done:
  ret void
}
"""


def _fill_template(text: str) -> str:
    """Replace the placeholders of a template."""
    loads = []
    for pointer in range(4):
        loads += [
            f"  %kp{pointer} = getelementptr i32, ptr %key, i64 {pointer}",
            f"  %k{pointer} = load i32, ptr %kp{pointer}, align 4",
        ]
    text = text.replace("SIZE", str(4 * LANES)).replace("LANES", str(LANES))
    return text.replace("LOADS", "\n".join(loads)).replace("BLOCKS", "\n".join(_blocks()))


def bits_function_ir(linkage: str = "internal ") -> str:
    """Return ``void philox_words(ptr keys, i64 n, i64 count, i32 use, ptr out)``: first bits of each key's stream.

    Python twin: operators/random/philox.py:random_words
    """
    return _fill_template(_FUNCTION.replace("LINKAGE", linkage))


def _fold_function_ir(name: str, dtype: DType) -> str:
    """Return the function that folds numbers of a dtype into keys.

    Its signature is ``void name(ptr keys, i64 step, ptr numbers, i64 step, i64 n, ptr out)``.
    """
    kind = f"i{dtype.bits}"
    extended = f"{'sext' if dtype.kind == 'i' else 'zext'} {kind} %given to i64"
    text = _FOLD.replace("NAME", name).replace("EXTENDED", "or i64 %given, 0" if kind == "i64" else extended)
    text = text.replace("TYPE", kind).replace("MASK", str(2**62 - 1))
    return _fill_template(text).replace("i32 %use,", f"i32 {FOLD << 30},")


class RandomBitsCall:
    """The LLVM IR of one call.

    Attributes:
        lines: instructions for ``main``.
        function: definition of the function that they call.
    """

    def __init__(self, writer: Any, step: NodeThunk, number: int):
        node, out, self.lines = step.node, step.node.outputs[0], []
        pointers = [
            self._write_pointer(writer, operand, f"%w{number}o{i}") for i, operand in enumerate(step.operands)
        ]
        if node.op.name == FOLDS:
            self._fold(writer, node, pointers, number)
            return
        keys = math.prod(node.args[0].shape[:-1])
        count = out.spec.size * out.spec.dtype.itemsize // 4 // max(keys, 1)
        self.function = bits_function_ir()
        self.lines.append(
            f"  call void @philox_words(ptr {pointers[0]}, i64 {keys}, i64 {count}, i32 {USES[node.op.name] << 30}, "
            f"ptr {writer.pointer(out)})"
        )

    def _write_pointer(self, writer: Any, operand: tuple[Value, Layout], register: str) -> str:
        root, layout = operand
        offset = layout.offset * root.spec.dtype.itemsize
        self.lines.append(f"  {register} = getelementptr i8, ptr {writer.pointer(root)}, i64 {offset}")
        return register

    def _fold(self, writer: Any, node: Node, pointers: list[str], number: int) -> None:
        data, out = node.args[1], node.outputs[0]
        known = not isinstance(data, Value)
        if known:
            register = f"%w{number}n"
            pointers = [*pointers, register]
            self.lines += [
                *writer.allocate_scratch(register, 8),
                f"  store i64 {data % 2**64}, ptr {register}",
            ]
        dtype = int64 if known else data.spec.dtype
        name, steps = f"philox_fold_{dtype.name}", _find_strides(node) or (0, 0)
        self.function = _fold_function_ir(name, dtype)
        given = ", ".join(f"ptr {pointer}, i64 {step}" for pointer, step in zip(pointers, steps))
        self.lines.append(
            f"  call void @{name}({given}, i64 {out.spec.size // 4}, ptr {writer.pointer(out)})"
        )

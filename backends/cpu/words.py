"""Random words in machine code: Philox4x32-10 for eight blocks at a time, called from within ``main``.

The words are those of :mod:`tandem.operators.philox`, which says where they come from.
"""

from __future__ import annotations

import math
from typing import Any

from ...lowering.steps import NodeStep
from ...operators.philox import BITS, FACTORS, ROUNDS, SPLIT, WEYL
from ...registry.dtypes import uint32
from ...tracer.graph import Node, Value

USES = {"td::random_bits": BITS, "td::random_split": SPLIT}
LANES = 8
_WIDE, _NARROW = f"<{LANES} x i64>", f"<{LANES} x i32>"


def words_reason(node: Node) -> str | None:
    """Why a node is served by the words written out here, or None if it is not."""
    key = node.args[0] if node.args else None
    if node.op.name not in USES or not isinstance(key, Value) or key.spec.dtype is not uint32:
        return None
    return "Philox, eight blocks at a time"


def _times(name: str, source: str, factor: int) -> list[str]:
    """The upper (``h``) and lower (``l``) 32 bits of words times a factor."""
    return [
        f"  %{name}w = zext {_NARROW} %{source} to {_WIDE}",
        f"  %{name}p = mul {_WIDE} %{name}w, splat (i64 {factor})",
        f"  %{name}s = lshr {_WIDE} %{name}p, splat (i64 32)",
        f"  %{name}h = trunc {_WIDE} %{name}s to {_NARROW}",
        f"  %{name}l = trunc {_WIDE} %{name}p to {_NARROW}",
    ]


def _spread(name: str, word: str) -> list[str]:
    """One word in all lanes."""
    return [
        f"  %{name}i = insertelement {_NARROW} poison, i32 {word}, i32 0",
        f"  %{name} = shufflevector {_NARROW} %{name}i, {_NARROW} poison, {_NARROW} zeroinitializer",
    ]


def _round(n: int, words: tuple[str, str, str, str]) -> tuple[list[str], tuple[str, str, str, str]]:
    """One round, and the names of the four words after it."""
    one, two, three, four = words
    lines = [*_times(f"m{n}", one, FACTORS[0]), *_times(f"o{n}", three, FACTORS[1])]
    for place in (0, 1):
        lines.append(f"  %r{n}k{place} = add i32 %k{place}, {n * WEYL[place] % 2**32}")
        lines += _spread(f"v{n}k{place}", f"%r{n}k{place}")
    lines += [
        f"  %x{n}a = xor {_NARROW} %o{n}h, %{two}",
        f"  %a{n} = xor {_NARROW} %x{n}a, %v{n}k0",
        f"  %x{n}c = xor {_NARROW} %m{n}h, %{four}",
        f"  %c{n} = xor {_NARROW} %x{n}c, %v{n}k1",
    ]
    return lines, (f"a{n}", f"o{n}l", f"c{n}", f"m{n}l")


def _counters() -> list[str]:
    """The four words of the counters of eight blocks from ``%block`` on: ``%low``, ``%high``, ``%s2``, ``%s3``."""
    order = ", ".join(f"i64 {lane}" for lane in range(LANES))
    return [
        f"  %bi = insertelement {_WIDE} poison, i64 %block, i32 0",
        f"  %bv = shufflevector {_WIDE} %bi, {_WIDE} poison, {_NARROW} zeroinitializer",
        f"  %number = add {_WIDE} %bv, <{order}>",
        f"  %low = trunc {_WIDE} %number to {_NARROW}",
        f"  %upper = lshr {_WIDE} %number, splat (i64 32)",
        f"  %upper32 = trunc {_WIDE} %upper to {_NARROW}",
        *_spread("uses", "%use"),
        f"  %high = or {_NARROW} %upper32, %uses",
        *_spread("s2", "%k2"),
        *_spread("s3", "%k3"),
    ]


def _blocks() -> list[str]:
    """``%words``: those of eight blocks, block after block."""
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
  %place = getelementptr i32, ptr %to, i64 %first
  %left = sub i64 %count, %first
  %whole = icmp sge i64 %left, SIZE
  br i1 %whole, label %full, label %part
full:
  store <SIZE x i32> %words, ptr %place, align 4
  br label %next
part:
  store <SIZE x i32> %words, ptr %rest
  br label %copy
copy:
  %i = phi i64 [ 0, %part ], [ %i1, %copy ]
  %from = getelementptr i32, ptr %rest, i64 %i
  %word = load i32, ptr %from, align 4
  %into = getelementptr i32, ptr %place, i64 %i
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


def function(linkage: str = "internal ") -> str:
    """``void philox_words(ptr keys, i64 n, i64 count, i32 use, ptr out)``: the first words of each key's stream."""
    loads = []
    for place in range(4):
        loads += [
            f"  %kp{place} = getelementptr i32, ptr %key, i64 {place}",
            f"  %k{place} = load i32, ptr %kp{place}, align 4",
        ]
    text = _FUNCTION.replace("LINKAGE", linkage).replace("SIZE", str(4 * LANES)).replace("LANES", str(LANES))
    return text.replace("LOADS", "\n".join(loads)).replace("BLOCKS", "\n".join(_blocks()))


class WordsCall:
    """The text of one call.

    Attributes:
        lines: instructions for ``main``.
        function: what they call.
    """

    def __init__(self, writer: Any, step: NodeStep, number: int):
        node, (root, layout) = step.node, step.operands[0]
        out = node.outputs[0]
        keys = math.prod(node.args[0].shape[:-1])
        count = out.spec.size * out.spec.dtype.itemsize // 4 // max(keys, 1)
        use = USES[node.op.name] << 30
        register = f"%w{number}"
        self.function = function()
        self.lines = [
            f"  {register} = getelementptr i32, ptr {writer.pointer(root)}, i64 {layout.offset}",
            f"  call void @philox_words(ptr {register}, i64 {keys}, i64 {count}, i32 {use}, "
            f"ptr {writer.pointer(out)})",
        ]

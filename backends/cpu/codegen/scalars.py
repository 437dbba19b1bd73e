"""Write vectors of one element as scalars, as LLVM's Scalarizer pass would, which llvmlite does not offer.

Loops whose steps compute single numbers are written with vectors of one lane. LLVM keeps a ``<1 x i1>`` in a mask
register of AVX-512, so that each condition of such a loop costs several cycles more than one on a flag.
"""

from __future__ import annotations

import re

from ..linker import NEXT_MODULE

_T = r"(?:float|double|half|bfloat|i\d+|ptr)"
_ONE = rf"<1 x ({_T})>"
_VALUE = r"(%[\w.]+|[\w.-]+|splat \([^)]*\))"
_SPLAT = re.compile(rf"splat \({_T} ([^)]*)\)")
_CONSTANT = re.compile(rf"<{_T} ([^<>,\s]+)>")
_SINGLE = re.compile(r"<1 x |\.v1(?!\d)")
_INTRINSIC = re.compile(r"(@llvm\.[\w.]*?)\.v1([fi]\d+|bf16|p0)\b")
_WIDE = re.compile(rf"<(?:[2-9]|\d\d+) x {_T}>")
# What is written in place of instructions that move values in and out of vectors of one element.
_MOVES = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (
            rf"= shufflevector {_ONE} {_VALUE}, <1 x \1> poison, <1 x i32> (?:zeroinitializer|<i32 0>)$",
            r"= bitcast \1 \2 to \1",
        ),
        (rf"= insertelement {_ONE} [%\w.]+, \1 {_VALUE}, i64 [%\w.]+$", r"= bitcast \1 \2 to \1"),
        (rf"= extractelement {_ONE} {_VALUE}, i64 [%\w.]+$", r"= bitcast \1 \2 to \1"),
        (
            rf"= call {_T} @llvm\.vector\.reduce\.\w+\.v1\w+\({_ONE} {_VALUE}\)$",
            r"= bitcast \1 \2 to \1",
        ),
        (
            rf"= shufflevector <(\d+) x ({_T})> (%[\w.]+), <\1 x \2> poison, <1 x i32> <i32 (\d+)>$",
            r"= extractelement <\1 x \2> \3, i64 \4",
        ),
        (
            rf"(%\S+) = shufflevector {_ONE} {_VALUE}, <1 x \2> poison, <(\d+) x i32> "
            r"(?:zeroinitializer|<(?:i32 0(?:, )?)+>)$",
            r"\1.first = insertelement <\4 x \2> poison, \2 \3, i64 0"
            "\n"
            r"  \1 = shufflevector <\4 x \2> \1.first, <\4 x \2> poison, <\4 x i32> zeroinitializer",
        ),
        (
            rf"(%\S+) = shufflevector {_ONE} {_VALUE}, <1 x \2> {_VALUE}, <2 x i32> <i32 0, i32 1>$",
            r"\1.first = insertelement <2 x \2> poison, \2 \3, i64 0"
            "\n"
            r"  \1 = insertelement <2 x \2> \1.first, \2 \4, i64 1",
        ),
    )
)


def write_as_scalars(module: str) -> str:
    """Return the text of a module in which vectors of one element are scalars; the module itself if it has none.

    A module with an instruction of such vectors that is not known here is returned as it is. Users' modules, which
    follow it in the text, are not changed.

    >>> write_as_scalars("  %b = fadd <1 x float> %a, splat (float 1.0)")
    '  %b = fadd float %a, 1.0'
    """
    own, separator, others = module.partition(NEXT_MODULE)
    if "<1 x " not in own:
        return module
    lines: list[str] = []
    declared: set[str] = set()  # an intrinsic may be declared for scalars too
    for line in own.split("\n"):
        written = _write_line(line) if _SINGLE.search(line) else line
        if written is None:
            return module
        if written.startswith("declare "):
            if written in declared:
                continue
            declared.add(written)
        lines.append(written)
    return "\n".join(lines) + separator + others


def _write_line(line: str) -> str | None:
    """Return the text in place of a line that has vectors of one element; None if it is not known how to write it."""
    for pattern, written in _MOVES:
        line = pattern.sub(written, line)
    if not _SINGLE.search(line):
        return _SPLAT.sub(r"\1", line)
    if line.startswith("declare") and ".vector.reduce." in line:
        return ""  # its calls are moves
    if "shufflevector" in line or ".masked." in line or ".reduce." in line or _WIDE.search(line):
        return None
    line = _SPLAT.sub(r"\1", line)
    line = re.sub(rf"{_ONE} <\1 ([^<>]*)>", r"\1 \2", line)
    line = re.sub(_ONE, r"\1", line)
    return _INTRINSIC.sub(r"\1.\2", _CONSTANT.sub(r"\1", line))

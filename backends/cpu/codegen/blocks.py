"""Instructions, branches and loops of a function, as text that is being written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def reserve_stack(register: str, type_: str, align: int = 16) -> list[str]:
    """Return instructions that reserve memory on the stack, in the entry block, and begin its lifetime.

    LLVM's pass SROA replaces such memory by registers. LLVM 22 merges vectors that are stored to parts of it where the
    part with the highest address is stored, which may be before the other vectors are computed. The result does not
    verify, and inlining it aborts the process. Memory whose lifetime is marked is replaced in another, correct way.
    """
    return [f"  {register} = alloca {type_}, align {align}", begin_lifetime(register)]


def begin_lifetime(register: str) -> str:
    """Return the instruction that begins the lifetime of memory on the stack; see :func:`reserve_stack`."""
    return f"  call void @llvm.lifetime.start.p0(ptr {register})"


def is_one_iteration(start: str, stop: str, step: str) -> bool:
    """Return whether a loop's bounds are constants between which there is one step."""
    if not (start.isdecimal() and stop.isdecimal() and step.isdecimal()):
        return False
    return int(start) < int(stop) <= int(start) + int(step)


EXTREMA = ("@llvm.smax.", "@llvm.smin.", "@llvm.umax.", "@llvm.umin.")
"""Intrinsics that are selects of vectors where the processor has no instruction for them."""


class Loop:
    """A loop being written: its index, the values carried around it, and (set before its end) their next values."""

    def __init__(self, index: str, carried: list[str]):
        self.index = index
        self.carried = carried
        self.next = list(carried)


class Blocks:
    """The basic blocks of a function being written: a list of lines whose last block is open.

    Attributes:
        lines: the lines.
        block: the name of the open block.
        selected: the values that a select chooses, or one of ``EXTREMA``.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = "entry"
        self.selected: set[str] = set()
        self._serial = 0
        self._known: dict[str, str] = {}

    def fresh(self, prefix: str = "v") -> str:
        self._serial += 1
        return f"{prefix}{self._serial}"

    def op(self, text: str) -> str:
        """Write ``%new = text``; within a block the same text is written once."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = "%" + self.fresh()
            self.lines.append(f"  {known} = {text}")
            if text.startswith("select ") or any(name in text for name in EXTREMA):
                self.selected.add(known)
        return known

    def load(self, type_: str, pointer: str, kind: str = "") -> str:
        """Load from memory; loads are never shared, since memory changes. No alignment is assumed.

        Args:
            type_: the type of the value.
            pointer: where it is.
            kind: ``"volatile "``: LLVM neither moves nor repeats the load.
        """
        name = "%" + self.fresh()
        self.lines.append(f"  {name} = load {kind}{type_}, ptr {pointer}, align 1")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        """Begin a block; values computed before may not dominate it, so sharing starts again."""
        self.lines.append(f"{name}:")
        self.block = name
        self._known = {}

    def jump(self, name: str) -> None:
        self.do(f"br label %{name}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Write a block that runs if the i1 ``condition`` holds."""
        yes, end = self.fresh("then"), self.fresh("end")
        self.branch(condition, yes, end)
        self.label(yes)
        yield
        self.jump(end)
        self.label(end)

    @contextmanager
    def when_returning(self, condition: str) -> Iterator[None]:
        """Write a block that runs if the i1 ``condition`` holds, and returns from the function."""
        yes, end = self.fresh("then"), self.fresh("end")
        self.branch(condition, yes, end)
        self.label(yes)
        yield
        self.do("ret void")
        self.label(end)

    @contextmanager
    def loop(
        self, start: str, stop: str, step: str, carried: Sequence[tuple[str, str]] = ()
    ) -> Iterator[Loop]:
        """Write ``for index in range(start, stop, step)`` over i64, carrying (type, initial value) pairs.

        After the loop ``carried`` holds the final values. What is known to run once is no loop.
        """
        if is_one_iteration(start, stop, step):
            once = Loop(start, [first for _, first in carried])
            yield once
            once.carried[:] = once.next
            return
        head, body, end = self.fresh("head"), self.fresh("body"), self.fresh("done")
        before, index = self.block, "%" + self.fresh("i")
        names = ["%" + self.fresh("c") for _ in carried]
        self.jump(head)
        self.label(head)
        position = len(self.lines)
        self.branch(self.op(f"icmp slt i64 {index}, {stop}"), body, end)
        self.label(body)
        state = Loop(index, names)
        yield state
        after = self.op(f"add i64 {index}, {step}")
        phis = [f"  {index} = phi i64 [ {start}, %{before} ], [ {after}, %{self.block} ]"]
        for name, (type_, first), following in zip(names, carried, state.next, strict=True):
            phis.append(f"  {name} = phi {type_} [ {first}, %{before} ], [ {following}, %{self.block} ]")
        self.jump(head)
        self.lines[position:position] = phis
        self.label(end)

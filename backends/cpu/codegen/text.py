"""LLVM IR as text: fresh names, structured loops, vector types and constants, helper functions.

Parsing text takes a fraction of the time of building an object graph of the same module.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....operators.scalar_ir.expr import Expr
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ....registry.values import align_up
from ..linker import NEXT_MODULE
from ..target import vector_target
from .blocks import Blocks, reserve_stack

REGISTER = {
    dt.bool_: "i1",
    **{d: f"i{d.bits}" for d in dt.INTEGERS},
    dt.float16: "half",
    dt.bfloat16: "i16",
    dt.float32: "float",
    dt.float64: "double",
}
"""The element type of each dtype in a register. bfloat16 is its bits; complex numbers are pairs, see ``PARTS``."""

PARTS = {dt.complex64: dt.float32, dt.complex128: dt.float64}
"""The dtype of the parts of a complex one; :attr:`Function.is_split` tells their order in vectors."""

MOSTLY_FIRST = '!prof !{!"branch_weights", i32 1000, i32 1}'
"""Metadata of a branch or select: the condition mostly holds."""


def memory_block(size: int) -> str:
    """Return the type of ``size`` bytes in memory, for copies."""
    return f"i{8 * size}" if size <= 8 else f"<{size} x i8>"


def part_size(dtype: DType) -> int:
    """Return the bytes of an element, or of a part of a complex number."""
    return PARTS.get(dtype, dtype).itemsize


_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}  # in the names of intrinsics


def memory_type(dtype: DType) -> str:
    """Return the element type in memory: a bool is a byte."""
    return "i8" if dtype is dt.bool_ else REGISTER[dtype]


def literal(value: Any, dtype: DType) -> str:
    """Return a scalar constant as LLVM writes it."""
    value = np.asarray(value).astype(dtype.np)
    if dtype is dt.bool_:
        return "true" if value else "false"
    if dtype is dt.float16:
        return f"0xH{value.view(np.uint16):04X}"
    if dtype is dt.bfloat16:
        return str(int(value.view(np.uint16)))
    if dtype.kind == "f":
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"
    return str(int(value))


class Module:
    """Declarations and helper functions shared by the functions of one module, each written once.

    Attributes:
        imports: addresses of functions that the code calls.
        linked: texts of modules that define users' functions, by the function's name.
        find_loop: returns the addresses of the inner loop of a node's ufunc and of its data, or None.
        kernels: the name and the scratch memory of each kernel, by its structure: equal kernels are written once.
    """

    def __init__(self, find_loop: Callable[[Expr], tuple[int, int] | None] = lambda node: None) -> None:
        self.find_loop = find_loop
        self.parts: dict[str, str] = {}
        self.imports: dict[str, int] = {}
        self.linked: dict[str, str] = {}
        self.kernels: dict[object, tuple[str, Any]] = {}

    def declare(self, name: str, result: str, *params: str, pure: bool = True) -> None:
        """Declare an external function or intrinsic."""
        if name not in self.parts:
            attributes = " nounwind willreturn memory(none)" if pure and not name.startswith("llvm.") else ""
            self.parts[name] = f"declare {result} @{name}({', '.join(params)}){attributes}"

    def helper(self, name: str, text: str) -> None:
        """Add an internal function."""
        self.parts.setdefault(name, text)

    def __str__(self) -> str:
        text = "\n".join(self.parts.values()) + "\n" + ATTRIBUTES
        return NEXT_MODULE.join([text, *self.linked.values()])


# 512-bit registers stay legal, and arguments of vector functions stay in them, where LLVM prefers 256 bits
ATTRIBUTES = (
    'attributes #0 = { nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" }\n'
    'attributes #1 = { nounwind noinline "min-legal-vector-width"="512" "prefer-vector-width"="512" }\n'
)


class Function(Blocks):
    """The body of a function being written: a list of lines whose last block is open.

    Attributes:
        lanes: elements in a vector; ``vec("float")`` is ``<lanes x float>``.
        is_split: whether all real parts of a vector of complex numbers come before the imaginary ones, and not in turn.
        count: the register of the number of elements in the current vector, if not all lanes hold one.
        invariants: registers that are the same in all steps of the loop being written.
        sizes: the sizes of the dimensions whose positions are numbers in expressions.
        rests: for a remainder's register, one that is zero for the same elements and takes less to compute.
        late: for conditions that are one in all lanes and wait for a reduction, their i1.
        shared: elementary functions that are called, and not inlined, because they occur many times.
        scratch: the register of the scratch memory that the caller passes; without one :meth:`allocate` takes memory
            from the stack. ``below`` bytes before its address are allocated for the whole call. The bytes after it are
            for :meth:`allocate_scratch`: ``above`` are in use, and at most ``most`` at the same time.
    """

    def __init__(self, module: Module, lanes: int, scratch: str = ""):
        super().__init__()
        self.scratch, self.below, self.above, self.most = scratch, 0, 0, 0
        self.module = module
        self.lanes, self.is_split = lanes, False
        self.count = ""
        self.prologue: list[str] = []
        self.shared: frozenset[str] = frozenset()
        self.invariants: set[str] = set()
        self.sizes: Mapping[int, int] = {}
        self.rests: dict[str, str] = {}
        self.late: dict[str, str] = {}
        self.is_small = False  # few points: accesses with strides are written element by element
        self.gather: Callable[[Expr, list[str]], str] | None = None  # emits reads at integer positions

    def allocate(self, size: int, clear: int = 0) -> str:
        """Return memory of the function's own, of ``size`` bytes; the first ``clear`` are zero."""
        name = "%" + self.fresh("own")
        if self.scratch:
            self.below += align_up(size)
            self.prologue.append(f"  {name} = getelementptr i8, ptr {self.scratch}, i64 {-self.below}")
        else:
            self.prologue += reserve_stack(name, f"[{size} x i8]", 64)
        if clear:
            self.prologue.append(f"  store <{clear} x i8> zeroinitializer, ptr {name}, align 64")
        return name

    def allocate_scratch(self, size: int) -> str:
        """Return ``size`` bytes of scratch memory, valid until the caller resets ``above``."""
        start = self.address(self.scratch, str(self.above))
        self.above += align_up(size)
        self.most = max(self.most, self.above)
        return start

    @contextmanager
    def width(self, lanes: int) -> Iterator[None]:
        """Use vectors of another width inside the block."""
        outer, self.lanes = self.lanes, lanes
        yield
        self.lanes = outer

    # ---- vectors ----------------------------------------------------------------------------------------------------

    def vec(self, element: str) -> str:
        return f"<{self.lanes} x {element}>"

    @contextmanager
    def parts(self, dtype: DType) -> Iterator[DType]:
        """Use vectors of a complex dtype as those of its parts, of twice the width; yield the parts' dtype.

        Vectors of any other dtype stay what they are.
        """
        with self.width(self.lanes * (1 + (dtype in PARTS))):
            yield PARTS.get(dtype, dtype)

    def register_type(self, dtype: DType) -> str:
        """Return the type of a vector of a dtype."""
        with self.parts(dtype) as part:
            return self.vec(REGISTER[part])

    def part_of(self, dtype: DType) -> tuple[DType, int]:
        """Return the dtype of the parts of a number, and how many there are: two of a complex number."""
        return PARTS.get(dtype, dtype), 1 + (dtype in PARTS)

    def suffix(self, element: str) -> str:
        """Return the name of an element type in the names of intrinsics."""
        return _SUFFIX.get(element, element)

    def join_parts(self, element: str, real: str, imag: str) -> str:
        """Return the vector of complex numbers, or the mask of their parts, of two vectors of their parts."""
        picks = range(2 * self.lanes) if self.is_split else self._memory_order()
        return self.pick(element, real, imag, picks)

    def split_parts(self, element: str, pairs: str) -> tuple[str, str]:
        """Return the real and the imaginary parts of a vector of complex numbers."""
        lanes = self.lanes
        order = range(2 * lanes) if self.is_split else self._split_order()
        with self.width(2 * lanes):
            real = self.pick(element, pairs, "poison", order[:lanes])
            return real, self.pick(element, pairs, "poison", order[lanes:])

    def _memory_order(self) -> list[int]:
        """Return for each part of a vector of complex numbers in memory its position where parts are split."""
        return [at + self.lanes * is_imag for at in range(self.lanes) for is_imag in (0, 1)]

    def _split_order(self) -> list[int]:
        """Return the positions in memory of the real parts of complex numbers, then of the imaginary ones."""
        return [2 * at + is_imag for is_imag in (0, 1) for at in range(self.lanes)]

    def _mask_in_memory(self, mask: str, dtype: DType) -> str:
        return self.pick("i1", mask, mask, self._memory_order()) if dtype in PARTS else mask

    def _to_memory_order(self, value: str, dtype: DType) -> str:
        """Return a vector as it is in memory, where the parts of complex numbers are in turn."""
        return self._reorder(value, dtype, self._memory_order())

    def _from_memory_order(self, value: str, dtype: DType) -> str:
        """Return a vector from memory as it is in registers, where the parts of complex numbers may be split."""
        return self._reorder(value, dtype, self._split_order())

    def _reorder(self, value: str, dtype: DType, picks: Sequence[int]) -> str:
        if dtype not in PARTS or not self.is_split or self.lanes == 1:
            return value
        with self.parts(dtype) as part:
            return self.pick(REGISTER[part], value, "poison", picks)

    def concatenate(self, element: str, vectors: list[str]) -> tuple[str, int]:
        """Return one vector of the elements of vectors, one after the other, and its size: a power of two vectors."""
        parts = vectors + ["poison"] * ((1 << (len(vectors) - 1).bit_length()) - len(vectors))
        size = self.lanes
        while len(parts) > 1:
            vec, picks = f"<{size} x {element}>", ", ".join(f"i32 {number}" for number in range(2 * size))
            shuffle, order = f"shufflevector {vec}", f"<{2 * size} x i32> <{picks}>"
            pairs = zip(parts[::2], parts[1::2])
            parts = [self.op(f"{shuffle} {a}, {vec} {b}, {order}") for a, b in pairs]
            size *= 2
        return parts[0], size

    def each_part(self, mask: str, dtype: DType) -> str:
        """Return the mask of the parts of complex numbers; for other dtypes the mask itself."""
        return self.join_parts("i1", mask, mask) if dtype in PARTS else mask

    def splat(self, value: Any, dtype: DType) -> str:
        """Return a constant in every lane."""
        if dtype in PARTS:
            number, part = np.asarray(value).astype(dtype.np), PARTS[dtype]
            pair = [f"{REGISTER[part]} {literal(x, part)}" for x in (number.real, number.imag)]
            lanes = sorted(pair * self.lanes, key=pair.index) if self.is_split else pair * self.lanes
            return f"<{', '.join(lanes)}>"
        return f"splat ({REGISTER[dtype]} {literal(value, dtype)})"

    def broadcast(self, value: str, element: str) -> str:
        """Return a scalar register in every lane."""
        vec = self.vec(element)
        first = self.op(f"insertelement {vec} poison, {element} {value}, i64 0")
        return self.op(f"shufflevector {vec} {first}, {vec} poison, <{self.lanes} x i32> zeroinitializer")

    def reverse(self, value: str, element: str) -> str:
        """Return a vector with its lanes in reverse order."""
        return self.pick(element, value, "poison", reversed(range(self.lanes)))

    def lane_numbers(self, element: str = "i64") -> str:
        """Return the constant <0, 1, 2, ...> of integers."""
        return "<" + ", ".join(f"{element} {i}" for i in range(self.lanes)) + ">"

    def extract_lanes(self, value: str, element: str, start: int, lanes: int) -> str:
        """Extract lanes ``start`` to ``start + lanes`` of a vector; lanes past its end are poison."""
        return self.pick(element, value, "poison", (min(i, self.lanes) for i in range(start, start + lanes)))

    def mostly(self, condition: str, type_: str, first: str, second: str) -> str:
        """Return a select whose condition mostly holds. LLVM makes a branch of it in scalar code.

        A chain of such selects then takes the time of what is selected; vectors are selected as usual.
        """
        chosen = f"select {self.vec('i1')} {condition}, {type_} {first}, {type_} {second}"
        return self.op(f"{chosen}, {MOSTLY_FIRST}" if self.lanes == 1 else chosen)

    def intrinsic(self, name: str, element: str, *args: str) -> str:
        """Return a call of a vector intrinsic whose operands and result have one type."""
        vec = self.vec(element)
        symbol = f"llvm.{name}.v{self.lanes}{_SUFFIX.get(element, element)}"
        self.module.declare(symbol, vec, *[vec] * len(args))
        return self.op(f"call {vec} @{symbol}({', '.join(f'{vec} {a}' for a in args)})")

    def address(self, base: str, offset: str) -> str:
        """Return ``base`` plus a number of bytes."""
        return self.op(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load_vector(self, dtype: DType, pointer: str, kind: str = "") -> str:
        """Return ``lanes`` elements of ``dtype`` at ``pointer``, by a load of a kind."""
        with self.parts(dtype) as part:
            value = self.from_memory(self.load(self.vec(memory_type(part)), pointer, kind), part)
        return self._from_memory_order(value, dtype)

    def from_memory(self, value: str, dtype: DType) -> str:
        if dtype is not dt.bool_:
            return value
        return self.op(f"icmp ne {self.vec('i8')} {value}, zeroinitializer")

    def load_splat(self, dtype: DType, pointer: str) -> str:
        """Return one element at ``pointer``, in every lane."""
        with self.parts(dtype) as part:
            element, count = memory_type(part), dtype.itemsize // part.itemsize
            value = self.load(f"<{count} x {element}>", pointer)
            picks = [i % count for i in range(self.lanes)]
            with self.width(count):
                spread = self.pick(element, value, "poison", sorted(picks) if self.is_split else picks)
            return self.from_memory(spread, part)

    def store_vector(self, dtype: DType, value: str, pointer: str) -> None:
        value = self._to_memory_order(value, dtype)
        with self.parts(dtype) as part:
            value, vec = self.to_memory(value, part), self.vec(memory_type(part))
            if value in self.selected and not vector_target().masks:
                # If the other value is what the memory holds, LLVM makes this a masked store, which takes about 20
                # cycles on AMD's processors without AVX-512; it does not look through freeze.
                value = self.op(f"freeze {vec} {value}")
            self.do(f"store {vec} {value}, ptr {pointer}, align 1")

    def to_memory(self, value: str, dtype: DType) -> str:
        return self.op(f"zext {self.vec('i1')} {value} to {self.vec('i8')}") if dtype is dt.bool_ else value

    def load_masked(self, dtype: DType, pointer: str, mask: str) -> str:
        """Return the elements at ``pointer`` in the lanes of ``mask``, 0 elsewhere; nothing else is read."""
        mask = self._mask_in_memory(mask, dtype)
        with self.parts(dtype) as part:
            vec, element = self.vec(memory_type(part)), memory_type(part)
            symbol = f"llvm.masked.load.v{self.lanes}{_SUFFIX.get(element, element)}.p0"
            self.module.declare(symbol, vec, "ptr", self.vec("i1"), vec)
            # not through op(): memory changes, so loads are never shared
            name = "%" + self.fresh()
            arguments = f"ptr align 1 {pointer}, {self.vec('i1')} {mask}, {vec} zeroinitializer"
            self.lines.append(f"  {name} = call {vec} @{symbol}({arguments})")
            value = self.from_memory(name, part)
        return self._from_memory_order(value, dtype)

    def store_masked(self, dtype: DType, value: str, pointer: str, mask: str) -> None:
        """Write the lanes of ``mask``; nothing else is written."""
        mask, value = self._mask_in_memory(mask, dtype), self._to_memory_order(value, dtype)
        with self.parts(dtype) as part:
            value = self.to_memory(value, part)
            vec, element = self.vec(memory_type(part)), memory_type(part)
            symbol = f"llvm.masked.store.v{self.lanes}{_SUFFIX.get(element, element)}.p0"
            self.module.declare(symbol, "void", vec, "ptr", self.vec("i1"))
            self.do(f"call void @{symbol}({vec} {value}, ptr align 1 {pointer}, {self.vec('i1')} {mask})")

    def load_some(self, dtype: DType, pointer: str, count: int, reverse: bool = False) -> str:
        """Return the first ``count`` elements at ``pointer``, in reverse order on request, and 0 in the other lanes."""
        with self.parts(dtype) as part:
            element, count = memory_type(part), count * dtype.itemsize // part.itemsize
            if count == 1:  # no part of a complex number
                one = f"zeroinitializer, {element} {self.load(element, pointer)}, i64 0"
                return self.from_memory(self.op(f"insertelement {self.vec(element)} {one}"), part)
            picks = [*(range(count)[::-1] if reverse else range(count)), *[count] * (self.lanes - count)]
            value = self.load(f"<{count} x {element}>", pointer)
            with self.width(count):
                spread = self.pick(element, value, "zeroinitializer", picks)
            value = self.from_memory(spread, part)
        return self._from_memory_order(value, dtype)

    def store_some(self, dtype: DType, value: str, pointer: str, count: int) -> None:
        """Write the first ``count`` lanes."""
        value = self._to_memory_order(value, dtype)
        with self.parts(dtype) as part:
            element, count = memory_type(part), count * dtype.itemsize // part.itemsize
            first = self.pick(element, self.to_memory(value, part), "poison", range(count))
            self.do(f"store <{count} x {element}> {first}, ptr {pointer}, align 1")

    def pick(self, element: str, one: str, other: str, lanes: Iterable[int]) -> str:
        """Return the vector of some lanes of two vectors; those of the second follow those of the first."""
        vec, picks = self.vec(element), [f"i32 {lane}" for lane in lanes]
        return self.op(f"shufflevector {vec} {one}, {vec} {other}, <{len(picks)} x i32> <{', '.join(picks)}>")

    def text(self, header: str) -> str:
        """Return the whole function; ``header`` is the text between ``define`` and ``{``."""
        return f"define {header} {{\nentry:\n" + "\n".join([*self.prologue, *self.lines]) + "\n}\n"

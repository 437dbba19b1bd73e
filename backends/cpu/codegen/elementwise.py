"""The eager loop of an elementwise operator: any strides, one vector body.

The body is written once, for whole vectors. Operands that are not contiguous, and the tail of a row on processors
without masks, are packed into small buffers on the stack before the body runs and unpacked after it. So the same
instructions compute every element of every layout.
"""

from __future__ import annotations

from collections.abc import Sequence

from .... import lazy
from ....operators.scalar_ir.cost import cost_without_reads
from ....operators.scalar_ir.expr import Expr, order
from ....registry.dtypes import DType
from ..target import vector_target
from . import integers
from .casts import check_emittable
from .complex_nodes import is_ufunc_alone
from .nodes import emit_exprs
from .text import Function, Module, memory_block, part_size

_ufunc_calls = lazy.Module(".backends.cpu.codegen.ufunc_calls")
BLOCK = 256
"""Elements of a packed block; a multiple of every vector's lanes."""


def lanes_for(roots: Sequence[Expr], widest: int = 1) -> int:
    """Return the elements per vector: as many as fit a register of the widest type that ``roots`` compute with.

    One if a user's function is called: it sees only existing elements, none past the end of a row.
    """
    exprs = order(*roots)
    if any(e.op == "call" for e in exprs):
        return 1
    size: int = max([widest, *(part_size(e.dtype) for e in exprs if e.op != "const")])
    return vector_target().vector_bytes // size


def lanes_below(f: Function, count: str, predicate: str = "slt") -> str:
    """Return the mask of the first ``count`` lanes (all, if there are fewer), or of the others with ``"sge"``.

    ``count`` is any i64.
    """
    number = "i8" if f.lanes == 64 else "i32"  # 64 bytes are one register
    numbers = ", ".join(f"{number} {k}" for k in range(f.lanes))
    f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
    bounded = f.op(f"call i64 @llvm.smin.i64(i64 {count}, i64 {f.lanes})")
    limit = f.broadcast(f.op(f"trunc i64 {bounded} to {number}"), number)
    return f.op(f"icmp {predicate} {f.vec(number)} <{numbers}>, {limit}")


def pack_helper(module: Module, itemsize: int, unpack: bool = False) -> str:
    """Return the name of a function ``(ptr packed, ptr strided, i64 stride, i64 count)`` that packs, or unpacks."""
    name = f"{'unpack' if unpack else 'pack'}{itemsize}"
    if name in module.parts:
        return name
    module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1")
    f, element = Function(module, 1), memory_block(itemsize)
    target, source = ("%strided", "%packed") if unpack else ("%packed", "%strided")
    f.branch(f.op(f"icmp eq i64 %stride, {itemsize}"), "dense", "sparse")
    f.label("dense")
    size = f.op(f"mul i64 %count, {itemsize}")
    f.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")
    f.do("ret void")
    f.label("sparse")
    with f.loop("0", "%count", "1") as loop:
        packed = f.address("%packed", f.op(f"mul i64 {loop.index}, {itemsize}"))
        strided = f.address("%strided", f.op(f"mul i64 {loop.index}, %stride"))
        value = f.load(element, packed if unpack else strided)
        f.do(f"store {element} {value}, ptr {strided if unpack else packed}, align 1")
    f.do("ret void")
    module.helper(
        name, f.text(f"internal void @{name}(ptr %packed, ptr %strided, i64 %stride, i64 %count) #1")
    )
    return name


MOST_COST_OF_ONE = 12
"""The cost of an expression up to which a loop has code for a single element."""
LONG_ROW = 512
"""Elements of a row from which on its stores are aligned."""


class Operand:
    """An operand of a strided loop: its registers, all i64 or ptr, in the function being written."""

    def __init__(self, f: Function, position: int, dtype: DType):
        self.f, self.dtype, self.position = f, dtype, position
        self.size = dtype.itemsize
        self.scratch = f.allocate(BLOCK * self.size, clear=f.lanes * self.size)
        self.start = f.load("ptr", f.address("%ptrs", str(8 * position)))
        self.outer = f.load("i64", f.address("%strides", str(16 * position)))
        self.inner = f.load("i64", f.address("%strides", str(16 * position + 8)))
        self.dense = f.op(f"icmp eq i64 {self.inner}, {self.size}")
        self.same = f.op(f"icmp eq i64 {self.inner}, 0")
        self.strided = f.op(f"xor i1 {f.op(f'or i1 {self.dense}, {self.same}')}, true")

    def begin_row(self, row: str, unless: str = "false") -> None:
        """Compute the row's address; broadcast an operand constant along the row (``unless`` the row is empty)."""
        f = self.f
        self.base = f.address(self.start, f.op(f"mul i64 {row}, {self.outer}"))
        with f.when(f.op(f"and i1 {self.same}, {f.op(f'xor i1 {unless}, true')}")):
            f.store_vector(self.dtype, f.load_splat(self.dtype, self.base), self.scratch)

    def begin_block(self, position: str, whole: str, count: str, read: bool) -> None:
        """Choose between the row itself and a packed copy of this block; if ``read``, make the copy."""
        f = self.f
        self.here = f.address(self.base, f.op(f"mul i64 {position}, {self.inner}"))
        self.direct = self.dense if vector_target().masks else f.op(f"and i1 {self.dense}, {whole}")
        keep = f.op(f"or i1 {self.direct}, {self.same}") if read else self.direct
        self.packs = f.op(f"xor i1 {keep}, true")
        if read:
            with f.when(self.packs):
                helper = pack_helper(f.module, self.size)
                f.do(
                    f"call void @{helper}(ptr {self.scratch}, ptr {self.here}, i64 {self.inner}, i64 {count})"
                )
        self.pointer = f.op(f"select i1 {self.direct}, ptr {self.here}, ptr {self.scratch}")
        step = str(f.lanes * self.size)
        self.step = f.op(f"select i1 {self.same}, i64 0, i64 {step}") if read else step

    def load(self, pointer: str, mask: str) -> str:
        """Return the vector at ``pointer``; memory of lanes outside ``mask`` is not read."""
        if vector_target().masks:
            return self.f.load_masked(self.dtype, pointer, mask)
        return self.f.load_vector(self.dtype, pointer)

    def store(self, value: str, pointer: str, mask: str) -> None:
        """Write the vector at ``pointer``; memory of lanes outside ``mask`` is not written."""
        if vector_target().masks:
            self.f.store_masked(self.dtype, value, pointer, mask)
        else:
            self.f.store_vector(self.dtype, value, pointer)

    def end_block(self, count: str) -> None:
        """Copy a packed result to the output."""
        with self.f.when(self.packs):
            self.unpack(self.scratch, self.here, self.inner, count)

    def unpack(self, packed: str, strided: str, stride: str, count: str) -> None:
        """Copy packed elements to memory with a stride in bytes."""
        helper = pack_helper(self.f.module, self.size, unpack=True)
        self.f.do(f"call void @{helper}(ptr {packed}, ptr {strided}, i64 {stride}, i64 {count})")


def write_loop(module: Module, name: str, body: Expr, in_dtypes: Sequence[DType], out_dtype: DType) -> None:
    """Add ``void name(char **ptrs, int64_t *dims, int64_t *strides)`` to a module.

    ``ptrs`` holds the inputs, then the output; ``dims`` the sizes of an outer and an inner loop; ``strides`` an outer
    and an inner stride in bytes for each of ``ptrs``. The output may be one of the inputs exactly, but not overlap one
    otherwise.

    Args:
        module: the module.
        name: the function's name.
        body: an expression of ``out_dtype`` over ``arg(0)``, ``arg(1)``, ...
        in_dtypes: the operands' types.
        out_dtype: the result's type.

    Raises:
        UnsupportedError: a node of complex numbers without emitted code, or float16 where the processor lacks it.
    """
    check_emittable(*in_dtypes, out_dtype, *[e.dtype for e in order(body)], f16c=vector_target().f16c)
    if is_ufunc_alone(body):
        _ufunc_calls.write_ufunc_rows(module, name, body, len(in_dtypes))
        return
    f = Function(module, lanes_for([body], max(map(part_size, (*in_dtypes, out_dtype)))))
    count = f.load("i64", f.address("%dims", "8"))
    # nothing may be read from empty rows
    rows = f.op(f"select i1 {f.op(f'icmp eq i64 {count}, 0')}, i64 0, i64 {f.load('i64', '%dims')}")
    inputs = [Operand(f, k, dtype) for k, dtype in enumerate(in_dtypes)]
    output = Operand(f, len(in_dtypes), out_dtype)
    limit = block_limit(f, [*(x.strided for x in inputs), f.op(f"xor i1 {output.dense}, true")], 2**62)
    overlaps = "false" if vector_target().masks else _may_overlap(f, inputs, output, count)
    with f.loop("0", rows, "1") as row:
        for x in inputs:
            x.begin_row(row.index)
        output.base = f.address(output.start, f.op(f"mul i64 {row.index}, {output.outer}"))
        _row(f, body, inputs, output, count, limit, overlaps)
    f.do("ret void")
    parameters = "(ptr %ptrs, ptr %dims, ptr %strides)"
    if out_dtype.kind == "c" or cost_without_reads(body) > MOST_COST_OF_ONE:
        module.helper(name, f.text(f"void @{name}{parameters} #0"))
    else:
        module.helper(f"{name}.rows", f.text(f"internal void @{name}.rows{parameters} #1"))
        _write_element(module, name, body, in_dtypes, out_dtype)


def _write_element(
    module: Module, name: str, body: Expr, in_dtypes: Sequence[DType], out_dtype: DType
) -> None:
    """Add the loop ``name``: it computes a single element without vectors, and leaves others to ``name.rows``."""
    f = Function(module, 1)
    sizes = f.op(f"mul i64 {f.load('i64', '%dims')}, {f.load('i64', f.address('%dims', '8'))}")
    f.branch(f.op(f"icmp eq i64 {sizes}, 1"), "one", "many")
    f.label("many")
    f.do(f"call void @{name}.rows(ptr %ptrs, ptr %dims, ptr %strides)")
    f.do("ret void")
    f.label("one")
    starts = [f.load("ptr", f.address("%ptrs", str(8 * k))) for k in range(len(in_dtypes) + 1)]
    leaves = {e: e.payload for e in order(body) if e.op == "arg"}
    registers = {k: f.load_splat(in_dtypes[k], starts[k]) for k in sorted(set(leaves.values()))}
    known = {e: registers[k] for e, k in leaves.items()}
    emit_exprs(f, [body], known)
    f.store_vector(out_dtype, known[body], starts[-1])
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}(ptr %ptrs, ptr %dims, ptr %strides) #0"))


def block_limit(f: Function, strided: Sequence[str], otherwise: int) -> str:
    """Return the maximum elements of a block: fewer if an operand must be packed."""
    some = strided[0]
    for flag in strided[1:]:
        some = f.op(f"or i1 {some}, {flag}")
    return f.op(f"select i1 {some}, i64 {BLOCK}, i64 {otherwise}")


def block_size(f: Function, position: str, count: str, limit: str) -> tuple[str, str]:
    """Return (size of the block at ``position``, whether it is whole vectors): a row's tail is a separate block."""
    f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
    rest = f.op(f"sub i64 {count}, {position}")
    full = f.op(f"and i64 {rest}, {-f.lanes}")
    whole = f.op(f"icmp ne i64 {full}, 0")
    limited = f.op(f"call i64 @llvm.smin.i64(i64 {full}, i64 {limit})")
    return f.op(f"select i1 {whole}, i64 {limited}, i64 {rest}"), whole


def _may_overlap(f: Function, inputs: list[Operand], output: Operand, count: str) -> str:
    """Return whether the last vector of a row may overlap the one before: its elements are computed twice then."""
    result = f.op(f"and i1 {output.dense}, {f.op(f'icmp sge i64 {count}, {f.lanes}')}")
    for x in inputs:
        is_other = f.op(f"icmp ne ptr {x.start}, {output.start}")
        is_read_again = f.op(f"or i1 {x.same}, {f.op(f'and i1 {x.dense}, {is_other}')}")
        result = f.op(f"and i1 {result}, {is_read_again}")
    return result


def _row(
    f: Function, body: Expr, inputs: list[Operand], output: Operand, count: str, limit: str, overlaps: str
) -> None:
    head, run, end, before = f.fresh("head"), f.fresh("run"), f.fresh("end"), f.block
    position, following = "%" + f.fresh("p"), "%" + f.fresh("q")
    lead = _unaligned_elements(f, output, count)
    f.jump(head)
    f.label(head)
    index = len(f.lines)
    f.branch(f.op(f"icmp slt i64 {position}, {count}"), run, end)
    f.label(run)
    size, whole = block_size(f, position, count, limit)
    is_lead = f.op(f"icmp slt i64 {position}, {lead}")
    size = f.op(f"select i1 {is_lead}, i64 {lead}, i64 {size}")
    is_tail = f.op(f"xor i1 {f.op(f'or i1 {whole}, {is_lead}')}, true")
    whole = f.op(f"and i1 {whole}, {f.op(f'xor i1 {is_lead}, true')}")
    first = position
    if overlaps != "false":
        moves = f.op(f"and i1 {is_tail}, {overlaps}")
        first = f.op(f"select i1 {moves}, i64 {f.op(f'sub i64 {count}, {f.lanes}')}, i64 {position}")
        size = f.op(f"select i1 {moves}, i64 {f.lanes}, i64 {size}")
        whole = f.op(f"or i1 {whole}, {moves}")
    for x in inputs:
        x.begin_block(first, whole, size, read=True)
    output.begin_block(first, whole, size, read=False)
    _vectors(f, body, inputs, output, size)
    output.end_block(size)
    f.do(f"{following} = add i64 {first}, {size}")
    f.lines.insert(index, f"  {position} = phi i64 [ 0, %{before} ], [ {following}, %{f.block} ]")
    f.jump(head)
    f.label(end)


def _unaligned_elements(f: Function, output: Operand, count: str) -> str:
    """Return the elements of a long row before the first at the address of an aligned vector; they are a block.

    Stores of unaligned vectors to the second level cache take up to twice the time.
    """
    start = f.op(f"sub i64 0, {f.op(f'ptrtoint ptr {output.base} to i64')}")
    size = f.op(f"and i64 {start}, {vector_target().vector_bytes - 1}")
    is_long = f.op(f"icmp sge i64 {count}, {LONG_ROW}")
    return f.op(f"select i1 {is_long}, i64 {f.op(f'udiv i64 {size}, {output.size}')}, i64 0")


def _vectors(f: Function, body: Expr, inputs: list[Operand], output: Operand, size: str) -> None:
    """Write the loop over the vectors of a block; twice, if a divisor is the same in all of them in one case."""
    divisor = _find_divisor(body)
    if divisor is None:
        _vector_loop(f, body, inputs, output, size, {})
        return
    x, one, two, end = inputs[divisor], f.fresh("one"), f.fresh("two"), f.fresh("end")
    f.branch(x.same, one, two)
    f.label(one)
    value = f.load_vector(x.dtype, x.pointer)
    f.invariants.add(value)
    _vector_loop(f, body, inputs, output, size, {divisor: value})
    f.jump(end)
    f.label(two)
    _vector_loop(f, body, inputs, output, size, {})
    f.jump(end)
    f.label(end)


def _find_divisor(body: Expr) -> int | None:
    """Return the operand that integers are divided by; None if there is none."""
    for e in order(body):
        if e.op in integers.DIVISIONS and e.dtype.is_integer and e.args[1].op == "arg":
            position: int = e.args[1].payload
            return position
    return None


def _vector_loop(
    f: Function, body: Expr, inputs: list[Operand], output: Operand, size: str, fixed: dict[int, str]
) -> None:
    """Write a loop over the vectors of a block; ``fixed`` are the registers of operands that are the same in all."""
    operands, mask = [*inputs, output], lanes_below(f, size)
    with f.loop("0", size, str(f.lanes), [("ptr", x.pointer) for x in operands]) as loop:
        rest = f.op(f"sub i64 {size}, {loop.index}")
        f.count = f.op(f"call i64 @llvm.smin.i64(i64 {rest}, i64 {f.lanes})")
        leaves = {e: e.payload for e in order(body) if e.op == "arg"}
        registers = {
            k: fixed.get(k) or inputs[k].load(loop.carried[k], mask) for k in sorted(set(leaves.values()))
        }
        known = {e: registers[k] for e, k in leaves.items()}
        emit_exprs(f, [body], known)
        output.store(known[body], loop.carried[-1], mask)
        loop.next = [f.address(p, x.step) for p, x in zip(loop.carried, operands, strict=True)]

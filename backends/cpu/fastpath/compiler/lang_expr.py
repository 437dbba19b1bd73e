"""Expressions of native functions: each method translates a syntax node to a typed LLVM value."""

from __future__ import annotations

import ast
from typing import Any

from ...codegen.blocks import begin_lifetime
from .dsl import (
    BOOL,
    I64,
    PTR,
    TYPES,
    VOID,
    Extern,
    Intrinsic,
    Ty,
    Val,
    const,
    conversion,
    pointer_to,
)
from .lang_names import Names
from .structs import StructMeta, sizeof

_INT_OPS = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "BitAnd": "and",
    "BitOr": "or",
    "BitXor": "xor",
    "LShift": "shl",
}
_FOLDS = {"Add": int.__add__, "Sub": int.__sub__, "Mult": int.__mul__}
_SIGNED_OPS = {"FloorDiv": ("sdiv", "udiv"), "Mod": ("srem", "urem"), "RShift": ("ashr", "lshr")}
_FLOAT_OPS = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
_COMPARE = {
    "Eq": "eq",
    "NotEq": "ne",
    "Is": "eq",
    "IsNot": "ne",
    "Lt": "lt",
    "LtE": "le",
    "Gt": "gt",
    "GtE": "ge",
}


def _is_literal_of(value: int | float, ty: Ty) -> bool:
    """Return whether a literal may have a type."""
    return ty.kind == "f" or (ty.kind != "b" and not isinstance(value, float))


class Expressions(Names):
    """Emits the instructions of one function; `lang.FunctionEmitter` adds the statements."""

    def __init__(self, module: Any, names: dict[str, Any], where: str) -> None:
        super().__init__(module, names, where)
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.count = 0

    def tmp(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def ins(self, ty: Ty, text: str) -> Val:
        name = self.tmp()
        self.lines.append(f"  {name} = {text}")
        return Val(ty, name)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def new_label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def alloca(self, text: str) -> str:
        name = self.tmp()
        self.allocas.append(f"  {name} = alloca {text}")
        if text.startswith("["):
            self.allocas.append(begin_lifetime(name))
        return name

    # structs ------------------------------------------------------------------------------------------------
    def field(self, node: ast.Attribute) -> tuple[Val, Ty, bool]:
        """Emit the address of a struct's field; return it with the field's type, and whether it is an array."""
        base = self.expr(node.value)
        owner = base.ty.struct
        if owner is None:
            raise self.fail(node, f"a {base.ty.name} has no fields")
        field = self.field_of(owner, node)
        where = self.binary("Add", base, const(field.offset), node) if field.offset else base
        return where, TYPES.get(field.kind) or pointer_to(field.struct()), field.is_array

    def expr(self, node: ast.expr, want: Ty | None = None) -> Val:
        """Emit an expression; a literal takes the wanted type."""
        method = getattr(self, "expr_" + type(node).__name__, None)
        if method is None:
            raise self.fail(node, "not in the subset")
        value: Val = method(node)
        return self.adapt(value, want, node) if want is not None else value

    def adapt(self, value: Val, want: Ty, node: ast.AST) -> Val:
        if value.ty == want:
            return value
        if value.ty.kind == want.kind == "p":
            return Val(want, value.text, value.const)
        if value.const is not None and _is_literal_of(value.const, want):
            return const(value.const, want)
        raise self.fail(node, f"{want.name} wanted, {value.ty.name} found")

    def expr_Constant(self, node: ast.Constant) -> Val:
        if isinstance(node.value, (bool, int, float)):
            return const(node.value)
        raise self.fail(node, "not a machine constant")

    def expr_Name(self, node: ast.Name) -> Val:
        if node.id in self.slots:
            ty, slot = self.slots[node.id]
            return self.ins(ty, f"load {ty.llvm}, ptr {slot}")
        return self.constant(self.lookup(node), node)

    def expr_Attribute(self, node: ast.Attribute) -> Val:
        result = self.global_of(node)
        if result is not None:
            return self.constant(result, node)
        where, ty, is_array = self.field(node)
        return Val(PTR, where.text) if is_array else self.load(ty, where)

    def constant(self, result: Any, node: ast.expr) -> Val:
        if isinstance(result, Extern):
            return Val(PTR, self.module.extern(result))
        if getattr(result, "__native__", False):
            return Val(PTR, "@" + self.module.function(result).symbol)
        if isinstance(result, (bool, int, float)):
            return const(result)
        raise self.fail(node, "not a machine constant")

    # operators ----------------------------------------------------------------------------------------------
    def unify(self, left: Val, right: Val, node: ast.AST) -> tuple[Val, Val]:
        if left.const is not None and right.const is None:
            return self.adapt(left, right.ty, node), right
        return left, self.adapt(right, left.ty, node)

    def expr_BinOp(self, node: ast.BinOp) -> Val:
        return self.binary(type(node.op).__name__, self.expr(node.left), self.expr(node.right), node)

    def binary(self, op: str, left: Val, right: Val, node: ast.AST) -> Val:
        if left.ty.kind == "p" and op in ("Add", "Sub") and right.ty.kind in "iu" and left.const is None:
            step = self.convert(right, I64)
            step = self.binary("Sub", const(0), step, node) if op == "Sub" else step
            return self.ins(PTR, f"getelementptr i8, ptr {left.text}, i64 {step.text}")
        left, right = self.unify(left, right, node)
        ty = left.ty
        if left.const is not None and right.const is not None and op in _FOLDS and ty.kind in "iu":
            return const(_FOLDS[op](int(left.const), int(right.const)), ty)
        if ty.kind == "f" and op in _FLOAT_OPS:
            code = _FLOAT_OPS[op]
        elif ty.kind in "iub" and op in _INT_OPS:
            code = _INT_OPS[op]
        elif ty.kind in "iu" and op in _SIGNED_OPS:
            code = _SIGNED_OPS[op][ty.kind == "u"]
        elif ty.kind == "p" and op == "Sub":
            return self.binary(op, self.convert(left, I64), self.convert(right, I64), node)
        else:
            raise self.fail(node, f"{op} is not defined for {ty.name}")
        return self.ins(ty, f"{code} {ty.llvm} {left.text}, {right.text}")

    def expr_UnaryOp(self, node: ast.UnaryOp) -> Val:
        value = self.expr(node.operand)
        if isinstance(node.op, ast.Not):
            return self.ins(BOOL, f"xor i1 {self.truth(value, node).text}, true")
        if isinstance(node.op, ast.USub):
            if value.const is not None:
                return const(-value.const, value.ty)
            if value.ty.kind == "f":
                return self.ins(value.ty, f"fneg {value.ty.llvm} {value.text}")
            return self.binary("Sub", const(0, value.ty), value, node)
        if isinstance(node.op, ast.Invert) and value.ty.kind in "iu":
            return self.binary("BitXor", value, const(-1, value.ty), node)
        raise self.fail(node, "operator is not in the subset")

    def expr_Compare(self, node: ast.Compare) -> Val:
        if len(node.ops) != 1:
            raise self.fail(node, "compare two values at a time")
        if isinstance(node.ops[0], ast.In):
            return self.membership(node)
        if isinstance(node.ops[0], ast.NotIn):
            return self.expr(ast.UnaryOp(ast.Not(), ast.Compare(node.left, [ast.In()], node.comparators)))
        left, right = self.unify(self.expr(node.left), self.expr(node.comparators[0]), node)
        code = _COMPARE[type(node.ops[0]).__name__]
        if left.ty.kind == "f":
            return self.ins(
                BOOL, f"fcmp {'u' if code == 'ne' else 'o'}{code} {left.ty.llvm} {left.text}, {right.text}"
            )
        if code not in ("eq", "ne"):
            code = ("s" if left.ty.kind == "i" else "u") + code
        return self.ins(BOOL, f"icmp {code} {left.ty.llvm} {left.text}, {right.text}")

    def membership(self, node: ast.Compare) -> Val:
        """Emit `x in (A, B)` as a chain of equalities."""
        choices = node.comparators[0]
        if not isinstance(choices, ast.Tuple):
            raise self.fail(node, "`in` takes a tuple")
        tests: list[ast.expr] = [ast.Compare(node.left, [ast.Eq()], [choice]) for choice in choices.elts]
        return self.expr_BoolOp(ast.BoolOp(ast.Or(), tests))

    def truth(self, value: Val, node: ast.AST) -> Val:
        if value.ty.kind == "b":
            return value
        if value.ty.kind in "iup":
            return self.ins(
                BOOL, f"icmp ne {value.ty.llvm} {value.text}, {'null' if value.ty.kind == 'p' else 0}"
            )
        raise self.fail(node, f"a {value.ty.name} has no truth value")

    def expr_BoolOp(self, node: ast.BoolOp) -> Val:
        slot, done = self.alloca("i1"), self.new_label("done")
        for i, part in enumerate(node.values):
            value = self.truth(self.expr(part), part)
            self.lines.append(f"  store i1 {value.text}, ptr {slot}")
            if i == len(node.values) - 1:
                self.lines.append(f"  br label %{done}")
                break
            following = self.new_label("next")
            targets = (following, done) if isinstance(node.op, ast.And) else (done, following)
            self.lines.append(f"  br i1 {value.text}, label %{targets[0]}, label %{targets[1]}")
            self.label(following)
        self.label(done)
        return self.ins(BOOL, f"load i1, ptr {slot}")

    def expr_IfExp(self, node: ast.IfExp) -> Val:
        known = self.static(node.test)
        if known is not None:
            return self.expr(node.body if known else node.orelse)
        yes, no, done = self.new_label("yes"), self.new_label("no"), self.new_label("done")
        test = self.truth(self.expr(node.test), node)
        self.lines.append(f"  br i1 {test.text}, label %{yes}, label %{no}")
        self.label(yes)
        first = self.expr(node.body)
        if first.const is not None:
            first = self.adapt(first, self.peek_type(node.orelse) or first.ty, node)
        slot = self.alloca(first.ty.llvm)
        self.lines += [f"  store {first.ty.llvm} {first.text}, ptr {slot}", f"  br label %{done}"]
        self.label(no)
        second = self.expr(node.orelse, first.ty)
        self.lines += [f"  store {first.ty.llvm} {second.text}, ptr {slot}", f"  br label %{done}"]
        self.label(done)
        return self.ins(first.ty, f"load {first.ty.llvm}, ptr {slot}")

    def peek_type(self, node: ast.expr) -> Ty | None:
        return self.slots[node.id][0] if isinstance(node, ast.Name) and node.id in self.slots else None

    def convert(self, value: Val, to: Ty) -> Val:
        """Emit an explicit conversion, `i32(x)`, with C's rules."""
        src = value.ty
        if src == to:
            return value
        if value.const is not None and _is_literal_of(value.const, to):
            return const(value.const, to)
        return self.ins(to, f"{conversion(src, to)} {src.llvm} {value.text} to {to.llvm}")

    # calls --------------------------------------------------------------------------------------------------
    def expr_Call(self, node: ast.Call) -> Val:
        if self.machine_type(node.func) is not None:
            to, operand = self.type_of(node.func), self.expr(node.args[0])
            return self.truth(operand, node) if to.kind == "b" else self.convert(operand, to)
        result = self.lookup(node.func)
        if isinstance(result, StructMeta):
            return self.expr(node.args[0], pointer_to(result))
        if result is sizeof:
            return const(sizeof(self.lookup(node.args[0])))
        if isinstance(result, Intrinsic):
            value: Val = getattr(self, "intrinsic_" + result.name)(result, node)
            return value
        if isinstance(result, Extern) and result.args is not None:
            return self.emit_call(
                self.module.extern(result), TYPES[result.ret], [TYPES[a] for a in result.args], node
            )
        if getattr(result, "__native__", False):
            signature = self.module.function(result)
            return self.emit_call("@" + signature.symbol, signature.ret, signature.args, node)
        raise self.fail(node, "not callable from native code")

    def emit_call(self, callee: str, ret: Ty, types: list[Ty], node: ast.Call) -> Val:
        if len(node.args) != len(types):
            raise self.fail(node, f"{len(types)} arguments wanted")
        values = [self.expr(a, t) for a, t in zip(node.args, types, strict=True)]
        return self.call_values(callee, ret, values)

    def call_values(self, callee: str, ret: Ty, values: list[Val]) -> Val:
        text = f"call {ret.llvm} {callee}({', '.join(f'{v.ty.llvm} {v.text}' for v in values)})"
        if ret.kind == "v":
            self.lines.append("  " + text)
            return Val(VOID, "")
        return self.ins(ret, text)

    # intrinsics ---------------------------------------------------------------------------------------------
    def address(self, base: ast.expr, offset: ast.expr | None) -> Val:
        pointer = self.expr(base, PTR)
        step = self.expr(offset) if offset is not None else const(0)
        return pointer if step.const == 0 else self.binary("Add", pointer, step, base)

    def intrinsic_load_type(self, result: Intrinsic, node: ast.Call) -> Val:
        kind, base, *offset = node.args
        return self.load(self.type_of(kind), self.address(base, offset[0] if offset else None))

    def load(self, ty: Ty, where: Val) -> Val:
        return self.ins(ty, f"load {ty.llvm}, ptr {where.text}, align {max(ty.bits // 8, 1)}")

    def intrinsic_store_type(self, result: Intrinsic, node: ast.Call) -> Val:
        kind, base, offset, value = node.args
        ty = self.type_of(kind)
        self.store(ty, self.address(base, offset), self.expr(value, ty))
        return Val(VOID, "")

    def store(self, ty: Ty, where: Val, value: Val) -> None:
        self.lines.append(f"  store {ty.llvm} {value.text}, ptr {where.text}, align {max(ty.bits // 8, 1)}")

    def intrinsic_exchange(self, result: Intrinsic, node: ast.Call) -> Val:
        where, value = (self.expr(argument, PTR) for argument in node.args)
        return self.ins(PTR, f"atomicrmw xchg ptr {where.text}, ptr {value.text} acq_rel, align 8")

    def intrinsic_likely(self, result: Intrinsic, node: ast.Call) -> Val:
        return self.truth(self.expr(node.args[0]), node)

    intrinsic_unlikely = intrinsic_likely  # `If` and `While` attach the weights to the branch

    def intrinsic_stack(self, result: Intrinsic, node: ast.Call) -> Val:
        size = self.expr(node.args[0]).const
        if size is None:
            raise self.fail(node, "the size must be a constant")
        return Val(PTR, self.alloca(f"[{int(size)} x i8], align 16"))

    def intrinsic_stack_of(self, result: Intrinsic, node: ast.Call) -> Val:
        where = Val(PTR, self.alloca(f"[{len(node.args)} x i64], align 16"))
        for k, value in enumerate([self.expr(argument) for argument in node.args]):
            if value.ty.bits != 64:
                raise self.fail(node, "all values must have 8 bytes")
            self.store(value.ty, self.binary("Add", where, const(8 * k), node), value)
        return where

    def intrinsic_cstr(self, result: Intrinsic, node: ast.Call) -> Val:
        return Val(PTR, self.module.string(ast.literal_eval(node.args[0])))

    def intrinsic_call(self, result: Intrinsic, node: ast.Call) -> Val:
        callee = self.expr(node.args[0], PTR)
        return self.call_values(callee.text, TYPES[result.ty], [self.expr(a) for a in node.args[1:]])

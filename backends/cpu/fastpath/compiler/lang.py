"""A compiler from a small typed subset of Python, in which the native runtime is written, to LLVM IR.

`emit({"symbol": function, ...})` returns the IR text of these functions and of every native function they reach.
The subset: annotated arguments and results; `while`, `for i in range(a, b)`, `if`, `break`, `continue`, `return`;
short-circuit `and`/`or`/`not`; conditional expressions; integer, float and pointer arithmetic (`//`, `%` and `>>` are
C's); the names of `dsl`; module globals that are ints or floats, which become constants; dotted names of modules'
globals, such as `base.decref`; template parameters (`dsl.template`), whose values `emit` is given.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .....named_tuple import NamedTuple
from .dsl import I64, TYPES, VOID, Extern, LangError, Ty, Val, parse_function
from .lang_expr import Expressions

__all__ = ["LangError", "Module", "emit"]

_LIKELY = {"likely": "!0", "unlikely": "!1"}
_METADATA = (
    '!0 = !{!"branch_weights", i32 2000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 2000}\n'
    '!2 = !{!"llvm.loop.unroll.disable"}\n!3 = !{!"llvm.loop.vectorize.enable", i1 true}\n'
)
_SHORT = 40  # instructions of a function that is inlined wherever it is called, if it has no loop
_FIRST_LOOP = 4  # the number of the metadata of the first loop that becomes vectors


class Signature(NamedTuple):
    symbol: str
    ret: Ty
    args: list[Ty]
    tree: ast.FunctionDef


class FunctionEmitter(Expressions):
    """Emits the statements of one native function."""

    def __init__(self, module: Module, fn: Callable[..., Any], signature: Signature) -> None:
        super().__init__(module, fn.__globals__, fn.__qualname__)
        self.signature = signature
        self.inlining = getattr(fn, "__inlining__", "")
        self.loops: list[tuple[str, str]] = []
        self.has_loop = False

    def emit(self, linkage: str) -> str:
        sig, tree = self.signature, self.signature.tree
        params = []
        for arg, ty in zip(tree.args.args, sig.args, strict=True):
            params.append(f"{ty.llvm} %a.{arg.arg}")
            self.declare(arg.arg, ty, Val(ty, f"%a.{arg.arg}"))
        if not self.block(tree.body):
            if sig.ret.kind != "v":
                raise LangError(f"{self.where}: control reaches the end without a return")
            self.lines.append("  ret void")
        if linkage and not self.inlining and not self.has_loop and len(self.lines) < _SHORT:
            self.inlining = "alwaysinline"
        attributes = f"nounwind {self.inlining}".rstrip()
        head = f"define {linkage}{sig.ret.llvm} @{sig.symbol}({', '.join(params)}) {attributes} {{\nentry:"
        return "\n".join([head, *self.allocas, *self.lines, "}\n"])

    def declare(self, name: str, ty: Ty, value: Val) -> None:
        if name not in self.slots:
            self.slots[name] = (ty, self.alloca(ty.llvm))
        self.lines.append(f"  store {ty.llvm} {value.text}, ptr {self.slots[name][1]}")

    def block(self, body: list[ast.stmt]) -> bool:
        """Emit statements; return whether control cannot reach the end (return, break, continue)."""
        for statement in body:
            method = getattr(self, "stmt_" + type(statement).__name__, None)
            if method is None:
                raise self.fail(statement, "not in the subset")
            if method(statement):
                return True
        return False

    def stmt_Pass(self, node: ast.Pass) -> bool:
        return False

    def stmt_Expr(self, node: ast.Expr) -> bool:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.expr(node.value)
        return False

    def stmt_Return(self, node: ast.Return) -> bool:
        ret = self.signature.ret
        if node.value is None or ret.kind == "v":
            self.lines.append("  ret void")
        else:
            self.lines.append(f"  ret {ret.llvm} {self.expr(node.value, ret).text}")
        return True

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> bool:
        if not isinstance(node.target, ast.Name) or node.value is None:
            raise self.fail(node, "an annotated assignment declares one name, with a value")
        ty = self.type_of(node.annotation)
        if node.target.id in self.slots and self.slots[node.target.id][0] != ty:
            raise self.fail(node, "declared twice with different types")
        self.declare(node.target.id, ty, self.expr(node.value, ty))
        return False

    def stmt_Assign(self, node: ast.Assign) -> bool:
        """Emit an assignment; of several values, all are computed before the first is stored."""
        targets, values = node.targets, [node.value]
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            targets, values = targets[0].elts, node.value.elts
        if len(targets) != len(values):
            raise self.fail(node, "the numbers of names and values differ")
        for store in [self.assigned(*pair) for pair in zip(targets, values, strict=True)]:
            store()
        return False

    def assigned(self, target: ast.expr, value: ast.expr) -> Callable[[], None]:
        """Emit a value for a local name or a struct's field; return a function that emits its store."""
        if isinstance(target, ast.Attribute):
            where, ty, is_array = self.field(target)
            if not is_array:
                return partial(self.store, ty, where, self.expr(value, ty))
        elif isinstance(target, ast.Name):
            known = self.slots.get(target.id)
            local = self.expr(value, known[0] if known else None)
            return partial(self.declare, target.id, local.ty, local)
        raise self.fail(target, "only local names and fields of structs can be assigned")

    def stmt_AugAssign(self, node: ast.AugAssign) -> bool:
        value = ast.BinOp(node.target, node.op, node.value)
        return self.stmt_Assign(ast.Assign([node.target], value))

    def branch(self, test: ast.expr, yes: str, no: str) -> None:
        hint = ""
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id in _LIKELY:
            hint = f", !prof {_LIKELY[test.func.id]}"
        value = self.truth(self.expr(test), test)
        self.lines.append(f"  br i1 {value.text}, label %{yes}, label %{no}{hint}")

    def stmt_If(self, node: ast.If) -> bool:
        known = self.static(node.test)
        if known is not None:
            return self.block(node.body if known else node.orelse)
        yes, no, done = self.new_label("then"), self.new_label("else"), self.new_label("endif")
        self.branch(node.test, yes, no)
        ended = []
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.label(label)
            ended.append(self.block(body))
            if not ended[-1]:
                self.lines.append(f"  br label %{done}")
        if all(ended):
            return True
        self.label(done)
        return False

    def stmt_While(self, node: ast.While) -> bool:
        test, body, done = self.new_label("while"), self.new_label("body"), self.new_label("endwhile")
        self.lines.append(f"  br label %{test}")
        self.label(test)
        self.branch(node.test, body, done)
        self.loop_body(node.body, body, test, done)
        self.label(done)
        return False

    def loop_body(
        self, statements: list[ast.stmt], body: str, following: str, done: str, first: str = ""
    ) -> None:
        """Emit the body of a loop, in which `continue` goes to `following` and `break` to `done`.

        Args:
            statements: the body.
            body: its label.
            following: the label of the next iteration.
            done: the label after the loop.
            first: an instruction at the start of each iteration.
        """
        self.has_loop = True
        self.label(body)
        if first:
            self.lines.append(first)
        self.loops.append((following, done))
        if not self.block(statements):
            self.lines.append(f"  br label %{following}")
        self.loops.pop()

    def stmt_For(self, node: ast.For) -> bool:
        """Emit `for i in range(stop)` or `range(start, stop)`; the bounds are evaluated once.

        As in Python, the loop counts by itself and assigns the variable before each iteration, so the body, or a loop
        in it, may assign the same variable. A loop over `vector_range` is made of vectors before LLVM might unroll it.
        """
        call, target = node.iter, node.target
        if (
            not isinstance(call, ast.Call)
            or not isinstance(call.func, ast.Name)
            or call.func.id not in ("range", "vector_range")
            or not isinstance(target, ast.Name)
            or len(call.args) > 2
        ):
            raise self.fail(node, "only `for name in range(start, stop)` and `vector_range` are supported")
        start = self.expr(call.args[0], I64) if len(call.args) == 2 else Val(I64, "0", 0)
        stop = self.expr(call.args[-1], I64)
        self.declare_loop_variable(target)
        test, body, step, done = (self.new_label(n) for n in ("for", "body", "step", "endfor"))
        counter = self.alloca("i64")
        self.lines += [f"  store i64 {start.text}, ptr {counter}", f"  br label %{test}"]
        self.label(test)
        index = self.ins(I64, f"load i64, ptr {counter}")
        inside = self.ins(TYPES["bool"], f"icmp slt i64 {index.text}, {stop.text}")
        self.lines.append(f"  br i1 {inside.text}, label %{body}, label %{done}")
        self.loop_body(
            node.body, body, step, done, f"  store i64 {index.text}, ptr {self.slots[target.id][1]}"
        )
        self.label(step)
        following = self.ins(I64, f"add nsw i64 {index.text}, 1")
        self.lines.append(f"  store i64 {following.text}, ptr {counter}")
        hint = f", !llvm.loop {self.module.vector_loop()}" if call.func.id == "vector_range" else ""
        self.lines.append(f"  br label %{test}{hint}")
        self.label(done)
        return False

    def declare_loop_variable(self, target: ast.Name) -> None:
        """Declare the variable of a loop; it is 0 if it is new and the loop has no iteration."""
        if target.id not in self.slots:
            self.slots[target.id] = (I64, self.alloca("i64"))
            self.allocas.append(f"  store i64 0, ptr {self.slots[target.id][1]}")
        elif self.slots[target.id][0] != I64:
            raise self.fail(target, f"the loop variable {target.id} is i64, but was declared as another type")

    def stmt_Break(self, node: ast.Break) -> bool:
        self.lines.append(f"  br label %{self.loops[-1][1]}")
        return True

    def stmt_Continue(self, node: ast.Continue) -> bool:
        self.lines.append(f"  br label %{self.loops[-1][0]}")
        return True


class Module:
    """IR text being built: native functions reached so far, externals, strings.

    Args:
        constants: values of template parameters, and functions in place of others, by their names.
        types: type parameters of templates, such as ``{"T": "f32"}``.
    """

    def __init__(
        self, constants: Mapping[str, Any] | None = None, types: Mapping[str, str] | None = None
    ) -> None:
        self.constants = dict(constants or {})
        self.types = {name: TYPES[ty] for name, ty in (types or {}).items()}
        self.externs: dict[str, str] = {}
        self.strings: dict[str, str] = {}
        self.functions: dict[Any, Signature] = {}
        self.bodies: list[str] = []
        self.vector_loops: list[str] = []
        self.prefix = ""

    def extern(self, result: Extern) -> str:
        if result.args is None:
            self.externs[result.name] = f"@{result.name} = external global i8\n"
        else:
            args = ", ".join(TYPES[a].llvm for a in result.args)
            self.externs[result.name] = f"declare {TYPES[result.ret].llvm} @{result.name}({args})\n"
        return "@" + result.name

    def string(self, text: str) -> str:
        return "@" + self.strings.setdefault(text, f"str.{len(self.strings)}")

    def vector_loop(self) -> str:
        """Return the metadata of one more loop that becomes vectors."""
        name = f"!{_FIRST_LOOP + len(self.vector_loops)}"
        self.vector_loops.append(f"{name} = distinct !{{{name}, !2, !3}}\n")
        return name

    def function(self, fn: Any, symbol: str | None = None) -> Signature:
        """Return the signature of a native function, which is emitted on first use."""
        key = (fn, tuple(sorted(self.types.items(), key=str)))
        if key not in self.functions:
            tree = parse_function(fn)
            reader = Expressions(self, fn.__globals__, fn.__qualname__)
            args = [reader.type_of(a.annotation or ast.Name("?")) for a in tree.args.args]
            ret = reader.type_of(tree.returns) if tree.returns is not None else VOID
            suffix = "".join(f".{t.name}" for t in self.types.values())
            signature = Signature(symbol or f"{fn.__name__}{suffix}", ret, args, tree)
            self.functions[key] = signature
            linkage = "" if symbol else "internal "
            self.bodies.append(FunctionEmitter(self, fn, signature).emit(linkage))
        return self.functions[key]

    def text(self) -> str:
        """Return the module as LLVM IR."""
        strings = []
        for text, name in self.strings.items():
            raw = text.encode() + b"\0"
            spelled = "".join(f"\\{b:02X}" for b in raw)
            strings.append(f'@{name} = private unnamed_addr constant [{len(raw)} x i8] c"{spelled}"\n')
        return "".join([*strings, *self.externs.values(), *self.bodies, _METADATA, *self.vector_loops])


def emit(
    functions: Mapping[str, Callable[..., Any]],
    constants: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
) -> str:
    """Return LLVM IR of native functions, exported under the given symbols.

    Args:
        functions: symbol to native function.
        constants: values of template parameters, and functions in place of others, by their names.
        types: type parameters.

    Returns:
        The module's text.

    Raises:
        LangError: a function leaves the subset.

    Example:
        >>> from tandem.backends.cpu.fastpath.compiler.dsl import i64, native
        >>> from tandem.backends.cpu.fastpath.compiler import lang
        >>> callable(lang.emit)
        True
    """
    module = Module(constants, types)
    for symbol, fn in functions.items():
        module.function(fn, symbol)
    return module.text()

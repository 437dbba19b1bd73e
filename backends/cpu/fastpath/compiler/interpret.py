"""Run native functions step by step in Python, for debugging.

The source of a native function is compiled again as Python, with the file's own line numbers, so that `pdb` stops in it
and shows locals. Loads and stores are ctypes accesses to the same memory that machine code uses, and C functions are
called by name. Annotated names are converted to their machine types; other arithmetic is Python's, wrapped to 64 bits.
"""

from __future__ import annotations

import ast
import copy
import ctypes
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..... import lazy
from . import dsl, structs
from .dsl import TYPES, Extern, Intrinsic, LangError, Template, Ty

_FAILED = {"p": 0, "i": -1, "u": -1, "f": -1.0, "v": None}  # what a C function returns with an exception set


class MachineType:
    """A machine type as native code uses it: called to convert a value, passed to `load` and `store`."""

    def __init__(self, ty: Ty) -> None:
        self.ty = ty

    def __call__(self, value: Any) -> Any:
        if self.ty.kind == "b":
            return bool(value)
        if self.ty.kind == "p" and callable(value):
            return value  # a native function as a pointer
        return structs.c_type(self.ty.name)(value if self.ty.kind == "f" else int(value)).value


class Interpreter:
    """Runs native functions as Python.

    Args:
        constants: values of template parameters, as for `lang.emit`.
        types: type parameters.
        symbols: addresses of C functions and objects that the process does not export by name.
    """

    def __init__(
        self,
        constants: Mapping[str, Any] | None = None,
        types: Mapping[str, str] | None = None,
        symbols: Mapping[str, int] | None = None,
    ) -> None:
        machine = {name: MachineType(ty) for name, ty in TYPES.items() if name != "None"}
        self.types = {**machine, **{name: machine[ty] for name, ty in (types or {}).items()}}
        self.names = dict(constants or {})
        self.symbols = dict(symbols or {})
        self.functions: dict[Any, Callable[..., Any]] = {}
        self.memory: list[Any] = []  # of `stack` and `cstr`, alive as long as the interpreter
        self.pending: BaseException | None = None  # the exception that is set
        self.replaced: dict[str, Callable[..., Any]] = {
            "PyErr_Occurred": lambda: id(type(self.pending)) if self.pending is not None else 0,
            "PyErr_Clear": lambda: setattr(self, "pending", None),
            "PyErr_ExceptionMatches": lambda cls: int(isinstance(self.pending, _object_at(cls))),
            "PyEval_SaveThread": lambda: 0,  # the GIL stays held
            "PyEval_RestoreThread": lambda state: None,
        }

    def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Call a native function; pointers are addresses.

        Raises:
            Exception: the exception that is set when the function returns NULL.
        """
        result = self.function(fn)(*args)
        pending, self.pending = self.pending, None
        if pending is not None:
            raise pending
        return result

    def function(self, fn: Any) -> Callable[..., Any]:
        """Return a native function as a Python function with the same file and lines."""
        if fn not in self.functions:
            definition = copy.deepcopy(dsl.parse_function(fn))
            tree = ast.fix_missing_locations(ast.Module([_Rewrite().visit(definition)], []))
            names = _Names(self, fn.__globals__)
            exec(compile(tree, inspect.getsourcefile(fn) or "<native>", "exec"), names)
            self.functions[fn] = names[definition.name]
        return self.functions[fn]

    def value(self, name: str, result: Any) -> Any:
        """Return what a global name means in interpreted code."""
        if isinstance(result, Template):
            return self.names.get(name, result.default)
        if isinstance(result, Intrinsic):
            return self.intrinsic(result)
        if isinstance(result, Extern):
            return self.address(result.name) if result.args is None else self.extern(result)
        if getattr(result, "__native__", False):
            return self.function(result)
        return _Module(self, result) if isinstance(result, lazy.MODULE_TYPES) else result

    # C functions --------------------------------------------------------------------------------------------
    def address(self, name: str) -> int:
        """Return the address of a C function or object."""
        if name in self.symbols:
            return self.symbols[name]
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))
        except ValueError:
            raise LangError(f"{name} is not exported by this process: pass its address in symbols") from None

    def extern(self, result: Extern) -> Callable[..., Any]:
        """Return a C function; an exception that it sets becomes the pending one."""
        if result.name in self.replaced:
            return self.replaced[result.name]
        return self.foreign(
            self.address(result.name), TYPES[result.ret], [TYPES[a] for a in result.args or ()]
        )

    def foreign(self, address: int, ret: Ty, types: list[Ty]) -> Callable[..., Any]:
        """Return the C function at an address."""
        kinds = [structs.c_type(ty.name) for ty in types]
        kind = None if ret.kind == "v" else structs.c_type(ret.name)
        function = ctypes.PYFUNCTYPE(kind, *kinds)(int(address))

        def call(*args: Any) -> Any:
            try:
                return function(*(a if ty.kind == "f" else int(a) for ty, a in zip(types, args, strict=True)))
            except BaseException as error:
                self.pending = error
                return _FAILED[ret.kind]

        return call

    # intrinsics ---------------------------------------------------------------------------------------------
    def intrinsic(self, result: Intrinsic) -> Callable[..., Any]:
        """Return an intrinsic as a Python function."""
        functions: dict[str, Callable[..., Any]] = {
            "load_type": lambda kind, base, at=0: structs.read(kind.ty.name, int(base) + int(at)),
            "store_type": lambda kind, base, at, value: structs.write(
                kind.ty.name, int(base) + int(at), value
            ),
            "exchange": _exchange,
            "likely": bool,
            "unlikely": bool,
            "stack": lambda size: self._keep(ctypes.create_string_buffer(size)),
            "stack_of": lambda *values: self._keep((ctypes.c_int64 * len(values))(*map(int, values))),
            "cstr": lambda text: self._keep(ctypes.create_string_buffer(text.encode())),
            "call": partial(self._call_pointer, TYPES[result.ty or "None"]),
        }
        return functions[result.name]

    def _keep(self, buffer: Any) -> int:
        self.memory.append(buffer)
        return ctypes.addressof(buffer)

    def _call_pointer(self, ret: Ty, callee: Any, *args: Any) -> Any:
        if callable(callee):
            return callee(*args)
        return self.foreign(callee, ret, [TYPES["f64" if isinstance(a, float) else "i64"] for a in args])(
            *args
        )


class _Names(dict[str, Any]):
    """The globals of an interpreted function: machine types first, then the module's names, then builtins."""

    def __init__(self, interpreter: Interpreter, names: Mapping[str, Any]) -> None:
        super().__init__(_divide=_divide, _remainder=_remainder, _wrap=_wrap)
        self.interpreter, self.names = interpreter, names

    def __missing__(self, name: str) -> Any:
        if name in self.interpreter.types:
            return self.interpreter.types[name]
        value = self.names[name]  # a KeyError lets Python look among the builtins
        return self.interpreter.value(name, value)


class _Module:
    """A module whose functions are interpreted."""

    def __init__(self, interpreter: Interpreter, module: Any) -> None:
        self.interpreter, self.module = interpreter, module

    def __getattr__(self, name: str) -> Any:
        if self.module is dsl and name in self.interpreter.types:
            return self.interpreter.types[name]
        return self.interpreter.value(name, getattr(self.module, name))


class _Rewrite(ast.NodeTransformer):
    """Turns native code into Python: names and results have their declared types, and `//`, `%` are C's."""

    def __init__(self) -> None:
        self.declared: dict[str, ast.expr] = {}  # the types of the names
        self.returns: ast.expr | None = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        returned = node.returns
        self.returns = None if isinstance(returned, ast.Constant) else returned
        converted: list[ast.stmt] = []
        for arg in node.args.args:
            if arg.annotation is not None:
                self.declared[arg.arg] = arg.annotation
                value = self._convert(arg.arg, ast.Name(arg.arg, ast.Load()))
                target: list[ast.expr] = [ast.Name(arg.arg, ast.Store())]
                converted.append(ast.copy_location(ast.Assign(target, value), node.body[0]))
                arg.annotation = None
        self.generic_visit(node)
        node.decorator_list, node.returns = [], None
        node.body = converted + node.body
        return node

    def _convert(self, name: str, value: ast.expr) -> ast.expr:
        """Return a value converted to the type that a name was declared with."""
        kind = self.declared.get(name)
        return value if kind is None else ast.copy_location(ast.Call(kind, [value], []), value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if not isinstance(node.target, ast.Name) or node.value is None:
            return node
        self.declared[node.target.id] = node.annotation
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name):
            node.value = self._convert(target.id, value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = zip(target.elts, value.elts, strict=True)
            value.elts = [self._convert(t.id, v) if isinstance(t, ast.Name) else v for t, v in pairs]
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and self.returns is not None:
            node.value = ast.copy_location(ast.Call(self.returns, [node.value], []), node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        value = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = {ast.FloorDiv: "_divide", ast.Mod: "_remainder"}.get(type(node.op), "_wrap")
        values: list[ast.expr] = [node] if name == "_wrap" else [node.left, node.right]
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), values, []), node)


def _wrap(value: Any) -> Any:
    """Return an integer modulo 2**64, signed; other values unchanged."""
    if type(value) is not int or -(1 << 63) <= value < 1 << 64:
        return value
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _exchange(at: int, value: int) -> int:
    before = structs.read("ptr", int(at))
    structs.write("ptr", int(at), int(value))
    return int(before)


def _divide(left: int, right: int) -> int:
    """Return the quotient rounded toward zero, as C does."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    """Return the remainder of `_divide`, which has the sign of the dividend."""
    return left - right * _divide(left, right)


def _object_at(address: Any) -> Any:
    """Return the object at an address."""
    return ctypes.cast(int(address), ctypes.py_object).value

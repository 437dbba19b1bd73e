"""The names that native functions are written with: machine types, memory access, calls.

A native function is an annotated Python function over these names. It never runs as Python: `lang` reads its source and
writes LLVM IR. The aliases below let a type checker follow the code (`i64` and `ptr` are integers).
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import struct
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

from .....errors import TandemError
from .....named_tuple import NamedTuple

i8: TypeAlias = int
i16: TypeAlias = int
i32: TypeAlias = int
i64: TypeAlias = int
u8: TypeAlias = int
u16: TypeAlias = int
u32: TypeAlias = int
u64: TypeAlias = int
f16: TypeAlias = float
f32: TypeAlias = float
f64: TypeAlias = float
ptr: TypeAlias = Any  # an address, also of a struct

NULL: ptr = 0

V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])


class Ty:
    """A machine type: its name here, its LLVM spelling, kind (`i u f p b v`) and width in bits; one object each."""

    __slots__ = ("bits", "kind", "llvm", "name", "struct")

    def __init__(self, name: str, llvm: str, kind: str, bits: int, struct: Any = None) -> None:
        self.name, self.llvm, self.kind, self.bits, self.struct = name, llvm, kind, bits, struct


TYPES: dict[str, Ty] = {
    **{f"i{n}": Ty(f"i{n}", f"i{n}", "i", n) for n in (8, 16, 32, 64)},
    **{f"u{n}": Ty(f"u{n}", f"i{n}", "u", n) for n in (8, 16, 32, 64)},
    "f16": Ty("f16", "half", "f", 16),
    "f32": Ty("f32", "float", "f", 32),
    "f64": Ty("f64", "double", "f", 64),
    "ptr": Ty("ptr", "ptr", "p", 64),
    "bool": Ty("bool", "i1", "b", 1),
    "None": Ty("None", "void", "v", 0),
}


class Opcodes:
    """The base of classes of named integers, constants of native code; an `IntEnum` would slow down the import."""


class Template:
    """A compile-time parameter of a module's functions, whose value each compilation chooses by name."""

    __slots__ = ("default",)

    def __init__(self, default: Any) -> None:
        self.default = default


def template(default: int | float) -> Any:
    """Declare a template parameter with the value that it has by default."""
    return Template(default)


class NativeOnly:
    """A name that native functions call, and Python does not."""

    name: str

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.name} is callable from native functions only")


class Extern(NativeOnly):
    """A C function or object found by name when code is linked; `args is None` marks an object (its address)."""

    def __init__(self, name: str, ret: str, args: tuple[str, ...] | None) -> None:
        self.name, self.ret, self.args = name, ret, args


def extern(name: str, signature: str) -> Callable[..., Any]:
    """Declare a C function: `extern("PyTuple_New", "ptr(i64)")`."""
    ret, _, rest = signature.partition("(")
    return Extern(name, ret, tuple(a.strip() for a in rest.rstrip(")").split(",") if a.strip()))


def extern_object(name: str) -> ptr:
    """Declare a C object; the name denotes its address."""
    return Extern(name, "ptr", None)


class Intrinsic(NativeOnly):
    """A function that the compiler expands itself (see `lang_expr`)."""

    def __init__(self, name: str, ty: str = "") -> None:
        self.name, self.ty = name, ty


def _intrinsic(name: str, ty: str = "") -> Any:
    return Intrinsic(name, ty)


Integer = Callable[..., int]
Pointer = Callable[..., Any]
Nothing = Callable[..., None]

if TYPE_CHECKING:

    class LoadSignature(Protocol):
        """The type of `load`: a value of the type that it is given."""

        @overload
        def __call__(self, kind: type[V], base: Any, offset: Any = 0, /) -> V: ...
        @overload
        def __call__(self, kind: Any, base: Any, offset: Any = 0, /) -> Any: ...


# T is a machine type, or a template's type parameter
load: LoadSignature = _intrinsic("load_type")  # load(T, p, offset)
store: Nothing = _intrinsic("store_type")  # store(T, p, offset, value)
exchange: Pointer = _intrinsic("exchange")  # exchange(p, x): the pointer at p; x takes its place atomically
likely: Callable[..., bool] = _intrinsic("likely")
unlikely: Callable[..., bool] = _intrinsic("unlikely")
stack: Pointer = _intrinsic("stack")  # stack(nbytes): scratch memory that lives until the function returns
stack_of: Pointer = _intrinsic("stack_of")  # stack_of(x, y): such memory that holds these values of 8 bytes
cstr: Pointer = _intrinsic("cstr")  # cstr("text"): address of a constant C string
call_ptr: Pointer = _intrinsic("call", "ptr")  # call_ptr(function pointer, *args)
call_i32: Integer = _intrinsic("call", "i32")
call_void: Nothing = _intrinsic("call", "None")


vector_range = range  # of a short loop that becomes vectors: LLVM may not unroll it first


def native(fn: F) -> F:
    """Mark a function as native code: other native functions may call it."""
    fn.__native__ = True  # type: ignore[attr-defined]
    return fn


def noinline(fn: F) -> F:
    """Mark a native function that is never inlined: rare paths, so that entries are small and compile fast."""
    fn.__inlining__ = "noinline"  # type: ignore[attr-defined]
    return native(fn)


def alwaysinline(fn: F) -> F:
    """Mark a native function that is always inlined: it has loops over an argument that callers give as a constant."""
    fn.__inlining__ = "alwaysinline"  # type: ignore[attr-defined]
    return native(fn)


def parse_function(fn: Any) -> ast.FunctionDef:
    """Return the syntax tree of a native function with the lines of its file; callers share the tree."""
    code = inspect.unwrap(fn).__code__
    lines, first = linecache.getlines(code.co_filename, fn.__globals__), code.co_firstlineno
    tree = _parse_lines(first, "".join(lines[first - 1 : _find_end(code, lines)]))
    if tree is None:
        tree = _parse_functions("".join(lines)).get(first)
    if tree is None:
        raise LangError(f"{fn!r} is not a plain function whose source is known")
    return tree


def _find_end(code: CodeType, lines: list[str]) -> int:
    """Return the number of the last line of a function at the top of a module.

    The indented lines behind the last one that has code are part of it: CPython drops what it cannot reach.
    """
    end = max((last for _, last, *_ in code.co_positions() if last is not None), default=0)
    for number in range(end, len(lines)):
        if lines[number][0] in " \t":
            end = number + 1
        elif lines[number].strip():
            break
    return end


@functools.lru_cache(maxsize=4096)
def _parse_lines(first: int, source: str) -> ast.FunctionDef | None:
    """Return the function in some lines of a file, from line ``first`` on; None if they are not a whole function.

    To parse all of a file takes several times as long where few of its functions are used.
    """
    try:
        body = ast.parse("\n" * (first - 1) + source).body
    except SyntaxError:
        return None
    return body[0] if len(body) == 1 and isinstance(body[0], ast.FunctionDef) else None


@functools.lru_cache(maxsize=64)
def _parse_functions(source: str) -> dict[int, ast.FunctionDef]:
    """Return the functions of a file by the line on which each starts, with its decorators.

    ``inspect.getsource`` would find the end of each function token by token.
    """
    result: dict[int, ast.FunctionDef] = {}
    statements: list[ast.AST] = list(ast.parse(source).body)
    while statements:
        node = statements.pop()
        statements += getattr(node, "body", ())
        if isinstance(node, ast.FunctionDef):
            result[min([node.lineno, *(part.lineno for part in node.decorator_list)])] = node
    return result


# Values while code is compiled --------------------------------------------------------------------------------------
class LangError(TandemError, SyntaxError):
    """A native function uses a construct outside the subset, or mixes types."""


class Val(NamedTuple):
    """A value: type, LLVM spelling, and the Python constant behind a literal (which adapts its type)."""

    ty: Ty
    text: str
    const: int | float | None = None


I64, F64, BOOL, PTR, VOID = (TYPES[n] for n in ("i64", "f64", "bool", "ptr", "None"))


def float_text(value: float, ty: Ty) -> str:
    """Return the exact LLVM spelling of a float constant (LLVM expects the bits of the double)."""
    if ty.bits == 32:
        value = struct.unpack("f", struct.pack("f", value))[0]
    if ty.bits == 16:
        return "0xH" + struct.pack(">e", value).hex().upper()
    return "0x" + struct.pack(">d", value).hex().upper()


def const(value: int | float | bool, ty: Ty | None = None) -> Val:
    """Return a literal of the given type, or of the default one for its Python type."""
    ty = ty or (BOOL if isinstance(value, bool) else I64 if isinstance(value, int) else F64)
    if ty.kind == "f":
        return Val(ty, float_text(float(value), ty), float(value))
    if ty.kind == "p":
        return Val(ty, "null" if value == 0 else f"inttoptr (i64 {int(value)} to ptr)", int(value))
    return Val(ty, str(int(value)), int(value))


@functools.cache
def pointer_to(owner: type) -> Ty:
    """Return the type of pointers to a struct."""
    return Ty(owner.__name__, "ptr", "p", 64, owner)


def conversion(src: Ty, to: Ty) -> str:
    """Return the LLVM conversion instruction between two machine types."""
    if src.kind in "iub" and to.kind in "iu":
        widen = "sext" if src.kind == "i" else "zext"
        return "bitcast" if src.bits == to.bits else "trunc" if to.bits < src.bits else widen
    if src.kind == "f" and to.kind == "f":
        return "fptrunc" if to.bits < src.bits else "fpext"
    if to.kind == "f" and src.kind in "iub":
        return "sitofp" if src.kind == "i" else "uitofp"
    if src.kind == "f" and to.kind in "iu":
        return "fptosi" if to.kind == "i" else "fptoui"
    if src.kind == "p" and to.kind in "iu" and to.bits == 64:
        return "ptrtoint"
    if src.kind in "iu" and src.bits == 64 and to.kind == "p":
        return "inttoptr"
    raise LangError(f"no conversion from {src.name} to {to.name}")

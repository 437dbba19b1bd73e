"""The names that native functions are written with: machine types, memory access, calls.

A native function is an annotated Python function over these names. It never runs as Python: `lang` reads its source and
writes LLVM IR. The aliases below let a type checker follow the code (`i64` and `ptr` are integers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

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


class Extern:
    """A C function or object found by name when code is linked; `args is None` marks an object (its address)."""

    __slots__ = ("args", "name", "ret")

    def __init__(self, name: str, ret: str, args: tuple[str, ...] | None) -> None:
        self.name, self.ret, self.args = name, ret, args

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.name} is callable from native functions only")


def extern(name: str, signature: str) -> Callable[..., Any]:
    """Declare a C function: `extern("PyTuple_New", "ptr(i64)")`."""
    ret, _, rest = signature.partition("(")
    return Extern(name, ret, tuple(a.strip() for a in rest.rstrip(")").split(",") if a.strip()))


def extern_object(name: str) -> ptr:
    """Declare a C object; the name denotes its address."""
    return Extern(name, "ptr", None)


class Intrinsic:
    """A function that the compiler expands itself (see `lang_expr`)."""

    __slots__ = ("name", "ty")

    def __init__(self, name: str, ty: str = "") -> None:
        self.name, self.ty = name, ty

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.name} is callable from native functions only")


def _intrinsic(name: str, ty: str = "") -> Any:
    return Intrinsic(name, ty)


Integer = Callable[..., int]
Pointer = Callable[..., Any]
Float = Callable[..., float]
Nothing = Callable[..., None]

# load(T, p, offset) and store(T, p, offset, value): T is a type, or a template's type parameter
load: Callable[..., Any] = _intrinsic("load_type")
store: Nothing = _intrinsic("store_type")
load_i8: Integer = _intrinsic("load", "i8")
load_i16: Integer = _intrinsic("load", "i16")
load_i32: Integer = _intrinsic("load", "i32")
load_i64: Integer = _intrinsic("load", "i64")
load_u8: Integer = _intrinsic("load", "u8")
load_u32: Integer = _intrinsic("load", "u32")
load_u64: Integer = _intrinsic("load", "u64")
load_ptr: Pointer = _intrinsic("load", "ptr")
load_f32: Float = _intrinsic("load", "f32")
load_f64: Float = _intrinsic("load", "f64")
store_i8: Nothing = _intrinsic("store", "i8")
store_i16: Nothing = _intrinsic("store", "i16")
store_i32: Nothing = _intrinsic("store", "i32")
store_i64: Nothing = _intrinsic("store", "i64")
store_ptr: Nothing = _intrinsic("store", "ptr")
store_f32: Nothing = _intrinsic("store", "f32")
store_f64: Nothing = _intrinsic("store", "f64")
likely: Callable[..., bool] = _intrinsic("likely")
unlikely: Callable[..., bool] = _intrinsic("unlikely")
stack: Pointer = _intrinsic("stack")  # stack(nbytes): scratch memory that lives until the function returns
cstr: Pointer = _intrinsic("cstr")  # cstr("text"): address of a constant C string
call_ptr: Pointer = _intrinsic("call", "ptr")  # call_ptr(function pointer, *args)
call_i64: Integer = _intrinsic("call", "i64")
call_i32: Integer = _intrinsic("call", "i32")
call_void: Nothing = _intrinsic("call", "None")
reassoc_add: Integer = _intrinsic("reassoc", "fadd")  # may be summed in any order, hence vectorized
reassoc_mul: Integer = _intrinsic("reassoc", "fmul")
fmaximum: Integer = _intrinsic("fextreme", "maximum")  # NaN if either is
quick_max: Integer = _intrinsic("quick", "ogt")  # undefined for NaN; any order
quick_min: Integer = _intrinsic("quick", "olt")
fminimum: Integer = _intrinsic("fextreme", "minimum")


def native(fn: F) -> F:
    """Mark a function as native code: other native functions may call it."""
    fn.__native__ = True  # type: ignore[attr-defined]
    return fn


def noinline(fn: F) -> F:
    """Mark a native function that is never inlined: rare paths, so that entries are small and compile fast."""
    fn.__apart__ = True  # type: ignore[attr-defined]
    return native(fn)

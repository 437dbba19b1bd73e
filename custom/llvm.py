"""Scalar functions in LLVM IR: parsed and verified by LLVM, and made ready to be inlined."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from .. import lazy
from ..backends.cpu.native import engine
from ..errors import ArgumentError, SchemaError, ValueArgumentError
from ..operators.c_signature import CSignature
from ..registry import dtypes as dt
from ..registry.dtypes import DType

TYPES: dict[str, DType] = {
    "float": dt.float32,
    "double": dt.float64,
    "i1": dt.bool_,
    "i8": dt.int8,
    "i16": dt.int16,
    "i32": dt.int32,
    "i64": dt.int64,
}


class Parsed(NamedTuple):
    """A scalar function: its types, and the text of a module that defines it."""

    params: tuple[DType, ...]
    result: DType
    ir: str


def parsed_function(source: Any, signature: CSignature | None, name: str) -> Parsed:
    """The function of a text, or of a builder, under a name.

    Raises:
        ValueArgumentError: LLVM refuses it, or it defines no function of numbers.
        SchemaError: the signature is missing, or another one than the text's.
    """
    if callable(source):
        if signature is None:
            raise SchemaError(
                "llvm_kernel: a function that builds code needs a signature, such as 'double(double)'"
            )
        text = _built(source, signature)
    elif isinstance(source, str):
        text = source
    else:
        raise ArgumentError(
            f"llvm_kernel takes LLVM IR as text, or a function that builds it, not {source!r}"
        )
    binding = lazy.llvmlite_binding()
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as fault:
        raise ValueArgumentError(f"llvm_kernel: LLVM refuses the code: {fault}\n{_numbered(text)}") from None
    return _ready(module, signature, name)


def _numbered(text: str) -> str:
    return "\n".join(f"{number:4}  {line}" for number, line in enumerate(text.splitlines(), 1))


def _built(emit: Any, signature: CSignature) -> str:
    """The module of a function that builds code."""
    ir = lazy.llvmlite_ir()
    kinds = {dtype: name for name, dtype in TYPES.items()}
    names = [
        kinds.get(d) or f"i{d.bits}" for d in (signature.result, *(p.dtype for p in signature.params)) if d
    ]
    result, *params = [_ir_type(ir, name) for name in names]
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(result, params), "scalar")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    value = emit(builder, *function.args)
    if not hasattr(value, "type") or value.type != result:
        raise ValueArgumentError(
            f"llvm_kernel: {_name(emit)} returned {getattr(value, 'type', value)}, and the signature says {result}"
        )
    builder.ret(value)
    return str(module)


def _ir_type(ir: Any, name: str) -> Any:
    return (
        {"float": ir.FloatType, "double": ir.DoubleType}[name]()
        if name[0] in "fd"
        else ir.IntType(int(name[1:]))
    )


def _name(emit: Any) -> str:
    found = getattr(emit, "__name__", "")
    return found if found and found != "<lambda>" else inspect.getsourcefile(emit) or repr(emit)


def _ready(module: Any, signature: CSignature | None, name: str) -> Parsed:
    """The module with its function under ``name``, to be inlined wherever it is called; its helpers stay its own."""
    defined = [function for function in module.functions if not function.is_declaration]
    shown = [f for f in defined if f.linkage.name not in ("internal", "private")]
    if len(shown) != 1:
        raise ValueArgumentError(
            f"llvm_kernel: the text defines {len(shown)} functions that are not internal "
            f"({', '.join(f.name for f in shown) or 'none'}); it defines one"
        )
    _check_symbols(module)
    main = shown[0]
    kinds = [str(argument.type) for argument in main.arguments]
    result = str(main.global_value_type).partition("(")[0].strip()
    params, returned = _typed(kinds, result, signature)
    for function in defined:
        function.name = name if function.name == main.name else f"{name}_{function.name}"
        function.add_function_attribute("alwaysinline")
    main.linkage = "linkonce_odr"
    return Parsed(params, returned, str(module))


def _check_symbols(module: Any) -> None:
    """Refuse functions that are declared and cannot be linked: the C library's and libm's can."""
    for function in module.functions:
        outside = function.is_declaration and not function.name.startswith("llvm.")
        if outside and not engine.has_symbol(function.name):
            raise ValueArgumentError(
                f"llvm_kernel: the code calls {function.name!r}, which neither the C library nor libm nor Python has; "
                "define it in the text, or use td.c_kernel"
            )


def _typed(kinds: list[str], result: str, signature: CSignature | None) -> tuple[tuple[DType, ...], DType]:
    odd = next((kind for kind in (*kinds, result) if kind not in TYPES), None)
    if odd is not None or not kinds:
        raise ValueArgumentError(
            f"llvm_kernel: {result}({', '.join(kinds)}) is no function of numbers; the types are {', '.join(TYPES)}"
        )
    if signature is None or signature.result is None:
        return tuple(TYPES[kind] for kind in kinds), TYPES[result]
    wanted = [param.dtype for param in signature.params]
    same = len(wanted) == len(kinds) and all(_is(TYPES[k], d) for k, d in zip(kinds, wanted))
    if not same or not _is(TYPES[result], signature.result):
        raise SchemaError(
            f"llvm_kernel: the text defines {result}({', '.join(kinds)}), and the signature is {signature}"
        )
    return tuple(wanted), signature.result


def _is(emitted: DType, dtype: DType) -> bool:
    """Whether a type of LLVM holds a dtype: integers have no sign there."""
    return emitted is dtype or (
        emitted.is_integer and dtype.is_integer and emitted.itemsize == dtype.itemsize
    )

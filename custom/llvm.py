"""Parse and verify scalar functions in LLVM IR, and prepare them for inlining."""

from __future__ import annotations

import inspect
import re
from typing import Any

from .. import lazy
from ..backends.cpu.codegen.blocks import begin_lifetime
from ..backends.cpu.fastpath.compiler import engine
from ..errors import ArgumentError, SchemaError, ValueArgumentError
from ..named_tuple import NamedTuple
from ..operators.foreign.c_signature import CSignature
from ..registry import dtypes as dt
from ..registry.dtypes import DType

ir = lazy.Module("llvmlite.ir")

TYPES: dict[str, DType] = {
    "float": dt.float32,
    "double": dt.float64,
    "i1": dt.bool_,
    "i8": dt.int8,
    "i16": dt.int16,
    "i32": dt.int32,
    "i64": dt.int64,
}

_ALLOCA = re.compile(r'^ +(%[^\s"]+|%"[^"]*") = alloca .*$', re.MULTILINE)  # as LLVM prints it: one to a line


class ParsedFunction(NamedTuple):
    """A scalar function: its types, and the text of a module that defines it."""

    params: tuple[DType, ...]
    result: DType
    ir: str


def parse_function(source: object, signature: CSignature | None, name: str) -> ParsedFunction:
    """Parse a function from IR text or from a builder function, and rename it.

    Raises:
        ValueArgumentError: LLVM rejects the code, or the code does not define a function of numbers.
        SchemaError: the signature is missing, or differs from that of the text.
    """
    if callable(source):
        if signature is None:
            raise SchemaError(
                "llvm_kernel: a function that builds code needs a signature, such as 'double(double)'"
            )
        text = _build_module(source, signature)
    elif isinstance(source, str):
        text = source
    else:
        raise ArgumentError(
            f"llvm_kernel takes LLVM IR as text, or a function that builds it, not {source!r}"
        )
    try:
        ready: ParsedFunction = engine.parse_ir(text, lambda module: _prepare_module(module, signature, name))
    except RuntimeError as fault:
        raise ValueArgumentError(
            f"llvm_kernel: LLVM refuses the code: {fault}\n{_number_lines(text)}"
        ) from None
    return ready


def _number_lines(text: str) -> str:
    return "\n".join(f"{number:4}  {line}" for number, line in enumerate(text.splitlines(), 1))


def _build_module(emit: Any, signature: CSignature) -> str:
    """Build the module of a function that emits code with an IRBuilder."""
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
            f"llvm_kernel: {_builder_name(emit)} returned {getattr(value, 'type', value)}, and the signature says "
            f"{result}"
        )
    builder.ret(value)
    return str(module)


def _ir_type(ir: Any, name: str) -> Any:
    return (
        {"float": ir.FloatType, "double": ir.DoubleType}[name]()
        if name[0] in "fd"
        else ir.IntType(int(name[1:]))
    )


def _builder_name(emit: Any) -> str:
    result = getattr(emit, "__name__", "")
    return result if result and result != "<lambda>" else inspect.getsourcefile(emit) or repr(emit)


def _prepare_module(module: Any, signature: CSignature | None, name: str) -> ParsedFunction:
    """Rename the function of a module to ``name``, prefix its helpers, and mark all of them for inlining."""
    defined = [function for function in module.functions if not function.is_declaration]
    external = [f for f in defined if f.linkage.name not in ("internal", "private")]
    if len(external) != 1:
        raise ValueArgumentError(
            f"llvm_kernel: the text defines {len(external)} functions that are not internal "
            f"({', '.join(f.name for f in external) or 'none'}); it defines one"
        )
    _check_symbols(module)
    main = external[0]
    kinds = [str(argument.type) for argument in main.arguments]
    result = str(main.global_value_type).partition("(")[0].strip()
    params, returned = _check_types(kinds, result, signature)
    for function in defined:
        function.name = name if function.name == main.name else f"{name}_{function.name}"
        function.add_function_attribute("alwaysinline")
    main.linkage = "linkonce_odr"
    text = _ALLOCA.sub(lambda match: f"{match[0]}\n{begin_lifetime(match[1])}", str(module))
    return ParsedFunction(params, returned, text)


def _check_symbols(module: Any) -> None:
    """Raise ValueArgumentError if a declared function is not in the C library, libm or Python."""
    for function in module.functions:
        outside = function.is_declaration and not function.name.startswith("llvm.")
        if outside and not engine.has_symbol(function.name):
            raise ValueArgumentError(
                f"llvm_kernel: the code calls {function.name!r}, which neither the C library nor libm nor Python has; "
                "define it in the text, or use td.c_kernel"
            )


def _check_types(
    kinds: list[str], result: str, signature: CSignature | None
) -> tuple[tuple[DType, ...], DType]:
    odd = next((kind for kind in (*kinds, result) if kind not in TYPES), None)
    if odd is not None or not kinds:
        raise ValueArgumentError(
            f"llvm_kernel: {result}({', '.join(kinds)}) is no function of numbers; the types are {', '.join(TYPES)}"
        )
    if signature is None or signature.result is None:
        return tuple(TYPES[kind] for kind in kinds), TYPES[result]
    wanted = [param.dtype for param in signature.params]
    same = len(wanted) == len(kinds) and all(_holds_dtype(TYPES[k], d) for k, d in zip(kinds, wanted))
    if not same or not _holds_dtype(TYPES[result], signature.result):
        raise SchemaError(
            f"llvm_kernel: the text defines {result}({', '.join(kinds)}), and the signature is {signature}"
        )
    return tuple(wanted), signature.result


def _holds_dtype(emitted: DType, dtype: DType) -> bool:
    """Return whether an LLVM type can represent a dtype; LLVM integers are signless."""
    return emitted is dtype or (
        emitted.is_integer and dtype.is_integer and emitted.itemsize == dtype.itemsize
    )

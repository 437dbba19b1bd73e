"""Write the type stubs of functions and methods made from declarations (``td.add``, ``x.add``), and their aliases.

``python -m tandem.eager.tensor.type_stubs`` writes ``__init__.pyi``, ``eager/tensor/signatures.pyi`` and the table of
``operators/declare/aliases.py``; a test checks that they are current.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...operators.declare.declaration import declared_operators
from ...registry.function import functions
from ...registry.lazy_operators import materialize
from ...registry.schemas.binding import is_variadic
from ...registry.schemas.schema import MISSING, Argument, Type
from . import methods
from .dunders import BINARY, COMPARISON, UNARY
from .functions import public_functions
from .inplace import name_of_variant

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Function, Tensor

ROOT = Path(__file__).resolve().parents[2]
HEADER = '"""Made by `python -m tandem.eager.tensor.type_stubs` from the declarations of the operators."""\n'
ALIASES = """
_Number = _b.bool | _b.int | _b.float | _b.complex
_TensorLike = Tensor | _Number | _np.ndarray[Any, Any] | _np.generic
_DTypeLike = DType | _b.str | _b.type[Any] | _np.dtype[Any]
"""
# Names of PyTorch that the stubs show besides those of the schemas; binding accepts more.
PYTORCH_NAMES = {"axis": "dim", "keepdims": "keepdim"}
# The overloads that a keyword, or fewer arguments, select.
KEYWORD_OVERLOADS = ("dim", "alpha", "mode", "decimals", "condition")
STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
NAMES = {
    "Tensor": "_TensorLike",
    "int": "_b.int",
    "SymInt": "_b.int",
    "float": "_b.float",
    "complex": "_b.complex",
    "bool": "_b.bool",
    "str": "_b.str",
    "Scalar": "_Number",
    "ScalarType": "_DTypeLike",
    "Device": "_b.str",
}


def format_annotation(kind: Type) -> str:
    """Format the annotation of an argument."""
    if kind.form == "base" or kind.element is None:
        return NAMES.get(kind.base, "Any")
    inner = format_annotation(kind.element)
    if kind.form == "optional":
        return f"{inner} | None"
    return (
        f"Sequence[{inner}] | {inner}"
        if kind.core in ("int", "SymInt", "float", "bool")
        else f"Sequence[{inner}]"
    )


def format_returns(function: OperatorFunction[object]) -> str:
    """Format the annotation of the result."""
    schema, result_type = function.operator.schema, getattr(function.decl, "result_type", None)
    if result_type is not None:
        return str(result_type.__name__)
    kinds = [
        "tuple[Tensor, ...]" if result.type.is_list else _format_result(result.type)
        for result in schema.returns
    ]
    if len(kinds) == 1 and schema.bare_return:
        return kinds[0]
    return f"tuple[{', '.join(kinds)}]" if kinds else "None"


def _format_result(kind: Type) -> str:
    return "Tensor" if kind.core == "Tensor" else NAMES.get(kind.core, "Any")


def _format_default(argument: Argument) -> str:
    if argument.default is MISSING:
        return ""
    simple = argument.default is None or type(argument.default) in (bool, int, str)
    return f" = {_format_literal(argument.default)}" if simple else " = ..."


def _format_literal(default: object) -> str:
    """Format a default, with strings in double quotes."""
    return repr(default).replace("'", '"') if isinstance(default, str) else repr(default)


def format_function(name: str, function: OperatorFunction[object], indent: str = "") -> str:
    """Format the stub of a function or method from a schema; with overloads if other spellings have other types."""
    schema = function.operator.schema
    names = {argument.name for argument in schema.arguments}
    renamed = {old: new for old, new in PYTORCH_NAMES.items() if old in names and new not in names}
    variants = [(function, _format_parameters(function, indent, {}))]
    if is_variadic(schema, getattr(function.decl, "variadic", None)):
        variants.append((function, _format_parameters(function, indent, {}, variadic=True)))
    overloads = _other_overloads(function)
    if renamed and not overloads:
        variants.append((function, _format_parameters(function, indent, renamed)))
    for other in overloads:
        positional = 1 if other.operator.schema.overload == "dim" else None
        variants.append((other, _format_parameters(other, indent, {}, positional=positional)))
    decorator = f"{indent}@overload\n" if len(variants) > 1 else ""
    stubs = [
        f"{decorator}{indent}def {name}(\n{lines}{indent}) -> {format_returns(variant)}:\n"
        f'{indent}    """{_first_line(variant.__doc__ or "")}"""\n'
        for variant, lines in variants
    ]
    return ("" if indent else "\n").join(stubs)


def _other_overloads(function: OperatorFunction[object]) -> list[OperatorFunction[Tensor]]:
    """The declared overloads that keywords select, such as ``max.dim``."""
    schema, result = function.operator.schema, []
    for op in declared_operators():
        if op.schema.overload in KEYWORD_OVERLOADS and op is not function.operator:
            if op.schema.name == schema.name:
                result.append(functions[op.name])
            elif f"{op.schema.name}_" == schema.name:
                materialize(name_of_variant(op))
                result.append(functions[name_of_variant(op)])
    return result


def _format_parameters(
    function: OperatorFunction[object],
    indent: str,
    renamed: Mapping[str, str],
    variadic: bool = False,
    positional: int | None = None,
) -> str:
    """Format the parameters of a schema, one per line.

    Args:
        function: the operator's function.
        indent: empty for a function, else that of a method.
        renamed: argument -> its name in the stub.
        variadic: whether the last positional argument is given item by item.
        positional: the number of arguments that may be positional; None: those of the schema.
    """
    lines: list[str] = []
    starred = False
    last = len(function.operator.schema.positional) - 1
    for position, argument in enumerate(function.operator.schema.arguments):
        if (argument.kwarg_only or position == positional) and not starred:
            lines.append("*")
            starred = True
        if indent and position == 0:
            lines.append("self")
        elif variadic and position == last:
            lines.append(f"*{argument.name}: _b.int")
            starred = True
        else:
            name = renamed.get(argument.name, argument.name)
            lines.append(f"{name}: {_format_argument(function, argument)}{_format_default(argument)}")
    if function.operator.schema.takes_copy:
        lines += ["*"] * (not starred) + ["copy: _b.bool | None = None"]
    return "".join(f"{indent}    {line},\n" for line in lines)


def _format_argument(function: OperatorFunction[object], argument: Argument) -> str:
    """Format the annotation of an argument; where the schema says ``Any``, that of the composite's body."""
    if argument.type.base != "Any":
        return format_annotation(argument.type)
    body = getattr(function.decl, "body", None)
    return _qualify_names(getattr(body, "__annotations__", {}).get(argument.name, "object"))


def _first_line(doc: str) -> str:
    first = (doc or "").strip().partition("\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    return first if len(first) <= 90 else first[:87] + "..."


def format_method(name: str, function: Function) -> str:
    """Format the stub of a method written in Python from its signature."""
    lines, starred = ["self"], False
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            lines.append("*")
            starred = True
        star = STARS.get(parameter.kind.name, "")
        starred = starred or star == "*"
        default = "" if parameter.default is parameter.empty else f" = {_format_literal(parameter.default)}"
        lines.append(f"{star}{parameter.name}: {_qualify_names(parameter.annotation)}{default}")
    arguments = "".join(f"        {line},\n" for line in lines)
    result = _qualify_names(inspect.signature(function).return_annotation)
    doc = _first_line(function.__doc__ or "")
    return f'    def {name}(\n{arguments}    ) -> {result}:\n        """{doc}"""\n'


def format_property(name: str, member: property) -> str:
    """Format the stub of a property from the signature of its getter."""
    result = _qualify_names(inspect.signature(member.fget or name).return_annotation)  # type: ignore[arg-type]
    doc = _first_line(member.__doc__ or "")
    text = f'    @property\n    def {name}(self) -> {result}:\n        """{doc}"""\n'
    if member.fset is not None:
        value = [*inspect.signature(member.fset).parameters.values()][1].annotation
        text += f"    @{name}.setter\n    def {name}(self, value: {_qualify_names(value)}) -> None: ...\n"
    return text


def _qualify_names(text: str) -> str:
    words = {name: f"_b.{name}" for name in ("bool", "int", "str", "float", "complex")}
    words |= {"TensorLike": "_TensorLike", "DTypeLike": "_DTypeLike", "np": "_np"}
    return "".join(words.get(part, part) for part in _split_words(str(text)))


def _split_words(text: str) -> Iterator[str]:
    word = ""
    for letter in text:
        if letter.isalnum() or letter == "_":
            word += letter
            continue
        yield from (word, letter)
        word = ""
    yield word


def format_special_method(name: str) -> str:
    """Format the stub of a special method of two operands."""
    ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    return f"    def {name}(self, other: _TensorLike) -> Tensor: ...{ignored}\n"


def tensor_methods() -> Iterator[str]:
    """The stubs of Tensor's methods, in the order of their names."""
    written = methods.written_methods()
    for name, function in sorted(methods.operator_methods().items()):
        if name not in written:
            yield format_function(name, function, "    ")
    for name, member in sorted(written.items()):
        yield format_property(name, member) if isinstance(member, property) else format_method(name, member)
    for name in BINARY:
        yield (
            format_special_method(f"__{name}__")
            + format_special_method(f"__r{name}__")
            + format_special_method(f"__i{name}__")
        )
    for name in COMPARISON:
        yield format_special_method(f"__{name}__")
    for name in UNARY:
        yield f"    def __{name}__(self) -> Tensor: ...\n"


def signatures_text() -> str:
    """The text of ``eager/tensor/signatures.pyi``."""
    imports = (
        "import builtins as _b\nfrom collections.abc import Callable, Iterator, Sequence\n"
        "from contextlib import AbstractContextManager\nfrom types import ModuleType\n"
        "from typing import Any, SupportsIndex, overload\n\n"
        "import numpy as _np\n\nfrom ...linalg.results import QRResult, SlogdetResult\n"
        "from ...operators.declare.named_results import (\n"
        "    Histogram,\n    MinAndMax,\n    SingularVectors,\n    TriangularSolution,\n    ValuesAndIndices,\n)\n"
        "from ...registry.dtypes import DType\n"
        "from ...registry.types import Args, Function, Kwargs\nfrom ...registry.values import TensorBase\n"
        "from ..autograd.graph_functions import GraphFunction\n"
        "from ..autograd.hooks import Hook, RemovableHandle\nfrom ..sparse.tensor import SparseTensor\n"
        "from .at import At\nfrom .flags import MemoryFlags\n"
        "from .generator import Generator\nfrom .tensor import Tensor\n"
    )
    body = "".join(tensor_methods())
    return f"{HEADER}\n{imports}{ALIASES}\nclass TensorMethods(TensorBase):\n    __slots__ = ()\n{body}"


def init_text(init: str) -> str:
    """The text of ``__init__.pyi``, from that of ``__init__.py``."""
    public = [line for line in init.splitlines() if line.startswith("from .") and " as _" not in line]
    public = sorted([*public, *_lazy_imports(init)], key=_natural_sort_key)
    taken = {line.rpartition(" as ")[2] for line in public}
    public_items = [(name, fn) for name, fn in sorted(public_functions().items()) if name not in taken]
    functions = [format_function(name, fn) for name, fn in public_items]
    imports = (
        "import builtins as _b\nfrom collections.abc import Sequence\nfrom typing import Any, overload\n\n"
    )
    imports += "import numpy as _np\n\n"
    public, renamed = _export_renamed(public)
    public.append("from .operators.declare.named_results import MinAndMax, ValuesAndIndices")
    public.sort(key=_natural_sort_key)
    names = f"\n__version__: _b.str\n__array_api_version__: _b.str\nbool = bool_\n{renamed}\n"
    return f"{HEADER}\n{imports}{chr(10).join(public)}\n{ALIASES}{names}{chr(10).join(functions)}"


def _export_renamed(imports: list[str]) -> tuple[list[str], str]:
    """Import renamed names as private ones, and assign those to the public names.

    In a stub, ``from a import b as c`` exports c only where b and c are the same name.
    """
    lines, assignments = [], ""
    for line in imports:
        head, _, name = line.rpartition(" as ")
        if head.endswith(f" import {name}"):
            lines.append(line)
        else:
            lines.append(f"{head} as _{name}")
            assignments += f"{name} = _{name}\n"
    return lines, assignments


def _lazy_imports(init: str) -> Iterator[str]:
    """The imports of the names that ``__init__.py`` imports at their first use."""
    assigned = {ast.unparse(s.targets[0]): s.value for s in ast.parse(init).body if isinstance(s, ast.Assign)}
    for name, module in ast.literal_eval(assigned["_MODULES"]).items():
        package, _, stem = module.rpartition(".")
        yield f"from {package or '.'} import {stem} as {name}"
    for module, names in ast.literal_eval(assigned["_ATTRIBUTES"]).items():
        yield from (f"from {module} import {name} as {name}" for name in names.split())


def _natural_sort_key(line: str) -> str:
    """A sort key by which ``int8`` comes before ``int16``."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(3), line)


def aliases_text(current: str) -> str:
    """The text of ``operators/declare/aliases.py``, with the aliases of all declarations."""
    rows = sorted((alias, op.schema.name) for op in declared_operators() for alias in op.decl.aliases)
    table = "".join(f'    "{alias}": "{name}",\n' for alias, name in rows)
    return re.sub(
        r"(?s)(ALIASES: .*? = \{\n).*?\n?(\}\n)", lambda part: part[1] + table + part[2], current, count=1
    )


def files() -> dict[Path, str]:
    """The generated files and their text."""
    init = (ROOT / "__init__.py").read_text()
    aliases = ROOT / "operators" / "declare" / "aliases.py"
    return {
        aliases: aliases_text(aliases.read_text()),
        ROOT / "__init__.pyi": init_text(init),
        ROOT / "eager" / "tensor" / "signatures.pyi": signatures_text(),
    }


def main() -> None:
    """Write the stub files."""
    for path, text in files().items():
        path.write_text(text)
        sys.stdout.write(f"{path.relative_to(ROOT)}: {len(text.splitlines())} lines\n")


if __name__ == "__main__":
    main()

"""Write the type stubs of functions and methods made from declarations (``td.add``, ``x.add``).

``python -m tandem.eager.tensor.type_stubs`` writes ``__init__.pyi`` and
``eager/tensor/signatures.pyi``; a test checks that they are current.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...registry.schemas.schema import MISSING, Argument, Schema, Type
from . import methods
from .dunders import BINARY, COMPARISON, UNARY
from .functions import public_functions

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Function

ROOT = Path(__file__).resolve().parents[2]
HEADER = '"""Made by `python -m tandem.eager.tensor.type_stubs` from the declarations of the operators."""\n'
ALIASES = """
_Number = _b.bool | _b.int | _b.float | _b.complex
_TensorLike = Tensor | _Number | _np.ndarray[Any, Any] | _np.generic
_DTypeLike = DType | _b.str | _b.type[Any] | _np.dtype[Any]
"""
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


def format_returns(schema: Schema) -> str:
    """Format the annotation of the result."""
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


def format_function(
    name: str, function: OperatorFunction[object], indent: str = "", variadic: bool = False
) -> str:
    """Format the stub of a function or method from a schema."""
    schema = function.operator.schema
    lines, starred = [], False
    for position, argument in enumerate(schema.arguments):
        if argument.kwarg_only and not starred:
            lines.append("*")
            starred = True
        if indent and position == 0:
            lines.append("self")
        elif variadic and not argument.kwarg_only:
            lines.append(f"*{argument.name}: {_format_argument(function, argument)}")
            starred = True
        else:
            lines.append(
                f"{argument.name}: {_format_argument(function, argument)}{_format_default(argument)}"
            )
    arguments = "".join(f"{indent}    {line},\n" for line in lines)
    head = f"{indent}def {name}(\n{arguments}{indent}) -> {format_returns(schema)}:\n"
    return f'{head}{indent}    """{_first_line(function.__doc__ or "")}"""\n'


def _format_argument(function: OperatorFunction[object], argument: Argument) -> str:
    """Format the annotation of an argument; where the schema says ``Any``, that of the composite's body."""
    if argument.type.base != "Any":
        return format_annotation(argument.type)
    return _qualify_names(getattr(function.decl.body, "__annotations__", {}).get(argument.name, "object"))


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


def _qualify_names(text: str) -> str:
    words = {name: f"_b.{name}" for name in ("bool", "int", "str", "float")}
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
    written = {
        **methods.METHODS,
        **{name: methods.attach_method(name) for name in methods.MODULES_OF_METHODS},
    }
    for name, function in sorted(methods.operator_methods().items()):
        if name not in written and name not in methods.PROPERTIES:
            variadic = name in methods.VARIADIC
            yield format_function(name, function, "    ", variadic)
    for name, method in sorted(written.items()):
        yield format_method(name, method)
    for name, getter in sorted(methods.PROPERTIES.items()):
        result = "At" if name == "at" else "Tensor"
        yield f'    @property\n    def {name}(self) -> {result}:\n        """{_first_line(getter.__doc__ or "")}"""\n'
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
        "import builtins as _b\nfrom collections.abc import Iterator, Sequence\n"
        "from typing import Any, SupportsIndex\n\n"
        "import numpy as _np\n\nfrom ...registry.dtypes import DType\n"
        "from ...registry.types import Args, Function, Kwargs\nfrom ...registry.values import TensorBase\n"
        "from ..autograd.hooks import Hook, HookHandle\nfrom ..sparse.tensor import SparseTensor\n"
        "from .at import At\nfrom .tensor import Tensor\n"
    )
    body = "".join(tensor_methods())
    return f"{HEADER}\n{imports}{ALIASES}\nclass TensorMethods(TensorBase):\n    __slots__ = ()\n{body}"


def init_text(init: str) -> str:
    """The text of ``__init__.pyi``, from that of ``__init__.py``."""
    public = [line for line in init.splitlines() if line.startswith("from .") and " as _" not in line]
    lazy_names = re.findall(r'^    "(\w+)": "([\w.]+)",$', init, re.MULTILINE)
    public = sorted([*public, *map(_import_line, lazy_names)], key=_natural_sort_key)
    taken = {line.rpartition(" as ")[2] for line in public}
    public_items = [(name, fn) for name, fn in sorted(public_functions().items()) if name not in taken]
    functions = [format_function(name, fn) for name, fn in public_items]
    imports = "import builtins as _b\nfrom collections.abc import Sequence\nfrom typing import Any\n\n"
    imports += "import numpy as _np\n\n"
    public, renamed = _export_renamed(public)
    public.sort(key=_natural_sort_key)
    names = f"\n__version__: _b.str\nbool = bool_\n{renamed}\n"
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


def _import_line(lazy_name: tuple[str, str]) -> str:
    """The import of a name that ``__init__.py`` loads at its first use."""
    name, path = lazy_name
    module, _, attribute = path.rpartition(".")
    return f"from .{module} import {attribute} as {name}"


def _natural_sort_key(line: str) -> str:
    """A sort key by which ``int8`` comes before ``int16``."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(3), line)


def files() -> dict[Path, str]:
    """The stub files and their text."""
    init = (ROOT / "__init__.py").read_text()
    return {
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

"""Names in native functions: what they refer to, at compile time."""

from __future__ import annotations

import ast
import copy
from typing import Any

from ..... import lazy
from . import dsl
from .dsl import TYPES, VOID, LangError, Opcodes, Template, Ty, pointer_to
from .structs import Field, StructMeta, fields_of


class _ConstantFolder(ast.NodeTransformer):
    """Replaces the names in an expression by their compile-time values; a KeyError says that one has none."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
            return self.generic_visit(node)
        result = self.names.global_of(node)
        if not isinstance(result, (bool, int, float)):
            raise KeyError
        return ast.copy_location(ast.Constant(result), node)


class Names:
    """The names that one function uses: local variables, globals of its module, machine types.

    Args:
        module: the `lang.Module` that the function is compiled in.
        names: the globals.
        where: the function's name, for errors.
    """

    def __init__(self, module: Any, names: dict[str, Any], where: str) -> None:
        self.module, self.names, self.where = module, names, where
        self.slots: dict[str, tuple[Ty, str]] = {}  # local variables: type and address

    def fail(self, node: ast.AST, why: str) -> LangError:
        return LangError(f"{self.where}: {why}: `{ast.unparse(node)}`")

    def lookup(self, node: ast.expr) -> Any:
        """Return the compile-time object that a name or dotted name refers to."""
        result = self.global_of(node)
        if result is None:
            raise self.fail(node, "unknown name")
        return result

    def parameter(self, name: str, value: Any) -> Any:
        """Return the value of a template parameter, or the replacement of a native function; otherwise `value`."""
        if isinstance(value, Template):
            return self.module.constants.get(name, value.default)
        if name not in self.module.constants:
            return value
        if isinstance(value, (bool, int, float)):
            raise LangError(f"{self.where}: {name} is given a value, but is not declared by `template`")
        return self.module.constants[name] if getattr(value, "__native__", False) else value

    def global_of(self, node: ast.AST) -> Any:
        """Return what a global name, or an attribute of a module, struct or opcode class, refers to; or None."""
        if isinstance(node, ast.Attribute):
            owner = self.global_of(node.value)
            if isinstance(owner, StructMeta):
                return self.field_of(owner, node).offset
            if isinstance(owner, lazy.MODULE_TYPES):
                return self.parameter(node.attr, getattr(owner, node.attr, None))
            is_known = isinstance(owner, type) and issubclass(owner, Opcodes)
            is_known = is_known or hasattr(type(owner), "__dataclass_fields__")
            return getattr(owner, node.attr) if is_known else None
        if not isinstance(node, ast.Name) or node.id in self.slots:
            return None
        return self.parameter(node.id, self.names.get(node.id))

    def type_of(self, node: ast.expr) -> Ty:
        if isinstance(node, ast.Constant) and node.value is None:
            return VOID
        result = self.machine_type(node)
        if result is None:
            value = self.global_of(node)
            if not isinstance(value, StructMeta):
                raise self.fail(node, "not a machine type")
            result = pointer_to(value)
        return result

    def machine_type(self, node: ast.expr) -> Ty | None:
        """Return the machine type that `i64`, `dsl.i64` or a type parameter names, or None."""
        if isinstance(node, ast.Attribute):
            return TYPES.get(node.attr) if self.global_of(node.value) is dsl else None
        name = node.id if isinstance(node, ast.Name) else ""
        return self.module.types.get(name) or TYPES.get(name)

    def static(self, node: ast.expr) -> bool | None:
        """Return the truth of a test over compile-time constants; None if it is known only at run time."""
        if isinstance(node, ast.BoolOp):
            parts, decisive = [self.static(part) for part in node.values], isinstance(node.op, ast.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
        try:
            folded = _ConstantFolder(self).visit(copy.deepcopy(node))
        except KeyError:
            return None
        return bool(eval(compile(ast.Expression(folded), "<static>", "eval"), {}))

    # structs ------------------------------------------------------------------------------------------------
    def field_of(self, owner: StructMeta, node: ast.Attribute) -> Field:
        """Return a struct's field."""
        known = fields_of(owner).get(node.attr)
        if known is None:
            raise self.fail(node, f"struct {owner.__name__} has no such field")
        return known

"""Names in native functions: what they refer to, at compile time."""

from __future__ import annotations

import ast
import copy
from types import ModuleType
from typing import Any

from . import dsl
from .dsl import PTR, TYPES, VOID, LangError, Opcodes, Template, Ty, pointer_to
from .structs import StructMeta, annotated_struct, fields_of


class _ConstantFolder(ast.NodeTransformer):
    """Replaces the names in an expression by their compile-time values, if all of them have one."""

    def __init__(self, names: Names) -> None:
        self.names, self.is_constant = names, True

    def number(self, node: ast.expr) -> ast.expr:
        result = self.names.global_of(node)
        if isinstance(result, (bool, int, float)):
            return ast.copy_location(ast.Constant(result), node)
        self.is_constant = False
        return node

    visit_Name = visit_Attribute = visit_Call = number  # noqa: N815


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
        if isinstance(node, ast.Attribute):
            owner = self.lookup(node.value)
            if isinstance(owner, StructMeta):
                return self.offset(owner, node)
            if isinstance(owner, type) and issubclass(owner, Opcodes):
                return getattr(owner, node.attr)
            if isinstance(owner, ModuleType) and hasattr(owner, node.attr):
                return self.parameter(node.attr, getattr(owner, node.attr))
            if hasattr(type(owner), "__dataclass_fields__"):
                return getattr(owner, node.attr)
            raise self.fail(node, "attributes can be read from modules, structs and opcode classes only")
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.parameter(node.id, self.names[node.id])
            raise self.fail(node, "unknown name")
        raise self.fail(node, "a name was expected")

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
        """Return what a name, or a module's attribute, refers to; None for anything else."""
        if isinstance(node, ast.Attribute):
            owner = self.global_of(node.value)
            result = getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
            return self.parameter(node.attr, result)
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
        folder = _ConstantFolder(self)
        folded = folder.visit(copy.deepcopy(node))
        if not folder.is_constant:
            return None
        return bool(eval(compile(ast.Expression(folded), "<static>", "eval"), {}))

    # structs ------------------------------------------------------------------------------------------------
    def offset(self, owner: StructMeta, node: ast.Attribute) -> int:
        """Return the offset of a struct's field; that of a slot is one of the module's constants."""
        known = fields_of(owner).get(node.attr)
        if known is None:
            raise self.fail(node, f"struct {owner.__name__} has no such field")
        for cls in owner.__mro__:
            prefix = vars(cls).get("slot_prefix", "")
            if prefix and node.attr in vars(cls).get("__annotations__", {}):
                return int(self.module.constants.get(prefix + node.attr.upper(), known[0]))
        return known[0]

    def field_type(self, owner: StructMeta, name: str, annotation: str) -> Ty:
        if annotation in TYPES:
            return TYPES[annotation]
        for cls in owner.__mro__:
            if name in vars(cls).get("__annotations__", {}):
                return pointer_to(annotated_struct(cls, annotation))
        return PTR

    def is_compile_time(self, node: ast.expr) -> bool:
        """Return whether a dotted name begins with a global name, and is a constant."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.slots

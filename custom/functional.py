"""Functional forms of mutating operators, for compiled code: they return the new contents of written arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.tensor.dunders import by_name
from ..operators.declare.declaration import Declaration
from ..operators.declare.derivatives import NotDifferentiable
from ..operators.declare.shape_rules import spec_of
from ..registry.operator import Operator, operators
from ..registry.schemas.schema import Argument, Return, Schema, Type
from ..tracer.auto_functionalize import functional_forms, list_written
from ..tracer.infer import infer, specs_of
from .op import ALL_DEVICES, CustomOp

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs


def define_functional(function: CustomOp) -> None:
    """Define the functional form of an operator, unless it writes lists of tensors."""
    op = function.operator
    if any(a.is_write and a.type.form != "base" for a in op.schema.arguments):
        return
    schema = functional_schema(op.schema)
    decl = Declaration(
        schema=str(schema),
        kind="custom",
        doc=f"What {op.name} returns and writes, as new tensors.",
        shape_rule=lambda *args, **kwargs: infer_functional_specs(op, args, kwargs),
        derivative=NotDifferentiable(f"{op.name} writes into its arguments"),
    )
    function.library.define(schema, decl)
    twin = operators[schema.full_name]
    function.library.impl(schema.name, _make_kernel(op), ALL_DEVICES)
    functional_forms[op] = twin


def functional_schema(schema: Schema) -> Schema:
    """Convert ``f(Tensor(a!) x, int n) -> Tensor`` to ``f_functional(Tensor x, int n) -> (Tensor, Tensor)``."""
    tensor = Type("Tensor")
    arguments = tuple(
        Argument(a.name, tensor, a.default, a.default_text, a.kwarg_only) if a.is_write else a
        for a in schema.arguments
    )
    returns = (*schema.returns, *(Return(tensor) for a in schema.arguments if a.is_write))
    return schema._replace(
        name=f"{schema.name}_functional", arguments=arguments, returns=returns, bare_return=len(returns) == 1
    )


def infer_functional_specs(op: Operator, args: Args, kwargs: Kwargs) -> Args:
    """Infer the result specs of the functional form: the operator's results, then its written arguments."""
    own = specs_of(infer(op, args, kwargs))
    return (*own, *(spec_of(value) for value in list_written(op, args, kwargs)))


def _make_kernel(op: Operator) -> Function:
    indices = [(index, a.is_write) for index, a in enumerate(op.schema.positional)]
    keywords = [a.name for a in op.schema.arguments if a.is_write and a.kwarg_only]

    def functional(*args: object, **kwargs: object) -> Args:
        copy = by_name("clone")
        args = tuple([copy(args[index]) if written else args[index] for index, written in indices])
        kwargs = kwargs | {name: copy(kwargs[name]) for name in keywords}
        out = op(*args, **kwargs)
        results = out if isinstance(out, tuple) else () if out is None else (out,)
        return (*results, *list_written(op, args, kwargs))

    functional.is_trusted_kernel = True  # type: ignore[attr-defined]  # one result is a tuple too
    functional.__qualname__ = f"functional_{op.schema.name}"
    return functional

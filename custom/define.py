"""Define custom operators: from a Python function, a scalar body, or a composite body."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..backends.cpu.kernels.elementwise import elementwise_kernel
from ..errors import ArgumentError, RegistrationError, SchemaError, ValueArgumentError
from ..operators.declare import batching
from ..operators.declare.declaration import Declaration
from ..operators.declare.derivatives import NotDifferentiable, Partials
from ..operators.declare.kinds import elementwise_shape_rule
from ..operators.declare.ownership import copy_shared_results
from ..registry.dispatch.keys import DispatchKey
from ..registry.dtypes import REAL, as_dtype
from ..registry.function import function_listeners, functions
from ..registry.library import Library
from ..registry.operator import lock, operators
from ..registry.schemas.inference import infer_schema
from ..registry.schemas.parser import parse_schema
from ..registry.schemas.schema import Schema
from .adapt import adapt_function
from .functional import define_functional
from .op import CustomOp, default_fake, keys_of_devices, make_declaration

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Function

KINDS = {1: "unary", 2: "binary", 3: "ternary"}


def define(
    name: str,
    fn: Function | None,
    mutates_args: str | Iterable[str],
    device_types: str | Iterable[str] | None,
    schema: str | None,
) -> CustomOp | Callable[[Function], CustomOp]:
    """See :func:`tandem.custom_op`."""
    namespace, stem = _split_name(name, "custom_op")
    if fn is None:
        return lambda function: define(name, function, mutates_args, device_types, schema)  # type: ignore[return-value]
    _check_function(fn, "custom_op")
    parsed = _make_schema(stem, fn, mutates_args, schema)._replace(namespace=namespace, overload="")
    keys = keys_of_devices(device_types)
    effects = frozenset() if parsed.returns or parsed.is_mutable else frozenset({"callback"})
    decl = make_declaration(str(parsed), name, inspect.getdoc(fn) or "", effects)
    operator = _make_operator(parsed, decl, fn)
    operator._impl(default_fake(operator), DispatchKey.Meta)
    for key in keys:
        operator._impl(adapt_function(parsed, fn), key)
    if parsed.is_mutable:
        define_functional(operator)
    return _notify_listeners(operator)


def _make_schema(stem: str, fn: Function, mutates_args: str | Iterable[str], text: str | None) -> Schema:
    """Make the schema of a function from its annotations or from text."""
    if text is None:
        is_name = isinstance(mutates_args, str) and mutates_args != "unknown"
        written = [str(mutates_args)] if is_name else mutates_args
        parsed = infer_schema(fn, written)._replace(name=stem)
    else:
        parsed = _parse_given_schema(stem, text, mutates_args)
    if any(result.type.aliases() for result in parsed.returns):
        raise SchemaError(
            f"{parsed}: the results of a custom op are new tensors, so none can alias an argument; return nothing and "
            "list what is written in mutates_args, or define views through td.Library"
        )
    return parsed


def _parse_given_schema(stem: str, text: str, mutates_args: str | Iterable[str]) -> Schema:
    if not isinstance(text, str):
        raise ArgumentError(f"a schema is a string, such as '(Tensor x) -> Tensor', not {text!r}")
    parsed = parse_schema(stem + text if text.lstrip().startswith("(") else text)
    written = {argument.name for argument in parsed.arguments if argument.is_write}
    named = {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    if named and named != written:
        raise SchemaError(
            f"{parsed} says that {_join_names(written)} is written, and mutates_args says {_join_names(named)}; write "
            "Tensor(a!) for each argument that is written"
        )
    return parsed._replace(name=stem)


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _split_name(name: object, what: str) -> tuple[str, str]:
    """Split a qualified name into namespace and name."""
    if not isinstance(name, str):
        raise ArgumentError(f"{what} takes a name such as 'myns::mysin', not {name!r}")
    namespace, colons, stem = name.partition("::")
    if not colons or not namespace.isidentifier() or not stem.isidentifier():
        raise ValueArgumentError(f"{what}: {name!r} is not of the form 'namespace::name'")
    if namespace == "td":
        raise ValueArgumentError(f"{what}: the namespace td is tandem's own; take another one for {stem!r}")
    return namespace, stem


def _check_function(fn: object, what: str) -> None:
    if not callable(fn):
        raise ArgumentError(f"{what} takes a function, not {fn!r}")


def _make_operator(schema: Schema, decl: Declaration, fn: Function) -> CustomOp:
    """Define an operator; replace a custom op of the same name."""
    with lock:
        former = functions.get(schema.full_name)
        if isinstance(former, CustomOp):
            former.remove()
        if schema.full_name in operators:
            raise RegistrationError(
                f"{schema.full_name} is defined already, through a Library: {operators[schema.full_name].schema}"
            )
        library = Library(schema.namespace, "FRAGMENT")
        library.is_trusted = False  # its kernels are the user's
        library.define(schema, decl)
        return CustomOp(operators[schema.full_name], library, fn, decl.doc)


# -- operators with a body ---------------------------------------------------------------------------------------------
def define_elementwise(
    name: str,
    body: Function | None,
    derivative: Mapping[str, Function | float] | None,
    dtypes: Sequence[DTypeLike] | None,
    result: str,
    doc: str,
) -> CustomOp | Callable[[Function], CustomOp]:
    """See :func:`tandem.elementwise_op`."""
    _, stem = _split_name(name, "elementwise_op")
    if body is None:
        return lambda function: define_elementwise(name, function, derivative, dtypes, result, doc)  # type: ignore[return-value]
    _check_function(body, "elementwise_op")
    names = list(inspect.signature(body).parameters)
    if len(names) not in KINDS:
        raise ValueArgumentError(
            f"elementwise_op: {name} has a body of {len(names)} scalars; one to three work"
        )
    if result not in ("same", "float", "bool"):
        raise ValueArgumentError(f"elementwise_op: result is 'same', 'float' or 'bool', not {result!r}")
    accepted = [as_dtype(one) for one in dtypes] if dtypes is not None else list(_REAL_FLOATS)
    schema = parse_schema(f"{name}({', '.join(f'Tensor {one}' for one in names)}) -> Tensor")
    decl = Declaration(
        schema=str(schema),
        kind="comparison" if result == "bool" and len(names) == 2 else KINDS[len(names)],
        doc=doc or inspect.getdoc(body) or "",
        body=body,
        shape_rule=elementwise_shape_rule(stem, result, accepted),
        dtypes=accepted,
        result=result,
        derivative=_make_partials(name, names, derivative, result),
        batching=batching.elementwise,
    )
    made = _make_operator(schema, decl, body)
    kernel = elementwise_kernel(made.operator)
    kernel.__qualname__ = f"numpy_{stem}"
    made._impl(kernel, DispatchKey.CPU)
    return _notify_listeners(made)


_REAL_FLOATS = [dtype for dtype in REAL if dtype.is_inexact]


def _make_partials(
    name: str, names: list[str], derivative: Mapping[str, Function | float] | None, result: str
) -> Partials | NotDifferentiable:
    if derivative is None:
        reason = (
            f"{name} gives booleans"
            if result == "bool"
            else f"none is declared: elementwise_op({name!r}, derivative=...)"
        )
        return NotDifferentiable(reason)
    if set(derivative) != set(names):
        raise ValueArgumentError(
            f"elementwise_op: the derivative of {name} names {', '.join(derivative) or 'nothing'}; it takes one entry "
            f"for each of {', '.join(names)}, 0 where nothing flows"
        )
    return Partials(dict(derivative))


def _notify_listeners(function: CustomOp) -> CustomOp:
    """Notify the listeners of new functions, such as the native layer, which compiles native entries."""
    with lock:
        for listener in function_listeners:
            listener(function)
    return function


def define_composite(
    schema: str, body: Function | None, doc: str
) -> CustomOp | Callable[[Function], CustomOp]:
    """See :func:`tandem.composite_op`."""
    parsed = parse_schema(schema)
    _split_name(f"{parsed.namespace}::{parsed.name}" if parsed.namespace else parsed.name, "composite_op")
    if body is None:
        return lambda function: define_composite(schema, function, doc)  # type: ignore[return-value]
    _check_function(body, "composite_op")
    body = copy_shared_results(parsed, body)
    decl = Declaration(schema=str(parsed), kind="composite", doc=doc or inspect.getdoc(body) or "", body=body)
    operator = _make_operator(parsed, decl, body)
    operator._impl(body, "CompositeImplicit")
    return _notify_listeners(operator)

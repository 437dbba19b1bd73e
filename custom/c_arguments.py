"""Bind the parameters of a C function to an operator's arguments and results by name."""

from __future__ import annotations

from typing import Any

from ..errors import SchemaError
from ..operators.foreign.c_signature import CSignature, Param
from ..operators.foreign.functions import ParameterBinding
from ..registry.schemas.schema import Argument, Schema

NUMBERS = ("int", "SymInt", "float", "bool", "Scalar")


def bind_parameters(schema: Schema, signature: CSignature) -> tuple[ParameterBinding, ...]:
    """Bind each parameter of a signature.

    Raises:
        SchemaError: a name is neither an argument nor a result, or its kind differs from that of the parameter.
    """
    if any(result.type.is_list for result in schema.returns):
        raise SchemaError(
            f"{schema}: a C function gives no list of tensors, for its length is not known before"
        )
    binder = ParameterBinder(schema, signature)
    return tuple(binder.bind(param) for param in signature.params)


class ParameterBinder:
    """Binder of parameters: by name, or by position for parameters without a name."""

    def __init__(self, schema: Schema, signature: CSignature):
        self.schema, self.signature = schema, signature
        count = len(schema.returns)
        self.results: dict[str, int] = {f"out{k}": k for k in range(count)}
        if count == 1:
            self.results["out"] = 0
        self.results |= {result.name: k for k, result in enumerate(schema.returns) if result.name}
        positions = {a.name: index for index, a in enumerate(schema.positional)}
        self.arguments = {a.name: (a, positions.get(a.name, -1)) for a in schema.arguments}
        used = {param.name for param in signature.params if param.name}
        tensors = [a for a in schema.arguments if a.type.core == "Tensor" and a.name not in used]
        self.free_inputs = [a.name for a in tensors if not a.is_write]
        self.free_outputs = [a.name for a in tensors if a.is_write]
        self.free_outputs += [f"out{k}" for k in range(count) if not used & self._called(k)]

    def _called(self, result: int) -> set[str]:
        return {name for name, number in self.results.items() if number == result}

    def bind(self, param: Param) -> ParameterBinding:
        """Bind one parameter."""
        if not param.name:
            param = self._named(param)
        if param.name in self.arguments:
            argument, index = self.arguments[param.name]
            self._check(param, argument)
            return ParameterBinding(param, index, "" if index >= 0 else argument.name)
        if param.name in self.results:
            if param.is_const:
                raise self._fault(param, "a result is written, so its pointer is not const")
            if not param.is_pointer and not param.what:
                raise self._fault(param, f"{param.name} is a tensor: pass its pointer, or {param.name}.size")
            return ParameterBinding(param, result_index=self.results[param.name])
        known = [*self.arguments, *self.results]
        raise self._fault(param, f"there is no {param.name!r}; the names are {', '.join(known)}")

    def _named(self, param: Param) -> Param:
        """Name an unnamed parameter: the next tensor or result; a single integer is the number of elements."""
        free = self.free_inputs if param.is_const else self.free_outputs
        if param.is_pointer:
            if not free:
                raise self._fault(param, "there is nothing left for it to be; name it")
            return param._replace(name=free.pop(0))
        integers = [p for p in self.signature.params if not p.is_pointer and not p.name]
        if len(integers) == 1 and param.dtype.is_integer and self.results:
            return param._replace(name="out0", what="size")
        raise self._fault(param, "name it after what is passed, such as 'int64_t x.size' or 'double alpha'")

    def _check(self, param: Param, argument: Argument) -> None:
        tensor = argument.type.core == "Tensor"
        if argument.type.is_list:
            raise self._fault(param, f"{argument.name} is a list, which has no single address")
        if param.is_pointer and not tensor:
            raise self._fault(param, f"{argument.name} is not a tensor, so there are no data to point to")
        if param.is_pointer and not param.is_const and not argument.is_write:
            raise self._fault(
                param,
                f"{argument.name} is not written by the schema; point to const, or list it in mutates_args",
            )
        if not param.is_pointer and param.what and not tensor:
            raise self._fault(param, f"{argument.name} is not a tensor, so it has no {param.what}")
        if not param.is_pointer and not param.what and argument.type.core not in NUMBERS:
            raise self._fault(param, f"{argument.name} is a {argument.type}, not a number")

    def _fault(self, param: Param, what: str) -> SchemaError:
        mark: Any = " " * param.column + "^"
        return SchemaError(
            f"C signature for {self.schema}, column {param.column}: {what}\n  {self.signature.text}\n  {mark}",
            param.column,
        )

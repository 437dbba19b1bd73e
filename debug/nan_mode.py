"""The dispatch mode that raises at the first NaN that an operator returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..eager.layers.dispatch_mode import DispatchMode
from ..eager.tensor.results import flat
from ..eager.tensor.tensor import Tensor
from ..errors import NanError
from ..registry.operator import Operator
from ..registry.source import source_line
from ..registry.values import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.types import Args, Kwargs


class NanMode(DispatchMode):
    """Dispatch mode that raises when an operator returns a NaN.

    The mode is below autograd, so it checks backward passes and the operators that composites call.

    Args:
        inf: whether to check for infinities too.
    """

    below = "Autograd"

    def __init__(self, inf: bool = False):
        super().__init__()
        self._inf = inf

    def __tandem_dispatch__(self, op: Operator, types: Sequence[type], args: Args, kwargs: Kwargs) -> object:
        """Run an operator and check its results."""
        inputs = [(name, value, self._fault(value)) for name, value in _name_arguments(op, args, kwargs)]
        out = op(*args, **kwargs)
        fault = next(filter(None, map(self._fault, flat(out))), "")
        if fault and getattr(op.decl, "kind", "") != "creation":  # full(nan) is what was asked for
            raise NanError(_format_message(op, fault, inputs))
        return out

    def _fault(self, value: object) -> str:
        """Return ``"a NaN"`` or ``"an infinity"`` if the value has one, else an empty string."""
        if type(value) in (float, complex):
            array = np.asarray(value)
        elif type(value) is Tensor and value.dtype.is_inexact:
            array = value._array
        else:
            return ""
        if np.isnan(array).any():
            return "a NaN"
        return "an infinity" if self._inf and np.isinf(array).any() else ""


def _name_arguments(op: Operator, args: Args, kwargs: Kwargs) -> list[tuple[str, object]]:
    """Return the tensors of a call, and the numbers passed for tensors, with their names in the schema."""
    names = [argument.name for argument in op.schema.positional if argument.type.core == "Tensor"]
    indices = [index for index, a in enumerate(op.schema.positional) if a.type.core == "Tensor"]
    pairs = [*zip(names, [args[index] for index in indices]), *kwargs.items()]
    result: list[tuple[str, object]] = []
    for name, value in pairs:
        if isinstance(value, tuple):
            result += [
                (f"{name}[{index}]", item) for index, item in enumerate(value) if isinstance(item, Tensor)
            ]
        elif isinstance(value, Tensor) or (name in names and value is not None):
            result.append((name, value))
    return result


def _format_message(op: Operator, fault: str, given: list[tuple[str, object, str]]) -> str:
    lines = [f"{op.name} gave {fault} at {source_line() or 'an unknown line'}"]
    for name, value, before in given:
        lines.append(f"  {name}: {describe(value)}, {f'has {before}' if before else _describe_range(value)}")
    return "\n".join(lines)


def _describe_range(value: object) -> str:
    """Describe the range of a tensor without NaN."""
    if not isinstance(value, Tensor) or not value.dtype.is_floating or not value._array.size:
        return "without NaN"
    return f"without NaN, from {value._array.min()} to {value._array.max()}"

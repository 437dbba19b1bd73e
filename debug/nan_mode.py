"""The mode that looks at what every operator gives, and stops at the first NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..eager.dispatch_mode import DispatchMode
from ..eager.results import flat
from ..eager.tensor import Tensor
from ..errors import NanError
from ..registry.operator import Operator
from ..registry.source import source_line
from ..registry.values import describe

Args = tuple[Any, ...]


class NanMode(DispatchMode):
    """Raises where an operator gives a NaN: below autograd, so that backward passes and composites are seen.

    Args:
        inf: whether infinities count too.
    """

    below = "Autograd"

    def __init__(self, inf: bool = False):
        super().__init__()
        self._inf = inf

    def __tandem_dispatch__(self, op: Operator, types: Any, args: Args, kwargs: dict[str, Any]) -> Any:
        """Run an operator, and look at its results."""
        given = [(name, value, self._fault(value)) for name, value in _named(op, args, kwargs)]
        out = op(*args, **kwargs)
        fault = next(filter(None, map(self._fault, flat(out))), "")
        if fault and getattr(op.decl, "kind", "") != "creation":  # full(nan) is what was asked for
            raise NanError(_message(op, fault, given))
        return out

    def _fault(self, value: Any) -> str:
        """``"a NaN"`` or ``"an infinity"`` if there is one, else empty."""
        if type(value) in (float, complex):
            array = np.asarray(value)
        elif type(value) is Tensor and value.dtype.is_inexact:
            array = value._array
        else:
            return ""
        if np.isnan(array).any():
            return "a NaN"
        return "an infinity" if self._inf and np.isinf(array).any() else ""


def _named(op: Operator, args: Args, kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """The tensors of a call, and the numbers that stand for some, by the names of the schema."""
    names = [argument.name for argument in op.schema.positional if argument.type.core == "Tensor"]
    places = [place for place, a in enumerate(op.schema.positional) if a.type.core == "Tensor"]
    pairs = [*zip(names, [args[place] for place in places]), *kwargs.items()]
    found = []
    for name, value in pairs:
        if isinstance(value, tuple):
            found += [
                (f"{name}[{place}]", item) for place, item in enumerate(value) if isinstance(item, Tensor)
            ]
        elif isinstance(value, Tensor) or (name in names and value is not None):
            found.append((name, value))
    return found


def _message(op: Operator, fault: str, given: list[tuple[str, Any, str]]) -> str:
    lines = [f"{op.name} gave {fault} at {source_line() or 'an unknown line'}"]
    for name, value, before in given:
        lines.append(f"  {name}: {describe(value)}, {f'has {before}' if before else _range(value)}")
    return "\n".join(lines)


def _range(value: Any) -> str:
    """Which values a tensor without NaN has, in words."""
    if not isinstance(value, Tensor) or not value.dtype.is_floating or not value._array.size:
        return "without NaN"
    return f"without NaN, from {value._array.min()} to {value._array.max()}"

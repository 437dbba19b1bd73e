"""Modules that hold parameters: ParameterList, ParameterDict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..eager.tensor.tensor import Tensor
from .containers import Items, Named
from .module import Module
from .parameter import Parameter

_OWN = frozenset(vars(Module()))  # the attributes that every module has


def _to_parameter(value: Any) -> Any:
    is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain else value


def _describe_value(value: object) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    sizes = "x".join(map(str, value.shape))
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype} of size {sizes}]"


class ParameterList(Items):
    """A list of parameters; other tensors that are added become parameters, other values are kept.

    Args:
        values: the parameters.

    >>> import tandem as td
    >>> scales = td.nn.ParameterList([td.ones(2), td.ones(3)])
    >>> [name for name, _ in scales.named_parameters()], len(scales)
    (['0', '1'], 2)
    """

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self.extend(values or ())

    def _items(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _OWN}

    def _set_item(self, name: str, value: Any) -> None:
        setattr(self, name, _to_parameter(value))

    def _describe_children(self) -> list[str]:
        return [f"({name}): {_describe_value(value)}" for name, value in self._items().items()]


class ParameterDict(Named):
    """A dict of parameters; other tensors that are added become parameters, other values are kept.

    Args:
        parameters: the parameters by name.
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None):
        super().__init__()
        self.update(parameters or {})

    def _items(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _OWN}

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, _to_parameter(value))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a name, which is ``default`` from now on if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or ``default``."""
        return self._items().get(key, default)

    def fromkeys(self, keys: Iterable[str], default: Tensor | None = None) -> ParameterDict:
        """A new dict with one value for all names."""
        return ParameterDict(dict.fromkeys(keys, default))

    def copy(self) -> ParameterDict:
        """A new dict of the same parameters."""
        return ParameterDict(self._items())

    def _describe_children(self) -> list[str]:
        return [f"({name}): {_describe_value(value)}" for name, value in self._items().items()]

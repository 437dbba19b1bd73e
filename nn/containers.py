"""Modules that hold modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import ArgumentError, OutOfBoundsError
from ..registry.values import describe
from .module import Module


def to_position(index: object, count: int) -> int:
    """An index of a list from its start.

    Raises:
        OutOfBoundsError: there is no item at the index.
    """
    position = operator.index(index)  # type: ignore[arg-type]
    if not -count <= position < count:
        raise OutOfBoundsError(f"index {position} is out of bounds for {count} items")
    return position % count


class Items(Module):
    """The base class of lists whose items are attributes "0", "1", ...; subclasses say which attributes are items."""

    def _items(self) -> dict[str, Any]:
        """The items by the names of their attributes, in their order."""
        raise NotImplementedError

    def _set_item(self, name: str, value: Any) -> None:
        """Register an item, or replace it."""
        setattr(self, name, value)

    def _replace_items(self, values: Iterable[Any]) -> None:
        values = list(values)
        for name in self._items():
            delattr(self, name)
        for at, value in enumerate(values):
            self._set_item(str(at), value)

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items().values())

    def __contains__(self, item: object) -> bool:
        return any(item is other for other in self)

    def __getitem__(self, index: int | slice) -> Any:
        """An item, or a container of the same class of some."""
        items = self._items()
        if isinstance(index, slice):
            return self._select(list(items.items())[index])
        return list(items.values())[to_position(index, len(items))]

    def _select(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)().extend([value for _, value in items])

    def __setitem__(self, index: int | slice, value: Any) -> None:
        names = list(self._items())
        if isinstance(index, slice):
            for name, item in zip(names[index], value):
                self._set_item(name, item)
        else:
            self._set_item(names[to_position(index, len(names))], value)

    def __delitem__(self, index: int | slice) -> None:
        values = list(self)
        del values[index if isinstance(index, slice) else to_position(index, len(values))]
        self._replace_items(values)

    def __iadd__(self, other: Iterable[Any]) -> Any:
        return self.extend(other)

    def __add__(self, other: Iterable[Any]) -> Any:
        return type(self)().extend([*self, *other])

    def append(self, module: Any) -> Any:
        """Add an item at the end; return this container."""
        self._set_item(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """Add items at the end; return this container."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> None:
        """Insert an item before the one at an index."""
        values = list(self)
        values.insert(index, module)
        self._replace_items(values)

    def pop(self, key: int | slice = -1) -> Any:
        """Remove an item, the last one by default, and return it."""
        value = self[key]
        del self[key]
        return value


class _Modules(Items):
    """A list of modules."""

    def _items(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Module)}

    def _set_item(self, name: str, value: Any) -> None:
        if not isinstance(value, Module):
            raise ArgumentError(f"{type(self).__name__} holds modules, not {describe(value)}")
        setattr(self, name, value)


class Sequential(_Modules):
    """Call modules one after the other, each with the result of the one before.

    Args:
        args: the modules, or one ``OrderedDict`` of names and modules.

    >>> import tandem as td
    >>> net = td.nn.Sequential(td.nn.Linear(2, 8), td.nn.ReLU(), td.nn.Linear(8, 1))
    >>> net(td.ones((3, 2))).shape, len(net), list(net.state_dict())[-1]
    ((3, 1), 3, '2.bias')
    """

    def __init__(self, *args: Module | OrderedDict[str, Module]):
        super().__init__()
        only = args[0] if len(args) == 1 else None
        named = only.items() if isinstance(only, Mapping) else ((str(n), m) for n, m in enumerate(args))
        for name, module in named:
            self.register_module(name, module)  # type: ignore[arg-type]

    def _select(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)(OrderedDict(items))

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_Modules):
    """A list of modules.

    Args:
        modules: the modules.
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        self.extend(modules or ())

    def _describe_children(self) -> list[str]:
        """The lines of ``repr``: equal neighbours share one."""
        lines: list[str] = []
        texts = [repr(module) for module in self]
        at = 0
        while at < len(texts):
            end = at + 1
            while end < len(texts) and texts[end] == texts[at]:
                end += 1
            head = f"({at})" if end == at + 1 else f"({at}-{end - 1})"
            lines.append(f"{head}: {'' if end == at + 1 else f'{end - at} x '}{texts[at]}")
            at = end
        return lines


class Named(Module):
    """The base class of dicts whose values are attributes; subclasses say which attributes are values."""

    def _items(self) -> dict[str, Any]:
        """The values by name, in their order."""
        raise NotImplementedError

    def update(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add or replace values."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        return self._items()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._items():
            self._check_name(name)
        setattr(self, name, value)

    def __delitem__(self, name: str) -> None:
        self._items()[name]  # a KeyError for an unknown name
        delattr(self, name)

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._items())

    def __contains__(self, name: object) -> bool:
        return name in self._items()

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._items().keys()

    def values(self) -> Iterable[Any]:
        """The values."""
        return self._items().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names and values."""
        return self._items().items()

    def pop(self, key: str) -> Any:
        """Remove a value and return it."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all values."""
        for name in self._items():
            delattr(self, name)


class ModuleDict(Named):
    """A dict of modules, which are attributes too.

    Args:
        modules: the modules by name.
    """

    def __init__(self, modules: Mapping[str, Module] | None = None):
        super().__init__()
        self.update(modules or {})

    def _items(self) -> dict[str, Module]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Module)}

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise ArgumentError(f"ModuleDict holds modules, not {describe(module)}")
        super().__setitem__(name, module)

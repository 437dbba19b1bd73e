"""Modules that hold modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import OutOfBoundsError
from .module import Module


class _Numbered(Module):
    """Modules under the names "0", "1", ..."""

    def __len__(self) -> int:
        return sum(1 for value in vars(self).values() if isinstance(value, Module))

    def __iter__(self) -> Iterator[Module]:
        return iter([value for value in vars(self).values() if isinstance(value, Module)])

    def __getitem__(self, index: int | slice) -> Any:
        """A module, or a container of the same class of some."""
        modules = list(self)
        if isinstance(index, slice):
            result = type(self)()
            return result.extend(modules[index])
        if not -len(modules) <= index < len(modules):
            raise OutOfBoundsError(f"index {index} is out of bounds for {len(modules)} modules")
        return modules[index]

    def __setitem__(self, index: int, module: Module) -> None:
        names = [name for name, value in vars(self).items() if isinstance(value, Module)]
        setattr(self, names[index], module)

    def append(self, module: Module) -> Any:
        """Add a module at the end; return this container."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end; return this container."""
        for module in modules:
            self.append(module)
        return self


class Sequential(_Numbered):
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

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules.

    Args:
        modules: the modules.
    """

    def __init__(self, modules: Iterable[Module] = ()):
        super().__init__()
        self.extend(modules)


class ModuleDict(Module):
    """A dict of modules.

    Args:
        modules: the modules by name.
    """

    def __init__(self, modules: Mapping[str, Module] | None = None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add or replace modules."""
        for name, module in modules.items():
            self[name] = module

    def _modules(self) -> dict[str, Module]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Module)}

    def __getitem__(self, name: str) -> Module:
        return self._modules()[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if name in self._modules():
            setattr(self, name, module)
        else:
            self.register_module(name, module)

    def __len__(self) -> int:
        return len(self._modules())

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules())

    def __contains__(self, name: object) -> bool:
        return name in self._modules()

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules().keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules().values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names and modules."""
        return self._modules().items()

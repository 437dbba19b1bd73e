"""Constructors of layers that are declared by the arguments that they take, in place of an ``__init__`` each."""

from __future__ import annotations

import inspect
from typing import Any

from .module import Module

REQUIRED: Any = inspect.Parameter.empty


class Constructor:
    """The signature of a class; its instances have none, so that those of their calls are that of ``forward``.

    Args:
        arguments: the arguments and their defaults, in their order; :data:`REQUIRED` for those without.
        keyword_only: whether they are given by name only.
    """

    def __init__(self, arguments: dict[str, object], keyword_only: bool = False):
        kind = inspect.Parameter.KEYWORD_ONLY if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind, default=default) for name, default in arguments.items()]
        self.signature = inspect.Signature(parameters)

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        return self.signature


class DeclaredModule(Module):
    """The base class of modules whose constructor is declared: each argument becomes an attribute.

    Args:
        args, kwargs: the arguments, as PyTorch's class of this name takes them.
    """

    __signature__: Any = Constructor({})

    def __init__(self, *args: object, **kwargs: object):
        super().__init__()
        kind = type(self)
        try:
            bound = kind.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{kind.__name__}: {error}") from None
        bound.apply_defaults()
        self._set_arguments(bound.arguments)

    def _set_arguments(self, arguments: dict[str, Any]) -> None:
        for name, value in arguments.items():
            setattr(self, name, tuple(value) if isinstance(value, list) else value)

"""Attributes of modules that are computed from others at each access: normalized and parametrized weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..registry.types import Tensor
    from .module import Module

_COMPUTED = "_computed"
_classes: dict[tuple[type, tuple[str, ...], str], type] = {}


class Computed(Protocol):
    """The computation of an attribute: a hashable object, since it is a static attribute of a pytree.

    A method ``invert(module, value)`` allows to assign to the attribute.
    """

    def compute(self, module: Module) -> Tensor:
        """The value of the attribute."""
        ...


def get_computed(module: Module) -> dict[str, Computed]:
    """Return the computations of a module's attributes, by the names of these."""
    return dict(vars(module).get(_COMPUTED, ()))


def compute_attribute(module: Module, name: str, computed: Computed, prefix: str = "") -> None:
    """Compute an attribute of a module at each access; the module's class becomes a subclass with a property.

    Args:
        module: the module, which has no attribute of this name.
        name: the attribute.
        computed: how it is computed.
        prefix: text before the name of the class, for ``repr``.
    """
    _set_computed(module, get_computed(module) | {name: computed}, prefix)


def store_attribute(module: Module, name: str) -> None:
    """Undo :func:`compute_attribute`; the module has no attribute of this name then."""
    computed = get_computed(module)
    del computed[name]
    _set_computed(module, computed, "")


def _set_computed(module: Module, computed: dict[str, Computed], prefix: str) -> None:
    base = getattr(type(module), "computed_base", type(module))
    prefix = prefix or getattr(type(module), "computed_prefix", "")
    if computed:
        vars(module)[_COMPUTED] = tuple(computed.items())
    else:
        vars(module).pop(_COMPUTED, None)
    object.__setattr__(module, "__class__", make_class(base, tuple(computed), prefix) if computed else base)


def make_class(base: type, names: tuple[str, ...], prefix: str) -> type:
    """The subclass of a class of modules whose attributes ``names`` are computed; the same one for each call."""
    key = (base, names, prefix)
    if key not in _classes:
        namespace: dict[str, Any] = {name: _make_property(name) for name in names}
        namespace |= {
            "__doc__": base.__doc__,
            "__module__": base.__module__,
            "__reduce__": _reduce,
            "__setattr__": _set_attribute,
            "computed_base": base,
            "computed_names": names,
            "computed_prefix": prefix,
        }
        _classes[key] = type(f"{prefix}{base.__name__}", (base,), namespace)
    return _classes[key]


def _make_property(name: str) -> property:
    def get(self: Module) -> Tensor:
        return get_computed(self)[name].compute(self)

    return property(get)


def _set_attribute(self: Any, name: str, value: object) -> None:  # noqa: ANN401  # of a class that is made at run time
    """Assign to an attribute; a computed one only if its function has an inverse."""
    computed = get_computed(self).get(name)
    if computed is None:
        super(type(self), self).__setattr__(name, value)
    else:
        invert = getattr(computed, "invert", None)
        if invert is None:
            raise AttributeError(
                f"the attribute {name!r} of {type(self).__name__} is computed; assign to its sources"
            )
        invert(self, value)


def _reduce(self: Any) -> tuple[Any, ...]:  # noqa: ANN401  # as above
    kind = type(self)
    return _rebuild, (kind.computed_base, kind.computed_names, kind.computed_prefix), vars(self)


def _rebuild(base: type, names: tuple[str, ...], prefix: str) -> object:
    kind: Any = make_class(base, names, prefix)
    return kind.__new__(kind)

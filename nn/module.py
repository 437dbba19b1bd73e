"""Module, the base class of layers and models: a pytree with PyTorch's methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError
from ..named_tuple import NamedTuple
from ..registry.values import describe
from . import hooks, state, tree
from .parameter import Parameter

M = TypeVar("M", bound="Module")


class Names(NamedTuple):
    """The names of a module's own tensors, in the order of their registration.

    Attributes:
        parameters: the tensors that optimizers update.
        buffers: other tensors of the state.
        non_persistent: the buffers that are not in the ``state_dict``.
    """

    parameters: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    non_persistent: tuple[str, ...] = ()

    def without(self, name: str) -> Names:
        """Return the names without ``name``."""
        return Names(*(tuple(other for other in group if other != name) for group in self))


class Module:
    """The base class of layers and models, as in PyTorch.

    A tensor that requires a gradient is registered as a parameter when it is assigned to an attribute, and a module as
    a child. A module is a pytree: its children are the attributes that hold tensors or modules. All other attributes
    are static: they are part of the treedef, and must be hashable. Unflattening does not call ``__init__``.

    Attributes:
        training: whether the module is in training mode, see :meth:`train`.

    >>> import tandem as td
    >>> class Scale(td.nn.Module):
    ...     def __init__(self, factor):
    ...         super().__init__()
    ...         self.factor = td.nn.Parameter(td.asarray(factor))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale(3.0)
    >>> scale(2.0).item(), [name for name, _ in scale.named_parameters()]
    (6.0, ['factor'])
    """

    training: bool
    _names: Names
    _hooks: tuple[hooks.Hook, ...]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a parameter, a buffer or a module."""

    def __new__(cls: type[M], *args: object, **kwargs: object) -> M:
        """Create the module; attributes can be assigned to it before ``super().__init__()`` is called."""
        module = super().__new__(cls)
        vars(module).update({"training": True, "_names": Names(), "_hooks": (), tree.CHILDREN: ()})
        return module

    def __init__(self) -> None:
        pass

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        tree.register(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call ``forward``, and the hooks before and after it."""
        return hooks.call(self, args, kwargs) if self._hooks else self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; subclasses override it."""
        raise ArgumentError(f"the module {type(self).__name__} has no method 'forward'; define it")

    # -- attributes --------------------------------------------------------------------------------------------------
    def __setattr__(self, name: str, value: object) -> None:
        names = self._names
        if name in names.parameters:
            is_same = value is vars(self).get(name)  # after `module.weight *= 2`
            if value is not None and not is_same and not isinstance(value, Parameter):
                raise ArgumentError(
                    f"cannot assign {describe(value)} to the parameter {name!r}; assign td.nn.Parameter(value), or None"
                )
        elif name not in names.buffers and isinstance(value, Parameter):
            vars(self)["_names"] = names._replace(parameters=(*names.parameters, name))
        tree.forget_child(self, name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        vars(self)["_names"] = self._names.without(name)

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Register a parameter; None reserves the name."""
        self._check_name(name)
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentError(f"register_parameter: {name!r} must be a td.nn.Parameter, not {param!r}")
        vars(self)["_names"] = self._names._replace(parameters=(*self._names.parameters, name))
        object.__setattr__(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a buffer: a tensor of the module's state that is not a parameter.

        Args:
            name: the attribute.
            tensor: the tensor, or None.
            persistent: whether it is in the ``state_dict``.

        Raises:
            ArgumentError: the name is that of another attribute, or the value is not a tensor.
        """
        self._check_name(name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(f"register_buffer: {name!r} must be a tensor, not {tensor!r}")
        names = self._names
        vars(self)["_names"] = names._replace(
            buffers=(*names.buffers, name),
            non_persistent=names.non_persistent if persistent else (*names.non_persistent, name),
        )
        object.__setattr__(self, name, tensor)

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a child module; its name may be any string without a dot."""
        self._check_name(name)
        if module is not None and not isinstance(module, Module):
            raise ArgumentError(f"register_module: {name!r} must be a module, not {module!r}")
        object.__setattr__(self, name, module)

    add_module = register_module

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentError(
                f"the name of an attribute must be a non-empty string without dots, not {name!r}"
            )
        if hasattr(self, name):
            raise ArgumentError(
                f"the module {type(self).__name__} already has an attribute {name!r}; choose another name"
            )

    # -- traversal ---------------------------------------------------------------------------------------------------
    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over the child modules with their names; a shared module is yielded once."""
        seen = set()
        for name, value in vars(self).items():
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator[Module]:
        """Iterate over the child modules."""
        return (child for _, child in self.named_children())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over this module and its descendants, with their names, such as ``"layers.0"``."""
        memo = set() if memo is None else memo
        if remove_duplicate and id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield from value.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and its descendants."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> Module:
        """Return the descendant with a name, such as ``"layers.0"``; the empty name is that of this module."""
        module: object = self
        for name in target.split(".") if target else ():
            module = getattr(module, name, None)
            if not isinstance(module, Module):
                raise ArgumentError(
                    f"the module {type(self).__name__} has no submodule {target!r}; see named_modules()"
                )
        return module  # type: ignore[return-value]

    def set_submodule(self, target: str, module: Module) -> None:
        """Replace the descendant with a name, such as ``"layers.0"``."""
        parent, _, name = target.rpartition(".")
        self.get_submodule(target)
        setattr(self.get_submodule(parent), name, module)

    def get_parameter(self, target: str) -> Tensor:
        """Return the parameter with a name, such as ``"layers.0.weight"``."""
        return self._get_tensor(target, "parameters")

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with a name."""
        return self._get_tensor(target, "buffers")

    def _get_tensor(self, target: str, kind: str) -> Tensor:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        value = vars(module).get(name) if name in getattr(module._names, kind) else None
        if value is None:
            raise ArgumentError(
                f"the module {type(self).__name__} has no {kind[:-1]} {target!r}; see named_{kind}()"
            )
        return value  # type: ignore[no-any-return]

    def _named_tensors(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        modules = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name in getattr(module._names, kind):
                value = vars(module).get(name)
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the parameters with their names, such as ``"layers.0.weight"``; a shared one is yielded once."""
        return self._named_tensors("parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the parameters of this module and, with ``recurse``, of its descendants."""
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the buffers with their names."""
        return self._named_tensors("buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers of this module and, with ``recurse``, of its descendants."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    @property
    def _modules(self) -> Mapping[str, Module | None]:
        """The child modules by name, a read-only copy."""
        return MappingProxyType(
            {name: value for name, value in vars(self).items() if isinstance(value, Module)}
        )

    @property
    def _parameters(self) -> Mapping[str, Tensor | None]:
        """The module's own parameters by name, a read-only copy."""
        return MappingProxyType({name: vars(self)[name] for name in self._names.parameters})

    @property
    def _buffers(self) -> Mapping[str, Tensor | None]:
        """The module's own buffers by name, a read-only copy."""
        return MappingProxyType({name: vars(self)[name] for name in self._names.buffers})

    # -- hooks -------------------------------------------------------------------------------------------------------
    register_forward_pre_hook = hooks.register_forward_pre_hook
    register_forward_hook = hooks.register_forward_hook
    register_full_backward_hook = hooks.register_full_backward_hook
    register_full_backward_pre_hook = hooks.register_full_backward_pre_hook
    register_state_dict_pre_hook = hooks.register_state_dict_pre_hook
    register_state_dict_post_hook = hooks.register_state_dict_post_hook
    register_load_state_dict_pre_hook = hooks.register_load_state_dict_pre_hook
    register_load_state_dict_post_hook = hooks.register_load_state_dict_post_hook

    # -- changes to all modules --------------------------------------------------------------------------------------
    def apply(self: M, fn: Callable[[Module], object]) -> M:
        """Call a function on each descendant, then on this module; return this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set training mode for this module and its descendants.

        In training mode dropout drops elements, and batch normalization uses the statistics of the batch.
        """
        for module in self.modules():
            vars(module)["training"] = bool(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode: the opposite of training mode."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set ``requires_grad`` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters, to None or to zero."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad = None if set_to_none else parameter.grad * 0

    # -- state -------------------------------------------------------------------------------------------------------
    state_dict = state.state_dict
    load_state_dict = state.load_state_dict
    to = state.to
    cpu = state.cpu
    cuda = state.cuda
    float = state.to_float32
    double = state.to_float64
    half = state.to_float16
    bfloat16 = state.to_bfloat16
    type = state.to_dtype
    to_empty = state.to_empty

    # -- printing ----------------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """Return the text that ``repr`` shows in parentheses, such as the sizes of a layer; subclasses override it."""
        return ""

    def _describe_children(self) -> list[str]:
        """Return the text that ``repr`` shows of each child."""
        return [f"({name}): {value!r}" for name, value in vars(self).items() if isinstance(value, Module)]

    def __repr__(self) -> str:
        lines = [text.replace("\n", "\n  ") for text in self._describe_children()]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        extra = self.extra_repr()
        inside = "\n  ".join([extra, *lines] if extra else lines)
        return f"{type(self).__name__}(\n  {inside}\n)"


tree.register(Module)

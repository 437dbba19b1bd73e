"""Hooks of modules: functions that run before or after ``forward``, the backward pass, saving and loading."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..eager.autograd.function import Function
from ..eager.autograd.hooks import RemovableHandle
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError

if TYPE_CHECKING:
    from .module import Module

# When a hook runs.
BEFORE_FORWARD, AFTER_FORWARD = "before forward", "after forward"
BEFORE_BACKWARD, AFTER_BACKWARD = "before backward", "after backward"
BEFORE_SAVING, AFTER_SAVING = "before saving", "after saving"
BEFORE_LOADING, AFTER_LOADING = "before loading", "after loading"
CALLS = frozenset({BEFORE_FORWARD, AFTER_FORWARD, BEFORE_BACKWARD, AFTER_BACKWARD})


class Hook:
    """A hook of a module; as a static attribute of a pytree it is equal to itself only.

    Attributes:
        when: when it runs.
        fn: the function.
        takes_kwargs: whether ``fn`` takes the keyword arguments of the call as well.
        is_always_called: whether it runs after a ``forward`` that raised.
    """

    __slots__ = ("fn", "is_always_called", "takes_kwargs", "when")

    def __init__(
        self, when: str, fn: Callable[..., Any], takes_kwargs: bool = False, is_always_called: bool = False
    ):
        self.when, self.fn = when, fn
        self.takes_kwargs, self.is_always_called = takes_kwargs, is_always_called


class HookHandle(RemovableHandle):
    """A handle of a hook of a module: ``remove()``, or leaving a ``with`` block, removes the hook."""

    __slots__ = ("_hook", "_module")

    def __init__(self, module: Module, hook: Hook):
        self._module, self._hook = module, hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        set_hooks(self._module, tuple(hook for hook in self._module._hooks if hook is not self._hook))


def set_hooks(module: Module, hooks: tuple[Hook, ...]) -> None:
    """Set the hooks of a module: a new tuple, whose identity guards jitted functions that captured the module."""
    vars(module)["_hooks"] = hooks


def register(
    module: Module,
    when: str,
    hook: Callable[..., Any],
    prepend: bool = False,
    with_kwargs: bool = False,
    always_call: bool = False,
) -> HookHandle:
    """Add a hook to a module, after the others or before them.

    Raises:
        ArgumentError: the hook is not callable.
    """
    if not callable(hook):
        raise ArgumentError(f"a hook of a module must be callable, not {hook!r}")
    added = Hook(when, hook, with_kwargs, always_call)
    set_hooks(module, (added, *module._hooks) if prepend else (*module._hooks, added))
    return HookHandle(module, added)


def select(module: Module, when: str) -> list[Hook]:
    """The hooks of a module that run at a moment."""
    return [hook for hook in module._hooks if hook.when == when]


# -- methods of modules ------------------------------------------------------------------------------------------------
def register_forward_pre_hook(
    self: Module, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
) -> HookHandle:
    """Call ``hook(module, args)`` before each ``forward``.

    Args:
        hook: the function; unless its result is None, it replaces the positional arguments.
        prepend: whether it runs before the hooks that are registered already.
        with_kwargs: whether it is called as ``hook(module, args, kwargs)``, and returns both.

    Returns:
        A handle with ``remove()``.

    >>> import tandem as td
    >>> layer = td.nn.Identity()
    >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] * 2)
    >>> layer(td.asarray(3.0)).item()
    6.0
    >>> handle.remove()
    >>> layer(td.asarray(3.0)).item()
    3.0
    """
    return register(self, BEFORE_FORWARD, hook, prepend, with_kwargs)


def register_forward_hook(
    self: Module,
    hook: Callable[..., Any],
    *,
    prepend: bool = False,
    with_kwargs: bool = False,
    always_call: bool = False,
) -> HookHandle:
    """Call ``hook(module, args, output)`` after each ``forward``.

    Args:
        hook: the function; unless its result is None, it replaces the output.
        prepend: whether it runs before the hooks that are registered already.
        with_kwargs: whether it is called as ``hook(module, args, kwargs, output)``.
        always_call: whether it runs, with the output None, when ``forward`` raises.

    Returns:
        A handle with ``remove()``.
    """
    return register(self, AFTER_FORWARD, hook, prepend, with_kwargs, always_call)


def register_full_backward_hook(self: Module, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of the module's inputs have been computed.

    Args:
        hook: a function of two tuples: the gradients of the positional arguments, None for those without, and of the
            results; unless its result is None, it replaces ``grad_input``.
        prepend: whether it runs before the hooks that are registered already.

    Returns:
        A handle with ``remove()``.
    """
    return register(self, AFTER_BACKWARD, hook, prepend)


def register_full_backward_pre_hook(
    self: Module, hook: Callable[..., Any], prepend: bool = False
) -> HookHandle:
    """Call ``hook(module, grad_output)`` before the backward pass of the module; a result replaces ``grad_output``."""
    return register(self, BEFORE_BACKWARD, hook, prepend)


def register_state_dict_pre_hook(self: Module, hook: Callable[..., Any]) -> HookHandle:
    """Call ``hook(module, prefix, keep_vars)`` before the module's tensors are added to a ``state_dict``."""
    return register(self, BEFORE_SAVING, hook)


def register_state_dict_post_hook(self: Module, hook: Callable[..., Any]) -> HookHandle:
    """Call ``hook(module, state_dict, prefix, local_metadata)`` after the module was added to a ``state_dict``."""
    return register(self, AFTER_SAVING, hook)


def register_load_state_dict_pre_hook(self: Module, hook: Callable[..., Any]) -> HookHandle:
    """Call a hook before the module is loaded.

    Args:
        hook: ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``,
            which may change the ``state_dict``, a copy of the caller's.
    """
    return register(self, BEFORE_LOADING, hook)


def register_load_state_dict_post_hook(self: Module, hook: Callable[..., Any]) -> HookHandle:
    """Call ``hook(module, incompatible_keys)`` after loading; the hook may change the lists of names."""
    return register(self, AFTER_LOADING, hook)


# -- calls -------------------------------------------------------------------------------------------------------------
def call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module that has hooks."""
    if not any(hook.when in CALLS for hook in module._hooks):
        return module.forward(*args, **kwargs)
    called: set[int] = set()
    try:
        return _call(module, args, kwargs, called)
    except Exception:
        for hook in select(module, AFTER_FORWARD):
            if hook.is_always_called and id(hook) not in called:
                _call_after(hook, module, args, kwargs, None)
        raise


def _call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
    for hook in select(module, BEFORE_FORWARD):
        if hook.takes_kwargs:
            result = hook.fn(module, args, kwargs)
            if result is not None:
                args, kwargs = result
        else:
            result = hook.fn(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    backward = None
    if select(module, BEFORE_BACKWARD) or select(module, AFTER_BACKWARD):
        backward = _Backward(module)
        args = backward.watch_inputs(args)
    output = module.forward(*args, **kwargs)
    for hook in select(module, AFTER_FORWARD):
        called.add(id(hook))
        result = _call_after(hook, module, args, kwargs, output)
        output = output if result is None else result
    return output if backward is None else backward.watch_outputs(output)


def _call_after(
    hook: Hook, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
) -> Any:
    return hook.fn(module, args, kwargs, output) if hook.takes_kwargs else hook.fn(module, args, output)


class _Backward:
    """The backward hooks of one call: its outputs and inputs pass through functions that see their gradients."""

    def __init__(self, module: Module):
        self.module = module
        self.before, self.after = select(module, BEFORE_BACKWARD), select(module, AFTER_BACKWARD)
        self.positions: list[int] = []  # positions of the inputs whose gradients are seen
        self.count = 0
        self.grad_output: tuple[Tensor | None, ...] = ()

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the inputs that require gradients through the function whose backward pass ends that of the module."""
        self.count = len(args)
        self.positions = [at for at, value in enumerate(args) if _is_watched(value)]
        watched = dict(
            zip(self.positions, _pass_through(_InputGradients, self, [args[at] for at in self.positions]))
        )
        return tuple(watched.get(at, value) for at, value in enumerate(args))

    def watch_outputs(self, output: Any) -> Any:
        """Pass the output, a tensor or a tuple or list of some, through the function that starts the backward pass."""
        if isinstance(output, Tensor):
            return _pass_through(_OutputGradients, self, [output])[0] if _is_watched(output) else output
        if not isinstance(output, (tuple, list)):
            return output
        positions = [at for at, value in enumerate(output) if _is_watched(value)]
        watched = dict(
            zip(positions, _pass_through(_OutputGradients, self, [output[at] for at in positions]))
        )
        items = [watched.get(at, value) for at, value in enumerate(output)]
        return type(output)(*items) if hasattr(output, "_fields") else type(output)(items)

    def start(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the hooks before the backward pass; without inputs to wait for, those after it too."""
        for hook in self.before:
            result = hook.fn(self.module, gradients)
            if result is not None:
                gradients = result if isinstance(result, tuple) else (result,)
        self.grad_output = gradients
        if not self.positions:
            self.run_after((None,) * self.count)
        return gradients

    def finish(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the hooks after the backward pass; returns the gradients of the inputs that are seen."""
        by_position = dict(zip(self.positions, gradients))
        all_gradients = self.run_after(tuple(by_position.get(at) for at in range(self.count)))
        return tuple(all_gradients[at] for at in self.positions)

    def run_after(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the hooks with the gradients of all positional arguments; returns those to use."""
        for hook in self.after:
            result = hook.fn(self.module, gradients, self.grad_output)
            if result is not None:
                gradients = result if isinstance(result, tuple) else (result,)
        return gradients


def _is_watched(value: object) -> bool:
    return isinstance(value, Tensor) and bool(value.requires_grad)


def _pass_through(function: type[Function], backward: _Backward, tensors: list[Any]) -> tuple[Tensor, ...]:
    result: tuple[Tensor, ...] = function.apply(backward, *tensors) if tensors else ()
    return result


class _Watch(Function):
    """The identity; its backward pass runs hooks."""

    @staticmethod
    def forward(backward: _Backward, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors, of which ``apply`` makes other objects."""
        return tensors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        """Keep the hooks."""
        ctx.hooks = inputs[0]


class _InputGradients(_Watch):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """The gradients, which hooks may replace."""
        return (None, *ctx.hooks.finish(grads))


class _OutputGradients(_Watch):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """The gradients, which hooks may replace."""
        return (None, *ctx.hooks.start(grads))

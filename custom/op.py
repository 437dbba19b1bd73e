"""``CustomOp``: the callable that :func:`tandem.custom_op` returns, with methods to register kernels and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..eager.layers.vmap.rules import RuleKernel
from ..eager.meta.tensor import meta_like, meta_tensor
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError, ValueArgumentError
from ..operators.declare.declaration import Declaration
from ..operators.declare.derivatives import Custom, NotDifferentiable
from ..registry.dispatch.keys import BACKEND_OF_DEVICE, DispatchKey, parse_key
from ..registry.function import OperatorFunction, functions
from ..registry.library import Handle, Library
from ..registry.native_type import accept_entries
from ..registry.operator import Operator, lock
from ..registry.values import TensorSpec
from ..tracer.auto_functionalize import functional_forms
from .adapt import adapt_function
from .casting import autocast_kernel, autocast_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..operators.declare.derivatives import Derivative
    from ..registry.types import Args, DTypeLike, Function
    from .kernels import KernelLike

ALL_DEVICES = "CompositeExplicit"
F = TypeVar("F", bound=Callable[..., object])
K = TypeVar("K", bound="KernelLike")


@accept_entries
class CustomOp(OperatorFunction[Any]):
    """A custom operator: a callable with methods to register kernels and rules.

    Each ``register_...`` method returns a handle whose ``remove()`` undoes the registration. Without a function the
    method is a decorator.

    Attributes:
        function: the function or body of the definition.
        library: the library of the registrations.
        named: the shape rule that a C or LLVM kernel provides, used without a registered fake.
    """

    function: Function | None
    library: Library
    named: Function | None

    def __init__(self, operator: Operator, library: Library, function: Function, doc: str = ""):
        super().__init__(operator, doc)
        self.library, self.function, self.named = library, function, None
        self._derivatives: list[Derivative | None] = [getattr(operator.decl, "derivative", None)]
        self.__module__ = getattr(function, "__module__", "") or "tandem"
        functions[operator.name] = self

    @property
    def op(self) -> Operator:
        """The :class:`Operator`, which has the schema, the kernels and the dispatch table."""
        return self.operator

    def __repr__(self) -> str:
        return f"<custom op {self.operator.schema}>"

    # -- kernels ---------------------------------------------------------------------------------------------------
    @overload
    def register_kernel(
        self,
        device_types: str | Iterable[str] | None = None,
        fn: None = None,
        *,
        dtypes: Sequence[DTypeLike] | None = None,
    ) -> Callable[[K], K]: ...
    @overload
    def register_kernel(
        self,
        device_types: str | Iterable[str] | None,
        fn: KernelLike,
        *,
        dtypes: Sequence[DTypeLike] | None = None,
    ) -> Handle: ...
    def register_kernel(
        self,
        device_types: str | Iterable[str] | None = None,
        fn: K | None = None,
        *,
        dtypes: Sequence[DTypeLike] | None = None,
    ) -> Handle | Callable[[K], K]:
        """Register a kernel.

        Args:
            device_types: a device type such as ``"cpu"``, a dispatch key such as ``"SparseCPU"``, or a sequence of
                these; None for all devices without a kernel.
            fn: a function of tensors, or the result of :func:`tandem.numpy_kernel`, ``c_kernel``, ``llvm_kernel`` or
                ``cuda_kernel``; None to use ``register_kernel`` as a decorator.
            dtypes: the dtypes of the first tensor that the kernel supports; None for all.

        Returns:
            A handle; as a decorator, the function.

        Raises:
            ArgumentError: ``fn`` is not callable.
            ValueArgumentError: a device type or key is unknown.

        >>> import tandem as td
        >>> @td.custom_op("docs::twice", device_types="cpu")
        ... def twice(x: td.Tensor) -> td.Tensor:
        ...     return x + x
        >>> handle = twice.register_kernel("meta", lambda x: td.empty_like(x))
        >>> twice(td.zeros(3, device="meta")).shape
        (3,)
        >>> twice.remove()
        """
        keys = keys_of_devices(device_types)
        if fn is None:
            return lambda function: (
                self.register_kernel(device_types, function, dtypes=dtypes),
                function,
            )[1]
        options = {} if dtypes is None else {"dtypes": dtypes}
        kernel = (
            fn.bind(self.operator)
            if hasattr(fn, "bind")
            else adapt_function(self.operator.schema, check_function(fn))
        )
        self.named = getattr(kernel, "named", self.named)
        handles = [self._impl(kernel, key, **options) for key in keys]
        return handles[0] if len(handles) == 1 else Handle(partial(remove_all, handles))

    def _impl(self, fn: Function, key: str | DispatchKey, **options: Any) -> Handle:
        name = self.operator.name.partition("::")[2]
        handle: Handle = self.library.impl(name, fn, key, allow_override=True, **options)
        return handle

    def _layer(self, fn: Function, key: DispatchKey) -> Handle:
        return self.library.impl_layer(self.operator, fn, key)

    # -- fake, derivative, batching rule, autocast -----------------------------------------------------------------
    @overload
    def register_fake(self, fn: None = None) -> Callable[[F], F]: ...
    @overload
    def register_fake(self, fn: Callable[..., object]) -> Handle: ...
    def register_fake(self, fn: F | None = None) -> Handle | Callable[[F], F]:
        """Register the fake: the kernel of meta tensors, which is also the shape rule of ``jit``.

        Args:
            fn: a function of tensors without data. It returns a tensor without data for each result, such as
                ``td.empty_like(x)``, or a :class:`TensorSpec`. None to use ``register_fake`` as a decorator.

        Returns:
            A handle; as a decorator, the function.
        """
        if fn is None:
            return lambda function: (self.register_fake(function), function)[1]
        return self._impl(wrap_fake(self.operator, check_function(fn)), DispatchKey.Meta)

    @overload
    def register_autograd(
        self, backward: None = None, setup_context: Callable[..., object] | None = None
    ) -> Callable[[F], F]: ...
    @overload
    def register_autograd(
        self, backward: Callable[..., object], setup_context: Callable[..., object] | None = None
    ) -> Handle: ...
    def register_autograd(
        self, backward: F | None = None, setup_context: Callable[..., object] | None = None
    ) -> Handle | Callable[[F], F]:
        """Register the derivative.

        Args:
            backward: ``backward(ctx, *grads)`` takes the gradient of each result and returns that of each argument,
                None for an argument without one. A function written with operators can be differentiated again.
            setup_context: ``setup_context(ctx, inputs, output)`` saves the residuals of ``backward`` with
                ``ctx.save_for_backward(*tensors)`` and as attributes of ``ctx``.

        Returns:
            A handle; as a decorator, the function.

        Raises:
            UnsupportedError: the operator writes to an argument.

        >>> import tandem as td
        >>> @td.custom_op("docs::squared")
        ... def squared(x: td.Tensor) -> td.Tensor:
        ...     return x * x
        >>> _ = squared.register_autograd(
        ...     lambda ctx, g: 2 * g * ctx.saved_tensors[0],
        ...     lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        ... )
        >>> td.grad(lambda x: squared(x).sum())(td.asarray([3.0])).tolist()
        [6.0]
        >>> squared.remove()
        """
        if self.operator.schema.is_mutable:
            raise UnsupportedError(
                f"{self.operator.name} writes into its arguments, and a derivative is registered for operators that "
                f"write nothing: {self.operator.schema}; define one that returns the new contents, and give it a "
                "derivative"
            )
        if backward is None:
            return lambda function: (self.register_autograd(function, setup_context), function)[1]
        check_function(backward)
        if setup_context is not None:
            check_function(setup_context)
        return self._set_derivative(Custom(backward, setup_context))

    @overload
    def register_vmap(self, fn: None = None) -> Callable[[F], F]: ...
    @overload
    def register_vmap(self, fn: Callable[..., object]) -> Handle: ...
    def register_vmap(self, fn: F | None = None) -> Handle | Callable[[F], F]:
        """Register a batching rule; without one, ``vmap`` runs a loop over the examples.

        Args:
            fn: ``rule(info, in_dims, *args) -> (result, out_dims)``. ``in_dims`` has the batch axis of each argument,
                or None; ``info.batch_size`` is its length. None to use ``register_vmap`` as a decorator.

        Returns:
            A handle; as a decorator, the function.
        """
        if fn is None:
            return lambda function: (self.register_vmap(function), function)[1]
        return self._layer(RuleKernel(check_function(fn)), DispatchKey.Batched)

    def register_autocast(self, device_type: str, dtype: DTypeLike) -> Handle:
        """Let autocast cast the floating-point arguments on a device.

        Args:
            device_type: the device type, ``"cpu"`` or ``"cuda"``.
            dtype: the dtype to cast to if autocast is enabled for that device.

        Returns:
            A handle.

        Raises:
            DeviceError: the device type is unknown.
            DTypeError: ``dtype`` is not a floating-point dtype.
        """
        kernel = autocast_kernel(device_type, dtype)
        return self._layer(kernel, autocast_key(device_type))

    def _set_derivative(self, derivative: Derivative) -> Handle:
        """Install a derivative; removing it restores the previous one."""
        with lock:
            self._derivatives.append(derivative)
            self._put_derivative()
        return Handle(partial(self._drop_derivative, derivative))

    def _drop_derivative(self, derivative: Derivative) -> None:
        with lock:
            self._derivatives = [one for one in self._derivatives if one is not derivative]
            self._put_derivative()

    def _put_derivative(self) -> None:
        operator = self.operator
        operator.decl = operator.decl._replace(derivative=self._derivatives[-1])
        operator.recompute()

    def remove(self) -> None:
        """Remove the operator and all of its registrations from the registry."""
        self.library.close()
        functional_forms.pop(self.operator, None)
        if functions.get(self.operator.name) is self:
            del functions[self.operator.name]


def keys_of_devices(device_types: str | Iterable[str] | None) -> list[str | DispatchKey]:
    """Return the dispatch keys of device types and key names."""
    if device_types is None:
        return [ALL_DEVICES]
    several = isinstance(device_types, (list, tuple, set, frozenset))
    names: list[Any] = list(device_types) if several else [device_types]
    return [BACKEND_OF_DEVICE[name] if name in BACKEND_OF_DEVICE else parse_key(name) for name in names]


def remove_all(handles: list[Handle]) -> None:
    """Remove registrations."""
    for handle in handles:
        handle.remove()


def check_function(fn: object) -> Function:
    """Return a function; raise ArgumentError if it is not callable."""
    if not callable(fn):
        raise ArgumentError(f"expected a function, not {fn!r}")
    return fn


def wrap_fake(op: Operator, fn: Function) -> Function:
    """Make the Meta kernel of a fake: convert its results to new meta tensors."""

    def fake(*args: object, **kwargs: object) -> object:
        result = fn(*args, **kwargs)
        _check_result_count(op, result)
        return _to_meta(result, args)

    fake.__qualname__ = getattr(fn, "__qualname__", "fake")
    fake.__wrapped__ = fn  # type: ignore[attr-defined]
    return fake


def _check_result_count(op: Operator, result: Any) -> None:
    """Raise ValueArgumentError if a fake returns fewer or more results than the schema declares."""
    returns = op.schema.returns
    if len(returns) == 1 and returns[0].type.is_list:
        return
    count = 0 if result is None else len(result) if type(result) in (tuple, list) else 1  # a spec is a tuple
    if count != len(returns):
        raise ValueArgumentError(
            f"{op.name}: its fake promises {count} results, and by the schema there are {len(returns)}: {op.schema}; "
            "it gives a tensor for each, such as td.empty_like(x)"
        )


def _to_meta(result: object, args: Args = ()) -> object:
    if isinstance(result, TensorSpec):
        return meta_tensor(result)
    if isinstance(result, (tuple, list)):
        return tuple(_to_meta(one, args) for one in result)
    made_here = type(result) is Tensor  # by td.empty(shape): its data are not a result
    if made_here or any(result is arg for arg in args):
        return meta_like(result) if isinstance(result, Tensor) else result
    return result


def default_fake(function: CustomOp) -> Function:
    """Make the Meta kernel used without a registered fake: the shape rule of a C or LLVM kernel, or an error."""
    schema = function.operator.schema

    def fake(*args: object, **kwargs: object) -> object:
        if function.named is not None:
            return _to_meta(function.named(*args, **kwargs))
        if not schema.returns:
            return None
        raise UnsupportedError(missing_fake_message(function.operator))

    fake.__qualname__ = "no_fake"
    return fake


def missing_fake_message(operator: Operator) -> str:
    """Return the error message for an operator without a fake."""
    name = operator.schema.name
    given = ", ".join(argument.name for argument in operator.schema.arguments)
    first = next((a.name for a in operator.schema.arguments if a.type.core == "Tensor"), "")
    example = f"td.empty_like({first})" if first else "td.empty(shape)"
    several = len(operator.schema.returns) > 1 or operator.schema.returns[0].type.is_list
    return (
        f"{operator.name} has no fake, so the shapes and dtypes of its results are not known before it runs, and jit "
        f"and meta tensors need them; register one:\n"
        f"    @{name}.register_fake\n    def _({given}):\n        return {f'{example}, ...' if several else example}"
    )


def not_differentiable(name: str) -> NotDifferentiable:
    """Return the declared absence of a derivative for an operator without a registered one."""
    stem = name.partition("::")[2]
    return NotDifferentiable(
        f"none is registered; register one: {stem}.register_autograd(backward, setup_context), or detach the arguments"
    )


def make_declaration(schema: str, name: str, doc: str, effects: frozenset[str]) -> Declaration:
    """Make a declaration from a schema, without a derivative."""
    return Declaration(
        schema=schema, kind="custom", doc=doc, derivative=not_differentiable(name), effects=effects
    )

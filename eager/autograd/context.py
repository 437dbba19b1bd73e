"""Derivatives written by hand for a whole call: the context of forward and backward, and the graph node.

User-defined operators declare one as :class:`tandem.operators.declare.derivatives.Custom`, functions as
:class:`tandem.autograd.Function`; both create a :class:`ContextNode`.

Source: ``torch.autograd.function.FunctionCtx``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any
from weakref import ref

from ... import lazy
from ...errors import ArgumentError, AutogradError, RuleError, VersionError
from ...operators.declare.shape_rules import spec_of
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import state
from ...registry.values import describe
from ..tensor.results import flat, specs
from ..tensor.storage import Hold
from ..tensor.tensor import EAGER, Tensor, require_grad, storage_of, wrap
from .autograd_meta import AutogradMeta
from .derivative_rules import ActiveRules, Rule
from .node import Change, DroppedResiduals, Node, packings, version_of, zeros_of

if TYPE_CHECKING:
    from ...eager.autograd.node import Edge
    from ...registry.types import Function
    from ...registry.values import TensorSpec

_residual_hooks = lazy.Module(".eager.autograd.residual_hooks")
residual_changes = lazy.Module(".eager.autograd.residual_changes")


class Context:
    """State that a hand-written ``forward`` stores for ``backward``; any other attribute may be set too.

    Attributes:
        needs_input_grad: for each input whether its gradient is wanted; for a list of tensors a tuple of bools.
    """

    def __init__(self, needs_input_grad: tuple[bool | tuple[bool, ...], ...]):
        self.needs_input_grad = needs_input_grad
        self._to_save: tuple[Tensor | None, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        self._materializes = True
        self._is_open = False  # whether backward reads tensors that neither arguments nor attributes hold
        self._node: Callable[[], ContextNode | None] = lambda: None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for ``backward``, which reads them from ``saved_tensors``; in-place writes are detected there.

        Args:
            tensors: inputs, results or others; None is allowed as an item.

        Raises:
            ArgumentError: an item is not a tensor; store other values as attributes.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise ArgumentError(
                    f"save_for_backward takes tensors and None, not {describe(tensor)}; store it as an attribute: "
                    "ctx.n = n"
                )
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to ``save_for_backward``.

        Raises:
            AutogradError: a first backward has freed it.
            VersionError: one of them was written in place since.
        """
        node = self._node()
        return self._to_save if node is None else node.saved_tensors()

    def mark_non_differentiable(self, *results: Tensor) -> None:
        """Declare that no gradient flows through these results."""
        self._constant = results

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Declare that ``forward`` has written these inputs in place; they must be among its results."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether ``backward`` receives zeros (True) or None for a result that no gradient reaches."""
        self._materializes = value


class Input:
    """One input of a call: its name for messages, and whether it is a tensor or a list of tensors."""

    __slots__ = ("is_list", "is_tensor", "name")

    def __init__(self, name: str, is_tensor: bool, is_list: bool = False):
        self.name, self.is_tensor, self.is_list = name, is_tensor, is_list


class ContextNode(Node):
    """A recorded call of a function with its own derivative.

    Attributes:
        context: the context that forward has filled.
        backward: the derivative.
        inputs: the inputs of the call; ``backward`` returns one gradient for each.
        indices: for each edge the index of its input.
        outputs: specs of the results, in the structure of the results.
        constant: indices of the results that no gradient flows through.
    """

    __slots__ = ("backward", "constant", "context", "indices", "inputs", "outputs")

    def __init__(
        self,
        op: Any,
        edges: list[Any],
        backward: Function,
        inputs: list[Input],
        indices: list[int],
    ):
        rules = (Rule(bit, None, (), 0, False, inputs[index].is_list) for bit, index in enumerate(indices))
        super().__init__(op, ActiveRules(tuple(rules), ()), edges)
        self.backward: Any = backward
        self.inputs, self.indices = inputs, indices
        self.context: Any = None
        self.outputs: Any = None
        self.constant: frozenset[int] = frozenset()

    def keep(self, context: Context, out: object, is_alias: bool, fresh: object = None) -> None:
        """Store the context of forward and its residuals.

        Args:
            context: the context.
            out: the results.
            is_alias: whether the results will refer to this node, so that aliases of them must be saved instead.
            fresh: the objects that will refer to it, if these are not the results themselves.
        """
        self.context, self.outputs = context, specs(out)
        marked = {id(item) for item in context._constant}
        self.constant = frozenset(i for i, item in enumerate(flat(out)) if id(item) in marked)
        carriers = flat(out if fresh is None else fresh)
        numbers = {id(item): i for i, item in enumerate(carriers) if isinstance(item, Tensor)}
        pairs = [_save_value(item, numbers.get(id(item)) if is_alias else None) for item in context._to_save]
        self.residuals, self.versions = tuple(v for v, _ in pairs), tuple(version for _, version in pairs)
        context._to_save = context._constant = context._dirty = ()
        context._node = ref(self)
        if packings[0]:
            _residual_hooks.pack_residuals(self)

    def free(self) -> None:
        if self.residuals:
            super().free()

    def drop(self, dropped: DroppedResiduals) -> None:
        self.residuals, self.versions = dropped, ()
        self.context = self.backward = None

    def state(self) -> Any:
        return self.residuals, self.versions, self.context, self.backward

    def refill(self, state: Any) -> None:
        self.residuals, self.versions, self.context, self.backward = state
        if self.context is not None:
            self.context._node = ref(self)

    def copy(self) -> ContextNode:
        twin: ContextNode = super().copy()
        if self.context is not None:
            twin.context = copy(self.context)
            twin.context._node = ref(twin)
        return twin

    def change_residuals(self, change: Change) -> bool:
        is_whole = super().change_residuals(change)
        context = self.context
        if context is None:
            return is_whole
        return residual_changes.change_attributes(context, change) and is_whole and not context._is_open

    def saved_tensors(self) -> tuple[Any, ...]:
        """Return the saved tensors after checking their versions."""
        if self.residuals is None:
            raise AutogradError(
                f"backward of {self.op.name} needs its saved tensors a second time, and the first backward has freed "
                "them; give the first one retain_graph=True"
            )
        return tuple(
            value if version is None else self._check_version(index, value, version)
            for index, (value, version) in enumerate(zip(self.residuals, self.versions))
        )

    def _check_version(self, index: int, value: Any, version: Any) -> Any:
        result = None
        if type(version) is tuple:
            hold, result = version
            now, version = hold.storage.version, hold.version
        else:
            now = version_of(value)
        if now != version:
            raise VersionError(
                f"backward of {self.op.name} needs saved_tensors[{index}], {spec_of(value)}, which was written in "
                f"place after it had been saved (version {now}, saved at {version}); save a copy (x.clone()) or use "
                "the functional operator"
            )
        if (
            result is None
            or result in self.constant
            or state.exclude & AUTOGRAD
            or not value.dtype.is_inexact
        ):
            return value
        return require_grad(_untracked_alias(value), AutogradMeta(self, result))

    # -- the derivative --------------------------------------------------------------------------------------------
    def gradients(self, given: dict[int, Tensor]) -> list[Any]:
        while self.residuals.__class__ is DroppedResiduals:
            self.refill(self.residuals.source.take(self.residuals.index))
        cotangents = self._cotangents(given)
        result = self.backward(self.context, *cotangents)
        gradients = self._split_gradients(result)
        self._check_constants(gradients)
        return [
            self._check_input_gradient(self.inputs[index], gradients[index], edge)
            for index, edge in zip(self.indices, self.edges)
        ]

    def _cotangents(self, given: dict[int, Tensor]) -> list[object]:
        """The gradient of each result; of a list, a list."""
        numbers = iter(range(len(flat(self.outputs))))

        def of(spec: TensorSpec | list[Any] | None) -> object:
            if isinstance(spec, list):
                return [of(item) for item in spec]
            g = given.get(next(numbers))
            return zeros_of(spec) if g is None and spec is not None and self.context._materializes else g

        single = not isinstance(self.outputs, list) or self.is_one_list
        return [of(self.outputs)] if single else [of(item) for item in self.outputs]

    @property
    def is_one_list(self) -> bool:
        """Whether the only result is a list, so that ``backward`` receives one list of gradients."""
        returns: Any = getattr(getattr(self.op, "schema", None), "returns", ())
        return len(returns) == 1 and bool(returns[0].type.is_list)

    def _split_gradients(self, gradient: Any) -> list[object]:
        """The result of ``backward`` as a list with one gradient for each input."""
        count = len(self.inputs)
        several = isinstance(gradient, tuple) or (isinstance(gradient, list) and count != 1)
        gradients = list(gradient) if several else [gradient]
        while len(gradients) > count and gradients[-1] is None:
            gradients.pop()
        if len(gradients) != count:
            names = ", ".join(item.name for item in self.inputs)
            raise AutogradError(
                f"backward of {self.op.name} returned {len(gradients)} gradients and must return {count}, one for each "
                f"input ({names}); return None for inputs without a gradient"
            )
        return gradients

    def _check_constants(self, gradients: list[object]) -> None:
        for item, gradient in zip(self.inputs, gradients):
            if gradient is not None and not item.is_tensor:
                raise AutogradError(
                    f"backward of {self.op.name} returned {describe(gradient)} for {item.name}, which is not a tensor; "
                    "return None for it"
                )

    def _check_input_gradient(self, item: Input, gradient: object, edge: Any) -> object:
        if gradient is None:
            return None
        if not item.is_list:
            return self._check_gradient(item.name, gradient, edge)
        if not isinstance(gradient, (tuple, list)) or len(gradient) != len(edge):
            raise AutogradError(
                f"backward of {self.op.name} returned {describe(gradient)} for {item.name}, a list of {len(edge)} "
                "tensors; return a list of as many gradients, or None"
            )
        return [
            g if g is None or to is None else self._check_gradient(f"{item.name}[{i}]", g, to)
            for i, (g, to) in enumerate(zip(gradient, edge))
        ]

    def _check_gradient(self, name: str, gradient: object, edge: Edge) -> Tensor:
        _, _, shape, dtype = edge
        if not isinstance(gradient, Tensor):
            raise AutogradError(
                f"backward of {self.op.name} returned {describe(gradient)} for {name}; return a tensor or None"
            )
        if not gradient.dtype.is_inexact:
            raise AutogradError(
                f"backward of {self.op.name} returned {describe(gradient)} for {name}, which is {dtype}; return a "
                "floating-point tensor"
            )
        if gradient.shape != shape and not is_broadcastable(shape, gradient.shape):
            raise RuleError(
                f"backward of {self.op.name} returned a gradient of shape {gradient.shape} for {name}, which has "
                f"shape {shape}"
            )
        return gradient


def _save_value(value: Tensor | None, result: int | None) -> tuple[Tensor | None, object]:
    """A value to save and its version; for a result, an alias instead, since the result refers to the node."""
    if value is None:
        return None, None
    if result is not None and type(value) in EAGER:
        return _untracked_alias(value), (Hold(storage_of(value)), result)
    return value, version_of(value)


def _untracked_alias(x: Tensor) -> Tensor:
    """An alias of a tensor that is not counted among the tensors on its storage."""
    return wrap(x._array) if type(x) is Tensor else x._alias()


def is_broadcastable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another, so that a gradient of shape `to` can be summed to it."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1]))

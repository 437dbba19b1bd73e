"""Derivatives written by hand for a whole call: the context that forward and backward share, and the node of the call.

Operators from outside give them as :class:`tandem.operators.derivatives.Custom`, users as a
:class:`tandem.autograd.Function`; both make a :class:`ContextNode`.

Source: ``torch.autograd.function.FunctionCtx``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from ..errors import ArgumentError, AutogradError, RuleError, VersionError
from ..operators.rules import spec_of
from ..registry.keys import AUTOGRAD
from ..registry.state import state
from ..registry.values import describe
from .meta import AutogradMeta
from .node import Dropped, Node, version_of, zeros_of
from .plans import Active, Rule
from .results import flat, specs
from .storage import Hold
from .tensor import EAGER, Tensor, require_grad, storage_of, wrap


class Context:
    """What a hand-written derivative notes in ``forward`` for ``backward``; takes any attribute besides.

    Attributes:
        needs_input_grad: for each input whether its gradient is wanted; for a list of tensors a tuple of bools.
    """

    def __init__(self, needs_input_grad: tuple[Any, ...]):
        self.needs_input_grad = needs_input_grad
        self._to_save: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._fills = True
        self._node: Callable[[], ContextNode | None] = lambda: None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for ``backward``, which finds them in ``saved_tensors``; a write into one is noticed there.

        Args:
            tensors: inputs, results or others; None keeps a place.

        Raises:
            ArgumentError: something is no tensor; numbers and the like go into an attribute.
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
        """What was given to ``save_for_backward``.

        Raises:
            AutogradError: a first backward has freed it.
            VersionError: one of them was written in place since.
        """
        node = self._node()
        return self._to_save if node is None else node.saved_tensors()

    def mark_non_differentiable(self, *results: Any) -> None:
        """Say that no gradient flows through these results."""
        self._constant = results

    def mark_dirty(self, *inputs: Any) -> None:
        """Say that ``forward`` has written these inputs in place; they must be among its results."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros for a result that no gradient reaches (True), or None."""
        self._fills = value


class Input:
    """One input of a call for its derivative: its name for messages, whether it is a tensor or a list of them."""

    __slots__ = ("is_list", "is_tensor", "name")

    def __init__(self, name: str, is_tensor: bool, is_list: bool = False):
        self.name, self.is_tensor, self.is_list = name, is_tensor, is_list


class ContextNode(Node):
    """A recorded call with a derivative of its own.

    Attributes:
        context: what forward has noted.
        backward: the derivative.
        inputs: what the call took; ``backward`` gives one gradient for each.
        places: for each edge the input it belongs to.
        outputs: specs of the results, in the structure of the results.
        constant: numbers of the results that no gradient flows through.
    """

    __slots__ = ("backward", "constant", "context", "inputs", "outputs", "places")

    def __init__(
        self, op: Any, edges: list[Any], backward: Callable[..., Any], inputs: list[Input], places: list[int]
    ):
        rules = (Rule(bit, None, (), 0, False, inputs[place].is_list) for bit, place in enumerate(places))
        super().__init__(op, Active(tuple(rules), ()), edges)
        self.backward: Any = backward
        self.inputs, self.places = inputs, places
        self.context: Any = None
        self.outputs: Any = None
        self.constant: frozenset[int] = frozenset()

    def keep(self, context: Context, out: Any, is_alias: bool, fresh: Any = None) -> None:
        """Take over what forward has noted.

        Args:
            context: the context.
            out: the results.
            is_alias: whether they will carry this node, so that they must not be kept as they are.
            fresh: the objects that will carry it, where these are not the results themselves.
        """
        self.context, self.outputs = context, specs(out)
        marked = {id(item) for item in context._constant}
        self.constant = frozenset(i for i, item in enumerate(flat(out)) if id(item) in marked)
        carriers = flat(out if fresh is None else fresh)
        numbers = {id(item): i for i, item in enumerate(carriers) if isinstance(item, Tensor)}
        pairs = [_saved(item, numbers.get(id(item)) if is_alias else None) for item in context._to_save]
        self.saved, self.versions = tuple(v for v, _ in pairs), tuple(version for _, version in pairs)
        context._to_save = context._constant = context._dirty = ()
        context._node = ref(self)

    def free(self) -> None:
        if self.saved:
            super().free()

    def drop(self, dropped: Dropped) -> None:
        self.saved, self.versions = dropped, ()
        self.context = self.backward = None

    def state(self) -> Any:
        return self.saved, self.versions, self.context, self.backward

    def refill(self, found: Any) -> None:
        self.saved, self.versions, self.context, self.backward = found
        if self.context is not None:
            self.context._node = ref(self)

    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors, checked."""
        if self.saved is None:
            raise AutogradError(
                f"backward of {self.op.name} needs its saved tensors a second time, and the first backward has freed "
                "them; give the first one retain_graph=True"
            )
        return tuple(
            value if version is None else self._checked(place, value, version)
            for place, (value, version) in enumerate(zip(self.saved, self.versions))
        )

    def _checked(self, place: int, value: Any, version: Any) -> Any:
        result = None
        if type(version) is tuple:
            hold, result = version
            now, version = hold.storage.version, hold.version
        else:
            now = version_of(value)
        if now != version:
            raise VersionError(
                f"backward of {self.op.name} needs saved_tensors[{place}], {spec_of(value)}, which was written in "
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
        return require_grad(_bare(value), AutogradMeta(self, result))

    # -- the derivative --------------------------------------------------------------------------------------------
    def gradients(self, given: dict[int, Any]) -> list[Any]:
        while self.saved.__class__ is Dropped:
            self.refill(self.saved.source.take(self.saved.index))
        cotangents = self._cotangents(given)
        found = self.backward(self.context, *cotangents)
        gradients = self._one_each(found)
        self._check_constants(gradients)
        return [
            self._fitting(self.inputs[place], gradients[place], edge)
            for place, edge in zip(self.places, self.edges)
        ]

    def _cotangents(self, given: dict[int, Any]) -> list[Any]:
        """The gradient of each result; of a list, a list."""
        numbers = iter(range(len(flat(self.outputs))))

        def of(spec: Any) -> Any:
            if isinstance(spec, list):
                return [of(item) for item in spec]
            g = given.get(next(numbers))
            return zeros_of(spec) if g is None and spec is not None and self.context._fills else g

        single = not isinstance(self.outputs, list) or self.is_one_list
        return [of(self.outputs)] if single else [of(item) for item in self.outputs]

    @property
    def is_one_list(self) -> bool:
        """Whether the only result is a list, so that ``backward`` takes one list of gradients."""
        returns: Any = getattr(getattr(self.op, "schema", None), "returns", ())
        return len(returns) == 1 and bool(returns[0].type.is_list)

    def _one_each(self, found: Any) -> list[Any]:
        """What ``backward`` has given, as one gradient for each input."""
        count = len(self.inputs)
        several = isinstance(found, tuple) or (isinstance(found, list) and count != 1)
        gradients = list(found) if several else [found]
        while len(gradients) > count and gradients[-1] is None:
            gradients.pop()
        if len(gradients) != count:
            names = ", ".join(item.name for item in self.inputs)
            raise AutogradError(
                f"backward of {self.op.name} gave {len(gradients)} gradients and must give {count}, one for each input "
                f"({names}), None for those that have none"
            )
        return gradients

    def _check_constants(self, gradients: list[Any]) -> None:
        for item, gradient in zip(self.inputs, gradients):
            if gradient is not None and not item.is_tensor:
                raise AutogradError(
                    f"backward of {self.op.name} gave {describe(gradient)} for {item.name}, which is no tensor; give "
                    "None for it"
                )

    def _fitting(self, item: Input, gradient: Any, edge: Any) -> Any:
        if gradient is None:
            return None
        if not item.is_list:
            return self._check_gradient(item.name, gradient, edge)
        if not isinstance(gradient, (tuple, list)) or len(gradient) != len(edge):
            raise AutogradError(
                f"backward of {self.op.name} gave {describe(gradient)} for {item.name}, a list of {len(edge)} "
                "tensors; give a list of as many gradients, or None"
            )
        return [
            g if g is None or to is None else self._check_gradient(f"{item.name}[{i}]", g, to)
            for i, (g, to) in enumerate(zip(gradient, edge))
        ]

    def _check_gradient(self, name: str, gradient: Any, edge: Any) -> Any:
        _, _, shape, dtype = edge
        if not isinstance(gradient, Tensor):
            raise AutogradError(
                f"backward of {self.op.name} gave {describe(gradient)} for {name}, and a gradient is a tensor or None"
            )
        if not gradient.dtype.is_inexact:
            raise AutogradError(
                f"backward of {self.op.name} gave {describe(gradient)} for {name}, which is {dtype}; a gradient is "
                "floating-point"
            )
        if gradient.shape != shape and not expands(shape, gradient.shape):
            raise RuleError(
                f"backward of {self.op.name} gave a gradient of shape {gradient.shape} for {name}, which has shape "
                f"{shape}"
            )
        return gradient


def _saved(value: Any, result: int | None) -> tuple[Any, Any]:
    """A value to keep, and its version; for a result its elements without the result, which holds the node."""
    if value is None:
        return None, None
    if result is not None and type(value) in EAGER:
        return _bare(value), (Hold(storage_of(value)), result)
    return value, version_of(value)


def _bare(x: Any) -> Any:
    """The same elements as another object, which does not count as one that shares the storage."""
    return wrap(x._array) if type(x) is Tensor else x._alias()


def expands(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another, so that a gradient of that one may be summed to it."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1]))

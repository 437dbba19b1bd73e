"""``x.grad_fn``: the recorded graph as PyTorch shows it.

Source: ``torch.autograd.graph.Node``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...registry.operator import Operator
from .autograd_meta import AutogradMeta
from .hooks import AFTER, BEFORE, RemovableHandle, register_node_hook
from .node import Node

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor


class GraphFunction:
    """A node of the graph: a recorded operation, or a leaf whose gradient is accumulated.

    Two objects of one node are equal.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> y = (x * 2.0).sum()
    >>> y.grad_fn.name(), [function.name() for function, _ in y.grad_fn.next_functions]
    ('SumBackward0', ['MulBackward0'])
    """

    __slots__ = ("_target",)

    def __init__(self, target: Node | AutogradMeta):
        self._target = target

    def name(self) -> str:
        """PyTorch's name.

        ``"MulBackward0"`` of the operator ``mul``, ``"FBackward"`` of a function ``F``, which may be jitted or an
        ``autograd.Function``, and ``"AccumulateGrad"`` of a leaf.
        """
        if not isinstance(self._target, Node):
            return "AccumulateGrad"
        name = self._target.name
        if not isinstance(self._target.op, Operator):
            return f"{name}Backward"
        return "".join(f"{part[0].upper()}{part[1:]}" for part in name.split("_") if part) + "Backward0"

    @property
    def variable(self) -> Tensor | None:
        """The leaf tensor into which gradients accumulate; None if it has been freed. As in PyTorch.

        Raises:
            AttributeError: the function is that of an operation.

        >>> import tandem as td
        >>> x = td.asarray([1.0, 2.0], requires_grad=True)
        >>> (x * 2.0).grad_fn.next_functions[0][0].variable is x
        True
        """
        if isinstance(self._target, Node):
            raise AttributeError(
                f"{self.name()} has no variable; AccumulateGrad, the function of a leaf, has one"
            )
        leaf = getattr(self._target, "leaf", None)
        return None if leaf is None else leaf()

    @property
    def next_functions(self) -> tuple[tuple[GraphFunction, int], ...]:
        """The nodes that receive the gradients of the arguments, each with the index of its result."""
        if not isinstance(self._target, Node):
            return ()
        edges: list[object] = []
        for edge in self._target.edges:
            is_list = edge and (edge[0] is None or isinstance(edge[0], tuple))
            edges.extend(edge if is_list else (edge,))
        return tuple((GraphFunction(edge[0]), edge[1]) for edge in edges if isinstance(edge, tuple))

    def register_hook(self, hook: Callable[..., object]) -> RemovableHandle:
        """Register ``hook(grad_inputs, grad_outputs)``, which ``backward`` calls after the node's derivative.

        Args:
            hook: a function of tuples of gradients; its result, unless None, replaces the first one.

        >>> import tandem as td
        >>> x = td.asarray(3.0, requires_grad=True)
        >>> y = x * 2.0
        >>> _ = y.grad_fn.register_hook(lambda inputs, outputs: print(inputs, outputs))
        >>> y.backward()
        (tensor(2.),) (tensor(1.),)
        """
        return register_node_hook(self._target, AFTER, hook)

    def register_prehook(self, hook: Callable[..., object]) -> RemovableHandle:
        """Register ``hook(grad_outputs)``, which ``backward`` calls before the node's derivative.

        Args:
            hook: a function of a tuple of gradients; its result, unless None, replaces them.
        """
        return register_node_hook(self._target, BEFORE, hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphFunction) and other._target is self._target

    def __hash__(self) -> int:
        return id(self._target)

    def __repr__(self) -> str:
        return f"<{self.name()}>"

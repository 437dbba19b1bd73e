"""``x.backward()``, and gradients of some tensors with respect to others without touching their ``grad``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ...errors import (
    ArgumentError,
    AutogradError,
    DTypeError,
    NotDifferentiableError,
    ShapeError,
    UnsupportedError,
    ValueArgumentError,
)
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import current_keys, set_keys, state
from ...registry.dispatch.unwinding import restore_guards_on_error
from ...registry.values import describe
from ..layers.level_stack import stack
from ..tensor.dunders import by_name
from ..tensor.tensor import EAGER, Tensor
from . import hooks
from .accumulate import accumulate
from .autograd_meta import TRACING, AutogradMeta
from .engine import Pass
from .grad_modes import enable_grad, no_grad

if TYPE_CHECKING:
    from ...eager.autograd.engine import Root


@restore_guards_on_error
def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradient of this tensor by each leaf that it depends on to the leaf's ``grad``.

    Args:
        gradient: gradient of this tensor, of its shape; None means 1, for a tensor of one element.
        retain_graph: keep the residuals, so that ``backward`` can run again.
        create_graph: record the backward pass too, for gradients of gradients; keeps the graph as well.
        inputs: the tensors whose ``grad`` is filled, leaves or results; None: all leaves.

    Raises:
        AutogradError: the tensor has no graph, or the graph's residuals have been freed.
        NotDifferentiableError: an operator on the way has no derivative, or the tensor holds integers.
        ShapeError: no ``gradient`` is given, and there are several elements.
        VersionError: a saved tensor was written in place since.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    run_backward([root_of(self, gradient)], retain_graph, create_graph, inputs)


def run_backward(
    roots: list[Root],
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Run a backward pass from several roots, and add the gradients to those of the leaves, or of ``inputs``."""
    metas = None if inputs is None else [_input_meta(x) for x in _tensors("inputs", inputs)]
    if metas is not None and not metas:
        raise ValueArgumentError("backward: inputs is empty; pass None for all leaves")
    keep = create_graph if retain_graph is None else retain_graph
    before = current_keys()
    try:
        set_keys(state.include, state.exclude & ~AUTOGRAD if create_graph else state.exclude | AUTOGRAD)
        gradients = Pass(keep).run(roots) if metas is None else _leave_out_retained(metas, keep, roots)
        watched = hooks.find_accumulated(gradients)
        accumulate(gradients, create_graph)
        hooks.run_accumulated(watched)
    finally:
        set_keys(*before)


def _leave_out_retained(
    metas: Sequence[AutogradMeta], keep: bool, roots: list[Root]
) -> dict[AutogradMeta, Tensor]:
    """:func:`_gradients_of` without the results that retain their gradients, which hooks have stored."""
    retained = [meta for meta in metas if hooks.is_retained(meta)]
    gradients = _gradients_of(metas, keep, roots)
    return {meta: value for meta, value in gradients.items() if meta not in retained}


def _gradients_of(metas: Sequence[AutogradMeta], keep: bool, roots: list[Root]) -> dict[AutogradMeta, Tensor]:
    """The gradients of some leaves and results, by their metadata; those that are not reached are left out."""
    run = Pass(keep)
    leaves = run.run(roots, [(meta.node, meta.index) for meta in metas if meta.node is not None])
    gradients = {
        meta: leaves.get(meta) if meta.node is None else run.wanted[meta.node, meta.index] for meta in metas
    }
    return {meta: gradient for meta, gradient in gradients.items() if gradient is not None}


def _mode(create_graph: bool) -> AbstractContextManager[None]:
    return enable_grad() if create_graph else no_grad()


def root_of(x: Tensor, gradient: Tensor | None) -> Root:
    """The root of the backward pass for a tensor: node or leaf, result index and initial gradient."""
    if type(x) is not Tensor or state.include:
        check_may_run(x)
    if stack.recording is not None:
        stack.recording.refuse(x, "backward()")
    meta: AutogradMeta | None = x._meta
    if meta is None or not meta.requires_grad:
        raise make_missing_graph_error(x, meta)
    return (meta if meta.node is None else meta.node), meta.index, _initial_gradient(x, gradient)


def check_may_run(x: object) -> None:
    """Raise an error for values on which ``backward`` cannot run: traced values, values of a transform, non-tensors."""
    if not isinstance(x, Tensor):
        raise ArgumentError(f"backward: a tensor is needed, not {describe(x)}")
    if state.include & TRACING:
        raise UnsupportedError(
            "backward() cannot run inside a jitted function: use td.grad or td.value_and_grad there, or call backward "
            "outside on the eager function"
        )
    if type(x) not in EAGER:
        raise UnsupportedError(
            "backward() works on eager tensors; inside td.grad, td.grad itself takes the gradient"
        )


def make_missing_graph_error(x: Tensor, meta: AutogradMeta | None) -> AutogradError:
    """The error for a tensor without a graph."""
    if meta is not None and meta.cut_by:
        return NotDifferentiableError(
            f"backward: the tensor is {describe(x)}, the result of {meta.cut_by}, and integers have no derivative"
        )
    if not x.dtype.is_inexact:
        return NotDifferentiableError(
            f"backward: the tensor is {describe(x)}; booleans and integers have no derivative, so comparisons, "
            "argmax and the like cut the history"
        )
    return AutogradError(
        f"backward: the tensor {describe(x)} has no history: none of the tensors that it was computed from has "
        "requires_grad=True, or it was computed inside td.no_grad()"
    )


def _initial_gradient(x: Tensor, gradient: Tensor | None) -> Tensor:
    if gradient is None:
        if x.size != 1:
            raise ShapeError(
                f"backward: the tensor has shape {x.shape}; reduce it to one element, for example with .sum() or "
                ".mean(), or pass gradient=, a tensor of that shape"
            )
        where = {} if type(x) is Tensor else {"device": x.device}
        return by_name("full")(x.shape, 1, dtype=x.dtype, **where)
    if type(gradient) is Tensor and type(x) is Tensor:
        given, array = gradient._array, x._array
        if given.shape == array.shape and given.dtype is array.dtype:
            return gradient
    if not isinstance(gradient, Tensor) or gradient.shape != x.shape:
        raise ShapeError(f"backward: gradient must be a tensor of shape {x.shape}, not {describe(gradient)}")
    if not gradient.dtype.is_inexact:
        raise DTypeError(f"backward: gradient must be floating-point, not {gradient.dtype}")
    return gradient if gradient.dtype is x.dtype else gradient.astype(x.dtype)


def gradients_of(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    only_inputs: bool = True,
) -> tuple[Tensor | None, ...]:
    """Gradients of ``outputs``, summed, by each of ``inputs``; no tensor's ``grad`` changes.

    Args:
        outputs: tensors with a graph.
        inputs: tensors that they depend on: leaves or results.
        grad_outputs: gradient of each output; None means 1, for outputs of one element.
        retain_graph: keep the residuals.
        create_graph: record the pass too.
        allow_unused: return None for an input that no output depends on, instead of raising; None: as
            ``materialize_grads``.
        is_grads_batched: ``grad_outputs`` have a further first axis; the result has it too, one gradient for each.
        materialize_grads: return zeros for an input that no output depends on.
        only_inputs: True; ``backward`` accumulates into the leaves.

    Returns:
        A tuple with a tensor per input.

    Raises:
        ArgumentError: ``only_inputs`` is False, or ``allow_unused`` is, with ``materialize_grads``.
        AutogradError: as for ``backward``; or an input is not reached.

    >>> import tandem as td
    >>> x = td.asarray(3.0, requires_grad=True)
    >>> (slope,) = td.autograd.grad(x * x, x, create_graph=True)
    >>> td.autograd.grad(slope, x)
    (tensor(2.),)
    """
    if not only_inputs:
        raise ArgumentError("grad: only_inputs must be True; backward() accumulates into all leaves")
    if materialize_grads and allow_unused is False:
        raise ValueArgumentError("grad: materialize_grads=True needs allow_unused=True, or no allow_unused")
    roots = _tensors("outputs", outputs)
    given = repeat_gradients("grad", roots, grad_outputs)
    metas = [_input_meta(x) for x in _tensors("inputs", inputs)]
    keep = create_graph if retain_graph is None else retain_graph
    with _mode(create_graph):
        if is_grads_batched:
            result = _batch_gradients(roots, given, metas, keep)
        else:
            pairs = [root_of(x, g) for x, g in zip(roots, given, strict=True)]
            by_meta = _gradients_of(metas, keep, pairs)
            result = tuple(by_meta.get(meta) for meta in metas)
        if materialize_grads:
            zeros_like, xs = by_name("zeros_like"), _tensors("inputs", inputs)
            result = tuple(zeros_like(x) if g is None else g for x, g in zip(xs, result, strict=True))
    if None in [None if g is None else 0 for g in result] and not allow_unused:
        raise AutogradError(
            "grad: an output does not depend on one of the inputs; allow_unused=True returns None for it"
        )
    return result


def _batch_gradients(
    roots: tuple[Tensor, ...], given: Sequence[Tensor | None], metas: Sequence[AutogradMeta], keep: bool
) -> tuple[Tensor | None, ...]:
    """The gradients for each item along the first axis of ``given``, stacked."""
    sizes = {g.shape[:1] for g in given if g is not None}
    if len(sizes) != 1 or () in sizes:
        raise ArgumentError("grad: is_grads_batched takes grad_outputs with a first axis of one length")
    ((count,),) = sizes
    rows = []
    for item in range(count):
        pairs = [root_of(x, None if g is None else g[item]) for x, g in zip(roots, given, strict=True)]
        rows.append(_gradients_of(metas, keep or item < count - 1, pairs))
    stack = by_name("stack")
    return tuple(stack([row[meta] for row in rows]) if rows and meta in rows[0] else None for meta in metas)


def repeat_gradients(
    name: str, roots: Sequence[Tensor], given: Tensor | Sequence[Tensor | None] | None
) -> Sequence[Tensor | None]:
    """A gradient for each root: those given, or one for all of them."""
    if given is None or isinstance(given, Tensor):
        return (given,) * len(roots)
    if len(given) != len(roots):
        raise ArgumentError(f"{name}: {len(roots)} tensors take as many gradients, not {len(given)}")
    return given


def _tensors(name: str, given: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    if isinstance(given, Tensor):
        return (given,)
    if not isinstance(given, (list, tuple)):
        raise ArgumentError(f"grad: {name} is a tensor or a sequence of them, not {describe(given)}")
    return tuple(given)


def _input_meta(x: object) -> AutogradMeta:
    if not isinstance(x, Tensor) or not x.requires_grad or type(x) not in EAGER:
        raise AutogradError(f"grad: an input must be a tensor with requires_grad, not {describe(x)}")
    return x._meta  # type: ignore[return-value]  # it requires a gradient

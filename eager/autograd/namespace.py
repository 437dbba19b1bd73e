"""``td.autograd``: reverse mode on tensors with ``requires_grad``, as functions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ... import lazy
from ...errors import GradientCheckError
from ...registry.dispatch.keys import DispatchKeySet
from ...registry.dispatch.unwinding import restore_guards_on_error
from ...registry.operator import Operator
from ..layers.levels import LevelTensor, highest_level, record_at
from ..tensor.results import flat
from ..tensor.tensor import Tensor
from ..tensor.weak_scalars import replace_weak_scalars
from .anomaly import detect_anomaly as detect_anomaly
from .anomaly import set_detect_anomaly as set_detect_anomaly
from .backward import gradients_of as grad
from .backward import repeat_gradients, root_of, run_backward
from .grad_modes import enable_grad as enable_grad
from .grad_modes import inference_mode as inference_mode
from .grad_modes import is_grad_enabled as is_grad_enabled
from .grad_modes import no_grad as no_grad
from .grad_modes import set_grad_enabled as set_grad_enabled
from .kernel import autograd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...registry.types import Args, Kwargs
    from ...registry.types import Function as Function_
    from . import residual_hooks as graph
    from .function import Function as Function
else:
    __getattr__, __dir__ = lazy.attach(
        __name__, {".eager.autograd.function": "Function"}, {"graph": ".eager.autograd.residual_hooks"}
    )

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "fallback",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_check_grads = lazy.Module(".transforms.check_grads")


@restore_guards_on_error
def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradients of the sum of ``tensors`` into the ``grad`` of the leaves that they depend on.

    Args:
        tensors: tensors that require gradients.
        grad_tensors: the gradient of each tensor; None means 1, for tensors of one element.
        retain_graph, create_graph, inputs: as for the method ``backward``.

    Raises:
        ArgumentError: there are not as many gradients as tensors.
        AutogradError: as for the method ``backward``.

    >>> import tandem as td
    >>> x = td.asarray(3.0, requires_grad=True)
    >>> td.autograd.backward([x * x, x * 2.0])
    >>> x.grad
    tensor(8.)
    """
    given = tuple(tensors) if isinstance(tensors, (list, tuple)) else (tensors,)
    gradients = repeat_gradients("backward", given, grad_tensors)
    roots = [root_of(x, gradient) for x, gradient in zip(given, gradients, strict=True)]
    run_backward(roots, retain_graph, create_graph, inputs)


def gradcheck(
    func: Function_,
    inputs: Tensor | Sequence[Tensor],
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    raise_exception: bool = True,
) -> bool:
    """Check the gradients of a function against finite differences; see :func:`tandem.check_grads`.

    Args:
        func: a function of the inputs that returns a tensor or a tuple of tensors.
        inputs: tensors, preferably of dtype float64. Those that require gradients are checked; if none does, all of
            floating or complex dtype.
        eps, atol, rtol: the step and the tolerances; None chooses them by dtype.
        raise_exception: whether to raise an error if the gradients differ.

    Returns:
        True if the gradients agree; False if they differ and ``raise_exception`` is False.

    Raises:
        GradientCheckError: the gradients differ, and ``raise_exception`` is True.

    >>> import tandem as td
    >>> td.autograd.gradcheck(lambda x: x * x, td.asarray([1.0, 2.0], dtype=td.float64))
    True
    """
    return _check_gradients(1, func, inputs, eps, atol, rtol, raise_exception)


def gradgradcheck(
    func: Function_,
    inputs: Tensor | Sequence[Tensor],
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    raise_exception: bool = True,
) -> bool:
    """Check first and second derivatives against finite differences; the arguments are those of :func:`gradcheck`."""
    return _check_gradients(2, func, inputs, eps, atol, rtol, raise_exception)


def _check_gradients(
    order: int,
    func: Function_,
    inputs: Tensor | Sequence[Tensor],
    eps: float | None,
    atol: float | None,
    rtol: float | None,
    raise_exception: bool,
) -> bool:
    given = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    floating = [at for at, x in enumerate(given) if isinstance(x, Tensor) and x.dtype.is_inexact]
    checked = [at for at in floating if given[at].requires_grad] or floating

    @functools.wraps(func, updated=())
    def call(*values: Tensor) -> object:
        return func(*[dict(zip(checked, values)).get(at, x) for at, x in enumerate(given)])

    try:
        _check_grads.check_backward(call, [given[at] for at in checked], order, atol, rtol, eps)
    except GradientCheckError:
        if raise_exception:
            raise
        return False
    return True


def fallback(op: Operator, keyset: DispatchKeySet | int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator and record it for ``backward``, using the derivative that it declares.

    This is the kernel of the Autograd keys for operators without one of their own. A kernel that replaces it,
    registered with ``lib.impl("op", kernel, "Autograd", boxed=True)``, may call it.

    Args:
        op: the operator.
        keyset: the key set of the call.
        args, kwargs: its bound arguments.

    Returns:
        The result, with a node of the autograd graph.

    >>> import tandem as td
    >>> def log_and_record(op, keyset, args, kwargs):
    ...     print("recorded:", op.schema.name)
    ...     return td.autograd.fallback(op, keyset, args, kwargs)
    >>> with td.Library("td", "IMPL") as lib:
    ...     _ = lib.impl("exp", log_and_record, "Autograd", boxed=True)
    ...     td.grad(lambda x: td.exp(x))(0.0)
    recorded: exp
    tensor(1.)
    """
    if any(isinstance(item, LevelTensor) for item in flat((args, tuple(kwargs.values())))):
        return record_at(op, highest_level(op, args, kwargs), args, kwargs)
    bits = keyset.bits if isinstance(keyset, DispatchKeySet) else keyset
    return autograd(op, bits, *replace_weak_scalars(op, args, kwargs))

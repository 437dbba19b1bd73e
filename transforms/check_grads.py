"""``check_grads``: compare derivatives with finite differences in random directions.

Source: ``check_grads`` of HIPS autograd and of ``jax.test_util``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import pytree
from ..eager.autograd.backward import gradients_of
from ..eager.autograd.grad_modes import enable_grad
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, GradientCheckError
from .arguments import check_callable, describe_leaf, name_of, tensor_leaves
from .forward import jvp
from .reverse import vjp

if TYPE_CHECKING:
    from ..registry.dtypes import DType
    from ..registry.types import Function, Pytree

MODES = ("fwd", "rev")
# The step of the differences and the tolerance, by the item size of the real dtype in bytes.
STEPS = {2: 2e-1, 4: 3e-2, 8: 2e-4}
TOLERANCES = {2: 2e-1, 4: 2e-2, 8: 1e-6}

# A function of tensors that returns a list of tensors.
FlatFunction = Callable[..., list[Tensor]]


def check_grads(
    f: Function,
    args: Sequence[Pytree],
    order: int = 2,
    modes: Sequence[str] = MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Compare the derivatives of a function with finite differences of its values, for each argument.

    Each tensor of the arguments is perturbed in a random direction. The directional derivative by forward mode must
    match a central difference with Richardson extrapolation; that by reverse mode must match its transpose. For higher
    orders the derivatives are functions that are checked in the same way.

    Args:
        f: a function of pytrees of floating-point or complex tensors that returns a pytree of tensors; results of
            integer dtype are ignored.
        args: the arguments at which the derivatives are checked, a tuple or a list; float64 is the most accurate dtype.
        order: the highest order of derivatives to check, from 1.
        modes: ``"fwd"``, ``"rev"`` or both; each order checks all of them.
        atol, rtol: the absolute and relative tolerance; None chooses it by dtype, 1e-6 for float64.
        eps: the step of the differences; None chooses it by dtype.
        seed: the seed of the random directions.

    Raises:
        GradientCheckError: a derivative is wrong; the message names the argument, the mode, both numbers and the error.
        ArgumentError: ``f`` is not callable, a mode is unknown, or ``args`` is not a tuple or a list.
        DTypeError: an argument holds integers or booleans.

    Source: ``jax.test_util.check_grads``.

    >>> import tandem as td
    >>> x = td.asarray([0.5, 1.5], dtype=td.float64)
    >>> td.check_grads(lambda x: (td.sin(x) * x).sum(), (x,), order=2)
    >>> td.check_grads(lambda x: td.stop_gradient(x) * x, (x,), order=1, modes=["rev"])
    Traceback (most recent call last):
    ...
    tandem.errors.GradientCheckError: check_grads(<lambda>), order 1, reverse mode: argument 0 ...
    """
    check_callable("check_grads", f)
    _check_arguments(args, modes)
    check = _Check(name_of("check_grads", f), tuple(modes), atol, rtol, eps, np.random.default_rng(seed))
    check.run(f, list(args), order, 1)


def check_backward(
    f: Function,
    args: Sequence[Tensor],
    order: int = 1,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """As :func:`check_grads` in reverse mode, with the gradients of the eager graph, as ``backward`` computes them.

    Raises:
        GradientCheckError: a gradient is wrong.
    """
    check = _GraphCheck(name_of("gradcheck", f), ("rev",), atol, rtol, eps, np.random.default_rng(0))
    check.run(f, list(args), order, 1)


def _check_arguments(args: object, modes: Sequence[str]) -> None:
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or isinstance(modes, str):
        raise ArgumentError(
            f"check_grads: modes is a list of {' and '.join(map(repr, MODES))}, not {modes!r}"
        )
    if not isinstance(args, (tuple, list)):
        raise ArgumentError("check_grads: args is a tuple or a list of the arguments")


class _Check:
    """The options of one call of :func:`check_grads`, and the checks."""

    def __init__(
        self,
        name: str,
        modes: tuple[str, ...],
        atol: float | None,
        rtol: float | None,
        eps: float | None,
        rng: np.random.Generator,
    ):
        self.name, self.modes = name, modes
        self.atol, self.rtol, self.eps, self.rng = atol, rtol, eps, rng

    def run(self, f: Function, args: Sequence[Pytree], order: int, now: int) -> None:
        """Check the derivatives of ``f`` up to ``order``; ``now`` is the order of the first ones, for messages."""
        leaves, treedef = tensor_leaves(self.name, args, range(len(args)), False)

        def flat(*values: Tensor) -> list[Tensor]:
            out = pytree.leaves(f(*treedef.unflatten(values)))
            return [asarray(x) for x in out if asarray(x).dtype.is_inexact]

        for mode in self.modes:
            for index in range(len(leaves)):
                self._check_argument(
                    mode, flat, leaves, index, f"order {now}", describe_leaf(index, treedef, range(len(args)))
                )
        if order > 1:
            self._check_next_order(flat, leaves, order, now)

    def _check_argument(
        self, mode: str, f: FlatFunction, leaves: list[Tensor], index: int, when: str, where: str
    ) -> None:
        """Check the derivative with respect to one tensor in one mode."""
        x = leaves[index]
        direction = self._draw_direction(x)

        def along(step: float) -> list[Tensor]:
            moved = x + direction * by_name("full")((), step, dtype=_real_dtype(x))
            return list(f(*leaves[:index], moved, *leaves[index + 1 :]))

        step = STEPS[_real_itemsize(x)] if self.eps is None else self.eps
        differences = _difference(along, step)
        weights = [self._draw_direction(y) for y in differences]
        expected = _dot(weights, differences)
        if mode == "fwd":
            zeros = [direction if i == index else by_name("zeros_like")(y) for i, y in enumerate(leaves)]
            result = _dot(weights, jvp(f, leaves, zeros)[1])
        else:
            result = _dot([direction], [self.pull_back(f, leaves, weights)[index]])
        self._compare(
            result, expected, x, f"{when}, {'forward' if mode == 'fwd' else 'reverse'} mode: {where}"
        )

    def _check_next_order(self, f: FlatFunction, leaves: list[Tensor], order: int, now: int) -> None:
        """Check the derivatives of the first derivatives."""
        directions = [self._draw_direction(x) for x in leaves]
        weights = [self._draw_direction(y) for y in f(*leaves)]
        if "fwd" in self.modes:
            self.run(lambda *xs: jvp(f, xs, directions)[1], leaves, order - 1, now + 1)
        if "rev" in self.modes:
            self.run(lambda *xs: self.pull_back(f, xs, weights), leaves, order - 1, now + 1)

    def pull_back(self, f: FlatFunction, leaves: Sequence[Tensor], weights: list[Tensor]) -> Sequence[Tensor]:
        """The gradients of the weighted sum of the results by each argument."""
        result: Sequence[Tensor] = vjp(f, *leaves)[1](weights)
        return result

    def _draw_direction(self, like: Tensor) -> Tensor:
        """Draw a normally distributed tensor of the same shape and dtype."""
        values = self.rng.normal(size=like.shape)
        if like.dtype.kind == "c":
            values = values + 1j * self.rng.normal(size=like.shape)
        return asarray(np.asarray(values)).astype(like.dtype)

    def _compare(self, derivative: float, expected: float, x: Tensor, when: str) -> None:
        default = TOLERANCES[_real_itemsize(x)]
        atol = default if self.atol is None else self.atol
        rtol = default if self.rtol is None else self.rtol
        error = abs(derivative - expected)
        if not error <= atol + rtol * abs(expected):
            raise GradientCheckError(
                f"{self.name}, {when} {_spec(x)}: the derivative in a random direction is {derivative:.8g}, and "
                f"differences give {expected:.8g}: the error is {error:.3g}, and "
                f"{atol + rtol * abs(expected):.3g} is allowed"
            )


class _GraphCheck(_Check):
    """The checks of gradients that the eager graph gives."""

    def pull_back(self, f: FlatFunction, leaves: Sequence[Tensor], weights: list[Tensor]) -> Sequence[Tensor]:
        """The gradients of the weighted sum of the results by each argument, recorded for further derivatives."""
        with enable_grad():
            xs = [x if x.requires_grad else x.detach().clone().requires_grad_() for x in leaves]
            pairs = [(y, weight) for y, weight in zip(f(*xs), weights) if y.requires_grad]
            if not pairs:
                return [by_name("zeros_like")(x) for x in leaves]
            results, cotangents = zip(*pairs)
            return gradients_of(  # type: ignore[return-value]  # none is None
                results, xs, cotangents, create_graph=True, materialize_grads=True
            )


def _spec(x: Tensor) -> str:
    return f"({x.dtype.name}{list(x.shape)})"


def _real_itemsize(x: Tensor) -> int:
    return x.itemsize // 2 if x.dtype.kind == "c" else x.itemsize


def _real_dtype(x: Tensor) -> DType:
    return by_name("real")(x).dtype if x.dtype.kind == "c" else x.dtype


def _difference(along: Callable[[float], list[Tensor]], step: float) -> list[Tensor]:
    """The derivative of a curve at 0 by Richardson extrapolation, with an error of order ``step**4``."""
    wide = zip(along(step), along(-step))
    near = zip(along(step / 2), along(-step / 2))
    return [(4.0 * ((c - d) / step) - (a - b) / (2.0 * step)) / 3.0 for (a, b), (c, d) in zip(wide, near)]


def _dot(one: Sequence[Tensor], two: Sequence[Tensor]) -> float:
    """The real part of the sum of elementwise products, which transposition preserves."""
    total = 0.0
    for a, b in zip(one, two):
        total += float(np.sum(np.asarray(a.detach().numpy() * b.detach().numpy())).real)
    return total
